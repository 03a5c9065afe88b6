#include "support/check.h"

#include "daemon/supervisor/rate.h"

enum { PER_S = 10 };

static const uint64_t second = 1000000000;

static unsigned let_in(struct rate *r, uint8_t host, unsigned tries, uint64_t now)
{
        const uint8_t net[16] = { 10, 0, 0, host };
        unsigned n = 0;
        for (unsigned i = 0; i < tries; i++)
                n += rate_allows(r, net, PER_S, now);
        return n;
}

TEST(a_burst_is_let_in_and_then_the_rate)
{
        static struct rate r;
        uint64_t now = 1000 * second;
        assert_int_equal(let_in(&r, 1, 100, now), RATE_BURST * PER_S);
        assert_int_equal(let_in(&r, 1, 100, now + second / 2), PER_S / 2);
        assert_int_equal(let_in(&r, 1, 100, now + second / 2), 0);
        assert_int_equal(let_in(&r, 1, 100, now + 100 * second), RATE_BURST * PER_S);
}

TEST(hosts_do_not_pay_for_each_other)
{
        static struct rate r;
        unsigned shared = 0;
        let_in(&r, 1, 100, second);
        for (unsigned host = 2; host < 100; host++)
                shared += let_in(&r, (uint8_t)host, 1, second) != 1;
        assert_true(shared <= 2); /* a slot in 4096 */
        let_in(&r, 1, 100, second);
        r.seed = 77;
        assert_int_equal(let_in(&r, 1, 1, second), 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_burst_is_let_in_and_then_the_rate),
                cmocka_unit_test(hosts_do_not_pay_for_each_other),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
