/* The arena is memory that a server's process and its client's process share. It holds storage for
 * buffers in place, and behind it the bounce buffer (transport/bounce.h) for the lanes' bulk data.
 * Its pages are allocated when they are touched. */
#ifndef SPANCL_LOOP_ARENA_H
#define SPANCL_LOOP_ARENA_H

#include "transport/transport.h"

#define ARENA_BOUNCE (256ull << 20)
#define ARENA_SIZE   ((1ull << 40) + ARENA_BOUNCE)

/* The lane that uses the bounce buffer. Data that somebody waits for moves on this lane, at once.
 * The other bulk lanes share large transfers among several threads, which go on while one of them
 * has no core. With a bounce buffer each piece would wait for two of those threads. */
enum { ARENA_LANE = 1 };

/* The address of the mapping. Zeroed: not mapped. */
struct arena_bounce {
        void *base;
        uint64_t size;
};

/* Get the arena's descriptor, which stays the conn's, and the size of the storage at its beginning.
 * -1: the conn has no arena. */
int arena_storage(const struct conn *c, uint64_t *ret_size);

/* Map the bounce buffer of a conn's arena, if it has one. */
void arena_map_bounce(const struct conn *c, struct arena_bounce *ret);

/* Have the conn of bulk lane `lane` use the bounce buffer, if it is the lane for it. */
void arena_use_bounce(const struct arena_bounce *s, unsigned lane, struct conn *c);

/* Unmap the bounce buffer; no conn uses it any more. */
void arena_unmap_bounce(struct arena_bounce *s);

#endif
