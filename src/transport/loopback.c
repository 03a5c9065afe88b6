/* Connecting to a host that is called by a name of loopback: in the clear if every address that the name resolves to
 * now is one of loopback, else with TLS. Each connect decides anew. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "transport/socket.h"
#include "transport/tls_conn.h"

/* "loopback:HOST:PORT[#FINGERPRINT]" */
static int loopback_connect(const char *address, int timeout_ms, struct conn **ret)
{
        char text[400];
        const char *where = address + strlen("loopback:");
        tls_because("%s", "");
        int n = snprintf(text, sizeof(text), "tcp:%.*s", (int)strcspn(where, "#"), where);
        if (n >= (int)sizeof(text))
                return SP_E_INVAL;
        int r = tcp_connect_loopback(text, timeout_ms, ret);
        if (r != SP_E_AUTH)
                return r;
        log_info("link", "%s is not loopback: the link is encrypted", text + 4);
        n = snprintf(text, sizeof(text), "tls:%s", where);
        return n < (int)sizeof(text) ? tls_connect(text, timeout_ms, ret) : SP_E_INVAL;
}

const struct transport_ops transport_loopback = {
        .name = "loopback",
        .caps = TRANSPORT_ENCRYPTED | TRANSPORT_PEERS,
        .connect = loopback_connect,
};
