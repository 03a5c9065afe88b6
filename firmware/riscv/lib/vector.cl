/* Conversions, loads, stores, selections, shuffles: OpenCL C 1.2, 6.2.3, 6.12.6, 6.12.7, 6.12.12. */
#include "builtins.h"
#include "math.h"

/* ---- conversions ---------------------------------------------------------------------------- */

#define LEAST_char   CHAR_MIN
#define LEAST_uchar  0
#define LEAST_short  SHRT_MIN
#define LEAST_ushort 0
#define LEAST_int    INT_MIN
#define LEAST_uint   0
#define LEAST_long   LONG_MIN
#define LEAST_ulong  0
#define MOST_char    CHAR_MAX
#define MOST_uchar   UCHAR_MAX
#define MOST_short   SHRT_MAX
#define MOST_ushort  USHRT_MAX
#define MOST_int     INT_MAX
#define MOST_uint    UINT_MAX
#define MOST_long    LONG_MAX
#define MOST_ulong   ULONG_MAX

#define CONVERT_VECTOR_N(n, R, suffix, A)                               \
        R##n OV convert_##R##n##suffix(A##n a)                          \
        {                                                               \
                R##n r;                                                 \
                for (int i = 0; i < n; i++)                             \
                        AT(R, r, i) = convert_##R##suffix(AT(A, a, i));               \
                return r;                                               \
        }
#define CONVERT(R, suffix, A, value)                                    \
        R OV convert_##R##suffix(A a) { return value; }                 \
        EACH_LENGTH(CONVERT_VECTOR_N, R, suffix, A)

/* Integers of any length, compared in a type that holds both. */
#define FROM_INT(R, A)                                                  \
        CONVERT(R, , A, (R)a)                                           \
        CONVERT(R, _sat, A,                                             \
                a < 0 ? (LEAST_##R && (long)a > (long)LEAST_##R ? (R)a : LEAST_##R) \
                      : (ulong)a < (ulong)MOST_##R ? (R)a : MOST_##R)
#define SATURATED(R, v) \
        ((v) != (v) ? 0 : (v) <= (float)LEAST_##R ? LEAST_##R : (v) >= (float)MOST_##R ? MOST_##R : (R)(v))
#define FROM_FLOAT_BY(R, mode, how)                                     \
        CONVERT(R, mode, float, (R)(how))                               \
        CONVERT(R, _sat##mode, float, SATURATED(R, how))
#define TO_INT(R)                                                       \
        FROM_INT(R, char) FROM_INT(R, uchar) FROM_INT(R, short) FROM_INT(R, ushort) \
        FROM_INT(R, int) FROM_INT(R, uint) FROM_INT(R, long) FROM_INT(R, ulong) \
        FROM_FLOAT_BY(R, , a)                                           \
        FROM_FLOAT_BY(R, _rtz, a)                                       \
        FROM_FLOAT_BY(R, _rte, rv_rint(a))                              \
        FROM_FLOAT_BY(R, _rtp, rv_ceil(a))                              \
        FROM_FLOAT_BY(R, _rtn, rv_floor(a))                             \
        CONVERT(float, , R, (float)a)                                   \
        CONVERT(float, _rte, R, (float)a)
EACH_INT(TO_INT)
CONVERT(float, , float, a)
CONVERT(float, _rte, float, a)

/* ---- loads and stores ----------------------------------------------------------------------- */

#define LOAD_N(n, AS, T)                                                \
        T##n OV vload##n(size_t at, const AS T *p)                      \
        {                                                               \
                T##n r;                                                 \
                for (int i = 0; i < n; i++)                             \
                        AT(T, r, i) = p[at * n + i];                           \
                return r;                                               \
        }
#define STORE_N(n, AS, T)                                               \
        void OV vstore##n(T##n v, size_t at, AS T *p)                   \
        {                                                               \
                for (int i = 0; i < n; i++)                             \
                        p[at * n + i] = AT(T, v, i);                           \
        }
#define LOADS(T)                                                        \
        EACH_LENGTH(LOAD_N, global, T) EACH_LENGTH(LOAD_N, local, T)    \
        EACH_LENGTH(LOAD_N, private, T) EACH_LENGTH(LOAD_N, constant, T) \
        EACH_LENGTH(STORE_N, global, T) EACH_LENGTH(STORE_N, local, T)  \
        EACH_LENGTH(STORE_N, private, T)
EACH_INT(LOADS)
LOADS(float)

/* In functions with an `a` in their names, vectors of 3 lie in memory like vectors of 4. */
#define HALF_LOAD_N(n, AS)                                              \
        float##n OV vload_half##n(size_t at, const AS half *p)          \
        {                                                               \
                float##n r;                                             \
                for (int i = 0; i < n; i++)                             \
                        AT(float, r, i) = rv_from_half(((const AS ushort *)p)[at * n + i]); \
                return r;                                               \
        }                                                               \
        float##n OV vloada_half##n(size_t at, const AS half *p)         \
        {                                                               \
                float##n r;                                             \
                for (int i = 0; i < n; i++)                             \
                        AT(float, r, i) = rv_from_half(((const AS ushort *)p)[at * (n == 3 ? 4 : n) + i]); \
                return r;                                               \
        }
#define HALF_LOAD(AS)                                                   \
        float OV vload_half(size_t at, const AS half *p)                \
        {                                                               \
                return rv_from_half(((const AS ushort *)p)[at]);        \
        }                                                               \
        EACH_LENGTH(HALF_LOAD_N, AS)
HALF_LOAD(global) HALF_LOAD(local) HALF_LOAD(private) HALF_LOAD(constant)

#define HALF_STORE_N(n, AS, mode, how)                                  \
        void OV vstore_half##n##mode(float##n v, size_t at, AS half *p) \
        {                                                               \
                for (int i = 0; i < n; i++)                             \
                        ((AS ushort *)p)[at * n + i] = rv_to_half(AT(float, v, i), how); \
        }                                                               \
        void OV vstorea_half##n##mode(float##n v, size_t at, AS half *p) \
        {                                                               \
                for (int i = 0; i < n; i++)                             \
                        ((AS ushort *)p)[at * (n == 3 ? 4 : n) + i] = rv_to_half(AT(float, v, i), how); \
        }
#define HALF_STORE_BY(AS, mode, how)                                    \
        void OV vstore_half##mode(float v, size_t at, AS half *p)       \
        {                                                               \
                ((AS ushort *)p)[at] = rv_to_half(v, how);              \
        }                                                               \
        EACH_LENGTH(HALF_STORE_N, AS, mode, how)
#define HALF_STORE(AS)                                                  \
        HALF_STORE_BY(AS, , 'e')                                        \
        HALF_STORE_BY(AS, _rte, 'e')                                    \
        HALF_STORE_BY(AS, _rtz, 'z')                                    \
        HALF_STORE_BY(AS, _rtp, 'p')                                    \
        HALF_STORE_BY(AS, _rtn, 'n')
HALF_STORE(global) HALF_STORE(local) HALF_STORE(private)

/* ---- selections ----------------------------------------------------------------------------- */

#define SELECT_N(n, T, C)                                               \
        T##n OV select(T##n a, T##n b, C##n c)                          \
        {                                                               \
                T##n r;                                                 \
                for (int i = 0; i < n; i++)                             \
                        AT(T, r, i) = AT(C, c, i) >> (sizeof(C) * 8 - 1) & 1 ? AT(T, b, i) : AT(T, a, i); \
                return r;                                               \
        }
#define SELECT(T, C)                                                    \
        T OV select(T a, T b, C c) { return c ? b : a; }                \
        EACH_LENGTH(SELECT_N, T, C)
SELECT(char, char) SELECT(char, uchar) SELECT(uchar, char) SELECT(uchar, uchar)
SELECT(short, short) SELECT(short, ushort) SELECT(ushort, short) SELECT(ushort, ushort)
SELECT(int, int) SELECT(int, uint) SELECT(uint, int) SELECT(uint, uint)
SELECT(long, long) SELECT(long, ulong) SELECT(ulong, long) SELECT(ulong, ulong)
SELECT(float, int) SELECT(float, uint)

#define BITSELECT(T)                                                    \
        T OV bitselect(T a, T b, T c) { return (a & ~c) | (b & c); }    \
        VECTOR3(T, bitselect, T, T, T)
EACH_INT(BITSELECT)
float OV bitselect(float a, float b, float c)
{
        return as_float(bitselect(as_uint(a), as_uint(b), as_uint(c)));
}
VECTOR3(float, bitselect, float, float, float)

#define ANY_N(n, T)                                                     \
        int OV any(T##n a)                                              \
        {                                                               \
                int r = 0;                                              \
                for (int i = 0; i < n; i++)                             \
                        r |= AT(T, a, i) < 0;                                  \
                return r;                                               \
        }                                                               \
        int OV all(T##n a)                                              \
        {                                                               \
                int r = 1;                                              \
                for (int i = 0; i < n; i++)                             \
                        r &= AT(T, a, i) < 0;                                  \
                return r;                                               \
        }
#define ANY(T)                                                          \
        int OV any(T a) { return a < 0; }                               \
        int OV all(T a) { return a < 0; }                               \
        EACH_LENGTH(ANY_N, T)
ANY(char) ANY(short) ANY(int) ANY(long)

/* ---- shuffles ------------------------------------------------------------------------------- */

#define SHUFFLE_N(n, m, T, M)                                           \
        T##n OV shuffle(T##m a, M##n mask)                              \
        {                                                               \
                T##n r;                                                 \
                for (int i = 0; i < n; i++)                             \
                        AT(T, r, i) = AT(T, a, AT(M, mask, i) & (m - 1));                    \
                return r;                                               \
        }                                                               \
        T##n OV shuffle2(T##m a, T##m b, M##n mask)                     \
        {                                                               \
                T##n r;                                                 \
                for (int i = 0; i < n; i++)                             \
                        AT(T, r, i) = AT(M, mask, i) & m ? AT(T, b, AT(M, mask, i) & (m - 1)) \
                                                  : AT(T, a, AT(M, mask, i) & (m - 1));  \
                return r;                                               \
        }
#define SHUFFLE_M(m, T, M) \
        SHUFFLE_N(2, m, T, M) SHUFFLE_N(4, m, T, M) SHUFFLE_N(8, m, T, M) SHUFFLE_N(16, m, T, M)
#define SHUFFLE(T, M) SHUFFLE_M(2, T, M) SHUFFLE_M(4, T, M) SHUFFLE_M(8, T, M) SHUFFLE_M(16, T, M)
SHUFFLE(char, uchar) SHUFFLE(uchar, uchar) SHUFFLE(short, ushort) SHUFFLE(ushort, ushort)
SHUFFLE(int, uint) SHUFFLE(uint, uint) SHUFFLE(long, ulong) SHUFFLE(ulong, ulong)
SHUFFLE(float, uint)
