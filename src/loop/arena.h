/* The memory that a server's process and its client's have in common where they share memory: storage for buffers in
 * place, and behind it the bounce buffer (transport/bounce.h) that the lanes' bulk data goes through. Its pages come into being
 * when they are touched. */
#ifndef SPANCL_LOOP_ARENA_H
#define SPANCL_LOOP_ARENA_H

#include "transport/transport.h"

#define ARENA_BOUNCE (256ull << 20)
#define ARENA_SIZE   ((1ull << 40) + ARENA_BOUNCE)

/* The lane that uses the bounce buffer, where what is waited for moves at once. Those beside it share large transfers: several
 * threads, which go on while one of them has no core; with a bounce buffer each of its pieces would wait for two of them. */
enum { ARENA_LANE = 1 };

/* Where it is mapped. Zeroed: nowhere. */
struct arena_bounce {
        void *base;
        uint64_t size;
};

/* Of a conn: the descriptor, which is the conn's, and how many bytes from its beginning on are storage. -1: none. */
int arena_storage(const struct conn *c, uint64_t *ret_size);

/* Map the bounce buffer of a conn's memory, if it has any. */
void arena_map_bounce(const struct conn *c, struct arena_bounce *ret);

/* Have the conn of a bulk lane use it, if it should. */
void arena_use_bounce(const struct arena_bounce *s, unsigned lane, struct conn *c);

/* No conn uses it any more. */
void arena_unmap_bounce(struct arena_bounce *s);

#endif
