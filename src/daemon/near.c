#include "daemon/near.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/scratch.h"

#define LOG "near"

enum { WAIT_S = 1, NUMBER = 8 };

/* ---- supervisor ----------------------------------------------------------------------------- */

/* Is it a server of our own user that listens there? */
static bool is_own(int fd)
{
        struct ucred who;
        socklen_t size = sizeof(who);
        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

static int connect_to(const char *path)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int at = scratch_socket(path, NEAR_NAME);
        if (at < 0)
                return -1;
        snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", at);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        bool connected = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
        close(at);
        if (connected && is_own(fd))
                return fd;
        if (fd >= 0)
                close(fd);
        return -1;
}

void near_answer(int control, const struct control *asked)
{
        if (asked->size <= NUMBER)
                return;
        int fd = connect_to((const char *)asked->data + NUMBER);
        if (control_send(control, CONTROL_NEAR, bytes_of(asked->data, NUMBER), fd) < 0)
                log_debug(LOG, "a worker is not told of a server of this host");
        if (fd >= 0)
                close(fd);
}

/* ---- worker --------------------------------------------------------------------------------- */

/* One question at a time. */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        uint64_t number; /* of the last one */
        bool asking, answered;
        int fd;
} near = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

int near_connect(void *user, const char *path, struct conn **ret)
{
        uint8_t text[NUMBER + SCRATCH_PATH_MAX];
        struct timespec until;
        size_t len = strlen(path);
        int fd = -1;
        (void)user;
        if (len >= SCRATCH_PATH_MAX)
                return SP_E_REFUSED;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += WAIT_S;
        pthread_mutex_lock(&near.lock);
        while (near.asking)
                pthread_cond_wait(&near.changed, &near.lock);
        near.asking = true;
        near.answered = false;
        near.fd = -1;
        bytes_put_u64(text, ++near.number);
        memcpy(text + NUMBER, path, len);
        if (control_send(CONTROL_FD, CONTROL_NEAR, bytes_of(text, NUMBER + len), -1) == 0)
                while (!near.answered && !pthread_cond_timedwait(&near.changed, &near.lock, &until))
                        ;
        fd = near.fd;
        near.asking = false;
        pthread_cond_broadcast(&near.changed);
        pthread_mutex_unlock(&near.lock);
        return fd < 0 ? SP_E_REFUSED : conn_from_fd(fd, ret);
}

void near_answered(struct control *answer)
{
        pthread_mutex_lock(&near.lock);
        if (near.asking && !near.answered && answer->size == NUMBER &&
            bytes_get_u64(answer->data) == near.number) {
                near.fd = answer->fd;
                answer->fd = -1;
                near.answered = true;
                pthread_cond_broadcast(&near.changed);
        }
        pthread_mutex_unlock(&near.lock);
        if (answer->fd >= 0)
                close(answer->fd);
        answer->fd = -1;
}
