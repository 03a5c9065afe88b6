#include "backend/native/allocation.h"

#include <string.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/passing.h"
#include "os/poll.h"

/* For an answer: CUDA's library starts with the first request of the host. */
enum { ANSWER_MS = 1000 };

/* The lock guards all of it. */
static struct {
        struct lock lock;
        int socket; /* -1: none */
} shared = { .lock = LOCK_INIT, .socket = -1 };

static void use(int socket) REQUIRES(shared.lock)
{
        if (shared.socket >= 0)
                (void)file_close(shared.socket);
        shared.socket = socket;
}

void allocation_use(int socket)
{
        lock_take(&shared.lock);
        use(socket);
        lock_release(&shared.lock);
}

/* Receive the answer. SP_E_LINK: the allocator is gone, or does not answer. */
static int receive(int *ret_fd) REQUIRES(shared.lock)
{
        struct allocation_reply reply;
        struct iovec iov = { &reply, sizeof(reply) };
        struct pollfd p = { .fd = shared.socket, .events = POLLIN };
        uint64_t deadline_ns = clock_now_ns() + ANSWER_MS * 1000000ull;
        int fd = -1;
        while (poll_until(&p, 1, deadline_ns) < 0) /* a signal */
                ;
        ssize_t n = passing_receive(shared.socket, &iov, 1, &fd, 1);
        int r = n == sizeof(reply) ? reply.status : SP_E_LINK;
        if (!r && fd >= 0) {
                *ret_fd = fd;
                return 0;
        }
        if (fd >= 0)
                (void)file_close(fd);
        return r < 0 ? r : SP_E_PROTO;
}

static int get(struct allocation_request *wanted, int *ret_fd) REQUIRES(shared.lock)
{
        struct iovec iov = { wanted, sizeof(*wanted) };
        if (shared.socket < 0 ||
            passing_send(shared.socket, &iov, 1, NULL, 0) != (ssize_t)sizeof(*wanted))
                return SP_E_LINK;
        return receive(ret_fd);
}

int allocation_get(const uint8_t device[BACKEND_DEVICE_NAME], size_t size, int *ret_fd)
{
        struct allocation_request wanted = { .size = size };
        memcpy(wanted.device, device, sizeof(wanted.device));
        lock_take(&shared.lock);
        int r = get(&wanted, ret_fd);
        if (r == SP_E_LINK)
                use(-1);
        lock_release(&shared.lock);
        return r;
}
