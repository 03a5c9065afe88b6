/* Changes of this host's network addresses. Connections from an address that is gone are lost,
 * though the system does not say so for a long time. A host that was unreachable may be reachable
 * now. */
#ifndef SPANCL_TRANSPORT_OWN_ADDRESS_H
#define SPANCL_TRANSPORT_OWN_ADDRESS_H

#include <stdbool.h>

#include "transport/transport.h"

/* A descriptor that is readable when addresses or interfaces have come, gone or changed
 * (rtnetlink(7)). The caller closes it. -1: there is none, and no change is noticed. */
int own_address_watch(void);

/* Read the pending messages of the descriptor. True: there were some. */
bool own_address_changed(int fd);

/* Does the connection use an address that could be lost: an IP address, but not this host's
 * loopback? */
bool own_address_may_go(const struct conn *c);

/* Is its address still one of this host's, on an interface that is up and has a link? True also if
 * that is not known. */
bool own_address_is_here(const struct conn *c);

#endif
