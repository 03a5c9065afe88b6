/* Both sides of TLS below their connections: the module, keys, connecting, listening; private to src/transport. */
#ifndef SPANCL_TRANSPORT_TLS_DIAL_H
#define SPANCL_TRANSPORT_TLS_DIAL_H

#include "transport/tls.h"

/* struct transport_ops. */
int tls_connect(const char *address, int timeout_ms, struct conn **ret);
int tls_listen(const char *address, struct listener **ret);
int tls_listener_accept(struct listener *l, struct conn **ret);
void tls_listener_close(struct listener *l);

/* Set tls_reason. */
void tls_because(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
