/* The connection to avahi-daemon, over D-Bus. It is made again when the daemon or the bus comes back. One thread; all
 * callbacks run in avahi_link_run. */
#ifndef SPANCL_DISCOVER_AVAHI_LINK_H
#define SPANCL_DISCOVER_AVAHI_LINK_H

#include <avahi-client/client.h>
#include <avahi-common/address.h>
#include <avahi-common/simple-watch.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/net/ip.h"

struct avahi_link {
        AvahiSimplePoll *poll;
        AvahiClient *client; /* NULL: none now */
        bool broken;         /* the client is of no use any more */
        bool reported;       /* standard error says so, while the daemon is not there */
        uint64_t again_ns;   /* when to make a client */

        /* The owner's callbacks. `state`: the daemon's state, while it is there. `lost`: the objects of the client are about to
         * be freed. `absent`: there is no daemon now; each attempt to connect calls it. `due_ns` is the time of
         * the next call of `expire`; UINT64_MAX: none. */
        void (*state)(AvahiClient *client, AvahiClientState state);
        void (*lost)(void);
        void (*absent)(void);
        void (*expire)(void);
        uint64_t due_ns;
};

/* Make the poll. False: out of memory. */
bool avahi_link_init(struct avahi_link *l);

/* Run until `fd` can be read and `readable` returns false, or, if `readable` is NULL, until the other end of `fd` is
 * closed. */
void avahi_link_run(struct avahi_link *l, int fd, bool (*readable)(int fd));

/* Convert an address. */
struct ip avahi_link_ip(const AvahiAddress *a);

#endif
