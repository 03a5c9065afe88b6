/* The functions of one float that OpenCL C has, most of them computed in double (which is done in integers
 * here): the nearest float or one beside it. No function of these has an error of more than one ulp, but pow,
 * powr, rootn and exp10 near the ends of the range. */
#include <stdint.h>

#include "math.h"

#define PI   3.14159265358979323846
#define LN2  0.69314718055994530942
#define NANF __builtin_nanf("")
#define INFF __builtin_inff()

static uint32_t bits(float x)
{
        union {
                float f;
                uint32_t u;
        } v = { x };
        return v.u;
}

static float of_bits(uint32_t x)
{
        union {
                uint32_t u;
                float f;
        } v = { x };
        return v.f;
}

static uint64_t wide_bits(double x)
{
        union {
                double f;
                uint64_t u;
        } v = { x };
        return v.u;
}

static double of_wide(uint64_t x)
{
        union {
                uint64_t u;
                double f;
        } v = { x };
        return v.f;
}

static int is_nan(float x)
{
        return (bits(x) & 0x7fffffff) > 0x7f800000;
}

static int is_inf(float x)
{
        return (bits(x) & 0x7fffffff) == 0x7f800000;
}

float rv_fabs(float x)
{
        return of_bits(bits(x) & 0x7fffffff);
}

float rv_copysign(float x, float y)
{
        return of_bits((bits(x) & 0x7fffffff) | (bits(y) & 0x80000000));
}

uint32_t f32_sqrt(uint32_t a);

float rv_sqrt(float x)
{
        return of_bits(f32_sqrt(bits(x)));
}

static double root(double x)
{
        double y = rv_sqrt((float)x);
        return y > 0 ? (y + x / y) / 2 : y;
}

/* ---- whole numbers -------------------------------------------------------------------------- */

float rv_trunc(float x)
{
        int exp = (int)(bits(x) >> 23 & 255) - 127;
        if (exp >= 23)
                return x;
        if (exp < 0)
                return rv_copysign(0, x);
        return of_bits(bits(x) & ~(0x7fffffu >> exp));
}

float rv_floor(float x)
{
        float t = rv_trunc(x);
        return rv_copysign(t > x ? t - 1 : t, x);
}

float rv_ceil(float x)
{
        float t = rv_trunc(x);
        return rv_copysign(t < x ? t + 1 : t, x);
}

float rv_round(float x)
{
        float t = rv_trunc(x);
        return rv_copysign(rv_fabs(x - t) >= 0.5f ? t + rv_copysign(1, x) : t, x);
}

float rv_rint(float x)
{
        float t = rv_trunc(x), d = rv_fabs(x - t);
        int odd = rv_fabs(t) < 16777216.0f && ((int)t & 1);
        return rv_copysign(d > 0.5f || (d == 0.5f && odd) ? t + rv_copysign(1, x) : t, x);
}

float rv_ldexp(float x, int n)
{
        if (n > 300)
                n = 300;
        if (n < -300)
                n = -300;
        return (float)((double)x * of_wide((uint64_t)(1023 + n) << 52));
}

int rv_ilogb(float x)
{
        uint32_t v = bits(x) & 0x7fffffff;
        if (!v || v > 0x7f800000)
                return INT32_MIN;
        if (v == 0x7f800000)
                return INT32_MAX;
        return (int)(wide_bits((double)rv_fabs(x)) >> 52) - 1023;
}

float rv_logb(float x)
{
        if (x == 0)
                return -INFF;
        return is_nan(x) || is_inf(x) ? x * x : (float)rv_ilogb(x);
}

float rv_frexp(float x, int *exp)
{
        *exp = 0;
        if (x == 0 || is_nan(x) || is_inf(x))
                return x;
        *exp = rv_ilogb(x) + 1;
        return (float)((double)x * of_wide((uint64_t)(1023 - *exp) << 52));
}

float rv_modf(float x, float *whole)
{
        *whole = rv_trunc(x);
        return rv_copysign(is_inf(x) ? 0 : x - *whole, x);
}

float rv_fract(float x, float *whole)
{
        float f = rv_floor(x), r = x - f, most = of_bits(0x3f7fffff);
        *whole = f;
        if (is_nan(x))
                return x;
        return is_inf(x) ? rv_copysign(0, x) : r < most ? r : most;
}

/* The rest of |x| by |y|, and the lowest bits of the quotient. */
static float rest_of(float x, float y, uint32_t *quotient)
{
        double a = rv_fabs(x), b = rv_fabs(y);
        int n = (int)(wide_bits(a) >> 52) - (int)(wide_bits(b) >> 52);
        *quotient = 0;
        for (; n >= 0; n--) {
                double step = of_wide(wide_bits(b) + ((uint64_t)n << 52));
                *quotient <<= 1;
                if (a >= step) {
                        a -= step;
                        *quotient |= 1;
                }
        }
        return (float)a;
}

float rv_fmod(float x, float y)
{
        uint32_t q;
        if (is_nan(x) || is_nan(y) || is_inf(x) || y == 0)
                return NANF;
        return is_inf(y) || x == 0 ? x : rv_copysign(rest_of(x, y, &q), x);
}

float rv_remquo(float x, float y, int *quotient)
{
        uint32_t q = 0;
        *quotient = 0;
        if (is_nan(x) || is_nan(y) || is_inf(x) || y == 0)
                return NANF;
        double b = rv_fabs(y), r = is_inf(y) ? rv_fabs(x) : rest_of(x, y, &q);
        if (!is_inf(y) && (r * 2 > b || (r * 2 == b && q & 1))) {
                r -= b;
                q++;
        }
        q &= 127;
        *quotient = (bits(x) ^ bits(y)) >> 31 ? -(int)q : (int)q;
        return (float)(bits(x) >> 31 ? -r : r);
}

float rv_remainder(float x, float y)
{
        int q;
        return rv_remquo(x, y, &q);
}

float rv_nextafter(float x, float y)
{
        if (is_nan(x) || is_nan(y))
                return NANF;
        if (x == y)
                return y;
        if (x == 0)
                return of_bits((bits(y) & 0x80000000) | 1);
        return of_bits(bits(x) + ((x < y) == !(bits(x) >> 31) ? 1 : UINT32_MAX));
}

/* The product is exact in double. The sum is, too, but for its last bit, which is made odd if something is
 * lost, so that rounding once more gives what rounding once would have. */
float rv_fma(float x, float y, float z)
{
        double p = (double)x * y, c = z, s = p + c;
        uint64_t v = wide_bits(s);
        if ((v >> 52 & 2047) == 2047)
                return (float)s;
        double t = s - p, error = (p - (s - t)) + (c - t);
        if (error != 0 && !(v & 1))
                v += (error > 0) == !(v >> 63) ? 1 : UINT64_MAX;
        return (float)of_wide(v);
}

/* ---- exponentials --------------------------------------------------------------------------- */

/* exp(r) - 1 for small r. */
static double small_exp(double r)
{
        double s = 1;
        for (int n = 14; n > 1; n--)
                s = 1 + r * s / n;
        return r * s;
}

static double wide_exp(double x)
{
        if (x > 800)
                x = 800;
        if (x < -800)
                x = -800;
        int n = (int)(x / LN2 + (x < 0 ? -0.5 : 0.5));
        double r = x - n * 0.693147180369123816490 - n * 1.90821492927058770002e-10;
        double m = 1 + small_exp(r);
        if (n < -1000)
                return 0;
        return n > 1000 ? __builtin_inf() : m * of_wide((uint64_t)(1023 + n) << 52);
}

/* Of a positive number. */
static double wide_log(double x)
{
        uint64_t v = wide_bits(x);
        int n = (int)(v >> 52) - 1023;
        double m = of_wide((v & 0xfffffffffffff) | 0x3ff0000000000000);
        if (m > 1.41421356237309504880) {
                m /= 2;
                n++;
        }
        double s = (m - 1) / (m + 1), q = s * s, sum = 0;
        for (int k = 19; k > 0; k -= 2)
                sum = sum * q + 1.0 / k;
        return n * LN2 + 2 * s * sum;
}

float rv_exp(float x)
{
        return is_nan(x) ? x : (float)wide_exp(x);
}

float rv_exp2(float x)
{
        return is_nan(x) ? x : (float)wide_exp(x * LN2);
}

float rv_exp10(float x)
{
        return is_nan(x) ? x : (float)wide_exp(x * 2.30258509299404568402);
}

float rv_expm1(float x)
{
        if (is_nan(x) || x == 0)
                return x;
        return rv_fabs(x) < 0.3f ? (float)small_exp(x) : (float)(wide_exp(x) - 1);
}

static float log_by(float x, double by)
{
        if (is_nan(x) || x < 0)
                return NANF;
        if (x == 0)
                return -INFF;
        return is_inf(x) ? x : (float)(wide_log(x) * by);
}

float rv_log(float x)
{
        return log_by(x, 1);
}

float rv_log2(float x)
{
        return log_by(x, 1.44269504088896340736);
}

float rv_log10(float x)
{
        return log_by(x, 0.43429448190325182765);
}

float rv_log1p(float x)
{
        double w = x;
        if (is_nan(x) || x < -1)
                return NANF;
        if (x == -1)
                return -INFF;
        if (is_inf(x) || x == 0)
                return x;
        if (rv_fabs(x) < 1e-4f)
                return (float)(w - w * w / 2 + w * w * w / 3);
        return (float)wide_log(1 + w);
}

static int is_whole(float y)
{
        return rv_trunc(y) == y;
}

static int is_odd(float y)
{
        return is_whole(y) && rv_fabs(y) < 16777216.0f && ((int)y & 1);
}

float rv_pow(float x, float y)
{
        if (y == 0 || x == 1)
                return 1;
        if (is_nan(x) || is_nan(y))
                return NANF;
        float a = rv_fabs(x);
        if (is_inf(y)) {
                if (a == 1)
                        return 1;
                return (a > 1) == (y > 0) ? INFF : 0;
        }
        float sign = bits(x) >> 31 && is_odd(y) ? -1.0f : 1.0f;
        if (a == 0)
                return y < 0 ? rv_copysign(INFF, sign) : rv_copysign(0, sign);
        if (is_inf(x))
                return y > 0 ? rv_copysign(INFF, sign) : rv_copysign(0, sign);
        if (x < 0 && !is_whole(y))
                return NANF;
        return sign * (float)wide_exp(wide_log(a) * y);
}

float rv_powr(float x, float y)
{
        if (is_nan(x) || is_nan(y) || x < 0 || (x == 1 && is_inf(y)) ||
            (y == 0 && (x == 0 || is_inf(x))))
                return NANF;
        return rv_pow(rv_fabs(x), y);
}

float rv_pown(float x, int n)
{
        uint32_t left = n < 0 ? -(uint32_t)n : (uint32_t)n;
        double a = rv_fabs(x);
        if (!n)
                return 1;
        if (is_nan(x))
                return x;
        float sign = bits(x) >> 31 && (n & 1) ? -1.0f : 1.0f;
        if (a == 0)
                return rv_copysign(n < 0 ? INFF : 0, sign);
        if (is_inf(x))
                return rv_copysign(n < 0 ? 0 : INFF, sign);
        return sign * (float)wide_exp(wide_log(a) * (n < 0 ? -(double)left : (double)left));
}

float rv_rootn(float x, int n)
{
        if (!n || is_nan(x) || (x < 0 && !(n & 1)))
                return NANF;
        float sign = bits(x) >> 31 && (n & 1) ? -1.0f : 1.0f;
        if (x == 0 || is_inf(x))
                return rv_copysign((x == 0) == (n < 0) ? INFF : 0, sign);
        return sign * (float)wide_exp(wide_log(rv_fabs(x)) / n);
}

float rv_cbrt(float x)
{
        return x == 0 || is_nan(x) || is_inf(x) ? x : rv_rootn(x, 3);
}

float rv_rsqrt(float x)
{
        if (is_nan(x) || x < 0)
                return NANF;
        if (x == 0)
                return rv_copysign(INFF, x);
        return is_inf(x) ? 0 : (float)(1 / root(x));
}

float rv_hypot(float x, float y)
{
        if (is_inf(x) || is_inf(y))
                return INFF;
        if (is_nan(x) || is_nan(y))
                return NANF;
        double s = (double)x * x + (double)y * y;
        int n = 0;
        if (s > 1e38)
                s *= 0x1p-128, n = 64;
        else if (s < 1e-37)
                s *= 0x1p128, n = -64;
        return (float)(root(s) * of_wide((uint64_t)(1023 + n) << 52));
}

float rv_sinh(float x)
{
        if (is_nan(x) || x == 0)
                return x;
        if (rv_fabs(x) < 0.3f) {
                double e = small_exp(x);
                return (float)((e + e / (1 + e)) / 2);
        }
        return (float)((wide_exp(x) - wide_exp(-(double)x)) / 2);
}

float rv_cosh(float x)
{
        return is_nan(x) ? x : (float)((wide_exp(x) + wide_exp(-(double)x)) / 2);
}

float rv_tanh(float x)
{
        if (is_nan(x) || x == 0)
                return x;
        if (rv_fabs(x) > 20)
                return rv_copysign(1, x);
        double e = rv_fabs(x) < 0.15f ? small_exp(2 * (double)x) : wide_exp(2 * (double)x) - 1;
        return (float)(e / (e + 2));
}

float rv_asinh(float x)
{
        double a = rv_fabs(x);
        if (is_nan(x) || is_inf(x) || x == 0)
                return x;
        if (a < 1e-3)
                return rv_copysign((float)(a - a * a * a / 6), x);
        return rv_copysign((float)wide_log(a > 1e18 ? 2 * a : a + root(a * a + 1)), x);
}

float rv_acosh(float x)
{
        double a = x;
        if (is_nan(x) || x < 1)
                return NANF;
        if (is_inf(x))
                return x;
        return a > 1e18 ? (float)wide_log(2 * a) : (float)wide_log(a + root(a * a - 1));
}

float rv_atanh(float x)
{
        double a = x;
        if (is_nan(x) || rv_fabs(x) > 1)
                return NANF;
        if (rv_fabs(x) == 1)
                return rv_copysign(INFF, x);
        if (rv_fabs(x) < 1e-3f)
                return x == 0 ? x : (float)(a + a * a * a / 3);
        return (float)(wide_log((1 + a) / (1 - a)) / 2);
}

/* ---- angles --------------------------------------------------------------------------------- */

/* The bits of 2 / pi behind the point, from the first on. */
static const uint32_t two_by_pi[] = { 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                      0xdb629599, 0x3c439041, 0xfe5163ab };

/* x = n * pi / 2 + *rest, |*rest| at most pi / 4; n modulo 4. The significand times the bits of 2 / pi that
 * count: those further up give multiples of four, those further down are too small. */
static unsigned quarter(float x, double *rest)
{
        uint32_t m = (bits(x) & 0x7fffff) | 0x800000;
        int exp = (int)(bits(x) >> 23 & 255) - 150; /* of its lowest bit */
        if (rv_fabs(x) <= 0.78539818f) {
                *rest = x;
                return 0;
        }
        /* Bits from 2^(1 - exp) * 2^... on: skip so many that those before are multiples of 4 / m. */
        int skip = exp > 2 ? exp - 2 : 0;
        uint32_t w[3];
        for (int i = 0; i < 3; i++) {
                int at = skip + 32 * i, word = at / 32, by = at % 32;
                w[i] = two_by_pi[word] << by | (by ? two_by_pi[word + 1] >> (32 - by) : 0);
        }
        /* p = m * w, 120 bits, of which bit 96 is worth 2^(exp - skip). */
        uint64_t low = (uint64_t)m * w[2], mid = (uint64_t)m * w[1] + (low >> 32);
        uint64_t high = (uint64_t)m * w[0] + (mid >> 32);
        uint32_t next = (uint32_t)mid;
        int shift = exp - skip; /* -23 ... 2 */
        /* The number is (high + next / 2^32) * 2^(shift - 32); as 2.62 fixed point, modulo 4: */
        uint64_t fixed;
        if (30 + shift >= 0)
                fixed = high << (30 + shift) | (uint64_t)next >> (32 - (30 + shift));
        else
                fixed = high >> -(30 + shift);
        uint64_t rounded = fixed + ((uint64_t)1 << 61);
        unsigned n = (unsigned)(rounded >> 62);
        int64_t fraction = (int64_t)(fixed - ((uint64_t)n << 62));
        double r = (double)fraction * (PI / 2) * 0x1p-62;
        *rest = bits(x) >> 31 ? -r : r;
        return bits(x) >> 31 ? -n & 3 : n;
}

static double small_sin(double r)
{
        double q = r * r, s = 1;
        for (int n = 15; n > 1; n -= 2)
                s = 1 - q * s / (n * (n - 1));
        return r * s;
}

static double small_cos(double r)
{
        double q = r * r, s = 1;
        for (int n = 16; n > 0; n -= 2)
                s = 1 - q * s / (n * (n - 1));
        return s;
}

/* sin of `n` quarters and `r`. */
static double turned(unsigned n, double r)
{
        double v = n & 1 ? small_cos(r) : small_sin(r);
        return n & 2 ? -v : v;
}

float rv_sin(float x)
{
        double r;
        if (is_nan(x) || is_inf(x))
                return NANF;
        if (x == 0)
                return x;
        unsigned n = quarter(x, &r);
        return (float)turned(n, r);
}

float rv_cos(float x)
{
        double r;
        if (is_nan(x) || is_inf(x))
                return NANF;
        unsigned n = quarter(x, &r);
        return (float)turned(n + 1, r);
}

float rv_tan(float x)
{
        double r;
        if (is_nan(x) || is_inf(x))
                return NANF;
        if (x == 0)
                return x;
        unsigned n = quarter(x, &r);
        return (float)(turned(n, r) / turned(n + 1, r));
}

/* x in half turns. */
static unsigned quarter_pi(float x, double *rest)
{
        float y = rv_fmod(x, 2);
        int n = (int)(y * 2 + (y < 0 ? -0.5f : 0.5f));
        *rest = (y - n * 0.5) * PI;
        return (unsigned)n & 3;
}

float rv_sinpi(float x)
{
        double r;
        if (is_nan(x) || is_inf(x))
                return NANF;
        if (is_whole(x))
                return rv_copysign(0, x);
        unsigned n = quarter_pi(x, &r);
        return (float)turned(n, r);
}

float rv_cospi(float x)
{
        double r;
        if (is_nan(x) || is_inf(x))
                return NANF;
        unsigned n = quarter_pi(x, &r);
        return r == 0 && !(n & 1) ? (n ? -1.0f : 1.0f) : r == 0 ? 0 : (float)turned(n + 1, r);
}

float rv_tanpi(float x)
{
        double r;
        if (is_nan(x) || is_inf(x))
                return NANF;
        unsigned n = quarter_pi(x, &r);
        if (r == 0 && !(n & 1))
                return rv_copysign(0, n ? -x : x);
        return r == 0 ? rv_copysign(INFF, n == 1 ? 1 : -1)
                      : (float)(turned(n, r) / turned(n + 1, r));
}

static double wide_atan(double x)
{
        double a = x < 0 ? -x : x, base = 0, sum = 0;
        int over = a > 1;
        if (over)
                a = 1 / a;
        if (a > 0.41421356237309504880) {
                a = (a - 1) / (a + 1);
                base = PI / 4;
        }
        double q = a * a;
        for (int n = 41; n > 0; n -= 2)
                sum = 1.0 / n - q * sum;
        double r = base + a * sum;
        if (over)
                r = PI / 2 - r;
        return x < 0 ? -r : r;
}

static double wide_atan2(float y, float x)
{
        double a;
        if (is_inf(x) && is_inf(y))
                a = PI / 4;
        else if (is_inf(x) || (y == 0 && x != 0))
                a = 0;
        else if (is_inf(y) || x == 0)
                a = y == 0 ? 0 : PI / 2;
        else
                a = wide_atan((double)rv_fabs(y) / rv_fabs(x));
        if (bits(x) >> 31)
                a = PI - a;
        return bits(y) >> 31 ? -a : a;
}

float rv_atan(float x)
{
        return is_nan(x) || x == 0 ? x
               : is_inf(x)         ? rv_copysign((float)(PI / 2), x)
                                   : (float)wide_atan(x);
}

float rv_atan2(float y, float x)
{
        if (is_nan(x) || is_nan(y))
                return NANF;
        return y == 0 && !(bits(x) >> 31) ? y : (float)wide_atan2(y, x);
}

static double wide_asin(double x)
{
        double c = root((1 - x) * (1 + x));
        return c > 0 ? wide_atan(x / c) : x < 0 ? -PI / 2 : PI / 2;
}

static double wide_acos(double x)
{
        double c = root((1 - x) * (1 + x));
        if (x == 0)
                return PI / 2;
        return x > 0 ? wide_atan(c / x) : PI + wide_atan(c / x);
}

float rv_asin(float x)
{
        return !(rv_fabs(x) <= 1) ? NANF : x == 0 ? x : (float)wide_asin(x);
}

float rv_acos(float x)
{
        return !(rv_fabs(x) <= 1) ? NANF : (float)wide_acos(x);
}

float rv_atanpi(float x)
{
        return is_nan(x) || x == 0 ? x
               : is_inf(x)         ? rv_copysign(0.5f, x)
                                   : (float)(wide_atan(x) / PI);
}

float rv_atan2pi(float y, float x)
{
        if (is_nan(x) || is_nan(y))
                return NANF;
        return y == 0 && !(bits(x) >> 31) ? y : (float)(wide_atan2(y, x) / PI);
}

float rv_asinpi(float x)
{
        return !(rv_fabs(x) <= 1) ? NANF : x == 0 ? x : (float)(wide_asin(x) / PI);
}

float rv_acospi(float x)
{
        return !(rv_fabs(x) <= 1) ? NANF : (float)(wide_acos(x) / PI);
}

/* ---- half ----------------------------------------------------------------------------------- */

float rv_from_half(unsigned short h)
{
        uint32_t sign = (uint32_t)(h & 0x8000) << 16, x = h & 0x7fff;
        if (x >= 0x7c00)
                return of_bits(sign | 0x7f800000 | (x & 0x3ff) << 13);
        return of_bits(sign | bits(of_bits(x << 13) * 0x1p112f));
}

/* `how`: 'e' to the nearest, 'z' towards zero, 'p' and 'n' towards the infinities. */
unsigned short rv_to_half(float f, int how)
{
        uint32_t v = bits(f) & 0x7fffffff, sign = bits(f) >> 16 & 0x8000, low, m;
        int exp = (int)(v >> 23) - 112, shift = 13;
        if (v >= 0x7f800000)
                return (unsigned short)(sign | 0x7c00 | (v > 0x7f800000 ? 0x200 : 0));
        m = (v & 0x7fffff) | (v >> 23 ? 0x800000 : 0);
        if (exp < 1) {
                shift = 14 - exp > 31 ? 31 : 14 - exp;
                exp = 1;
        }
        low = m & ((1u << shift) - 1);
        m >>= shift;
        int up = how == 'e'   ? low > 1u << (shift - 1) || (low == 1u << (shift - 1) && (m & 1))
                 : how == 'z' ? 0
                              : low && (how == 'n') == (sign != 0);
        uint32_t h = ((uint32_t)(exp - 1) << 10) + m + (uint32_t)up;
        if (h >= 0x7c00)
                h = how == 'e' || (how != 'z' && (how == 'n') == (sign != 0)) ? 0x7c00 : 0x7bff;
        return (unsigned short)(sign | h);
}
