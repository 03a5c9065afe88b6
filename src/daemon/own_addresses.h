/* The addresses of this host that other hosts can reach: those of its interfaces, without loopback and link-local
 * ones. Stateless. */
#ifndef SPANCL_DAEMON_OWN_ADDRESSES_H
#define SPANCL_DAEMON_OWN_ADDRESSES_H

#include <netinet/in.h>
#include <stddef.h>

typedef char own_address[INET6_ADDRSTRLEN];

/* Write at most `max` addresses as numbers. `family` AF_UNSPEC: IPv4 and IPv6. Returns how many. */
size_t own_addresses(int family, own_address *ret, size_t max);

#endif
