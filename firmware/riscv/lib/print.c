/* printf of OpenCL C 1.2, 6.12.13: vectors, and float as it is (there is no double). Numbers are exact. */
#include <spancl/riscv.h>
#include <stdarg.h>

enum { LINE = 128, WORDS_WHOLE = 5, WORDS = 24, BILLION = 1000000000, DIGITS = WORDS * 9 };

#define VECTOR(type, name)                                        \
        typedef type name##2 __attribute__((ext_vector_type(2))); \
        typedef type name##3 __attribute__((ext_vector_type(3))); \
        typedef type name##4 __attribute__((ext_vector_type(4))); \
        typedef type name##8 __attribute__((ext_vector_type(8))); \
        typedef type name##16 __attribute__((ext_vector_type(16)));

VECTOR(int8_t, char)
VECTOR(int16_t, short)
VECTOR(int32_t, int)
VECTOR(int64_t, long)

struct out {
        char line[LINE];
        unsigned size;
        void (*print)(const char *text, uint32_t size);
};

struct format {
        int minus, plus, space, alternate, zero;
        int width, precision; /* -1: none */
        int elements;         /* 0: no vector */
        int bytes;            /* of an element */
        char kind;
};

static void flush(struct out *o)
{
        o->print(o->line, o->size);
        o->size = 0;
}

static void put(struct out *o, char c)
{
        o->line[o->size++] = c;
        if (o->size == LINE)
                flush(o);
}

static void put_many(struct out *o, char c, int n)
{
        while (n-- > 0)
                put(o, c);
}

/* Sign or 0x, zeros, text; in a field. */
static void put_number(struct out *o, const struct format *f, const char *prefix, int zeros,
                       const char *text, int size, int zero_fill)
{
        int before = 0;
        while (prefix[before])
                before++;
        int fill = f->width - before - zeros - size;
        if (!f->minus && !zero_fill)
                put_many(o, ' ', fill);
        for (int i = 0; i < before; i++)
                put(o, prefix[i]);
        if (!f->minus && zero_fill)
                put_many(o, '0', fill);
        put_many(o, '0', zeros);
        for (int i = 0; i < size; i++)
                put(o, text[i]);
        if (f->minus)
                put_many(o, ' ', fill);
}

static const char *sign_of(const struct format *f, int negative)
{
        return negative ? "-" : f->plus ? "+" : f->space ? " " : "";
}

static void put_integer(struct out *o, const struct format *f, int64_t value)
{
        char text[24];
        int size = 0, is_signed = f->kind == 'd' || f->kind == 'i';
        uint64_t v = (uint64_t)value;
        const char *prefix = "",
                   *figures = f->kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
        unsigned base = f->kind == 'o' ? 8 : f->kind == 'x' || f->kind == 'X' ? 16 : 10;
        if (is_signed) {
                prefix = sign_of(f, value < 0);
                if (value < 0)
                        v = -v;
        }
        if (f->alternate && v && base == 16)
                prefix = f->kind == 'x' ? "0x" : "0X";
        for (; v; v /= base)
                text[sizeof(text) - ++size] = figures[v % base];
        int least = f->precision < 0 ? 1 : f->precision;
        if (f->alternate && base == 8 && least <= size)
                least = size + 1;
        put_number(o, f, prefix, least > size ? least - size : 0, text + sizeof(text) - size, size,
                   f->zero && f->precision < 0);
}

/* All digits of m * 2^exp: digits[0] is worth 10^(9 * WORDS_WHOLE - 1). */
static void decimal(uint32_t m, int exp, char digits[DIGITS])
{
        uint32_t words[WORDS] = { 0 };
        words[WORDS_WHOLE - 1] = m;
        for (; exp > 0; exp--) {
                uint32_t carry = 0;
                for (int i = WORDS_WHOLE - 1; i >= 0; i--) {
                        uint32_t v = words[i] * 2 + carry;
                        carry = v >= BILLION;
                        words[i] = v - (carry ? BILLION : 0);
                }
        }
        for (; exp < 0; exp++) {
                uint32_t rest = 0;
                for (int i = WORDS_WHOLE - 1; i < WORDS; i++) {
                        uint32_t v = words[i] + (rest ? BILLION : 0);
                        words[i] = v / 2;
                        rest = v & 1;
                }
        }
        for (int i = 0; i < WORDS; i++)
                for (int d = 8; d >= 0; d--, words[i] /= 10)
                        digits[i * 9 + d] = (char)('0' + words[i] % 10);
}

/* Keep `keep` digits, to nearest even; may carry into digits[-1]. */
static void round_digits(char *digits, int keep)
{
        int more = 0;
        if (keep >= DIGITS)
                return;
        for (int i = keep + 1; i < DIGITS; i++)
                more |= digits[i] != '0';
        int up = digits[keep] > '5' ||
                 (digits[keep] == '5' && (more || (digits[keep - 1] - '0') % 2));
        for (int i = keep; i < DIGITS; i++)
                digits[i] = '0';
        for (int i = keep - 1; up; i--) {
                up = digits[i] == '9';
                digits[i] = up ? '0' : (char)(digits[i] + 1);
        }
}

static int put_exponent(char *text, int n, char letter, int exp, int least)
{
        char figures[4];
        int size = 0;
        text[n++] = letter;
        text[n++] = exp < 0 ? '-' : '+';
        for (exp = exp < 0 ? -exp : exp; exp || size < least; exp /= 10)
                figures[size++] = (char)('0' + exp % 10);
        while (size)
                text[n++] = figures[--size];
        return n;
}

enum {
        ONE = WORDS_WHOLE * 9
}; /* of the digits: the one worth 1, behind the one before the first */

/* Digits from `first` on, a point behind the first `whole` of `count`; those beyond what there is are 0. */
static int put_digits(char *text, const char *digits, int first, int whole, int count, int point)
{
        int n = 0;
        for (int i = 0; i < count; i++) {
                if (i == whole)
                        text[n++] = '.';
                int at = first + i;
                text[n++] = at <= DIGITS ? digits[at] : '0';
        }
        if (point && whole == count)
                text[n++] = '.';
        return n;
}

static int strip_zeros(char *text, int n)
{
        int point = 0;
        for (int i = 0; i < n; i++)
                point |= text[i] == '.';
        while (point && text[n - 1] == '0')
                n--;
        return point && text[n - 1] == '.' ? n - 1 : n;
}

static int hexadecimal(const struct format *f, uint32_t m, int exp, char *text)
{
        const char *figures = f->kind == 'A' ? "0123456789ABCDEF" : "0123456789abcdef";
        int upper = f->kind == 'A', keep = f->precision, n = 0;
        if (m)
                for (; !(m & 0x800000); exp--)
                        m <<= 1;
        m <<= 1; /* 1, then six figures */
        if (keep >= 0 && keep < 6) {
                int shift = 24 - 4 * keep;
                uint32_t low = m & ((1u << shift) - 1), half = 1u << (shift - 1);
                m = (m >> shift) + (low > half || (low == half && (m >> shift & 1)));
                m <<= shift;
        }
        text[n++] = figures[m >> 24];
        if (keep < 0)
                for (keep = 6; keep && !(m >> (24 - 4 * keep) & 15);)
                        keep--;
        if (keep || f->alternate)
                text[n++] = '.';
        for (int i = 1; i <= keep && i <= 40; i++)
                text[n++] = i <= 6 ? figures[m >> (24 - 4 * i) & 15] : '0';
        return put_exponent(text, n, upper ? 'P' : 'p', m ? exp + 23 : 0, 1);
}

static void put_float(struct out *o, const struct format *f, float value)
{
        union {
                float f;
                uint32_t u;
        } v = { value };
        char space[DIGITS + 1], *digits = space, text[DIGITS + 80], sign[8];
        const char *prefix = sign_of(f, v.u >> 31);
        int upper = f->kind < 'a', kind = f->kind | 32, n = 0;
        int precision = f->precision < 0 ? 6 : f->precision > 60 ? 60 : f->precision;
        uint32_t m = v.u & 0x7fffff;
        int exp = (int)(v.u >> 23 & 255);
        if (exp == 255) {
                const char *name = m ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf";
                put_number(o, f, prefix, 0, name, 3, 0);
                return;
        }
        if (exp)
                m |= 0x800000;
        exp = (exp ? exp : 1) - 150;
        if (kind == 'a') {
                char *end = sign;
                n = hexadecimal(f, m, exp, text);
                for (; *prefix; prefix++)
                        *end++ = *prefix;
                *end++ = '0';
                *end++ = upper ? 'X' : 'x';
                *end = 0;
                put_number(o, f, sign, 0, text, n, f->zero);
                return;
        }
        space[0] = '0';
        decimal(m, exp, space + 1);
        int first = 0;
        while (first < DIGITS && digits[first] == '0')
                first++;
        if (!m)
                first = ONE;
        int significant = kind == 'e' ? precision + 1 : precision ? precision : 1;
        if (kind == 'f') {
                round_digits(digits + 1, ONE + precision);
        } else {
                round_digits(digits + 1, first - 1 + significant);
                if (m && digits[first - 1] != '0')
                        first--;
        }
        int ten = ONE - first; /* the power of ten of the first digit */
        if (kind == 'f' || (kind == 'g' && ten >= -4 && ten < significant)) {
                if (kind == 'g')
                        precision = significant - 1 - ten;
                int begin = 0;
                while (begin < ONE && digits[begin] == '0')
                        begin++;
                n = put_digits(text, digits, begin, ONE + 1 - begin, ONE + 1 - begin + precision,
                               f->alternate);
                if (kind == 'g' && !f->alternate)
                        n = strip_zeros(text, n);
        } else {
                n = put_digits(text, digits, first, 1, significant, f->alternate);
                if (kind == 'g' && !f->alternate)
                        n = strip_zeros(text, n);
                n = put_exponent(text, n, upper ? 'E' : 'e', m ? ten : 0, 2);
        }
        put_number(o, f, prefix, 0, text, n, f->zero);
}

static void put_text(struct out *o, const struct format *f, const char *text)
{
        int size = 0;
        while (text && text[size] && (f->precision < 0 || size < f->precision))
                size++;
        put_number(o, f, "", 0, text, size, 0);
}

/* ---- arguments ------------------------------------------------------------------------------ */

static int64_t narrow(const struct format *f, int64_t v)
{
        int is_signed = f->kind == 'd' || f->kind == 'i';
        switch (f->bytes) {
        case 1:
                return is_signed ? (int8_t)v : (uint8_t)v;
        case 2:
                return is_signed ? (int16_t)v : (uint16_t)v;
        case 4:
                return is_signed ? (int64_t)(int32_t)v : (int64_t)(uint32_t)v;
        default:
                return v;
        }
}

static void put_element(struct out *o, const struct format *f, int64_t value)
{
        union {
                uint32_t u;
                float f;
        } v = { (uint32_t)value };
        if (f->kind == 'd' || f->kind == 'i' || f->kind == 'u' || f->kind == 'o' ||
            f->kind == 'x' || f->kind == 'X')
                put_integer(o, f, narrow(f, value));
        else
                put_float(o, f, v.f);
}

#define TAKE_N(name, n)                              \
        case n: {                                    \
                name##n v = va_arg(*args, name##n);  \
                for (int i = 0; i < n; i++)          \
                        elements[i] = (int64_t)v[i]; \
                break;                               \
        }
#define TAKE(name)               \
        switch (f->elements) {   \
                TAKE_N(name, 2)  \
                TAKE_N(name, 3)  \
                TAKE_N(name, 4)  \
                TAKE_N(name, 8)  \
                TAKE_N(name, 16) \
        }

static void put_vector(struct out *o, const struct format *f, va_list *args)
{
        int64_t elements[16] = { 0 };
        switch (f->bytes) {
        case 1:
                TAKE(char)
                break;
        case 2:
                TAKE(short)
                break;
        case 4:
                TAKE(int)
                break;
        default:
                TAKE(long)
        }
        for (int i = 0; i < f->elements; i++) {
                if (i)
                        put(o, ',');
                put_element(o, f, elements[i]);
        }
}

static void put_one(struct out *o, const struct format *f, va_list *args)
{
        char c;
        switch (f->kind) {
        case 'c':
                c = (char)va_arg(*args, int);
                put_number(o, f, "", 0, &c, 1, 0);
                return;
        case 's':
                put_text(o, f, va_arg(*args, const char *));
                return;
        case 'p': {
                struct format hex = *f;
                hex.kind = 'x';
                hex.alternate = 1;
                hex.bytes = 4;
                put_integer(o, &hex, va_arg(*args, uint32_t));
                return;
        }
        default:
                if (f->elements)
                        put_vector(o, f, args);
                else if (f->bytes == 8)
                        put_element(o, f, va_arg(*args, int64_t));
                else
                        put_element(o, f, va_arg(*args, int32_t));
        }
}

/* Parse the conversion behind a `%` into *f. Returns its end; 0: it is not a valid conversion. */
static const char *parse(const char *p, struct format *f)
{
        *f = (struct format){ .precision = -1, .bytes = 4 };
        for (;; p++) {
                if (*p == '-')
                        f->minus = 1;
                else if (*p == '+')
                        f->plus = 1;
                else if (*p == ' ')
                        f->space = 1;
                else if (*p == '#')
                        f->alternate = 1;
                else if (*p == '0')
                        f->zero = 1;
                else
                        break;
        }
        for (; *p >= '0' && *p <= '9'; p++)
                f->width = f->width * 10 + *p - '0';
        if (*p == '.')
                for (f->precision = 0, p++; *p >= '0' && *p <= '9'; p++)
                        f->precision = f->precision * 10 + *p - '0';
        if (*p == 'v')
                for (p++; *p >= '0' && *p <= '9'; p++)
                        f->elements = f->elements * 10 + *p - '0';
        if (p[0] == 'h' && p[1] == 'h')
                f->bytes = 1, p += 2;
        else if (p[0] == 'h' && p[1] == 'l')
                f->bytes = 4, p += 2;
        else if (*p == 'h')
                f->bytes = 2, p++;
        else if (*p == 'l')
                f->bytes = 8, p++;
        f->kind = *p;
        if (f->minus)
                f->zero = 0;
        int n = f->elements;
        if (n && n != 2 && n != 3 && n != 4 && n != 8 && n != 16)
                return 0;
        for (const char *known = "diouxXfFeEgGaAcsp"; *known; known++)
                if (*known == *p)
                        return p + 1;
        return 0;
}

int printf(const char *format, ...)
{
        const struct riscv_item *self;
        __asm__("mv %0, tp" : "=r"(self));
        struct out o;
        int result = 0;
        va_list args;
        o.size = 0;
        o.print =
                (void (*)(const char *, uint32_t))((const struct riscv_group *)self->group)->print;
        va_start(args, format);
        for (const char *p = format; *p;) {
                struct format f;
                if (*p != '%' || p[1] == '%') {
                        put(&o, *p);
                        p += *p == '%' ? 2 : 1;
                        continue;
                }
                const char *next = parse(p + 1, &f);
                if (!next) {
                        result = -1;
                        break;
                }
                put_one(&o, &f, &args);
                p = next;
        }
        va_end(args);
        flush(&o);
        return result;
}
