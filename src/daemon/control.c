#include "daemon/control.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int control_send(int socket, enum control_kind kind, struct bytes data, int fd)
{
        uint8_t k = (uint8_t)kind;
        struct iovec iov[2] = { { &k, 1 }, { (void *)(uintptr_t)data.data, data.size } };
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } ancillary = { 0 };
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
        if (data.size > CONTROL_MAX)
                return SP_E_LIMIT;
        if (fd >= 0) {
                m.msg_control = &ancillary;
                m.msg_controllen = sizeof(ancillary.space);
                struct cmsghdr *c = CMSG_FIRSTHDR(&m);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(c), &fd, sizeof(int));
        }
        ssize_t n;
        do
                n = sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n >= 0)
                return 0;
        return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS ? SP_E_AGAIN
                                                                            : SP_E_LINK;
}

int control_receive(int socket, struct control *ret)
{
        uint8_t kind;
        struct iovec iov[2] = { { &kind, 1 }, { ret->data, CONTROL_MAX } };
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } ancillary = { 0 };
        /* CMSG_SPACE would leave room for a second one, which nobody would close. */
        struct msghdr m = { .msg_iov = iov,
                            .msg_iovlen = 2,
                            .msg_control = &ancillary,
                            .msg_controllen = CMSG_LEN(sizeof(int)) };
        ssize_t n;
        do
                n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return errno == EAGAIN ? SP_E_AGAIN : SP_E_LINK;
        if (!n)
                return SP_E_LINK;
        ret->fd = -1;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
            c->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(&ret->fd, CMSG_DATA(c), sizeof(int));
        ret->kind = kind;
        ret->size = (size_t)n - 1;
        ret->data[ret->size] = 0;
        if (!(m.msg_flags & MSG_TRUNC))
                return 0;
        if (ret->fd >= 0)
                close(ret->fd);
        return SP_E_PROTO;
}
