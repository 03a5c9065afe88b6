/* Frame headers (proto/frame.h): the first bytes that a stranger can send us. */
#include "support/check.h"

#include "base/mem.h"
#include "proto/frame.h"
#include "proto/wire.h"
#include "support/random.h"

static int decode(const struct frame *f)
{
        uint8_t h[FRAME_HEADER_SIZE];
        struct frame got;
        frame_put(h, f);
        int r = frame_get(h, &got);
        if (r)
                return r;
        assert_int_equal(got.size, f->size);
        assert_int_equal(got.type, f->type);
        assert_int_equal(got.count, f->count);
        assert_int_equal(got.flags, f->flags);
        assert_true(got.seq == f->seq && got.ack == f->ack);
        return 0;
}

TEST(allowed_values_come_back_equal)
{
        static const struct frame ok[] = {
                { 72, FRAME_HELLO, 0, UINT32_MAX, 0 }, /* a checksum */
                { FRAME_HELLO_MAX, FRAME_HELLO, 0, 0, 0 },
                { 8, FRAME_DATA, 1, UINT64_MAX, UINT64_MAX },
                { WIRE_MESSAGE_MAX, FRAME_DATA, FRAME_COUNT_MAX, 0, 0 },
                { 0, FRAME_ACK, 0, 0, 5 },
                { 1, FRAME_BULK, 0, 1, 0 },
                { FRAME_BULK_MAX, FRAME_BULK, 0, UINT64_MAX, WIRE_BULK_MAX },
                { 1, FRAME_BULK, 1, 1, 12345, FRAME_PACKED },
                { FRAME_PLAIN_MAX - 1, FRAME_BULK, FRAME_PLAIN_MAX / 8, 1, 0, FRAME_PACKED },
                { 9, FRAME_BULK, 2, 1, FRAME_PLAIN_MAX - 16, FRAME_PACKED },
                { 0, FRAME_PROBE, 0, UINT64_MAX, UINT64_MAX },
                { 0, FRAME_PROBE, 3, 5, 7, FRAME_ASK },
        };
        for (size_t i = 0; i < array_size(ok); i++)
                assert_int_equal(decode(&ok[i]), 0);
}

TEST(values_not_allowed_are_refused)
{
        static const struct frame bad[] = {
                { 8, 0, 0, 0, 0 },
                { 8, 6, 0, 0, 0 },
                { 8, 255, 0, 0, 0 },
                { FRAME_HELLO_MAX + 8, FRAME_HELLO, 0, 0, 0 },
                { 71, FRAME_HELLO, 0, 0, 0 },
                { 72, FRAME_HELLO, 1, 0, 0 },
                { 72, FRAME_HELLO, 0, 1ull << 32, 0 }, /* more than a checksum */
                { 72, FRAME_HELLO, 0, 0, 1 },
                { 8, FRAME_DATA, 0, 0, 0 },
                { 0, FRAME_DATA, 1, 0, 0 },
                { 12, FRAME_DATA, 1, 0, 0 },
                { WIRE_MESSAGE_MAX + 8, FRAME_DATA, 1, 0, 0 },
                { UINT32_MAX & ~7u, FRAME_DATA, 1, 0, 0 },
                { 8, FRAME_ACK, 0, 0, 0 },
                { 0, FRAME_ACK, 1, 0, 0 },
                { 0, FRAME_ACK, 0, 1, 0 },
                { 0, FRAME_BULK, 0, 1, 0 },
                { 8, FRAME_BULK, 0, 0, 0 },
                { 8, FRAME_BULK, 1, 1, 0 },
                { FRAME_BULK_MAX + 1, FRAME_BULK, 0, 1, 0 },
                { 8, FRAME_BULK, 0, 1, WIRE_BULK_MAX + 1 },
                { 8, FRAME_BULK, 0, 1, 0, 2 },
                { 8, FRAME_BULK, 2, 1, 0, 3 },
                { 8, FRAME_BULK, 0, 1, 0, FRAME_PACKED },
                { 8, FRAME_BULK, 1, 1, 0, FRAME_PACKED },                    /* not smaller */
                { 8, FRAME_BULK, 2, 1, FRAME_PLAIN_MAX - 15, FRAME_PACKED }, /* of two pieces */
                { 8, FRAME_BULK, FRAME_PLAIN_MAX / 8 + 1, 1, 0, FRAME_PACKED },
                { 8, FRAME_DATA, 1, 0, 0, FRAME_PACKED },
                { 0, FRAME_ACK, 0, 0, 0, FRAME_PACKED },
                { 72, FRAME_HELLO, 0, 0, 0, FRAME_PACKED },
                { 8, FRAME_PROBE, 0, 1, 0 },
                { 0, FRAME_PROBE, 0, 1, 0, FRAME_PACKED },
                { 0, FRAME_PROBE, 0, 1, 0, FRAME_ASK | FRAME_PACKED },
                { 0, FRAME_ACK, 0, 0, 0, FRAME_ASK },
                { 8, FRAME_BULK, 0, 1, 0, FRAME_ASK },
        };
        for (size_t i = 0; i < array_size(bad); i++)
                assert_int_equal(decode(&bad[i]), SP_E_PROTO);

        uint8_t h[FRAME_HEADER_SIZE];
        struct frame got;
        frame_put(h, &(struct frame){ 8, FRAME_DATA, 1, 0, 0 });
        h[5] = 1; /* no flag of such a frame */
        assert_int_equal(frame_get(h, &got), SP_E_PROTO);
}

TEST(random_headers_are_refused_or_come_back_equal)
{
        struct rng rng = { 3 };
        int accepted = 0;
        for (int i = 0; i < 200000; i++) {
                uint8_t h[FRAME_HEADER_SIZE], again[FRAME_HEADER_SIZE];
                for (size_t k = 0; k < sizeof(h); k++)
                        h[k] = rng_chance(&rng, 50) ? 0 : (uint8_t)rng_u64(&rng);
                h[4] = (uint8_t)rng_below(&rng, FRAME_PROBE + 2);
                struct frame f;
                if (frame_get(h, &f) < 0)
                        continue;
                accepted++;
                frame_put(again, &f);
                assert_memory_equal(h, again, sizeof(h));
        }
        assert_true(accepted > 1000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(allowed_values_come_back_equal),
                cmocka_unit_test(values_not_allowed_are_refused),
                cmocka_unit_test(random_headers_are_refused_or_come_back_equal),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
