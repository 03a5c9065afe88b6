/* Integer functions: OpenCL C 1.2, 6.12.3. */
#include "builtins.h"

#define UNSIGNED_char   uchar
#define UNSIGNED_uchar  uchar
#define UNSIGNED_short  ushort
#define UNSIGNED_ushort ushort
#define UNSIGNED_int    uint
#define UNSIGNED_uint   uint
#define UNSIGNED_long   ulong
#define UNSIGNED_ulong  ulong
#define MOST_char       CHAR_MAX
#define MOST_uchar      UCHAR_MAX
#define MOST_short      SHRT_MAX
#define MOST_ushort     USHRT_MAX
#define MOST_int        INT_MAX
#define MOST_uint       UINT_MAX
#define MOST_long       LONG_MAX
#define MOST_ulong      ULONG_MAX
#define LEAST_char      CHAR_MIN
#define LEAST_uchar     0
#define LEAST_short     SHRT_MIN
#define LEAST_ushort    0
#define LEAST_int       INT_MIN
#define LEAST_uint      0
#define LEAST_long      LONG_MIN
#define LEAST_ulong     0
#define BITS_OF(T)      ((T)(sizeof(T) * 8))

#define SCALARS_OF(T, U)                                                              \
        T OV max(T a, T b) { return a > b ? a : b; }                                  \
        T OV min(T a, T b) { return a < b ? a : b; }                                  \
        T OV clamp(T x, T a, T b) { return x < a ? a : x > b ? b : x; }               \
        U OV abs(T a) { return a < 0 ? -(U)a : (U)a; }                                \
        U OV abs_diff(T a, T b) { return a > b ? (U)a - (U)b : (U)b - (U)a; }         \
        T OV add_sat(T a, T b)                                                        \
        {                                                                             \
                T r;                                                                  \
                return !__builtin_add_overflow(a, b, &r) ? r : b < 0 ? LEAST_##T : MOST_##T; \
        }                                                                             \
        T OV sub_sat(T a, T b)                                                        \
        {                                                                             \
                T r;                                                                  \
                return !__builtin_sub_overflow(a, b, &r) ? r                          \
                       : LEAST_##T && b < 0 ? MOST_##T : LEAST_##T;                   \
        }                                                                             \
        T OV hadd(T a, T b) { return (T)((a >> 1) + (b >> 1) + (a & b & 1)); }        \
        T OV rhadd(T a, T b) { return (T)((a >> 1) + (b >> 1) + ((a | b) & 1)); }     \
        T OV clz(T a)                                                                 \
        {                                                                             \
                T n = 0;                                                              \
                for (U bit = (U)1 << (BITS_OF(T) - 1); bit && !((U)a & bit); bit >>= 1) \
                        n++;                                                          \
                return n;                                                             \
        }                                                                             \
        T OV ctz(T a)                                                                 \
        {                                                                             \
                T n = 0;                                                              \
                for (U bit = 1; bit && !((U)a & bit); bit <<= 1)                      \
                        n++;                                                          \
                return n;                                                             \
        }                                                                             \
        T OV popcount(T a)                                                            \
        {                                                                             \
                T n = 0;                                                              \
                for (U v = (U)a; v; v &= v - 1)                                       \
                        n++;                                                          \
                return n;                                                             \
        }                                                                             \
        T OV rotate(T a, T by)                                                        \
        {                                                                             \
                U n = (U)by & (BITS_OF(T) - 1), v = (U)a;                             \
                return n ? (T)((U)(v << n) | (U)(v >> (BITS_OF(T) - n))) : a;         \
        }
#define SCALARS_AGAIN(T, U) SCALARS_OF(T, U)
#define SCALARS(T) SCALARS_AGAIN(T, UNSIGNED_##T)
EACH_INT(SCALARS)

/* The upper half of the product. */
#define MUL_HI(T, W) \
        T OV mul_hi(T a, T b) { return (T)((W)a * b >> (sizeof(T) * 8)); }
MUL_HI(char, int)
MUL_HI(uchar, uint)
MUL_HI(short, int)
MUL_HI(ushort, uint)
MUL_HI(int, long)
MUL_HI(uint, ulong)
ulong OV mul_hi(ulong a, ulong b)
{
        ulong a0 = (uint)a, a1 = a >> 32, b0 = (uint)b, b1 = b >> 32;
        ulong m = a1 * b0 + (a0 * b0 >> 32), n = a0 * b1 + (uint)m;
        return a1 * b1 + (m >> 32) + (n >> 32);
}
long OV mul_hi(long a, long b)
{
        return (long)(mul_hi((ulong)a, (ulong)b) - (a < 0 ? (ulong)b : 0) - (b < 0 ? (ulong)a : 0));
}

#define MAD_HI(T) \
        T OV mad_hi(T a, T b, T c) { return mul_hi(a, b) + c; }
EACH_INT(MAD_HI)

#define MAD_SAT(T, W)                                                         \
        T OV mad_sat(T a, T b, T c)                                           \
        {                                                                     \
                W r = (W)a * b + c;                                           \
                return r < LEAST_##T ? LEAST_##T : r > MOST_##T ? MOST_##T : (T)r; \
        }
MAD_SAT(char, int)
MAD_SAT(uchar, int)
MAD_SAT(short, long)
MAD_SAT(ushort, long)
MAD_SAT(int, long)
uint OV mad_sat(uint a, uint b, uint c)
{
        ulong r = (ulong)a * b + c;
        return r > UINT_MAX ? UINT_MAX : (uint)r;
}
ulong OV mad_sat(ulong a, ulong b, ulong c)
{
        return mul_hi(a, b) ? ULONG_MAX : add_sat(a * b, c);
}
long OV mad_sat(long a, long b, long c)
{
        long high = mul_hi(a, b), low = (long)((ulong)a * (ulong)b);
        ulong sum = (ulong)low + (ulong)c;
        high += (c < 0 ? -1 : 0) + (sum < (ulong)low);
        if (high != (long)sum >> 63)
                return high < 0 ? LONG_MIN : LONG_MAX;
        return (long)sum;
}

#define SHORT24(T)                                   \
        T OV mul24(T a, T b) { return a * b; }       \
        T OV mad24(T a, T b, T c) { return a * b + c; }
SHORT24(int)
SHORT24(uint)

#define UPSAMPLE(W, H, L) \
        W OV upsample(H high, L low) { return (W)((W)high << (sizeof(L) * 8) | low); }
UPSAMPLE(short, char, uchar)
UPSAMPLE(ushort, uchar, uchar)
UPSAMPLE(int, short, ushort)
UPSAMPLE(uint, ushort, ushort)
UPSAMPLE(long, int, uint)
UPSAMPLE(ulong, uint, uint)

#define VECTORS_OF(T, U)          \
        VECTOR2(T, max, T, T)     \
        MIXED2(T, max, T, T)      \
        VECTOR2(T, min, T, T)     \
        MIXED2(T, min, T, T)      \
        VECTOR3(T, clamp, T, T, T) \
        MIXED3(T, clamp, T, T, T) \
        VECTOR1(U, abs, T)        \
        VECTOR2(U, abs_diff, T, T) \
        VECTOR2(T, add_sat, T, T) \
        VECTOR2(T, sub_sat, T, T) \
        VECTOR2(T, hadd, T, T)    \
        VECTOR2(T, rhadd, T, T)   \
        VECTOR1(T, clz, T)        \
        VECTOR1(T, ctz, T)        \
        VECTOR1(T, popcount, T)   \
        VECTOR2(T, rotate, T, T)  \
        VECTOR2(T, mul_hi, T, T)  \
        VECTOR3(T, mad_hi, T, T, T) \
        VECTOR3(T, mad_sat, T, T, T)
#define VECTORS_AGAIN(T, U) VECTORS_OF(T, U)
#define VECTORS(T) VECTORS_AGAIN(T, UNSIGNED_##T)
EACH_INT(VECTORS)
VECTOR2(int, mul24, int, int)
VECTOR2(uint, mul24, uint, uint)
VECTOR3(int, mad24, int, int, int)
VECTOR3(uint, mad24, uint, uint, uint)
VECTOR2(short, upsample, char, uchar)
VECTOR2(ushort, upsample, uchar, uchar)
VECTOR2(int, upsample, short, ushort)
VECTOR2(uint, upsample, ushort, ushort)
VECTOR2(long, upsample, int, uint)
VECTOR2(ulong, upsample, uint, uint)
