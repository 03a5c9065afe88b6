#include "daemon/control.h"

#include "os/file.h"
#include "os/passing.h"

static int send_with(int socket, enum control_kind kind, struct bytes data, const int *fds,
                     size_t count)
{
        uint8_t k = (uint8_t)kind;
        struct iovec iov[2] = { { &k, 1 }, { (void *)(uintptr_t)data.data, data.size } };
        if (data.size > CONTROL_MAX)
                return SP_E_LIMIT;
        ssize_t n = passing_send(socket, iov, 2, fds, count);
        return n < 0 ? (int)n : 0;
}

int control_send(int socket, enum control_kind kind, struct bytes data, int fd)
{
        return send_with(socket, kind, data, &fd, fd >= 0);
}

int control_send_fork(int socket, struct bytes data, int control, int log)
{
        return send_with(socket, CONTROL_FORK, data, (int[]){ control, log }, 2);
}

int control_receive(int socket, struct control *ret)
{
        uint8_t kind;
        struct iovec iov[2] = { { &kind, 1 }, { ret->data, CONTROL_MAX } };
        int fds[2];
        ssize_t n = passing_receive(socket, iov, 2, fds, 2);
        ret->fd = fds[0];
        ret->log = fds[1];
        if (n < 0)
                return (int)n;
        ret->kind = kind;
        ret->size = (size_t)n - 1;
        ret->data[ret->size] = 0;
        return 0;
}

void control_drop(struct control *c)
{
        if (c->fd >= 0)
                (void)file_close(c->fd);
        if (c->log >= 0)
                (void)file_close(c->log);
        c->fd = c->log = -1;
}
