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

/* Call `each` for every address of this host that other hosts may reach: not for those of loopback, and not for those
 * of IPv6 that are valid on one link only. `size`: IP_V4 or IP_V6: only such addresses; 0: all. */
void interface_each_address(size_t size, void (*each)(void *user, const struct ip *ip), void *user);

/* Return true if an interface that is up and has a link has the address; also if that is not known. */
bool interface_is_up_with(const struct ip *ip);

/* Open a descriptor that is readable when addresses or interfaces have come, gone or changed
 * (rtnetlink(7)). The caller closes it. -1: there is none. */
int interface_watch(void);

/* Read the pending messages of the descriptor. True: there were some. */
bool interface_changed(int fd);

#endif
