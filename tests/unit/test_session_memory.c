/* A session with little memory: fixed buffers, and messages with bytes that the program lends. */
#include "support/check.h"

#include "support/pair.h"

static void start(struct pair *p, const struct pair_params *params)
{
        assert_int_equal(pair_init(p, params), 0);
}

/* A message whose text lies outside of the outbox. */
static void send_lent(struct pair_side *s, uint8_t *text, size_t size)
{
        bytes_put_u64(text, s->sent);
        for (size_t k = 8; k < size; k++)
                text[k] = (uint8_t)(k + s->sent);
        struct buf *b = session_outbox(s->session);
        assert_int_equal(wire_put_output(b, &(struct wire_output){ { 0 } }), 0);
        bytes_put_u64(b->data + WIRE_HEADER_SIZE, size);
        bytes_put_u32(b->data + 4, (uint32_t)(WIRE_HEADER_SIZE + 8 + bytes_pad8(size)));
        const size_t at = b->size;
        assert_int_equal(buf_put(b, (uint64_t[1]){ 0 }, bytes_pad8(size) - size), 0);
        assert_int_equal(session_commit_lent(s->session, 0, at, bytes_of(text, size)), 0);
        s->sent++;
}

TEST(lent_bytes_are_sent_as_others_and_sent_again)
{
        enum { LARGE = 300001 }; /* more than one frame's target */
        static uint8_t text[LARGE];
        const size_t sizes[] = { 8, 13, 1000, LARGE };
        for (uint64_t seed = 0; seed < 40; seed++) {
                struct pair p;
                const size_t size = sizes[seed % 4];
                start(&p, &(struct pair_params){ .seed = seed,
                                                 .in_bytes = { 256, seed % 8 < 4 ? 512 : 0 } });
                p.side[0].out[0].stop_at = 1 + seed * size / 37;
                send_lent(&p.side[0], text, size);
                assert_int_equal(pair_settle(&p), 0);
                pair_cut(&p);
                p.side[0].out[0].stop_at = 0;
                assert_int_equal(pair_reattach(&p), 0);
                /* Messages of the session itself may come behind it. */
                if (seed % 3)
                        assert_int_equal(session_resume(p.side[0].session, 1), 0);
                if (seed % 3)
                        assert_int_equal(session_resume(p.side[1].session, 1), 0);
                session_ask(p.side[0].session);
                assert_int_equal(pair_settle(&p), 0);
                assert_int_equal(session_kept(p.side[0].session), 0);
                memset(text, 0xDD, size);
                assert_int_equal(pair_send(&p, 0, 40), 0);
                assert_int_equal(pair_settle(&p), 0);
                pair_check_complete(&p);
                assert_int_equal(p.side[1].received, 2);
                pair_fini(&p);
        }
}

TEST(fixed_buffers_stay_when_they_are_empty)
{
        const size_t size = (1 << 20) + 8; /* others of this size are given back */
        struct pair p;
        start(&p, &(struct pair_params){ .in_bytes = { size, size } });
        for (int i = 0; i < 3; i++) {
                assert_int_equal(pair_send(&p, 0, 40), 0);
                assert_int_equal(pair_settle(&p), 0);
                session_ask(p.side[0].session);
                assert_int_equal(pair_settle(&p), 0);
                assert_int_equal(session_outbox(p.side[0].session)->cap, size);
        }
        pair_fini(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lent_bytes_are_sent_as_others_and_sent_again),
                cmocka_unit_test(fixed_buffers_stay_when_they_are_empty),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
