/* The process at the other end of a connection: has it ended, or was only the connection lost?
 *
 * A process that ends has its connections closed by its system, in order (TCP's FIN). Proxies do
 * that, too, so it counts only on a direct connection: both sides see the same two addresses. One
 * address is not enough: a proxy on the client's host may have the client's port by chance. A side
 * that gives a connection up and comes back resets it (conn_reset), as devices in between do. So
 * FIN on a direct connection means that the process has ended. Any thread; no locks. */
#ifndef SPANCL_TRANSPORT_OTHER_END_H
#define SPANCL_TRANSPORT_OTHER_END_H

#include "transport/transport.h"

enum conn_dialler { CONN_DIALLED_HERE, CONN_DIALLED_THERE };

/* Return a digest of the addresses and ports of both ends, the dialling end first, made with `key`,
 * which both sides know. Equal digests: nothing in between translates addresses. A digest tells no
 * address to others. 0: an end has no address of IP. */
uint64_t conn_ends_digest(const struct conn *c, enum conn_dialler dialler, const uint64_t key[2]);

/* Has the other side closed the TCP connection in order? False if it was reset, if nothing came for
 * too long, and for other transports. Call it before the conn is closed. */
bool conn_was_closed(const struct conn *c);

/* Close a TCP connection by a reset when conn_close comes: unsent bytes are dropped. Harmless for
 * other transports. */
void conn_reset(struct conn *c);

/* Open a descriptor that is readable once the process at the other end has ended (pidfd). Only over
 * shared memory: other Unix sockets may be forwarded. -1: the system can't tell (before Linux 6.5).
 * The caller closes it. */
int conn_process(const struct conn *c);

#endif
