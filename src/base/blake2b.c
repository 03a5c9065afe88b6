#include "base/blake2b.h"

#include <assert.h>
#include <stdbool.h>

enum { ROUNDS = 12 };

/* RFC 7693, 2.6 and 2.7. */
static const uint64_t iv[8] = {
        0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
        0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static const uint8_t sigma[10][16] = {
        { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
        { 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
        { 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
        { 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
        { 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
        { 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
        { 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
        { 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
        { 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
        { 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

static uint64_t rotate(uint64_t x, unsigned n)
{
        return x >> n | x << (64 - n);
}

static void mix(uint64_t v[16], unsigned a, unsigned b, unsigned c, unsigned d, uint64_t x,
                uint64_t y)
{
        v[a] += v[b] + x;
        v[d] = rotate(v[d] ^ v[a], 32);
        v[c] += v[d];
        v[b] = rotate(v[b] ^ v[c], 24);
        v[a] += v[b] + y;
        v[d] = rotate(v[d] ^ v[a], 16);
        v[c] += v[d];
        v[b] = rotate(v[b] ^ v[c], 63);
}

static void compress(struct blake2b *b, const uint8_t *block, bool last)
{
        bool last_node = last && b->tree.last;
        uint64_t v[16], m[16];
        for (unsigned i = 0; i < 16; i++)
                m[i] = bytes_get_u64(block + 8 * i);
        memcpy(v, b->state, sizeof(b->state));
        memcpy(v + 8, iv, sizeof(iv));
        v[12] ^= b->total;
        if (last)
                v[14] = ~v[14];
        if (last_node)
                v[15] = ~v[15];
        for (unsigned i = 0; i < ROUNDS; i++) {
                const uint8_t *s = sigma[i % 10];
                mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
                mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
                mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
                mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
                mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
                mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
                mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
                mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
        }
        for (unsigned i = 0; i < 8; i++)
                b->state[i] ^= v[i] ^ v[i + 8];
}

void blake2b_init(struct blake2b *b)
{
        *b = (struct blake2b){ 0 };
        memcpy(b->state, iv, sizeof(iv));
        b->state[0] ^= 0x01010000 ^ BLAKE2B_SIZE; /* fan-out, depth, no key, digest size */
}

void blake2b_init_node(struct blake2b *b, unsigned size, const struct blake2b_tree *tree)
{
        /* The parameter block (RFC 7693, 2.5; the BLAKE2 paper, 2.8). */
        *b = (struct blake2b){ .tree = *tree };
        memcpy(b->state, iv, sizeof(iv));
        b->state[0] ^= size | (uint64_t)tree->fanout << 16 | (uint64_t)tree->depth << 24;
        b->state[1] ^= tree->offset;
        b->state[2] ^= tree->height | (uint64_t)tree->inner << 8;
}

void blake2b_update(struct blake2b *b, const void *data, size_t size)
{
        const uint8_t *p = data;
        while (size) {
                if (b->used == BLAKE2B_BLOCK) {
                        b->total += BLAKE2B_BLOCK;
                        compress(b, b->block, false);
                        b->used = 0;
                }
                size_t n = BLAKE2B_BLOCK - b->used;
                if (n > size)
                        n = size;
                memcpy(b->block + b->used, p, n);
                b->used += n;
                p += n;
                size -= n;
        }
        assert(b->used <= BLAKE2B_BLOCK);
}

void blake2b_final_node(struct blake2b *b, uint8_t *ret, unsigned size)
{
        b->total += b->used;
        memset(b->block + b->used, 0, BLAKE2B_BLOCK - b->used);
        compress(b, b->block, true);
        for (unsigned i = 0; i < size / 8; i++)
                bytes_put_u64(ret + 8 * i, b->state[i]);
}

void blake2b_final(struct blake2b *b, uint8_t ret[BLAKE2B_SIZE])
{
        blake2b_final_node(b, ret, BLAKE2B_SIZE);
}

void blake2b_field(struct blake2b *b, struct bytes field)
{
        uint8_t size[8];
        bytes_put_u64(size, field.size);
        blake2b_update(b, size, sizeof(size));
        blake2b_update(b, field.data, field.size);
}

void blake2b_of(struct bytes data, uint8_t ret[BLAKE2B_SIZE])
{
        struct blake2b b;
        blake2b_init(&b);
        blake2b_update(&b, data.data, data.size);
        blake2b_final(&b, ret);
}
