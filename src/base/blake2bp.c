#include "base/blake2bp.h"

enum {
        LEAVES = 4,
        STRIPE = LEAVES * BLAKE2B_BLOCK, /* one block of each leaf */
        INNER = 64,                      /* bytes of a leaf's digest */
};

typedef void compressor(uint64_t states[8][LEAVES], const uint8_t *p, size_t stripes,
                        uint64_t total);

/* Processors of 32 bits gain nothing from these vectors, and gcc takes minutes to compile them. */
#if __SIZEOF_POINTER__ == 8
/* RFC 7693, 2.6. */
static const uint64_t iv[8] = {
        0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
        0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

/* One word of each leaf. */
typedef uint64_t words __attribute__((vector_size(LEAVES * sizeof(uint64_t))));

/* Macros, because vectors that are passed to functions depend on the processor. RFC 7693, 3.1. */
#define ROTATE(x, n) ((x) >> (n) | (x) << (64 - (n)))
#define MIX(a, b, c, d, x, y)           \
        v[a] += v[b] + m[x];            \
        v[d] = ROTATE(v[d] ^ v[a], 32); \
        v[c] += v[d];                   \
        v[b] = ROTATE(v[b] ^ v[c], 24); \
        v[a] += v[b] + m[y];            \
        v[d] = ROTATE(v[d] ^ v[a], 16); \
        v[c] += v[d];                   \
        v[b] = ROTATE(v[b] ^ v[c], 63);
#define ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15) \
        MIX(0, 4, 8, 12, s0, s1)                                                    \
        MIX(1, 5, 9, 13, s2, s3)                                                    \
        MIX(2, 6, 10, 14, s4, s5)                                                   \
        MIX(3, 7, 11, 15, s6, s7)                                                   \
        MIX(0, 5, 10, 15, s8, s9)                                                   \
        MIX(1, 6, 11, 12, s10, s11)                                                 \
        MIX(2, 7, 8, 13, s12, s13)                                                  \
        MIX(3, 4, 9, 14, s14, s15)

/* Compress whole stripes into the states of all leaves. No leaf ends here. Each had `total` bytes
 * before. */
static inline __attribute__((always_inline)) void compress(uint64_t states[8][LEAVES],
                                                           const uint8_t *p, size_t stripes,
                                                           uint64_t total)
{
        words h[8], v[16], m[16];
        memcpy(h, states, sizeof(h));
        for (; stripes; stripes--, p += STRIPE) {
                total += BLAKE2B_BLOCK;
                for (unsigned i = 0; i < 16; i++)
                        m[i] = (words){ bytes_get_u64(p + 8 * i),
                                        bytes_get_u64(p + BLAKE2B_BLOCK + 8 * i),
                                        bytes_get_u64(p + 2 * BLAKE2B_BLOCK + 8 * i),
                                        bytes_get_u64(p + 3 * BLAKE2B_BLOCK + 8 * i) };
                for (unsigned i = 0; i < 8; i++) {
                        v[i] = h[i];
                        v[i + 8] = (words){ iv[i], iv[i], iv[i], iv[i] };
                }
                v[12] ^= total;
                ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
                ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)
                ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4)
                ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8)
                ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13)
                ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9)
                ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11)
                ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10)
                ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5)
                ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)
                ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
                ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)
                for (unsigned i = 0; i < 8; i++)
                        h[i] ^= v[i] ^ v[i + 8];
        }
        memcpy(states, h, sizeof(h));
}

static void compress_any(uint64_t states[8][LEAVES], const uint8_t *p, size_t stripes,
                         uint64_t total)
{
        compress(states, p, stripes, total);
}
#else
static compressor *const compress_any = NULL;
#endif

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void compress_avx2(uint64_t states[8][LEAVES],
                                                          const uint8_t *p, size_t stripes,
                                                          uint64_t total)
{
        compress(states, p, stripes, total);
}

/* With rotations of vectors. */
__attribute__((target("avx2,avx512f,avx512vl"))) static void compress_avx512(
        uint64_t states[8][LEAVES], const uint8_t *p, size_t stripes, uint64_t total)
{
        compress(states, p, stripes, total);
}
#endif

static compressor *fastest(void)
{
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512f"))
                return compress_avx512;
        if (__builtin_cpu_supports("avx2"))
                return compress_avx2;
#endif
        return compress_any;
}

static void leaf_init(struct blake2b *b, unsigned i)
{
        const struct blake2b_tree leaf = {
                .fanout = LEAVES, .depth = 2, .offset = i, .inner = INNER, .last = i == LEAVES - 1
        };
        blake2b_init_node(b, INNER, &leaf);
}

/* Give the leaves their blocks of the bytes: if there is a compressor, about one stripe at most. */
static void leaves_update(struct blake2b leaves[LEAVES], struct bytes rest)
{
        const uint8_t *p = rest.data;
        for (size_t at = 0, size; at < rest.size; at += size) {
                size = rest.size - at < BLAKE2B_BLOCK ? rest.size - at : BLAKE2B_BLOCK;
                blake2b_update(&leaves[at / BLAKE2B_BLOCK % LEAVES], p + at, size);
        }
}

/* `fast` NULL: there is none. */
static void digest(struct bytes data, uint8_t ret[BLAKE2B_SIZE], compressor *fast)
{
        struct blake2b leaves[LEAVES], root;
        uint64_t states[8][LEAVES];
        uint8_t inner[INNER];
        const uint8_t *p = data.data;
        /* The last block of each leaf is compressed differently, so the compressor leaves each leaf some bytes. */
        const size_t kept = STRIPE - BLAKE2B_BLOCK + 1;
        size_t stripes = fast && data.size > kept ? (data.size - kept) / STRIPE : 0;
        for (unsigned i = 0; i < LEAVES; i++) {
                leaf_init(&leaves[i], i);
                for (unsigned k = 0; k < 8; k++)
                        states[k][i] = leaves[i].state[k];
        }
        if (fast)
                fast(states, p, stripes, 0);
        for (unsigned i = 0; i < LEAVES; i++) {
                for (unsigned k = 0; k < 8; k++)
                        leaves[i].state[k] = states[k][i];
                leaves[i].total = stripes * BLAKE2B_BLOCK;
        }
        leaves_update(leaves, bytes_of(p + stripes * STRIPE, data.size - stripes * STRIPE));
        const struct blake2b_tree top = {
                .fanout = LEAVES, .depth = 2, .height = 1, .inner = INNER, .last = true
        };
        blake2b_init_node(&root, BLAKE2B_SIZE, &top);
        for (unsigned i = 0; i < LEAVES; i++) {
                blake2b_final_node(&leaves[i], inner, INNER);
                blake2b_update(&root, inner, INNER);
        }
        blake2b_final(&root, ret);
}

void blake2bp_of(struct bytes data, uint8_t ret[BLAKE2B_SIZE])
{
        digest(data, ret, fastest());
}

void blake2bp_portably(struct bytes data, uint8_t ret[BLAKE2B_SIZE])
{
        digest(data, ret, compress_any);
}
