/* Functions of float: OpenCL C 1.2, 6.12.2, 6.12.4 to 6.12.6. */
#include "builtins.h"
#include "math.h"

#define ONE(name)                                 \
        float OV name(float x) { return rv_##name(x); } \
        VECTOR1(float, name, float)
#define TWO(name)                                            \
        float OV name(float x, float y) { return rv_##name(x, y); } \
        VECTOR2(float, name, float, float)

ONE(fabs) ONE(sqrt) ONE(trunc) ONE(floor) ONE(ceil) ONE(round) ONE(rint) ONE(logb)
ONE(exp) ONE(exp2) ONE(exp10) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p)
ONE(cbrt) ONE(rsqrt) ONE(sinh) ONE(cosh) ONE(tanh) ONE(asinh) ONE(acosh) ONE(atanh)
ONE(sin) ONE(cos) ONE(tan) ONE(sinpi) ONE(cospi) ONE(tanpi) ONE(atan) ONE(asin) ONE(acos)
ONE(atanpi) ONE(asinpi) ONE(acospi)
TWO(copysign) TWO(fmod) TWO(remainder) TWO(nextafter) TWO(pow) TWO(powr) TWO(hypot) TWO(atan2)
TWO(atan2pi)

/* The same by other names. */
#define ALIAS1(name, of)                          \
        float OV name(float x) { return rv_##of(x); } \
        VECTOR1(float, name, float)
#define ALIAS2(name, of)                                     \
        float OV name(float x, float y) { return rv_##of(x, y); } \
        VECTOR2(float, name, float, float)
ALIAS1(native_cos, cos) ALIAS1(native_exp, exp) ALIAS1(native_exp2, exp2) ALIAS1(native_exp10, exp10)
ALIAS1(native_log, log) ALIAS1(native_log2, log2) ALIAS1(native_log10, log10)
ALIAS1(native_rsqrt, rsqrt) ALIAS1(native_sin, sin) ALIAS1(native_sqrt, sqrt) ALIAS1(native_tan, tan)
ALIAS1(half_cos, cos) ALIAS1(half_exp, exp) ALIAS1(half_exp2, exp2) ALIAS1(half_exp10, exp10)
ALIAS1(half_log, log) ALIAS1(half_log2, log2) ALIAS1(half_log10, log10)
ALIAS1(half_rsqrt, rsqrt) ALIAS1(half_sin, sin) ALIAS1(half_sqrt, sqrt) ALIAS1(half_tan, tan)
ALIAS2(native_powr, powr) ALIAS2(half_powr, powr)

#define PLAIN1(R, name, T, value)         \
        R OV name(T x) { return value; }  \
        VECTOR1(R, name, T)
#define PLAIN2(R, name, value)                      \
        R OV name(float x, float y) { return value; } \
        VECTOR2(R, name, float, float)

PLAIN1(float, native_recip, float, 1 / x)
PLAIN1(float, half_recip, float, 1 / x)
PLAIN2(float, native_divide, x / y)
PLAIN2(float, half_divide, x / y)
PLAIN2(float, fdim, x != x || y != y ? NAN : x > y ? x - y : 0)
PLAIN2(float, fmin, y != y || x < y ? x : y)
PLAIN2(float, fmax, y != y || x > y ? x : y)
MIXED2(float, fmin, float, float)
MIXED2(float, fmax, float, float)
PLAIN2(float, minmag, rv_fabs(x) < rv_fabs(y) ? x : rv_fabs(y) < rv_fabs(x) ? y : fmin(x, y))
PLAIN2(float, maxmag, rv_fabs(x) > rv_fabs(y) ? x : rv_fabs(y) > rv_fabs(x) ? y : fmax(x, y))
PLAIN1(float, nan, uint, as_float(x & 0x3fffff | 0x7fc00000))

float OV fma(float x, float y, float z) { return rv_fma(x, y, z); }
float OV mad(float x, float y, float z) { return x * y + z; }
VECTOR3(float, fma, float, float, float)
VECTOR3(float, mad, float, float, float)

int OV ilogb(float x) { return rv_ilogb(x); }
float OV ldexp(float x, int n) { return rv_ldexp(x, n); }
float OV pown(float x, int n) { return rv_pown(x, n); }
float OV rootn(float x, int n) { return rv_rootn(x, n); }
VECTOR1(int, ilogb, float)
VECTOR2(float, ldexp, float, int)
MIXED2(float, ldexp, float, int)
VECTOR2(float, pown, float, int)
VECTOR2(float, rootn, float, int)

/* A second result by a pointer. */
#define SECOND_N(n, AS, R, name)                      \
        float##n OV name(float##n x, AS R##n *p)      \
        {                                             \
                float##n r;                           \
                for (int i = 0; i < n; i++) {         \
                        R second;                     \
                        AT(float, r, i) = rv_##name(AT(float, x, i), &second); \
                        (*p)[i] = second;             \
                }                                     \
                return r;                             \
        }
#define SECOND_OF(AS, R, name)                        \
        float OV name(float x, AS R *p)               \
        {                                             \
                R second;                             \
                float r = rv_##name(x, &second);      \
                *p = second;                          \
                return r;                             \
        }                                             \
        EACH_LENGTH(SECOND_N, AS, R, name)
#define SECOND(R, name) SECOND_OF(private, R, name) SECOND_OF(local, R, name) SECOND_OF(global, R, name)
static float rv_sincos(float x, private float *cosine)
{
        *cosine = rv_cos(x);
        return rv_sin(x);
}
SECOND(float, modf)
SECOND(float, fract)
SECOND(int, frexp)
SECOND(float, sincos)

#define REMQUO_N(n, AS)                                           \
        float##n OV remquo(float##n x, float##n y, AS int##n *p)  \
        {                                                         \
                float##n r;                                       \
                for (int i = 0; i < n; i++) {                     \
                        int q;                                    \
                        AT(float, r, i) = rv_remquo(AT(float, x, i), AT(float, y, i), &q);         \
                        (*p)[i] = q;                              \
                }                                                 \
                return r;                                         \
        }
#define REMQUO(AS)                                                \
        float OV remquo(float x, float y, AS int *p)              \
        {                                                         \
                int q;                                            \
                float r = rv_remquo(x, y, &q);                    \
                *p = q;                                           \
                return r;                                         \
        }                                                         \
        EACH_LENGTH(REMQUO_N, AS)
REMQUO(private) REMQUO(local) REMQUO(global)

/* ---- common functions ----------------------------------------------------------------------- */

PLAIN2(float, max, x < y ? y : x)
PLAIN2(float, min, y < x ? y : x)
MIXED2(float, max, float, float)
MIXED2(float, min, float, float)
float OV clamp(float x, float a, float b) { return fmin(fmax(x, a), b); }
VECTOR3(float, clamp, float, float, float)
MIXED3(float, clamp, float, float, float)
float OV mix(float x, float y, float a) { return x + (y - x) * a; }
VECTOR3(float, mix, float, float, float)
PLAIN1(float, degrees, float, x * 57.295779513082f)
PLAIN1(float, radians, float, x * 0.017453292519943f)
PLAIN2(float, step, y < x ? 0 : 1)
PLAIN1(float, sign, float, x > 0 ? 1 : x < 0 ? -1 : x == 0 ? x : 0)
float OV smoothstep(float a, float b, float x)
{
        float t = clamp((x - a) / (b - a), 0.0f, 1.0f);
        return t * t * (3 - 2 * t);
}
VECTOR3(float, smoothstep, float, float, float)
#define EDGES_N(n, _)                                                           \
        float##n OV mix(float##n x, float##n y, float a) { return mix(x, y, (float##n)(a)); } \
        float##n OV step(float a, float##n x) { return step((float##n)(a), x); } \
        float##n OV smoothstep(float a, float b, float##n x)                    \
        {                                                                       \
                return smoothstep((float##n)(a), (float##n)(b), x);             \
        }
EACH_LENGTH(EDGES_N, _)

/* ---- geometry ------------------------------------------------------------------------------- */

float3 OV cross(float3 a, float3 b) { return a.yzx * b.zxy - a.zxy * b.yzx; }
float4 OV cross(float4 a, float4 b) { return (float4)(cross(a.xyz, b.xyz), 0); }

float OV dot(float a, float b) { return a * b; }
float OV length(float a) { return rv_fabs(a); }
float OV distance(float a, float b) { return rv_fabs(a - b); }
float OV normalize(float a) { return sign(a); }
float OV fast_length(float a) { return rv_fabs(a); }
float OV fast_distance(float a, float b) { return rv_fabs(a - b); }
float OV fast_normalize(float a) { return sign(a); }
#define GEOMETRY(n)                                                                \
        float OV dot(float##n a, float##n b)                                       \
        {                                                                          \
                float r = 0;                                                       \
                for (int i = 0; i < n; i++)                                        \
                        r += a[i] * b[i];                                          \
                return r;                                                          \
        }                                                                          \
        float OV length(float##n a)                                                \
        {                                                                          \
                float s = 0, most = 0;                                             \
                for (int i = 0; i < n; i++)                                        \
                        most = fmax(most, rv_fabs(a[i]));                          \
                if (most == 0 || most == INFINITY || most != most)                 \
                        return most == INFINITY ? most : dot(a, a);                \
                int exp = rv_ilogb(most);                                          \
                for (int i = 0; i < n; i++) {                                      \
                        float v = rv_ldexp(a[i], -exp);                            \
                        s += v * v;                                                \
                }                                                                  \
                return rv_ldexp(rv_sqrt(s), exp);                                  \
        }                                                                          \
        float OV distance(float##n a, float##n b) { return length(a - b); }        \
        float OV fast_length(float##n a) { return rv_sqrt(dot(a, a)); }            \
        float OV fast_distance(float##n a, float##n b) { return fast_length(a - b); } \
        float##n OV normalize(float##n a)                                          \
        {                                                                          \
                float l = length(a);                                               \
                return l == 0 ? a : a / l;                                         \
        }                                                                          \
        float##n OV fast_normalize(float##n a) { return a * rv_rsqrt(dot(a, a)); }
GEOMETRY(2) GEOMETRY(3) GEOMETRY(4)

/* ---- relations ------------------------------------------------------------------------------ */

#define TRUE_N(n, name, condition)                                       \
        int##n OV name(float##n x, float##n y) { return condition; }
#define RELATION(name, condition)                                        \
        int OV name(float x, float y) { return condition; }              \
        EACH_LENGTH(TRUE_N, name, condition)
RELATION(isequal, x == y)
RELATION(isnotequal, x != y)
RELATION(isgreater, x > y)
RELATION(isgreaterequal, x >= y)
RELATION(isless, x < y)
RELATION(islessequal, x <= y)
RELATION(islessgreater, (x < y) | (x > y))
RELATION(isordered, (x == x) & (y == y))
RELATION(isunordered, (x != x) | (y != y))

#define CLASS_N(n, name, condition)                                      \
        int##n OV name(float##n a)                                       \
        {                                                                \
                int##n x = as_int##n(a);                                 \
                return condition;                                        \
        }
#define CLASS(name, condition)                                           \
        int OV name(float a)                                             \
        {                                                                \
                int x = as_int(a);                                       \
                return condition;                                        \
        }                                                                \
        EACH_LENGTH(CLASS_N, name, condition)
#define MAGNITUDE (x & 0x7fffffff)
CLASS(isnan, MAGNITUDE > 0x7f800000)
CLASS(isinf, MAGNITUDE == 0x7f800000)
CLASS(isfinite, MAGNITUDE < 0x7f800000)
CLASS(isnormal, (MAGNITUDE < 0x7f800000) & (MAGNITUDE >= 0x800000))
CLASS(signbit, x < 0)
