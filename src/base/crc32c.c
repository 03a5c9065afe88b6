#include "base/crc32c.h"

#include <string.h>

#include "os/cpu.h"
#include "os/once.h"

enum {
        /* Three streams at a time hide the instruction's latency (3 cycles). Bytes of each stream: */
        LONG = 4096,
        SHORT = 256,
};

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* ---- tables --------------------------------------------------------------------------------- */

static uint32_t bytewise[8][256]; /* slicing by eight */
static uint32_t skip_long[4][256],
        skip_short[4][256]; /* effect of LONG or SHORT zero bytes on a CRC */
static struct once once = ONCE_INIT;

/* The CRC register behind `size` zero bytes. */
static uint32_t over_zeros(uint32_t crc, size_t size)
{
        while (size--)
                crc = bytewise[0][crc & 255] ^ crc >> 8;
        return crc;
}

/* The effect of zero bytes is linear: each entry is the sum of the effects of its bits. */
static void make_skip(uint32_t skip[4][256], size_t size)
{
        uint32_t bits[32];
        for (unsigned b = 0; b < 32; b++)
                bits[b] = over_zeros(1u << b, size);
        for (unsigned k = 0; k < 4; k++)
                for (unsigned i = 0; i < 256; i++)
                        for (unsigned b = 0; b < 8; b++)
                                skip[k][i] ^= i >> b & 1 ? bits[8 * k + b] : 0;
}

static void make_tables(void)
{
        for (uint32_t i = 0; i < 256; i++) {
                uint32_t c = i;
                for (unsigned b = 0; b < 8; b++)
                        c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
                bytewise[0][i] = c;
        }
        for (unsigned k = 1; k < 8; k++)
                for (unsigned i = 0; i < 256; i++)
                        bytewise[k][i] =
                                bytewise[k - 1][i] >> 8 ^ bytewise[0][bytewise[k - 1][i] & 255];
        make_skip(skip_long, LONG);
        make_skip(skip_short, SHORT);
}

uint32_t crc32c_by_tables(uint32_t crc, const void *data, size_t size)
{
        const uint8_t *p = data;
        once_run(&once, make_tables);
        crc = ~crc;
        for (; size >= 8; size -= 8, p += 8) {
                crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                       (uint32_t)p[3] << 24;
                crc = bytewise[7][crc & 255] ^ bytewise[6][crc >> 8 & 255] ^
                      bytewise[5][crc >> 16 & 255] ^ bytewise[4][crc >> 24] ^ bytewise[3][p[4]] ^
                      bytewise[2][p[5]] ^ bytewise[1][p[6]] ^ bytewise[0][p[7]];
        }
        for (; size; size--, p++)
                crc = bytewise[0][(crc ^ *p) & 255] ^ crc >> 8;
        return ~crc;
}

/* ---- by instruction ------------------------------------------------------------------------- */

#if defined(__x86_64__) || (defined(__aarch64__) && defined(__AARCH64EL__))

#if defined(__x86_64__)
#define WITH_CRC            __attribute__((target("sse4.2")))
#define STEP_64(crc, value) (uint32_t) __builtin_ia32_crc32di(crc, value)
#define STEP_8(crc, value)  __builtin_ia32_crc32qi(crc, value)
#elif defined(__clang__)
#define WITH_CRC            __attribute__((target("crc")))
#define STEP_64(crc, value) __builtin_arm_crc32cd(crc, value)
#define STEP_8(crc, value)  __builtin_arm_crc32cb(crc, value)
#else
#define WITH_CRC            __attribute__((target("+crc")))
#define STEP_64(crc, value) __builtin_aarch64_crc32cx(crc, value)
#define STEP_8(crc, value)  __builtin_aarch64_crc32cb(crc, value)
#endif

static uint64_t word(const uint8_t *p)
{
        uint64_t v;
        memcpy(&v, p, sizeof(v));
        return v;
}

static uint32_t shift(const uint32_t skip[4][256], uint32_t crc)
{
        return skip[0][crc & 255] ^ skip[1][crc >> 8 & 255] ^ skip[2][crc >> 16 & 255] ^
               skip[3][crc >> 24];
}

/* Three neighbouring blocks of `size` bytes at a time. */
WITH_CRC static inline uint32_t three(const uint32_t skip[4][256], uint32_t crc, const uint8_t *p,
                                      size_t size)
{
        uint32_t a = crc, b = 0, c = 0;
        for (size_t i = 0; i < size; i += 8) {
                a = STEP_64(a, word(p + i));
                b = STEP_64(b, word(p + size + i));
                c = STEP_64(c, word(p + 2 * size + i));
        }
        return shift(skip, shift(skip, a) ^ b) ^ c;
}

WITH_CRC static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t size)
{
        crc = ~crc;
        if (size >= 3 * SHORT)
                once_run(&once, make_tables);
        for (; size >= 3 * LONG; size -= 3 * LONG, p += 3 * LONG)
                crc = three(skip_long, crc, p, LONG);
        for (; size >= 3 * SHORT; size -= 3 * SHORT, p += 3 * SHORT)
                crc = three(skip_short, crc, p, SHORT);
        for (; size >= 8; size -= 8, p += 8)
                crc = STEP_64(crc, word(p));
        for (; size; size--, p++)
                crc = STEP_8(crc, *p);
        return ~crc;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
        return cpu_has_crc32c() ? by_instruction(crc, data, size)
                                : crc32c_by_tables(crc, data, size);
}

#else

uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
        return crc32c_by_tables(crc, data, size);
}

#endif
