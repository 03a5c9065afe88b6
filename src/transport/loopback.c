/* Connecting to a host that is called by a name of loopback: in the clear if every address that the name resolves to
 * now is one of loopback, else with TLS. Each connect decides anew. */
#include "base/log.h"
#include "transport/stream.h"
#include "transport/tcp.h"
#include "transport/tls_conn.h"
#include "transport/tls_dial.h"

static int loopback_connect(const char *address, int timeout_ms, struct conn **ret)
{
        struct address at;
        char where[ADDRESS_MAX];
        tls_because("%s", "");
        int r = address_parse(address, &at);
        if (!r)
                r = tcp_connect_loopback(&at, timeout_ms, ret);
        if (r != SP_E_AUTH)
                return r;
        address_show(address, where);
        log_info("link", "%s is not loopback: the link is encrypted", where);
        return tls_connect(address, timeout_ms, ret);
}

const struct transport_ops transport_loopback = {
        .name = "loopback",
        .caps = TRANSPORT_ENCRYPTED | TRANSPORT_PEERS | TRANSPORT_HOSTS,
        .below = &transport_tcp,
        .connect = loopback_connect,
};
