/* This host's network interfaces and their addresses. */
#ifndef SPANCL_OS_NET_INTERFACES_H
#define SPANCL_OS_NET_INTERFACES_H

#include "os/net/socket_address.h"

/* Open a descriptor that is readable when addresses or interfaces have come, gone or changed
 * (rtnetlink(7)). The caller closes it. -1: there is none. */
int interfaces_watch(void);

/* Read the pending messages of the descriptor. True: there were some. */
bool interfaces_changed(int fd);

/* Return true if this address of IP is one of this host's, on an interface that is up and has a link; also if that is
 * not known. */
bool interfaces_have(const struct socket_address *a);

#endif
