/* Connections of the nano client by lwIP's raw interface, without an operating system (NO_SYS): an example of a
 * port. */
#ifndef SPANCL_NANO_LWIP_TRANSPORT_H
#define SPANCL_NANO_LWIP_TRANSPORT_H

#include <stdbool.h>

#include "lwip/ip_addr.h"
#include "spancl_nano.h"

struct tcp_pcb;
struct pbuf;

struct lwip_transport {
        ip_addr_t host;
        uint16_t port;
        /* Hand the frames that the network device has received to lwIP (netif.input). True: there were some. */
        bool (*poll)(void);
        /* Sleep until an interrupt comes; the clock's ends the sleep at the latest. NULL: do not sleep. */
        void (*sleep)(void);
        struct lwip_lane {
                struct lwip_transport *transport;
                struct tcp_pcb *pcb; /* NULL: there is no connection */
                struct pbuf *come;   /* received, not taken; NULL: nothing */
                bool connected, ended;
        } lanes[2];
};

/* Return the four functions over *t. The caller sets only the members before `lanes`; the others are zero. */
struct spancl_nano_transport lwip_transport(struct lwip_transport *t);

#endif
