/* A fabric connection is a connection between two servers whose large pieces are written into the
 * other side's memory by libfabric (transport/rma.h). The original connection stays open: it
 * carries small pieces, and the two sides agree over it where large ones go.
 * docs/internals/fabric.md.
 *
 * The side that dialled offers providers. The other side opens an endpoint of the first provider
 * that both have, and sends its address. Then both call fabric_begin at the same point of the
 * stream. */
#ifndef SPANCL_TRANSPORT_FABRIC_H
#define SPANCL_TRANSPORT_FABRIC_H

#include "transport/rma.h"
#include "transport/transport.h"

enum { FABRIC_NAMES_MAX = 256 };

/* Providers that one side of a connection could use. */
struct fabric_choice {
        char names[FABRIC_NAMES_MAX]; /* separated by commas, the best first */
        bool named;                   /* by the user, who trusts the network */
};

/* Set the value of --fabric: "off", "auto" or a provider's name. Called once, before any thread
 * uses the rest. A named provider that cannot be used is logged. Before this call: off. */
void fabric_configure(const char *setting);

/* Does a process with this setting need network sockets of its own? libfabric makes them, unless it
 * is off or works over shared memory. */
bool fabric_needs_network(const char *setting);

/* The choice of this process, as configured. */
const struct fabric_choice *fabric_chosen(void);

/* The providers of the choice to offer over this connection, separated by commas; "": none. `ret`
 * has FABRIC_NAMES_MAX bytes. */
void fabric_offer(const struct conn *c, const struct fabric_choice *of, char *ret);

/* Open an endpoint of the first provider of an offer that may be used over this connection. NULL:
 * there is none, or it could not be opened, which the log says. */
struct rma *fabric_open(const struct conn *c, struct bytes offer);

/* Replace `*c` by a fabric connection, or close it on failure. `r` is taken over. On the side that
 * dialled, `other` is the address of the other side's endpoint. If `r` is NULL there, no endpoint
 * could be opened, and both sides stay on the plain connection. On the other side `other` is empty,
 * because the address arrives over the connection. SP_E_NOMEM, SP_E_LIMIT, SP_E_LINK. */
SP_NODISCARD int fabric_begin(struct conn **c, struct rma *r, struct bytes other, uint64_t form);

/* True if the connection was lost because the fabric failed. The next one should do without. */
bool fabric_failed(const struct conn *c);

/* Bytes of the stream that the fabric carried since the last call. 0 on other conns. */
void fabric_count(struct conn *c, uint64_t *ret_sent, uint64_t *ret_received);

#endif
