/* What a worker asks the supervisor to connect it to (daemon/near.h), and what the worker takes for an answer. Nothing but the
 * sockets of servers is ever connected to, and no descriptor stays. The first byte of the input says what the path begins
 * with. */
#include "fuzz/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/near.h"
#include "daemon/scratch.h"

enum { NUMBER = 8 };

static char base[64], folder[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX + 16];
static int listener, lock;

static void clean_up(void)
{
        scratch_remove(base);
}

static void listen_at(int fd, const char *where)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        fuzz_check(snprintf(a.sun_path, sizeof(a.sun_path), "%s", where) < (int)sizeof(a.sun_path));
        fuzz_check(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 64) == 0);
}

/* A server's socket, and things beside it that are none. */
static void begin(void)
{
        char other[SCRATCH_PATH_MAX + 16];
        int lured = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        snprintf(base, sizeof(base), "/tmp/fuzz-near.XXXXXX");
        fuzz_check(mkdtemp(base) != NULL && setenv("TMPDIR", base, 1) == 0);
        atexit(clean_up);
        fuzz_check(scratch_make(folder, &lock) == 0);
        snprintf(path, sizeof(path), "%s/" NEAR_NAME, folder);
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        listen_at(listener, path);
        snprintf(other, sizeof(other), "%s/other", folder);
        listen_at(lured, other);
        snprintf(other, sizeof(other), "%s/spancld.aaaaaa", base);
        fuzz_check(symlink(folder, other) == 0);
        snprintf(other, sizeof(other), "%s/spancld.bbbbbb", base);
        fuzz_check(mkdir(other, 0700) == 0);
        snprintf(other, sizeof(other), "%s/spancld.bbbbbb/" NEAR_NAME, base);
        fuzz_check(symlink(path, other) == 0);
}

static int next_descriptor(void)
{
        int fd = dup(STDERR_FILENO);
        close(fd);
        return fd;
}

static void put(struct control *c, const char *text)
{
        size_t n = strlen(text), room = CONTROL_MAX - c->size;
        n = n < room ? n : room;
        memcpy(c->data + c->size, text, n);
        c->size += n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct control asked, answer;
        int pair[2];
        if (!*base)
                begin();
        int free_one = next_descriptor();
        memset(&asked, 0, sizeof(asked));
        asked = (struct control){ .kind = CONTROL_NEAR, .fd = -1 };
        memcpy(asked.data, "number 1", NUMBER);
        asked.size = NUMBER;
        const char *begins[] = { "", base, folder, path };
        if (size) {
                put(&asked, begins[data[0] % 4]);
                size_t n = size - 1, room = CONTROL_MAX - asked.size;
                n = n < room ? n : room;
                memcpy(asked.data + asked.size, data + 1, n);
                asked.size += n;
        }
        fuzz_check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) ==
                   0);
        near_answer(pair[0], &asked);
        int r = control_receive(pair[1], &answer);
        fuzz_check(r == (asked.size > NUMBER ? 0 : SP_E_AGAIN));
        if (!r) {
                fuzz_check(answer.kind == CONTROL_NEAR && answer.size == NUMBER &&
                           !memcmp(answer.data, "number 1", NUMBER));
                fuzz_check((answer.fd >= 0) == !strcmp((char *)asked.data + NUMBER, path));
        }
        int came = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        fuzz_check((came >= 0) == (!r && answer.fd >= 0));
        if (came >= 0)
                close(came);
        /* Nobody has asked: what a worker gets is closed. */
        if (!r)
                near_answered(&answer);
        asked.fd = dup(STDERR_FILENO);
        near_answered(&asked);
        fuzz_check(asked.fd < 0);
        close(pair[0]);
        close(pair[1]);
        fuzz_check(next_descriptor() == free_one);
        return 0;
}
