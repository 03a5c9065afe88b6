/* Connections of the nano client by the sockets of POSIX: for tests, and as an example of a port. */
#ifndef SPANCL_NANO_POSIX_TRANSPORT_H
#define SPANCL_NANO_POSIX_TRANSPORT_H

#include <stdbool.h>

#include "spancl_nano.h"

struct posix_transport {
        const char *host; /* an IPv4 address in digits */
        unsigned port;
        struct {
                int fd1; /* its descriptor, plus 1; 0: none */
                bool full;
        } lanes[2];
};

/* Return the four functions over *p. The caller sets only host and port; the other members are zero. */
struct spancl_nano_transport posix_transport(struct posix_transport *p);

/* Close the connections. */
void posix_transport_close(struct posix_transport *p);

#endif
