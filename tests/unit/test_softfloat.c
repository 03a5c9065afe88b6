/* The arithmetic of cores without floating point (firmware/riscv/lib). Its results are this
 * host's, for random numbers and for those at the edges. */
#define SOFTFLOAT_HOST
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "../../firmware/riscv/lib/softfloat.c"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "support/check.h"
#include "support/random.h"

enum { ROUNDS = 200000 };

static float as_float(uint32_t v)
{
        float f;
        memcpy(&f, &v, sizeof(f));
        return f;
}

static double as_double(uint64_t v)
{
        double f;
        memcpy(&f, &v, sizeof(f));
        return f;
}

static bool same32(uint32_t a, float f)
{
        uint32_t b;
        memcpy(&b, &f, sizeof(b));
        return f != f ? f32_is_nan(a) : a == b;
}

static bool same64(uint64_t a, double f)
{
        uint64_t b;
        memcpy(&b, &f, sizeof(b));
        return f != f ? f64_is_nan(a) : a == b;
}

static uint32_t some32(struct rng *r)
{
        static const uint32_t edges[] = { 0,          1,          0x7fffff,   0x800000,
                                          0x3f800000, 0x7f7fffff, 0x7f800000, 0x7fc00000,
                                          0x4b000000, 0x34000000 };
        uint32_t v = (uint32_t)rng_u64(r), sign = v & 0x80000000;
        switch (v % 4) {
        case 0:
                return edges[v / 4 % 10] | sign;
        case 1: /* like sizes */
                return (v & 0x87ffffff) | 0x38000000;
        default:
                return (uint32_t)rng_u64(r);
        }
}

static uint64_t some64(struct rng *r)
{
        uint64_t v = rng_u64(r);
        switch (v % 4) {
        case 0:
                return f64_from_f32(some32(r));
        case 1:
                return (rng_u64(r) & 0x807fffffffffffff) | 0x3f80000000000000;
        default:
                return rng_u64(r);
        }
}

TEST(float_arithmetic_is_the_hosts)
{
        struct rng r = { 1 };
        for (int i = 0; i < ROUNDS; i++) {
                uint32_t x = some32(&r), y = some32(&r);
                float a = as_float(x), b = as_float(y);
                assert_true(same32(f32_add(x, y), a + b));
                assert_true(same32(f32_sub(x, y), a - b));
                assert_true(same32(f32_mul(x, y), a * b));
                assert_true(same32(f32_div(x, y), a / b));
                assert_true(same32(f32_sqrt(x), sqrtf(a)));
                assert_true((f32_le(x, y) <= 0) == (a <= b));
                assert_true((f32_le(x, y) < 0) == (a < b));
                assert_true((f32_le(x, y) == 0) == (a == b));
                assert_true((f32_ge(x, y) >= 0) == (a >= b));
                assert_true((f32_ge(x, y) > 0) == (a > b));
                assert_true(same64(f64_from_f32(x), (double)a));
        }
}

TEST(double_arithmetic_is_the_hosts)
{
        struct rng r = { 2 };
        for (int i = 0; i < ROUNDS; i++) {
                uint64_t x = some64(&r), y = some64(&r);
                double a = as_double(x), b = as_double(y);
                assert_true(same64(f64_add(x, y), a + b));
                assert_true(same64(f64_sub(x, y), a - b));
                assert_true(same64(f64_mul(x, y), a * b));
                assert_true(same64(f64_div(x, y), a / b));
                assert_true((f64_le(x, y) <= 0) == (a <= b));
                assert_true((f64_ge(x, y) > 0) == (a > b));
                assert_true(same32(f32_from_f64(x), (float)a));
        }
}

TEST(conversions_are_the_hosts)
{
        struct rng r = { 3 };
        for (int i = 0; i < ROUNDS; i++) {
                uint64_t v = rng_u64(&r) >> (rng_u64(&r) % 64);
                assert_true(same32(f32_from_signed((int32_t)v), (float)(int32_t)v));
                assert_true(same32(f32_from_unsigned((uint32_t)v), (float)(uint32_t)v));
                assert_true(same32(f32_from_signed64((int64_t)v), (float)(int64_t)v));
                assert_true(same32(f32_from_unsigned64(v), (float)v));
                assert_true(same64(f64_from_signed64((int64_t)v), (double)(int64_t)v));
                assert_true(same64(f64_from_unsigned64(v), (double)v));
                uint32_t x = some32(&r);
                float a = as_float(x);
                if (fabsf(a) < 9e18f)
                        assert_true(f32_to_signed64(x) == (int64_t)a);
                if (fabsf(a) < 2e9f)
                        assert_true(f32_to_signed(x) == (int32_t)a);
                if (a >= 0 && a < 4e9f)
                        assert_true(f32_to_unsigned(x) == (uint32_t)a);
        }
        assert_true(f32_to_signed(0x7f800000) == INT32_MAX);
        assert_true(f32_to_signed(0xff800000) == INT32_MIN);
        assert_true(f32_to_unsigned(0xbf800000) == 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(float_arithmetic_is_the_hosts),
                cmocka_unit_test(double_arithmetic_is_the_hosts),
                cmocka_unit_test(conversions_are_the_hosts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
