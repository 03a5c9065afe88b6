/* src/base/range_set against a model that knows every byte. */
#include "support/check.h"

#include "base/range_set.h"
#include "support/random.h"

enum { BYTES = 96 };

static struct range random_range(struct rng *rng)
{
        uint64_t a = rng_below(rng, BYTES + 1), b = rng_below(rng, BYTES + 1);
        return a < b ? (struct range){ a, b } : (struct range){ b, a };
}

static void check_set(const struct range_set *s, const bool *model)
{
        for (size_t i = 0; i < s->count; i++) {
                assert_true(s->ranges[i].begin < s->ranges[i].end);
                /* Sorted, disjoint, not adjacent. */
                if (i)
                        assert_true(s->ranges[i - 1].end < s->ranges[i].begin);
        }
        for (uint64_t i = 0; i < BYTES; i++)
                assert_true(range_set_has(s, (struct range){ i, i + 1 }) == model[i]);
}

TEST(range_set_is_a_set_of_bytes)
{
        for (uint64_t seed = 1; seed < 40; seed++) {
                struct rng rng = { seed };
                struct range_set s = { 0 };
                bool model[BYTES] = { false };
                for (int step = 0; step < 200; step++) {
                        struct range r = random_range(&rng);
                        bool add = rng_below(&rng, 2) != 0;
                        assert_int_equal(add ? range_set_add(&s, r) : range_set_remove(&s, r), 0);
                        for (uint64_t i = r.begin; i < r.end; i++)
                                model[i] = add;
                        check_set(&s, model);

                        struct range within = random_range(&rng), got;
                        bool member = rng_below(&rng, 2) != 0;
                        uint64_t at = within.begin;
                        while (at < within.end && model[at] != member)
                                at++;
                        uint64_t end = at;
                        while (end < within.end && model[end] == member)
                                end++;
                        assert_int_equal(range_set_next(&s, within, member, &got), at < end);
                        if (at < end) {
                                assert_int_equal(got.begin, at);
                                assert_int_equal(got.end, end);
                        }
                }
                range_set_fini(&s);
        }
}

TEST(a_range_meets_the_set_where_any_byte_is_in_it)
{
        struct range_set s = { 0 };
        assert_int_equal(range_set_add(&s, (struct range){ 10, 20 }), 0);
        assert_false(range_set_meets(&s, (struct range){ 0, 10 }));
        assert_true(range_set_meets(&s, (struct range){ 9, 11 }));
        assert_true(range_set_meets(&s, (struct range){ 19, 30 }));
        assert_false(range_set_meets(&s, (struct range){ 20, 30 }));
        assert_false(range_set_meets(&s, (struct range){ 15, 15 }));
        range_set_fini(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(range_set_is_a_set_of_bytes),
                cmocka_unit_test(a_range_meets_the_set_where_any_byte_is_in_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
