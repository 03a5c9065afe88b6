/* The kinds of addresses that a found record can have. Stateless. */
#ifndef SPANCL_DISCOVER_REACH_H
#define SPANCL_DISCOVER_REACH_H

enum reach {
        REACH_NOWHERE, /* no host's: unspecified, multicast, or IPv4 within IPv6 */
        REACH_LOOPBACK,
        REACH_LINK, /* link-local IPv6, which needs an interface */
        REACH_HOST,
};

/* The kind of an address. `family`: AF_INET or AF_INET6, with 4 or 16 bytes in the order of the network. */
enum reach reach_of(int family, const void *bytes);

#endif
