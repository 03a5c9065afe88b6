/* Names of hosts, resolved as the system does, and routes to hosts. No state; any thread. */
#ifndef SPANCL_OS_NET_RESOLVE_H
#define SPANCL_OS_NET_RESOLVE_H

#include <stddef.h>

#include "base/status.h"

enum {
        RESOLVE_ADDRESSES = 64,
        RESOLVE_TEXT_MAX = 80, /* an address with the name of its interface, and the NUL */
};

/* A host's addresses, as text. */
struct resolved {
        size_t count;
        char list[RESOLVE_ADDRESSES][RESOLVE_TEXT_MAX];
};

/* Resolve a name, or take an address. Waits for servers of names. Further addresses are left out.
 * SP_E_HOST: it does not resolve; *ret_why is the reason, static. */
SP_NODISCARD int resolve_host(const char *host, struct resolved *ret, const char **ret_why);

/* Find the address of this host from which the system would send to `address`, one of resolve_host's.
 * Nothing is sent. Returns 0, or the errno: there is no route. */
SP_NODISCARD int resolve_route(const char *address, char ret[RESOLVE_TEXT_MAX]);

#endif
