/* The clocks of a session: a side notices when the other side owes bytes and does not send them.
 * Work that may take long does not trigger them. */
#include "support/check.h"

#include "support/pair.h"

#define SECOND 1000000000ull
#define LIMIT  (8 * SECOND)

static void start(struct pair *p)
{
        assert_int_equal(pair_init(p, &(struct pair_params){ .seed = 1 }), 0);
}

static void move(struct pair *p, int from, unsigned lane)
{
        while (pair_push(p, from, lane, SIZE_MAX / 2) > 0 ||
               pair_pull(p, !from, lane, SIZE_MAX / 2) > 0)
                ;
}

/* Drop all that side `i` has on its way on the lane. */
static void swallow(struct pair *p, int i, unsigned lane)
{
        struct buf *b = &p->side[i].out[lane].bytes;
        while (pair_push(p, i, lane, SIZE_MAX / 2) > 0)
                buf_consume(b, b->size);
}

static int tick(struct pair *p, int i, enum session_expects expects, uint64_t now)
{
        return session_tick(p->side[i].session, expects, LIMIT, now);
}

/* Side 0 has sent a message, which side 1 has. */
static void start_owed(struct pair *p)
{
        start(p);
        assert_int_equal(pair_send(p, 0, 100), 0);
        move(p, 0, 0);
}

/* Let side `i` sleep until its clocks are due, again and again. The other side's answers arrive
 * if it `answers`. Return the time when the link is given up, or `until`. */
static uint64_t live(struct pair *p, int i, enum session_expects expects, bool answers,
                     uint64_t now, uint64_t until)
{
        while (now < until) {
                if (tick(p, i, expects, now) < 0)
                        return now;
                if (answers) {
                        move(p, i, 0);
                        move(p, !i, 0);
                } else {
                        swallow(p, i, 0);
                }
                uint64_t next = session_deadline(p->side[i].session);
                assert_true(next > now);
                now = next < until ? next : until;
        }
        return now;
}

TEST(nothing_is_due_while_nothing_is_owed)
{
        struct pair p;
        start(&p);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(tick(&p, i, SESSION_EXPECTS_NOTHING, SECOND), 0);
                assert_true(session_deadline(p.side[i].session) == UINT64_MAX);
                assert_int_equal(tick(&p, i, SESSION_EXPECTS_ACKS, SECOND), 0);
                assert_true(session_deadline(p.side[i].session) == UINT64_MAX);
                assert_false(session_lane_has_pending(p.side[i].session, 0));
        }
        pair_fini(&p);
}

TEST(a_side_that_answers_probes_may_take_hours)
{
        struct pair p;
        start_owed(&p);
        uint64_t hours = 5 * 3600 * SECOND;
        assert_true(live(&p, 0, SESSION_EXPECTS_ANSWERS, true, SECOND, hours) == hours);
        assert_int_equal(pair_settle(&p), 0);
        pair_check_complete(&p);
        pair_fini(&p);
}

TEST(a_side_that_is_silent_is_given_up_soon_after_the_limit)
{
        struct pair p;
        start_owed(&p);
        uint64_t end = live(&p, 0, SESSION_EXPECTS_ANSWERS, false, SECOND, 3600 * SECOND);
        assert_true(end >= SECOND + LIMIT && end <= SECOND + LIMIT + LIMIT / 8);
        assert_string_equal(session_overdue(p.side[0].session), "no answer");
        pair_fini(&p);
}

/* The other side gets the probe, and says that it has all: then nothing is owed. */
TEST(acknowledgements_are_asked_for_once)
{
        struct pair p;
        start_owed(&p);
        uint64_t hour = 3600 * SECOND;
        assert_true(live(&p, 0, SESSION_EXPECTS_ACKS, true, SECOND, hour) == hour);
        assert_true(session_deadline(p.side[0].session) == UINT64_MAX);
        assert_int_equal(session_acked_seq(p.side[0].session), 1);
        assert_int_equal(session_get_stats(p.side[0].session)->frames_sent, 2);
        pair_fini(&p);
}

TEST(the_rest_of_a_begun_frame_is_owed_on_each_lane)
{
        for (unsigned lane = 0; lane < 2; lane++) {
                struct pair p;
                struct pair_transfer *t;
                start(&p);
                assert_int_equal(pair_bulk(&p, 0, 100000, 100000, 100000, &t), 0);
                if (lane)
                        move(&p, 0, 0);
                assert_true(pair_push(&p, 0, lane, FRAME_HEADER_SIZE + 4) > 0);
                while (pair_pull(&p, 1, lane, SIZE_MAX / 2) > 0)
                        ;
                uint64_t end = live(&p, 1, SESSION_EXPECTS_NOTHING, false, SECOND, 3600 * SECOND);
                assert_true(end <= SECOND + LIMIT + LIMIT / 8);
                assert_string_equal(session_overdue(p.side[1].session),
                                    "the rest of a frame is missing");
                pair_fini(&p);
        }
}

TEST(a_frame_that_comes_slowly_is_none_of_it)
{
        struct pair p;
        struct pair_transfer *t;
        start(&p);
        assert_int_equal(pair_bulk(&p, 0, 100, 100, 100, &t), 0);
        while (pair_push(&p, 0, 0, SIZE_MAX / 2) > 0)
                ;
        uint64_t now = SECOND;
        for (int moved = 1; moved > 0; now += LIMIT / 2) {
                moved = pair_pull(&p, 1, 0, 1);
                assert_int_equal(tick(&p, 1, SESSION_EXPECTS_NOTHING, now), 0);
        }
        pair_fini(&p);
}

/* Whole frames are swallowed. The receiver learns of them from the sender's probe. */
TEST(bulk_frames_that_never_come_are_owed_once_they_are_told_of)
{
        struct pair p;
        struct pair_transfer *t;
        start(&p);
        assert_int_equal(pair_bulk(&p, 0, 100000, 100000, 100000, &t), 0);
        move(&p, 0, 0);
        swallow(&p, 0, 1);
        assert_int_equal(tick(&p, 1, SESSION_EXPECTS_NOTHING, SECOND), 0);
        /* Only that it has the announcement is to be told. */
        assert_true(session_deadline(p.side[1].session) == SECOND + LIMIT / 4);
        assert_int_equal(tick(&p, 0, SESSION_EXPECTS_ACKS, SECOND), 0);
        assert_int_equal(tick(&p, 0, SESSION_EXPECTS_ACKS, SECOND + LIMIT / 2), 0);
        move(&p, 0, 0);
        move(&p, 1, 0);
        uint64_t from = SECOND + LIMIT / 2;
        uint64_t end = live(&p, 1, SESSION_EXPECTS_NOTHING, false, from, 3600 * SECOND);
        assert_true(end <= from + LIMIT + LIMIT / 8);
        pair_fini(&p);
}

/* Data that waits for a place is not read; nobody owes anything. */
TEST(a_lane_that_waits_for_a_place_has_no_clock)
{
        struct pair p;
        struct pair_transfer *t;
        start(&p);
        assert_int_equal(pair_bulk(&p, 0, 100000, 100000, 100000, &t), 0);
        while (pair_push(&p, 0, 1, SIZE_MAX / 2) > 0 || pair_pull(&p, 1, 1, SIZE_MAX / 2) > 0)
                ; /* its announcement on lane 0 has not come */
        assert_true(p.side[1].places_refused > 0);
        uint64_t hour = 3600 * SECOND;
        assert_true(live(&p, 1, SESSION_EXPECTS_NOTHING, false, SECOND, hour) == hour);
        pair_fini(&p);
}

/* A connection may hold back what it has not checked yet: that is no silence while it grows. */
TEST(bytes_that_are_held_back_begin_the_clock_of_their_lane_anew)
{
        struct pair p;
        struct pair_transfer *t;
        struct session *s;
        start(&p);
        s = p.side[1].session;
        assert_int_equal(pair_bulk(&p, 0, 100000, 100000, 100000, &t), 0);
        move(&p, 0, 0);
        assert_true(pair_push(&p, 0, 1, FRAME_HEADER_SIZE + 4) > 0);
        while (pair_pull(&p, 1, 1, SIZE_MAX / 2) > 0)
                ;
        uint64_t now = SECOND;
        for (int i = 0; i < 100; i++, now += SECOND) {
                session_lane_alive(s, 1, (uint64_t)i / 7);
                assert_int_equal(tick(&p, 1, SESSION_EXPECTS_NOTHING, now), 0);
        }
        uint64_t end = live(&p, 1, SESSION_EXPECTS_NOTHING, false, now, now + 3600 * SECOND);
        assert_true(end > now && end <= now + LIMIT + LIMIT / 8);
        assert_string_equal(session_overdue(s), "the rest of a frame is missing");
        pair_fini(&p);
}

/* Side 0 sends bytes that take four times the limit, in one frame or in many. Its probes are
 * behind them. All that while side 1 has nothing to send. */
TEST(a_probe_may_be_behind_much_that_takes_longer_than_the_limit)
{
        for (int many = 0; many < 2; many++) {
                struct pair p;
                start(&p);
                for (int i = 0; i < (many ? 50 : 1); i++) {
                        assert_int_equal(pair_send(&p, 0, many ? 1000 : 50000), 0);
                        if (many)
                                while (pair_push(&p, 0, 0, SIZE_MAX / 2) > 0)
                                        ;
                }
                uint64_t now = SECOND, begin = now;
                size_t left = 50000;
                for (; left > 1000; now += LIMIT / 32) {
                        for (int i = 0; i < 2; i++)
                                assert_int_equal(
                                        tick(&p, i,
                                             i ? SESSION_EXPECTS_NOTHING : SESSION_EXPECTS_ANSWERS,
                                             now),
                                        0);
                        while (pair_push(&p, 0, 0, SIZE_MAX / 2) > 0)
                                ;
                        for (size_t n = 0; n < 50000 / 128;) {
                                int moved = pair_pull(&p, 1, 0, 50000 / 128 - n);
                                assert_true(moved > 0);
                                n += (size_t)moved;
                        }
                        left -= 50000 / 128;
                        move(&p, 1, 0);
                }
                assert_true(now - begin > 3 * LIMIT);
                assert_int_equal(pair_settle(&p), 0);
                pair_check_complete(&p);
                pair_fini(&p);
        }
}

/* Messages that have come are acknowledged, and then there is nothing to say. */
TEST(news_is_told_once)
{
        struct pair p;
        start_owed(&p);
        uint64_t hour = 3600 * SECOND, now = SECOND;
        while (now < hour) {
                uint64_t next = UINT64_MAX;
                for (int i = 0; i < 2; i++) {
                        assert_int_equal(tick(&p, i, SESSION_EXPECTS_NOTHING, now), 0);
                        move(&p, i, 0);
                }
                for (int i = 0; i < 2; i++) {
                        uint64_t at = session_deadline(p.side[i].session);
                        next = at < next ? at : next;
                }
                assert_true(next > now);
                now = next < hour ? next : hour;
        }
        assert_int_equal(session_acked_seq(p.side[0].session), 1);
        assert_int_equal(session_get_stats(p.side[0].session)->frames_sent, 1);
        assert_int_equal(session_get_stats(p.side[1].session)->frames_sent, 1);
        pair_fini(&p);
}

/* A laptop that slept, a program that a debugger held: it has not looked meanwhile. */
TEST(a_late_client_begins_anew)
{
        struct pair p;
        start(&p);
        assert_int_equal(tick(&p, 0, SESSION_EXPECTS_ANSWERS, SECOND), 0);
        assert_int_equal(tick(&p, 0, SESSION_EXPECTS_ANSWERS, 3600 * SECOND), 0);
        uint64_t end = live(&p, 0, SESSION_EXPECTS_ANSWERS, false, 3600 * SECOND, 7200 * SECOND);
        assert_true(end >= 3600 * SECOND + LIMIT);
        pair_fini(&p);
}

TEST(a_probe_that_contradicts_what_came_ends_the_session)
{
        static const struct frame bad[] = {
                { .type = FRAME_PROBE, .seq = 1 }, /* a message before it is missing */
                { .type = FRAME_PROBE, .count = SESSION_LANES },
                { .type = FRAME_PROBE, .ack = 7 },
        };
        for (size_t i = 0; i < array_size(bad); i++) {
                struct pair p;
                struct iovec iov[2];
                start(&p);
                assert_int_equal(session_lane_want(p.side[1].session, 0, iov), 1);
                frame_put(iov[0].iov_base, &bad[i]);
                assert_int_equal(session_lane_received(p.side[1].session, 0, FRAME_HEADER_SIZE),
                                 SP_E_PROTO);
                pair_fini(&p);
        }
}

/* However often it asks, one answer at a time is due. */
TEST(many_probes_make_no_heap_of_answers)
{
        struct pair p;
        struct iovec iov[2];
        const struct frame ask = { .type = FRAME_PROBE, .flags = FRAME_ASK };
        start(&p);
        for (int i = 0; i < 1000; i++) {
                assert_int_equal(session_lane_want(p.side[1].session, 0, iov), 1);
                frame_put(iov[0].iov_base, &ask);
                assert_int_equal(session_lane_received(p.side[1].session, 0, FRAME_HEADER_SIZE), 0);
        }
        move(&p, 1, 0);
        assert_int_equal(session_get_stats(p.side[1].session)->frames_sent, 1);
        pair_fini(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_due_while_nothing_is_owed),
                cmocka_unit_test(a_side_that_answers_probes_may_take_hours),
                cmocka_unit_test(a_side_that_is_silent_is_given_up_soon_after_the_limit),
                cmocka_unit_test(acknowledgements_are_asked_for_once),
                cmocka_unit_test(the_rest_of_a_begun_frame_is_owed_on_each_lane),
                cmocka_unit_test(a_frame_that_comes_slowly_is_none_of_it),
                cmocka_unit_test(bulk_frames_that_never_come_are_owed_once_they_are_told_of),
                cmocka_unit_test(a_lane_that_waits_for_a_place_has_no_clock),
                cmocka_unit_test(bytes_that_are_held_back_begin_the_clock_of_their_lane_anew),
                cmocka_unit_test(a_probe_may_be_behind_much_that_takes_longer_than_the_limit),
                cmocka_unit_test(news_is_told_once),
                cmocka_unit_test(a_late_client_begins_anew),
                cmocka_unit_test(a_probe_that_contradicts_what_came_ends_the_session),
                cmocka_unit_test(many_probes_make_no_heap_of_answers),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
