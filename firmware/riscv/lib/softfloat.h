/* Arithmetic of one floating-point format in integers, IEEE 754, to nearest even, with subnormal numbers.
 * Included once for each format with REP, SREP, BITS, MANT (bits of the fraction) and NAME(n). A number in work
 * is its sign, its biased exponent, and a significand whose leading bit is MANT + 3: three bits more than
 * are kept, the last of which also stands for all that follow. */

#define EXP_MAX ((1 << (BITS - 1 - MANT)) - 1)
#define BIAS    (EXP_MAX >> 1)
#define HIDDEN  ((REP)1 << MANT)
#define SIGN    ((REP)1 << (BITS - 1))
#define INF     ((REP)EXP_MAX << MANT)
#define NAN_    (INF | HIDDEN >> 1)
#define LEAD    (HIDDEN << 3)

static REP NAME(jam)(REP m, int by)
{
        if (by >= BITS)
                return m != 0;
        return by ? m >> by | ((m << (BITS - by)) != 0) : m;
}

static REP NAME(round)(REP sign, int exp, REP m)
{
        if (exp < 1) {
                m = NAME(jam)(m, 1 - exp);
                exp = 1;
        }
        if (exp >= EXP_MAX)
                return sign | INF;
        unsigned low = m & 7;
        m >>= 3;
        m += low > 4 || (low == 4 && (m & 1));
        return sign | (((REP)(exp - 1) << MANT) + m); /* a carry goes on into the exponent */
}

/* Of a significand with its leading bit anywhere but above LEAD << 1. */
static REP NAME(normal)(REP sign, int exp, REP m)
{
        if (!m)
                return sign;
        for (; !(m & ~(LEAD - 1)) && exp > 1; exp--)
                m <<= 1;
        if (m & LEAD << 1)
                m = NAME(jam)(m, 1), exp++;
        return NAME(round)(sign, exp, m);
}

static int NAME(is_nan)(REP a)
{
        return (a & ~SIGN) > INF;
}

REP NAME(add)(REP a, REP b)
{
        REP x = a & ~SIGN, y = b & ~SIGN;
        if (x < y) {
                REP t = a;
                a = b, b = t;
                t = x, x = y, y = t;
        }
        if (x >= INF)
                return x > INF || (y == INF && a != b) ? NAN_ : a;
        if (!y)
                return x ? a : a & b;
        int ex = (int)(x >> MANT), ey = (int)(y >> MANT);
        REP mx = (x & (HIDDEN - 1)) | (ex ? HIDDEN : 0),
            my = (y & (HIDDEN - 1)) | (ey ? HIDDEN : 0);
        ex += !ex, ey += !ey;
        my = NAME(jam)(my << 3, ex - ey);
        mx <<= 3;
        if ((a ^ b) & SIGN) {
                mx -= my;
                return mx ? NAME(normal)(a & SIGN, ex, mx) : 0;
        }
        return NAME(normal)(a & SIGN, ex, mx + my);
}

REP NAME(sub)(REP a, REP b)
{
        return NAME(add)(a, b ^ SIGN);
}

/* Significand with the hidden bit set, for subnormal numbers, too. */
static REP NAME(split)(REP x, int *exp)
{
        REP m = x & (HIDDEN - 1);
        *exp = (int)(x >> MANT);
        if (*exp)
                return m | HIDDEN;
        for (*exp = 1; !(m & HIDDEN); --*exp)
                m <<= 1;
        return m;
}

REP NAME(mul)(REP a, REP b)
{
        REP sign = (a ^ b) & SIGN, x = a & ~SIGN, y = b & ~SIGN, low;
        int ex, ey;
        if (x > INF || y > INF)
                return NAN_;
        if (x == INF || y == INF)
                return x && y ? sign | INF : NAN_;
        if (!x || !y)
                return sign;
        REP mx = NAME(split)(x, &ex) << (BITS - 1 - MANT), my = NAME(split)(y, &ey)
                                                                << (BITS - 1 - MANT);
        REP high = NAME(wide)(mx, my, &low);
        int exp = ex + ey - BIAS + 1;
        if (!(high & SIGN)) {
                high = high << 1 | low >> (BITS - 1);
                low <<= 1;
                exp--;
        }
        return NAME(round)(sign, exp, NAME(jam)(high | (low != 0), BITS - 4 - MANT));
}

REP NAME(div)(REP a, REP b)
{
        REP sign = (a ^ b) & SIGN, x = a & ~SIGN, y = b & ~SIGN, q = 0;
        int ex, ey;
        if (x > INF || y > INF || (x == y && (!x || x == INF)))
                return NAN_;
        if (x == INF || !y)
                return sign | INF;
        if (!x || y == INF)
                return sign;
        REP mx = NAME(split)(x, &ex), my = NAME(split)(y, &ey);
        int exp = ex - ey + BIAS;
        if (mx < my)
                mx <<= 1, exp--;
        for (int i = 0; i < MANT + 4; i++) {
                q <<= 1;
                if (mx >= my)
                        mx -= my, q |= 1;
                mx <<= 1;
        }
        return NAME(round)(sign, exp, q | (mx != 0));
}

/* -1, 0, 1; `unordered` if one is no number. */
static int NAME(compare)(REP a, REP b, int unordered)
{
        if (NAME(is_nan)(a) || NAME(is_nan)(b))
                return unordered;
        if (!((a | b) & ~SIGN) || a == b)
                return 0;
        if ((a ^ b) & SIGN)
                return a & SIGN ? -1 : 1;
        return (a < b) == !(a & SIGN) ? -1 : 1;
}

int NAME(le)(REP a, REP b)
{
        return NAME(compare)(a, b, 1);
}

int NAME(ge)(REP a, REP b)
{
        return NAME(compare)(a, b, -1);
}

int NAME(unord)(REP a, REP b)
{
        return NAME(is_nan)(a) || NAME(is_nan)(b);
}

static REP NAME(from_u64)(REP sign, uint64_t v)
{
        if (!v)
                return 0;
        int exp = BIAS + 63;
        for (; !(v >> 63); exp--)
                v <<= 1;
        v = v >> (60 - MANT) | ((v << (MANT + 4)) != 0);
        return NAME(round)(sign, exp, (REP)v);
}

REP NAME(from_unsigned)(uint32_t v)
{
        return NAME(from_u64)(0, v);
}

REP NAME(from_signed)(int32_t v)
{
        return NAME(from_u64)(v < 0 ? SIGN : 0, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

REP NAME(from_unsigned64)(uint64_t v)
{
        return NAME(from_u64)(0, v);
}

REP NAME(from_signed64)(int64_t v)
{
        return NAME(from_u64)(v < 0 ? SIGN : 0, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

/* Towards zero; what is too large becomes the largest. */
static uint64_t NAME(magnitude)(REP a)
{
        int exp = (int)((a & ~SIGN) >> MANT) - BIAS;
        uint64_t m = (a & (HIDDEN - 1)) | HIDDEN;
        if (exp < 0 || NAME(is_nan)(a))
                return 0;
        if (exp > 63)
                return UINT64_MAX;
        return exp > MANT ? m << (exp - MANT) : m >> (MANT - exp);
}

int64_t NAME(to_signed64)(REP a)
{
        uint64_t m = NAME(magnitude)(a);
        if (a & SIGN)
                return m > INT64_MAX ? INT64_MIN : -(int64_t)m;
        return m > INT64_MAX ? INT64_MAX : (int64_t)m;
}

uint64_t NAME(to_unsigned64)(REP a)
{
        return a & SIGN ? 0 : NAME(magnitude)(a);
}

int32_t NAME(to_signed)(REP a)
{
        int64_t v = NAME(to_signed64)(a);
        return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

uint32_t NAME(to_unsigned)(REP a)
{
        uint64_t v = NAME(to_unsigned64)(a);
        return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

#undef EXP_MAX
#undef BIAS
#undef HIDDEN
#undef SIGN
#undef INF
#undef NAN_
#undef LEAD
#undef REP
#undef BITS
#undef MANT
#undef NAME
