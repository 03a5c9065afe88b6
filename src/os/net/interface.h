/* The network interfaces of this host. No state. */
#ifndef SPANCL_OS_NET_INTERFACE_H
#define SPANCL_OS_NET_INTERFACE_H

#include <stdbool.h>

#include "os/net/ip.h"

enum { INTERFACE_NAME_MAX = 16 }; /* with the NUL */

/* Return the number of the interface that has the address; 0: none has. */
unsigned interface_with(const struct ip *ip);

/* Get the name of an interface. False: there is none with this number. */
bool interface_name(unsigned number, char ret[INTERFACE_NAME_MAX]);

/* Return true if an interface that is up and has a link has the address; also if that is not known. */
bool interface_is_up_with(const struct ip *ip);

/* Open a descriptor that is readable when addresses or interfaces have come, gone or changed
 * (rtnetlink(7)). The caller closes it. -1: there is none. */
int interface_watch(void);

/* Read the pending messages of the descriptor. True: there were some. */
bool interface_changed(int fd);

#endif
