/* One TLS connection: handshake and records; private to src/transport. */
#ifndef SPANCL_TRANSPORT_TLS_CONN_H
#define SPANCL_TRANSPORT_TLS_CONN_H

#include "transport/tls.h"

/* Make a conn over the connected socket `fd`, with the handshake `shake` still to be made. Both are
 * taken over, also on failure. The context lives at least as long as the handshake. SP_E_NOMEM. */
SP_NODISCARD int tls_conn_new(const struct crypto_ops *crypto, int fd, struct crypto_shake *shake,
                              struct conn **ret);

/* Continue the handshake. 0: done; SP_E_AGAIN: poll for POLLIN; SP_E_LINK: the connection was
 * closed; SP_E_AUTH: it failed, and tls_reason says why. */
SP_NODISCARD int tls_conn_shake(struct conn *c);

#endif
