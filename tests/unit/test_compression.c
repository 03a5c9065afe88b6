/* src/loop/compression: frames are packed where and while that is faster, by what is measured; base/lz4.h. */
#include "support/check.h"

#include "base/bytes.h"
#include "base/lz4.h"
#include "base/mem.h"
#include "loop/compression.h"
#include "support/random.h"

#define MS 1000000ull

enum { FRAME = 256 << 10 };

/* The connection was full, and takes so many bytes a second until it is full again, ... */
static void measure(struct compression *p, uint64_t rate, uint64_t *now)
{
        compression_blocked(p, *now);
        for (int i = 0; i < 16; i++) {
                compression_sent(p, rate / 100);
                *now += 10 * MS;
                compression_blocked(p, *now);
        }
}

/* The cost on a core of so many MB/s: compression takes the full time, unpacking a fifth of it. */
static struct compression_cost cost(size_t plain, size_t packed, uint64_t mb_per_s)
{
        return (struct compression_cost){ plain, packed, plain * 1000 / mb_per_s,
                                          plain * 200 / mb_per_s };
}

static enum compression_step bytes_until_sample(struct compression *p, uint64_t *ret)
{
        enum compression_step s;
        for (*ret = 0; (s = compression_next(p, FRAME)) == COMPRESSION_SEND && *ret < 1ull << 32;)
                *ret += FRAME;
        return s;
}

TEST(without_a_slow_connection_nothing_is_tried)
{
        struct compression p;
        uint64_t now = 1, bytes;
        compression_init(&p, COMPRESSION_AUTO);
        assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_SEND); /* never full */
        measure(&p, 3000000000u, &now);
        assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_SEND);
        compression_init(&p, COMPRESSION_OFF);
        measure(&p, 1000000, &now);
        assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_SEND);
}

TEST(on_a_slow_connection_a_sample_that_pays_turns_it_on)
{
        struct compression p;
        uint64_t now = 1, bytes;
        compression_init(&p, COMPRESSION_AUTO);
        measure(&p, 12500000, &now);
        assert_int_equal(p.rate, 12500000);
        assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_TRY);
        struct compression_cost c = cost(COMPRESSION_SAMPLE, COMPRESSION_SAMPLE / 2, 500);
        compression_tried(&p, &c);
        assert_true(p.on);
        assert_int_equal(compression_next(&p, FRAME), COMPRESSION_PACK);
        c = cost(FRAME, FRAME / 2, 500);
        assert_true(compression_pays(&p, &c));
}

TEST(a_connection_that_takes_very_much_until_it_is_full_is_fast)
{
        struct compression p;
        uint64_t now = 1;
        compression_init(&p, COMPRESSION_AUTO);
        compression_blocked(&p, now);
        compression_sent(&p, (size_t)40 << 30);
        compression_blocked(&p, now += 40000 * MS);
        assert_int_equal(p.rate, 1 << 30);
}

TEST(the_best_choice_depends_on_the_connection)
{
        /* Half the bytes, by a core that packs 500 MB/s. */
        static const struct {
                uint64_t rate;
                bool pays;
        } some[] = { { 12500000, true }, { 125000000, true }, { 400000000, false } };
        for (size_t i = 0; i < array_size(some); i++) {
                struct compression p;
                uint64_t now = 1, bytes;
                compression_init(&p, COMPRESSION_AUTO);
                measure(&p, some[i].rate, &now);
                assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_TRY);
                struct compression_cost c = cost(COMPRESSION_SAMPLE, COMPRESSION_SAMPLE / 2, 500);
                compression_tried(&p, &c);
                assert_int_equal(p.on, some[i].pays);
        }
}

/* Samples of data that gets no smaller take so long; how many bytes are sent between two of them at last? */
static uint64_t distance(uint64_t rate, uint64_t sample_ns)
{
        struct compression p;
        uint64_t now = 1, bytes, before = 0;
        compression_init(&p, COMPRESSION_AUTO);
        measure(&p, rate, &now);
        for (int i = 0; i < 20; i++) {
                assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_TRY);
                assert_true(bytes <= COMPRESSION_SKIP_MOST);
                before = bytes > before ? bytes : before;
                compression_tried(&p, &(struct compression_cost){ .plain = COMPRESSION_SAMPLE,
                                                                  .pack_ns = sample_ns });
                assert_false(p.on);
        }
        return before;
}

TEST(data_that_gets_no_smaller_is_tried_ever_more_seldom)
{
        /* Until the samples cost less than a hundredth. */
        static const uint64_t rates[] = { 1000000, 12500000, 125000000, 390000000 };
        for (size_t i = 0; i < array_size(rates); i++)
                for (uint64_t ns = 1000; ns < 200000; ns *= 3) {
                        uint64_t bytes = distance(rates[i], ns);
                        assert_true((bytes + FRAME) * 1000000000 / rates[i] > 100 * ns);
                }
        assert_true(distance(1000000, 9000) <= FRAME);
        assert_true(distance(390000000, 1000000) > COMPRESSION_SKIP_MOST / 2);
}

TEST(it_goes_on_and_off_with_the_data)
{
        struct compression p;
        uint64_t now = 1, bytes;
        compression_init(&p, COMPRESSION_AUTO);
        measure(&p, 12500000, &now);
        assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_TRY);
        compression_tried(
                &p, &(struct compression_cost){ .plain = COMPRESSION_SAMPLE, .pack_ns = 9000 });
        /* Once it pays again: from the next frame on. */
        assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_TRY);
        struct compression_cost c = cost(COMPRESSION_SAMPLE, 1000, 500);
        compression_tried(&p, &c);
        assert_int_equal(compression_next(&p, FRAME), COMPRESSION_PACK);
        /* And when the data is another: not the first frame. */
        c = (struct compression_cost){ .plain = FRAME, .pack_ns = 100000 };
        assert_false(compression_pays(&p, &c));
        assert_true(p.on);
        assert_false(compression_pays(&p, &c));
        assert_false(p.on);
}

TEST(a_connection_that_is_never_full_may_have_become_fast)
{
        struct compression p;
        uint64_t now = 1, bytes;
        compression_init(&p, COMPRESSION_AUTO);
        measure(&p, 12500000, &now);
        assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_TRY);
        struct compression_cost c = cost(COMPRESSION_SAMPLE, COMPRESSION_SAMPLE / 4, 500);
        compression_tried(&p, &c);
        c = cost(FRAME, FRAME / 4, 500);
        int frames = 0;
        for (; p.on && frames < 1000000; frames++) {
                (void)compression_pays(&p, &c);
                compression_sent(&p, FRAME / 4);
        }
        assert_false(p.on);
        /* It is not: that is seen at once, and believed for longer. */
        measure(&p, 12500000, &now);
        measure(&p, 12500000, &now);
        assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_TRY);
        c = cost(COMPRESSION_SAMPLE, COMPRESSION_SAMPLE / 4, 500);
        compression_tried(&p, &c);
        assert_true(p.on);
        c = cost(FRAME, FRAME / 4, 500);
        int more = 0;
        for (; p.on && more < 1000000; more++)
                (void)compression_pays(&p, &c);
        assert_true(more > frames);
}

TEST(the_systems_rate_counts_until_the_connection_was_full)
{
        struct compression p;
        uint64_t now = 1, bytes;
        compression_init(&p, COMPRESSION_AUTO);
        assert_true(compression_wants_rate(&p));
        compression_set_rate(&p, 0); /* it does not know yet */
        assert_false(compression_wants_rate(&p));
        assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_SEND);
        compression_sent(&p, 1000);
        compression_idle(&p);
        assert_true(compression_wants_rate(&p));
        compression_set_rate(&p, 5000000);
        assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_TRY);
        measure(&p, 2000000000, &now);
        compression_idle(&p);
        assert_false(compression_wants_rate(&p));
        compression_tried(
                &p, &(struct compression_cost){ .plain = COMPRESSION_SAMPLE, .pack_ns = 9000 });
        assert_int_equal(bytes_until_sample(&p, &bytes), COMPRESSION_SEND);
}

TEST(always_is_always_but_not_for_what_gets_no_smaller)
{
        struct compression p;
        compression_init(&p, COMPRESSION_ALWAYS);
        struct compression_cost slow = cost(FRAME, FRAME - 1, 1), none = cost(FRAME, 0, 1000);
        for (int i = 0; i < 10; i++) {
                assert_int_equal(compression_next(&p, FRAME), COMPRESSION_PACK);
                assert_true(compression_pays(&p, &slow));
                assert_false(compression_pays(&p, &none));
                assert_true(p.on);
        }
}

TEST(blocks_hold_what_was_packed_and_nothing_else_is_written)
{
        static uint8_t plain[FRAME], packed[FRAME], got[FRAME + 8];
        if (!lz4_is_here())
                skip();
        for (size_t i = 0; i < FRAME; i++)
                plain[i] = (uint8_t)(i / 50);
        size_t n = lz4_pack(plain, FRAME, packed, FRAME);
        assert_true(n > 0 && n < FRAME / 4);
        assert_true(lz4_unpack(packed, n, got, FRAME));
        assert_memory_equal(plain, got, FRAME);
        /* Fewer, more, or cut. */
        assert_false(lz4_unpack(packed, n, got, FRAME - 1));
        assert_false(lz4_unpack(packed, n, got, FRAME + 1));
        assert_false(lz4_unpack(packed, n - 1, got, FRAME));
        struct rng rng = { 1 };
        for (int i = 0; i < 2000; i++) {
                size_t size = rng_range(&rng, 1, 3000);
                for (int k = 0; k < 8; k++)
                        packed[rng_below(&rng, n)] = (uint8_t)rng_u64(&rng);
                memset(got + size, 0xEE, 8);
                (void)lz4_unpack(packed, n, got, size);
                for (int k = 0; k < 8; k++)
                        assert_int_equal(got[size + (size_t)k], 0xEE);
        }
        for (size_t i = 0; i < FRAME; i++)
                plain[i] = (uint8_t)rng_u64(&rng);
        assert_int_equal(lz4_pack(plain, FRAME, packed, FRAME - FRAME / 16), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_a_slow_connection_nothing_is_tried),
                cmocka_unit_test(on_a_slow_connection_a_sample_that_pays_turns_it_on),
                cmocka_unit_test(a_connection_that_takes_very_much_until_it_is_full_is_fast),
                cmocka_unit_test(the_best_choice_depends_on_the_connection),
                cmocka_unit_test(data_that_gets_no_smaller_is_tried_ever_more_seldom),
                cmocka_unit_test(it_goes_on_and_off_with_the_data),
                cmocka_unit_test(a_connection_that_is_never_full_may_have_become_fast),
                cmocka_unit_test(the_systems_rate_counts_until_the_connection_was_full),
                cmocka_unit_test(always_is_always_but_not_for_what_gets_no_smaller),
                cmocka_unit_test(blocks_hold_what_was_packed_and_nothing_else_is_written),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
