/* BLAKE2b (RFC 7693) with digests of 32 bytes and no key. It names data that must not be confused,
 * not even by an attacker. One owner; no allocation. */
#ifndef SPANCL_BASE_BLAKE2B_H
#define SPANCL_BASE_BLAKE2B_H

#include <stdbool.h>

#include "base/bytes.h"

enum { BLAKE2B_SIZE = 32, BLAKE2B_BLOCK = 128 };

/* A node of a tree (the BLAKE2 paper, 2.10). Zeroed memory: no tree. */
struct blake2b_tree {
        unsigned fanout, depth;
        unsigned offset, height; /* its place: from the left, and above the leaves */
        unsigned inner;          /* bytes of the digests of inner nodes */
        bool last;               /* the rightmost of its height */
};

struct blake2b {
        uint64_t state[8];
        uint64_t total; /* bytes so far */
        uint8_t block[BLAKE2B_BLOCK];
        size_t used; /* bytes in `block`; it is compressed when more follows */
        struct blake2b_tree tree;
};

void blake2b_init(struct blake2b *b);
void blake2b_update(struct blake2b *b, const void *data, size_t size);
void blake2b_final(struct blake2b *b, uint8_t ret[BLAKE2B_SIZE]);

/* The digest of `data`, computed at once. */
void blake2b_of(struct bytes data, uint8_t ret[BLAKE2B_SIZE]);

/* Add a field: its size, then its bytes, so that bytes can't move between neighbouring fields. */
void blake2b_field(struct blake2b *b, struct bytes field);

/* The same for a node of a tree with a digest of `size` bytes: a multiple of 8, at most 64. */
void blake2b_init_node(struct blake2b *b, unsigned size, const struct blake2b_tree *tree);
void blake2b_final_node(struct blake2b *b, uint8_t *ret, unsigned size);

#endif
