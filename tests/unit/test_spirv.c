/* Facts that are read from SPIR-V modules: specialization constants and their sizes. */
#include "support/check.h"

#include <string.h>

#include "base/mem.h"
#include "core/program/spirv.h"

#define OP(op, count) ((uint32_t)(count) << 16 | (op))

static const uint32_t module[] = {
        0x07230203, 0x00010000, 0,  100, 0,         OP(71, 4), 10, 1, 7, /* OpDecorate %10 SpecId 7 */
        OP(71, 4),  11,         1,  8,   OP(71, 4), 12,        1,  9, OP(71, 3), 12,
        2,                                  /* another decoration */
        OP(21, 4),  1,          32, 0,      /* %1 = OpTypeInt 32 */
        OP(22, 3),  2,          64,         /* %2 = OpTypeFloat 64 */
        OP(20, 2),  3,                      /* %3 = OpTypeBool */
        OP(50, 4),  1,          10, 42,     /* %10 = OpSpecConstant %1 42 */
        OP(50, 5),  2,          11, 0,   0, /* %11 = OpSpecConstant %2 0.0 */
        OP(48, 3),  3,          12,         /* %12 = OpSpecConstantTrue %3 */
};

TEST(constants_have_the_size_of_their_type)
{
        struct bytes il = bytes_of(module, sizeof(module));
        assert_true(spirv_valid(il));
        assert_int_equal(spirv_constant_size(il, 7), 4);
        assert_int_equal(spirv_constant_size(il, 8), 8);
        assert_int_equal(spirv_constant_size(il, 9), 1);
        assert_int_equal(spirv_constant_size(il, 6), 0);
        assert_int_equal(spirv_constant_size(il, 10), 0);
}

TEST(either_byte_order_is_read)
{
        uint32_t other[array_size(module)];
        for (size_t i = 0; i < array_size(module); i++)
                other[i] = __builtin_bswap32(module[i]);
        struct bytes il = bytes_of(other, sizeof(other));
        assert_true(spirv_valid(il));
        assert_int_equal(spirv_constant_size(il, 8), 8);
}

TEST(files_that_are_no_module_are_refused)
{
        uint32_t copy[array_size(module)];
        assert_false(spirv_valid(bytes_of("", 0)));
        assert_false(spirv_valid(bytes_of(module, 16)));
        for (size_t n = 0; n < sizeof(module); n++) {
                struct bytes il = bytes_of(module, n);
                if (n % 4)
                        assert_false(spirv_valid(il));
                (void)spirv_constant_size(il, 9);
        }
        memcpy(copy, module, sizeof(copy));
        copy[0] = 0x04334242;
        assert_false(spirv_valid(bytes_of(copy, sizeof(copy))));
        memcpy(copy, module, sizeof(copy));
        copy[5] = OP(71, 0);
        assert_false(spirv_valid(bytes_of(copy, sizeof(copy))));
        copy[5] = OP(71, 1000);
        assert_false(spirv_valid(bytes_of(copy, sizeof(copy))));
        assert_int_equal(spirv_constant_size(bytes_of(copy, sizeof(copy)), 7), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(constants_have_the_size_of_their_type),
                cmocka_unit_test(either_byte_order_is_read),
                cmocka_unit_test(files_that_are_no_module_are_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
