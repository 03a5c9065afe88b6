/* Compiler support for floating point: the functions of softfloat.h under the names that compilers
 * call. The unit test also compiles this file for hosts, and compares it with their own arithmetic
 * (tests/unit/test_softfloat.c). */
#include <stdint.h>

static uint32_t f32_wide(uint32_t a, uint32_t b, uint32_t *ret_low)
{
        uint64_t p = (uint64_t)a * b;
        *ret_low = (uint32_t)p;
        return (uint32_t)(p >> 32);
}

static uint64_t f64_wide(uint64_t a, uint64_t b, uint64_t *ret_low)
{
        uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
        uint64_t low = a0 * b0, m = a1 * b0 + (low >> 32), n = a0 * b1 + (uint32_t)m;
        *ret_low = n << 32 | (uint32_t)low;
        return a1 * b1 + (m >> 32) + (n >> 32);
}

#define REP     uint32_t
#define BITS    32
#define MANT    23
#define NAME(n) f32_##n
#include "softfloat.h"

#define REP     uint64_t
#define BITS    64
#define MANT    52
#define NAME(n) f64_##n
#include "softfloat.h"

uint64_t f64_from_f32(uint32_t a)
{
        uint32_t x = a & 0x7fffffff;
        uint64_t sign = (uint64_t)(a & 0x80000000) << 32;
        int exp;
        if (!x)
                return sign;
        if (x >= 0x7f800000)
                return sign | 0x7ff0000000000000 | (uint64_t)(x & 0x7fffff) << 29;
        uint64_t m = f32_split(x, &exp);
        return sign | (((uint64_t)(exp + 1023 - 127 - 1) << 52) + (m << 29));
}

uint32_t f32_from_f64(uint64_t a)
{
        uint64_t x = a & INT64_MAX;
        uint32_t sign = (uint32_t)(a >> 32) & 0x80000000;
        if (x >= 0x7ff0000000000000)
                return sign | 0x7f800000 | (x > 0x7ff0000000000000 ? 0x400000 : 0);
        int exp = (int)(x >> 52);
        if (!exp)
                return sign; /* less than half of the smallest */
        uint64_t m = (x & 0xfffffffffffff) | 0x10000000000000;
        return f32_round(sign, exp - 1023 + 127, (uint32_t)f64_jam(m, 26));
}

/* Bit by bit: the root of a significand that has twice as many bits. */
uint32_t f32_sqrt(uint32_t a)
{
        if (!(a & 0x7fffffff) || a == 0x7f800000)
                return a;
        if (a > 0x7f800000)
                return 0x7fc00000;
        int exp;
        uint64_t m = f32_split(a, &exp), root = 0;
        exp -= 127;
        m <<= exp & 1 ? 30 : 29;
        for (uint64_t bit = (uint64_t)1 << 54; bit; bit >>= 2) {
                if (m >= root + bit) {
                        m -= root + bit;
                        root = (root >> 1) + bit;
                } else {
                        root >>= 1;
                }
        }
        return f32_round(0, (exp >> 1) + 127, (uint32_t)root | (m != 0));
}

#ifndef SOFTFLOAT_HOST
/* The compiler passes numbers as it passes their bits. */
#define AS(type, name, of, args) type name args __attribute__((alias(#of)))

AS(uint32_t, __addsf3, f32_add, (uint32_t, uint32_t));
AS(uint32_t, __subsf3, f32_sub, (uint32_t, uint32_t));
AS(uint32_t, __mulsf3, f32_mul, (uint32_t, uint32_t));
AS(uint32_t, __divsf3, f32_div, (uint32_t, uint32_t));
AS(int, __eqsf2, f32_le, (uint32_t, uint32_t));
AS(int, __nesf2, f32_le, (uint32_t, uint32_t));
AS(int, __ltsf2, f32_le, (uint32_t, uint32_t));
AS(int, __lesf2, f32_le, (uint32_t, uint32_t));
AS(int, __gesf2, f32_ge, (uint32_t, uint32_t));
AS(int, __gtsf2, f32_ge, (uint32_t, uint32_t));
AS(int, __unordsf2, f32_unord, (uint32_t, uint32_t));
AS(uint32_t, __floatsisf, f32_from_signed, (int32_t));
AS(uint32_t, __floatunsisf, f32_from_unsigned, (uint32_t));
AS(uint32_t, __floatdisf, f32_from_signed64, (int64_t));
AS(uint32_t, __floatundisf, f32_from_unsigned64, (uint64_t));
AS(int32_t, __fixsfsi, f32_to_signed, (uint32_t));
AS(uint32_t, __fixunssfsi, f32_to_unsigned, (uint32_t));
AS(int64_t, __fixsfdi, f32_to_signed64, (uint32_t));
AS(uint64_t, __fixunssfdi, f32_to_unsigned64, (uint32_t));

AS(uint64_t, __adddf3, f64_add, (uint64_t, uint64_t));
AS(uint64_t, __subdf3, f64_sub, (uint64_t, uint64_t));
AS(uint64_t, __muldf3, f64_mul, (uint64_t, uint64_t));
AS(uint64_t, __divdf3, f64_div, (uint64_t, uint64_t));
AS(int, __eqdf2, f64_le, (uint64_t, uint64_t));
AS(int, __nedf2, f64_le, (uint64_t, uint64_t));
AS(int, __ltdf2, f64_le, (uint64_t, uint64_t));
AS(int, __ledf2, f64_le, (uint64_t, uint64_t));
AS(int, __gedf2, f64_ge, (uint64_t, uint64_t));
AS(int, __gtdf2, f64_ge, (uint64_t, uint64_t));
AS(int, __unorddf2, f64_unord, (uint64_t, uint64_t));
AS(uint64_t, __floatsidf, f64_from_signed, (int32_t));
AS(uint64_t, __floatunsidf, f64_from_unsigned, (uint32_t));
AS(uint64_t, __floatdidf, f64_from_signed64, (int64_t));
AS(uint64_t, __floatundidf, f64_from_unsigned64, (uint64_t));
AS(int32_t, __fixdfsi, f64_to_signed, (uint64_t));
AS(uint32_t, __fixunsdfsi, f64_to_unsigned, (uint64_t));
AS(int64_t, __fixdfdi, f64_to_signed64, (uint64_t));
AS(uint64_t, __fixunsdfdi, f64_to_unsigned64, (uint64_t));

AS(uint64_t, __extendsfdf2, f64_from_f32, (uint32_t));
AS(uint32_t, __truncdfsf2, f32_from_f64, (uint64_t));
#endif
