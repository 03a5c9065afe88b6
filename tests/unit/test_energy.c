#include "support/check.h"

#include "daemon/supervisor/energy_counter.h"

#define SECOND UINT64_C(1000000000)
#define JOULE  UINT64_C(1000000)

TEST(a_counter_tells_the_energy_between_two_readings)
{
        struct energy_counter c = { 0 };
        assert_int_equal(energy_counter_take(&c, 5000 * JOULE, 0, 7 * SECOND), 0);
        assert_int_equal(energy_counter_take(&c, 5300 * JOULE, 0, 8 * SECOND), 300 * JOULE);
        assert_int_equal(energy_counter_take(&c, 5300 * JOULE, 0, 9 * SECOND), 0);
}

TEST(a_counter_that_wraps_goes_on)
{
        struct energy_counter c = { 0 };
        uint64_t range = 262143 * JOULE;
        energy_counter_take(&c, range - 40 * JOULE, range, SECOND);
        assert_int_equal(energy_counter_take(&c, 60 * JOULE, range, 2 * SECOND), 100 * JOULE);
        assert_int_equal(energy_counter_take(&c, 61 * JOULE, range, 3 * SECOND), JOULE);
}

TEST(a_counter_that_goes_backwards_or_begins_anew_tells_nothing)
{
        struct energy_counter c = { 0 };
        energy_counter_take(&c, 5000 * JOULE, 0, SECOND);
        assert_int_equal(energy_counter_take(&c, 4000 * JOULE, 0, 2 * SECOND), 0);
        assert_int_equal(energy_counter_take(&c, 4010 * JOULE, 0, 3 * SECOND), 10 * JOULE);
        /* As a wrap it would be far more than the device can take. */
        uint64_t range = 262143 * JOULE;
        energy_counter_take(&c, 100000 * JOULE, range, 4 * SECOND);
        assert_int_equal(energy_counter_take(&c, 3 * JOULE, range, 5 * SECOND), 0);
        /* Above its own range. */
        energy_counter_take(&c, UINT64_MAX, range, 6 * SECOND);
        assert_int_equal(energy_counter_take(&c, 0, range, 7 * SECOND), 0);
}

TEST(a_counter_that_jumps_is_not_believed)
{
        struct energy_counter c = { 0 };
        energy_counter_take(&c, 0, 0, SECOND);
        assert_int_equal(energy_counter_take(&c, UINT64_MAX, 0, 2 * SECOND), 0);
        assert_int_equal(energy_counter_take(&c, 0, UINT64_MAX, 3 * SECOND), 0);
        assert_int_equal(energy_counter_take(&c, 20001 * JOULE, 0, 4 * SECOND), 0);
        assert_int_equal(energy_counter_take(&c, 40001 * JOULE, 0, 5 * SECOND), 20000 * JOULE);
        /* A clock that stands still allows no division by 0. */
        assert_int_equal(energy_counter_take(&c, 40002 * JOULE, 0, 5 * SECOND), JOULE);
}

TEST(energy_is_divided_by_device_time_and_idle_time_is_not_billed)
{
        assert_int_equal(energy_share(100 * JOULE, SECOND / 2, SECOND / 2, SECOND), 50 * JOULE);
        assert_int_equal(energy_share(100 * JOULE, SECOND, 4 * SECOND, SECOND), 25 * JOULE);
        assert_int_equal(energy_share(100 * JOULE, 0, 4 * SECOND, SECOND), 0);
        assert_int_equal(energy_share(100 * JOULE, 0, 0, 0), 0);
        assert_int_equal(energy_share(100 * JOULE, SECOND, SECOND, 0), 100 * JOULE);
}

TEST(all_parts_together_are_no_more_than_the_energy)
{
        static const uint64_t large[] = { UINT64_MAX, UINT64_MAX / 2, 1, 12345678901234567 };
        for (int i = 0; i < 4; i++)
                for (int k = 0; k < 4; k++)
                        assert_true(energy_share(large[i], large[k], large[k], 1) <= large[i]);
        uint64_t sum = 0;
        for (int i = 0; i < 3; i++)
                sum += energy_share(100, 7, 21, 20);
        assert_true(sum <= 100);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_counter_tells_the_energy_between_two_readings),
                cmocka_unit_test(a_counter_that_wraps_goes_on),
                cmocka_unit_test(a_counter_that_goes_backwards_or_begins_anew_tells_nothing),
                cmocka_unit_test(a_counter_that_jumps_is_not_believed),
                cmocka_unit_test(energy_is_divided_by_device_time_and_idle_time_is_not_billed),
                cmocka_unit_test(all_parts_together_are_no_more_than_the_energy),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
