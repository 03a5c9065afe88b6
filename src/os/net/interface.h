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

#endif
