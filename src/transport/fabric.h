/* From a connection between two servers to one whose large pieces are written into the other side's memory by
 * libfabric (transport/rma.h). The connection stays open: what is small goes over it, and it agrees on where
 * the rest goes. docs/internals/fabric.md.
 *
 * The side that dialled offers providers, the other one opens an endpoint of the first that both have, and
 * tells where it is; then both call fabric_begin at the same point of the stream. */
#ifndef SPANCL_TRANSPORT_FABRIC_H
#define SPANCL_TRANSPORT_FABRIC_H

#include "transport/rma.h"
#include "transport/transport.h"

enum { FABRIC_NAMES_MAX = 256 };

/* Providers that one side of a connection could use. */
struct fabric_choice {
        char names[FABRIC_NAMES_MAX]; /* separated by commas, the best first */
        bool named;                   /* by the user, who trusts its network */
};

/* Set the value of --fabric: "off", "auto" or a provider's name. Called once, before any thread that uses the rest;
 * a provider that it names and that cannot be used is logged. Until then: off. */
void fabric_configure(const char *setting);

/* Does a process with this setting need sockets of its own? libfabric makes them, but where it is not used, and for shared
 * memory. */
bool fabric_needs_network(const char *setting);

/* This process's, as configured. */
const struct fabric_choice *fabric_chosen(void);

/* Those of the choice to offer over this connection, separated by commas; "": none. `ret` has FABRIC_NAMES_MAX. */
void fabric_offer(const struct conn *c, const struct fabric_choice *of, char *ret);

/* Open an endpoint of the first provider of an offer that may be used over this connection. NULL: there is
 * none, or it could not be opened, which the log says. */
struct rma *fabric_open(const struct conn *c, struct bytes offer);

/* `*c` is replaced, or closed when it fails; `r` is taken over. `other`: where the other side's endpoint is
 * (on the side that dialled; r NULL: it could not follow, and both go on as they are); empty on the other
 * side, which hears of it. SP_E_NOMEM, SP_E_LIMIT, SP_E_LINK. */
SP_NODISCARD int fabric_begin(struct conn **c, struct rma *r, struct bytes other, uint64_t form);

/* Was the connection lost because the fabric failed? Then the next one is better without. */
bool fabric_failed(const struct conn *c);

/* Bytes of the stream that went by the fabric since this was asked last. */
void fabric_count(struct conn *c, uint64_t *ret_sent, uint64_t *ret_received);

#endif
