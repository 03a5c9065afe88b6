#include "os/passing.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/net/socket_io.h"

union ancillary {
        struct cmsghdr header;
        char space[CMSG_SPACE(PASSING_MAX * sizeof(int))];
};

void passing_refuse(int socket)
{
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
        static const int none = 0;
        (void)setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
}

ssize_t passing_send(int socket, struct iovec *iov, size_t n, const int *fds, size_t count)
{
        union ancillary a = { 0 };
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
        assert(count <= PASSING_MAX);
        if (count) {
                m.msg_control = &a;
                m.msg_controllen = CMSG_SPACE(count * sizeof(int));
                struct cmsghdr *c = CMSG_FIRSTHDR(&m);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(count * sizeof(int));
                memcpy(CMSG_DATA(c), fds, count * sizeof(int));
        }
        ssize_t r;
        do
                r = sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (r < 0 && errno == EINTR);
        if (r >= 0)
                return r;
        return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS ? SP_E_AGAIN
                                                                            : SP_E_LINK;
}

ssize_t passing_receive(int socket, struct iovec *iov, size_t n, int *ret_fds, size_t max)
{
        union ancillary a = { 0 };
        assert(max <= PASSING_MAX);
        /* CMSG_SPACE would leave room for one more descriptor, which would never be closed. */
        struct msghdr m = { .msg_iov = iov,
                            .msg_iovlen = n,
                            .msg_control = &a,
                            .msg_controllen = CMSG_LEN(max * sizeof(int)) };
        for (size_t i = 0; i < max; i++)
                ret_fds[i] = -1;
        /* If the other side closed before it read our bytes, Linux reports that once, and then
         * gives the bytes that it had sent. */
        ssize_t r;
        int resets = 0;
        do
                r = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        while (r < 0 && (errno == EINTR || (errno == ECONNRESET && !resets++)));
        if (r <= 0)
                return r < 0 && errno == EAGAIN ? SP_E_AGAIN : SP_E_LINK;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
            c->cmsg_len >= CMSG_LEN(sizeof(int)) && c->cmsg_len <= CMSG_LEN(max * sizeof(int)))
                memcpy(ret_fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
        if (!(m.msg_flags & MSG_TRUNC))
                return r;
        for (size_t i = 0; i < max; i++) {
                if (ret_fds[i] >= 0)
                        close(ret_fds[i]);
                ret_fds[i] = -1;
        }
        return SP_E_PROTO;
}

ssize_t passing_peek(int socket, void *ret, size_t size)
{
        return socket_peek(socket, ret, size);
}
