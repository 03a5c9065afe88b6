/* Conns over memory that two processes of one host share. */
#ifndef SPANCL_TRANSPORT_SHM_H
#define SPANCL_TRANSPORT_SHM_H

#include "transport/transport.h"

/* Replace a Unix socket by shared memory. Both sides have agreed on it and stand at the
 * same point of the stream; one offers, the other accepts. `*c` is replaced, or closed on failure.
 * If either side can't share memory, both go on over the socket.
 *
 * `size` is the size of the ring of each direction, a power of two. `arena` is the size of memory
 * for other purposes, whose pages are allocated when they are touched; 0: none. shm_accept returns
 * SP_E_AGAIN, and `*c` is unchanged, while the offer has not arrived. SP_E_LINK; shm_accept also
 * SP_E_PROTO. */
SP_NODISCARD int shm_offer(struct conn **c, size_t size, uint64_t arena);
SP_NODISCARD int shm_accept(struct conn **c);

/* The memory that both sides have in common. Returns its descriptor, which can be mapped and stays
 * the conn's, and its size, which can't change. -1: there is none. */
int conn_arena(const struct conn *c, uint64_t *ret_size);

/* Send the other side a copy of a descriptor, which stays the caller's. SP_E_UNSUPP: the conn is not over shared
 * memory; SP_E_AGAIN: the other side does not keep up; SP_E_LINK. */
SP_NODISCARD int conn_pass(struct conn *c, int fd);

/* Receive descriptors from now on. Without this call the system closes those that the other side passes, as they come.
 * Call it before the first byte is received. */
void conn_take_passed(struct conn *c);

/* Take the first descriptor that the other side has passed since the last call; later ones are closed. Call it on the
 * receiving thread. Returns a descriptor, which the caller then owns. SP_E_NOENT: there is none. */
SP_NODISCARD int conn_take(struct conn *c);

/* Use these bytes, which both sides of a conn over shared memory have mapped, as bounce buffer
 * (transport/bounce.h). Data received into them, and large pieces sent from them, are copied once.
 * Call it before the first byte. They stay mapped until the conn is closed. TRANSPORT_PLACED's rule
 * applies to places in them. On other conns the call does nothing. */
void conn_bounce(struct conn *c, void *base, uint64_t size);

/* Do bytes go straight into the given place, as TRANSPORT_PLACED says? */
bool conn_places(const struct conn *c);

/* True while the other side copies between this side's memory and its own, or owes an answer where
 * to copy. That is over soon. Call it on the receiving thread. */
bool conn_is_engaged(const struct conn *c);

#endif
