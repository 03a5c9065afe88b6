#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "transport/socket.h"

static int parse(const char *address, struct sockaddr_un *ret)
{
        const char *path = address + 5;
        if (strncmp(address, "unix:", 5) || !*path || strlen(path) >= sizeof(ret->sun_path))
                return SP_E_INVAL;
        *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
        strcpy(ret->sun_path, path);
        return 0;
}

static int unix_connect(const char *address, int timeout_ms, struct conn **ret)
{
        struct sockaddr_un a;
        int r = parse(address, &a);
        if (r < 0)
                return r;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return socket_status(errno);
        /* Connecting waits while the listener's backlog is full; that wait takes the send timeout. */
        struct timeval tv = { .tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000 };
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
        do
                r = connect(fd, (struct sockaddr *)&a, sizeof(a));
        while (r < 0 && errno == EINTR);
        if (r < 0) {
                r = errno == EAGAIN   ? SP_E_TIMEOUT
                    : errno == EACCES ? SP_E_AUTH
                                      : socket_status(errno);
                close(fd);
                return r;
        }
        return socket_conn_new(&transport_unix, fd, ret);
}

/* Take away a socket file that nobody listens on any more. */
static bool remove_stale(const struct sockaddr_un *a)
{
        struct stat st;
        if (lstat(a->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
                return false;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return false;
        bool stale =
                connect(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 && errno == ECONNREFUSED;
        close(fd);
        return stale && !unlink(a->sun_path);
}

static int unix_listen(const char *address, struct listener **ret)
{
        struct sockaddr_un a;
        int r = parse(address, &a);
        if (r < 0)
                return r;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return socket_status(errno);
        r = bind(fd, (struct sockaddr *)&a, sizeof(a));
        if (r < 0 && errno == EADDRINUSE && remove_stale(&a))
                r = bind(fd, (struct sockaddr *)&a, sizeof(a));
        if (r < 0) {
                r = errno == ENOENT ? SP_E_INVAL : socket_status(errno);
                close(fd);
                return r;
        }
        r = socket_listener_new(&transport_unix, fd, ret);
        if (r < 0)
                unlink(a.sun_path);
        else
                snprintf((*ret)->address, sizeof((*ret)->address), "unix:%s", a.sun_path);
        return r;
}

static void unix_listener_close(struct listener *l)
{
        if (!l->inherited)
                unlink(l->address + 5);
        close(l->fd);
        mem_free(l);
}

const struct transport_ops transport_unix = {
        .name = "unix",
        .caps = TRANSPORT_SAME_HOST | TRANSPORT_PASSES_FDS | TRANSPORT_KNOWS_USER |
                TRANSPORT_DIRECT | TRANSPORT_WIDE,
        .connect = unix_connect,
        .listen = unix_listen,
        .accept = socket_accept,
        .listener_close = unix_listener_close,
        .sendv = socket_sendv,
        .recvv = socket_recvv,
        .close = socket_close,
};
