/* What changes in this host's network: connections from an address that is gone are lost, though the system
 * does not say so for a long time, and what could not be reached may be reached now. */
#ifndef SPANCL_LOOP_ADDRESS_H
#define SPANCL_LOOP_ADDRESS_H

#include <stdbool.h>

#include "transport/transport.h"

/* A descriptor that is readable when addresses or interfaces have come, gone or changed (rtnetlink(7)). -1: there
 * is none, and nothing is noticed. The caller's to close. */
int address_watch(void);

/* Take what it has to say. True: there was something. */
bool address_changed(int fd);

/* Has the connection an address that could be lost: one of IP, but not this host's loopback? */
bool address_may_go(const struct conn *c);

/* Is its address still one of this host's, on an interface that is up and has a link? True also if that can't be
 * told. */
bool address_is_here(const struct conn *c);

#endif
