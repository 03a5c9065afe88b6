/* BLAKE2b (RFC 7693) with digests of 32 bytes and no key: names what must not be confused, also not by
 * somebody who tries. One owner; no allocation. */
#ifndef SPANCL_BASE_BLAKE2B_H
#define SPANCL_BASE_BLAKE2B_H

#include "base/bytes.h"

enum { BLAKE2B_SIZE = 32, BLAKE2B_BLOCK = 128 };

struct blake2b {
        uint64_t state[8];
        uint64_t total; /* bytes so far */
        uint8_t block[BLAKE2B_BLOCK];
        size_t used; /* bytes in `block`; it is compressed when more follows */
};

void blake2b_init(struct blake2b *b);
void blake2b_update(struct blake2b *b, const void *data, size_t size);
void blake2b_final(struct blake2b *b, uint8_t ret[BLAKE2B_SIZE]);

/* Of all at once. */
void blake2b_of(struct bytes data, uint8_t ret[BLAKE2B_SIZE]);

/* A field: its size, then its bytes, so that neighbours can't run into each other. */
void blake2b_field(struct blake2b *b, struct bytes field);

#endif
