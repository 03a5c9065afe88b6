/* The kinds of addresses that a found record can have. Stateless. */
#ifndef SPANCL_DISCOVER_REACH_H
#define SPANCL_DISCOVER_REACH_H

#include "os/net/ip.h"

enum reach {
        REACH_NOWHERE, /* no host's: unspecified, multicast, or IPv4 within IPv6 */
        REACH_LOOPBACK,
        REACH_LINK, /* link-local IPv6, which needs an interface */
        REACH_HOST,
};

/* Return the kind of an address. */
enum reach reach_of(const struct ip *ip);

#endif
