/* What a worker says to the supervisor, which does not trust it: the packets of their socket, and what becomes of
 * counters on their way to who looks at the server. */
#include "fuzz/target.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "daemon/control.h"
#include "session/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct control c;
        struct buf out = { 0 };
        int pair[2];
        fuzz_check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) ==
                   0);
        if (size)
                (void)!send(pair[1], data, size, MSG_NOSIGNAL);
        else
                close(pair[1]);
        int r = control_receive(pair[0], &c);
        fuzz_check(size ? r == 0 || (r == SP_E_PROTO && size > CONTROL_MAX + 1) : r == SP_E_LINK);
        if (!r) {
                fuzz_check(c.size == size - 1 && c.fd == -1 && !c.data[c.size]);
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
        return 0;
}
