#include "daemon/control.h"

#include "base/passing.h"

int control_send(int socket, enum control_kind kind, struct bytes data, int fd)
{
        uint8_t k = (uint8_t)kind;
        struct iovec iov[2] = { { &k, 1 }, { (void *)(uintptr_t)data.data, data.size } };
        if (data.size > CONTROL_MAX)
                return SP_E_LIMIT;
        ssize_t n = passing_send(socket, iov, 2, &fd, fd >= 0);
        return n < 0 ? (int)n : 0;
}

int control_receive(int socket, struct control *ret)
{
        uint8_t kind;
        struct iovec iov[2] = { { &kind, 1 }, { ret->data, CONTROL_MAX } };
        ssize_t n = passing_receive(socket, iov, 2, &ret->fd, 1);
        if (n < 0)
                return (int)n;
        ret->kind = kind;
        ret->size = (size_t)n - 1;
        ret->data[ret->size] = 0;
        return 0;
}
