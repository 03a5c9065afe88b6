/* The messages of a worker to the supervisor, which does not trust it. They are the packets of
 * their socket. Also the way of the worker's counters to a client that queries the server. */
#include "fuzz/target.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "daemon/control.h"
#include "os/passing.h"
#include "session/hello.h"

/* The descriptor that the next open gets. */
static int next_descriptor(void)
{
        int fd = dup(STDERR_FILENO);
        close(fd);
        return fd;
}

/* The packet, with as many descriptors as its first byte says. */
static void say(int socket, const uint8_t *data, size_t size)
{
        static const int fds[PASSING_MAX] = { STDERR_FILENO, STDERR_FILENO, STDERR_FILENO };
        struct iovec iov = { (void *)(uintptr_t)data, size };
        (void)!passing_send(socket, &iov, 1, fds, data[0] % (PASSING_MAX + 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct control c;
        struct buf out = { 0 };
        int pair[2], free_one = next_descriptor();
        fuzz_check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) ==
                   0);
        if (size)
                say(pair[1], data, size);
        else
                close(pair[1]);
        int r = control_receive(pair[0], &c);
        fuzz_check(size ? r == 0 || (r == SP_E_PROTO && size > CONTROL_MAX + 1) : r == SP_E_LINK);
        if (!r) {
                fuzz_check(c.size == size - 1 && !c.data[c.size]);
                fuzz_check((c.fd >= 0) == (data[0] % (PASSING_MAX + 1) > 0));
                control_drop(&c);
                const struct wire_session_stats m = {
                        .name = bytes_str("name"),
                        .links = bytes_of(c.data + 8, c.size >= 8 ? c.size - 8 : 0),
                };
                (void)!hello_put_stats(&out, &m);
                buf_fini(&out);
        }
        close(pair[0]);
        if (size)
                close(pair[1]);
        fuzz_check(next_descriptor() == free_one);
        return 0;
}
