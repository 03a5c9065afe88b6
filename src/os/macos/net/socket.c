/* Parts of os/net/socket.h that POSIX lacks. macOS takes no flags with the type of a socket. So a program that another
 * thread starts between two calls inherits the socket. */
#include "os/net/socket.h"

#include <errno.h>
#include <unistd.h>

#include "os/file.h"
#include "os/net/socket_make.h"

/* Writes fail at the end of a connection, also those of calls that take no flags. */
static void fail_without_signal(int fd)
{
        static const int one = 1;
        (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof(one));
}

static int close_failed(int fd)
{
        int error = errno;
        close(fd);
        errno = error;
        return -1;
}

static int own(int fd)
{
        if (fd < 0)
                return -1;
        fail_without_signal(fd);
        return socket_adopt(fd) ? fd : close_failed(fd);
}

int socket_make(int family, int type, int protocol)
{
        return own(socket(family, type, protocol));
}

int socket_accept(int fd)
{
        return own(accept(fd, NULL, NULL));
}

bool socket_other_user(int fd, unsigned *ret)
{
        uid_t user;
        gid_t group;
        if (getpeereid(fd, &user, &group) < 0)
                return false;
        *ret = user;
        return true;
}

bool socket_pair_streams(int ret[2])
{
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
                return false;
        for (int i = 0; i < 2; i++)
                fail_without_signal(pair[i]);
        if (file_keep_from_programs(pair[0]) && file_keep_from_programs(pair[1])) {
                ret[0] = pair[0];
                ret[1] = pair[1];
                return true;
        }
        (void)close_failed(pair[0]);
        (void)close_failed(pair[1]);
        return false;
}

/* Unix sockets have no SOCK_SEQPACKET there. */
bool socket_pair_packets(int ret[2])
{
        (void)ret;
        errno = EPROTONOSUPPORT;
        return false;
}

/* TCP_CONNECTION_INFO does not tell when the other host last acknowledged. */
bool socket_tcp_state(int fd, struct socket_tcp_state *ret)
{
        (void)fd, (void)ret;
        return false;
}

int socket_other_process(int fd)
{
        (void)fd;
        return -1;
}
