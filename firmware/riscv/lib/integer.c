/* Compiler support: the functions that compilers call for 64-bit integers and memory on a core of
 * 32 bits. */
#include <stdint.h>

typedef union {
        uint64_t whole;
        struct {
                uint32_t low, high;
        } half;
} wide;

uint64_t __ashldi3(uint64_t v, int by)
{
        wide w = { v };
        if (!by)
                return v;
        if (by < 32) {
                w.half.high = w.half.high << by | w.half.low >> (32 - by);
                w.half.low <<= by;
        } else {
                w.half.high = w.half.low << (by - 32);
                w.half.low = 0;
        }
        return w.whole;
}

uint64_t __lshrdi3(uint64_t v, int by)
{
        wide w = { v };
        if (!by)
                return v;
        if (by < 32) {
                w.half.low = w.half.low >> by | w.half.high << (32 - by);
                w.half.high >>= by;
        } else {
                w.half.low = w.half.high >> (by - 32);
                w.half.high = 0;
        }
        return w.whole;
}

int64_t __ashrdi3(int64_t v, int by)
{
        wide w = { (uint64_t)v };
        if (!by)
                return v;
        if (by < 32) {
                w.half.low = w.half.low >> by | w.half.high << (32 - by);
                w.half.high = (uint32_t)((int32_t)w.half.high >> by);
        } else {
                w.half.low = (uint32_t)((int32_t)w.half.high >> (by - 32));
                w.half.high = (uint32_t)((int32_t)w.half.high >> 31);
        }
        return (int64_t)w.whole;
}

uint64_t __muldi3(uint64_t a, uint64_t b)
{
        wide x = { a }, y = { b }, p;
        uint32_t high;
        __asm__("mulhu %0, %1, %2" : "=r"(high) : "r"(x.half.low), "r"(y.half.low));
        p.half.low = x.half.low * y.half.low;
        p.half.high = high + x.half.low * y.half.high + x.half.high * y.half.low;
        return p.whole;
}

/* By zero: all ones, and the dividend remains, as the core's own division. */
static uint64_t divide(uint64_t a, uint64_t b, uint64_t *rest)
{
        uint64_t q = 0, r = 0;
        if (!(a >> 32) && !(b >> 32) && b) {
                *rest = (uint32_t)a % (uint32_t)b;
                return (uint32_t)a / (uint32_t)b;
        }
        for (int i = 63; i >= 0; i--) {
                uint64_t carry = r >> 63;
                r = r << 1 | (a >> i & 1);
                if (carry || r >= b) {
                        r -= b;
                        q |= (uint64_t)1 << i;
                }
        }
        *rest = b ? r : a;
        return q;
}

uint64_t __udivdi3(uint64_t a, uint64_t b)
{
        uint64_t rest;
        return divide(a, b, &rest);
}

uint64_t __umoddi3(uint64_t a, uint64_t b)
{
        uint64_t rest;
        divide(a, b, &rest);
        return rest;
}

static uint64_t size_of(int64_t v)
{
        return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

int64_t __divdi3(int64_t a, int64_t b)
{
        uint64_t rest, q = divide(size_of(a), size_of(b), &rest);
        return (int64_t)((a < 0) != (b < 0) ? -q : q);
}

int64_t __moddi3(int64_t a, int64_t b)
{
        uint64_t rest;
        divide(size_of(a), size_of(b), &rest);
        return (int64_t)(a < 0 ? -rest : rest);
}

void *memset(void *to, int value, __SIZE_TYPE__ size)
{
        volatile char *p = to;
        while (size--)
                *p++ = (char)value;
        return to;
}

void *memmove(void *to, const void *from, __SIZE_TYPE__ size)
{
        volatile char *p = to;
        const char *q = from;
        if ((uintptr_t)to <= (uintptr_t)from)
                while (size--)
                        *p++ = *q++;
        else
                while (size--)
                        p[size] = q[size];
        return to;
}

void *memcpy(void *to, const void *from, __SIZE_TYPE__ size)
{
        if (!(((uintptr_t)to | (uintptr_t)from) & 3)) {
                volatile uint32_t *p = to;
                const uint32_t *q = from;
                for (; size >= 4; size -= 4)
                        *p++ = *q++;
                to = (void *)p;
                from = q;
        }
        return memmove(to, from, size), to;
}
