#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "os/file.h"
#include "os/file_info.h"
#include "os/net/socket.h"
#include "transport/stream.h"

static const char scheme[] = "unix:";

static int parse(const char *address, const char **ret_path, struct socket_address *ret)
{
        size_t n = sizeof(scheme) - 1;
        *ret_path = address + n;
        return !strncmp(address, scheme, n) && socket_address_of_path(*ret_path, ret) ? 0
                                                                                      : SP_E_INVAL;
}

static int unix_connect(const char *address, int timeout_ms, struct conn **ret)
{
        struct socket_address a;
        const char *path;
        int r = parse(address, &path, &a);
        if (r < 0)
                return r;
        int fd = socket_new(&a);
        if (fd < 0)
                return stream_status(errno);
        if (!socket_connect_wait(fd, &a, (unsigned)timeout_ms)) {
                r = errno == EAGAIN   ? SP_E_TIMEOUT
                    : errno == EACCES ? SP_E_AUTH
                                      : stream_status(errno);
                (void)file_close(fd);
                return r;
        }
        return stream_conn_new(&transport_unix, fd, ret);
}

/* Take away a socket file that nobody listens on any more. */
static bool remove_stale(const char *path, const struct socket_address *a)
{
        struct file_info info;
        if (!file_info(path, false, &info) || info.kind != FILE_IS_SOCKET)
                return false;
        int fd = socket_new(a);
        if (fd < 0)
                return false;
        bool stale = !socket_connect(fd, a) && errno == ECONNREFUSED;
        (void)file_close(fd);
        return stale && file_unlink(path);
}

static int unix_listen(const char *address, struct listener **ret)
{
        struct socket_address a;
        const char *path;
        int r = parse(address, &path, &a);
        if (r < 0)
                return r;
        int fd = socket_new(&a);
        if (fd < 0)
                return stream_status(errno);
        bool bound = socket_bind(fd, &a, false);
        if (!bound && errno == EADDRINUSE && remove_stale(path, &a))
                bound = socket_bind(fd, &a, false);
        if (!bound) {
                r = errno == ENOENT ? SP_E_INVAL : stream_status(errno);
                (void)file_close(fd);
                return r;
        }
        r = stream_listener_new(&transport_unix, fd, ret);
        if (r < 0)
                (void)file_unlink(path);
        else
                snprintf((*ret)->address, sizeof((*ret)->address), "%s%s", scheme, path);
        return r;
}

static void unix_listener_close(struct listener *l)
{
        if (!l->inherited)
                (void)file_unlink(l->address + sizeof(scheme) - 1);
        stream_listener_close(l);
}

const struct transport_ops transport_unix = {
        .name = "unix",
        .caps = TRANSPORT_SAME_HOST | TRANSPORT_PASSES_FDS | TRANSPORT_KNOWS_USER |
                TRANSPORT_DIRECT | TRANSPORT_WIDE,
        .connect = unix_connect,
        .listen = unix_listen,
        .accept = stream_accept,
        .listener_close = unix_listener_close,
        .sendv = stream_sendv,
        .recvv = stream_recvv,
        .close = stream_close,
};
