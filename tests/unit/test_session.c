/* Two sessions in one process: what one sends the other gets, exactly once and in order, however the
 * bytes are cut on their way and wherever the connection breaks. */
#include "support/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "support/pair.h"

static void start(struct pair *p, const struct pair_params *params)
{
        assert_int_equal(pair_init(p, params), 0);
}

/* ---- random traffic ------------------------------------------------------------------------- */

static size_t any_size(struct rng *rng)
{
        switch (rng_below(rng, 20)) {
        case 0:
                return rng_range(rng, FRAME_DATA_TARGET - 100, FRAME_DATA_TARGET + 100);
        case 1:
                return rng_range(rng, 0, 3 * FRAME_DATA_TARGET);
        case 2:
        case 3:
        case 4:
                return rng_below(rng, 20000);
        default:
                return rng_below(rng, 200);
        }
}

static uint64_t any_total(struct rng *rng)
{
        switch (rng_below(rng, 12)) {
        case 0:
                return rng_range(rng, FRAME_BULK_MAX - 3, FRAME_BULK_MAX + 3);
        case 1:
        case 2:
                return rng_range(rng, SESSION_INLINE_DEFAULT - 3, SESSION_INLINE_DEFAULT + 3);
        case 3:
        case 4:
                return rng_range(rng, 1, 300000);
        default:
                return rng_range(rng, 1, 3000);
        }
}

static void random_traffic(uint64_t seed)
{
        struct pair p;
        struct rng rng = { ~seed };
        struct pair_transfer *growing[16] = { 0 };
        start(&p, &(struct pair_params){
                          .seed = seed,
                          .window_bytes = { rng_range(&rng, 0, 1) << 16, rng_below(&rng, 1 << 18) },
                          .inline_bytes = rng_chance(&rng, 50) ? 0 : rng_range(&rng, 1, 1 << 17),
                          .wide_bytes = rng_chance(&rng, 20) ? 0 : rng_range(&rng, 1, 1 << 17),
                          .pipe_room = rng_chance(&rng, 50) ? 0 : rng_range(&rng, 1, 1 << 16),
                          .packs = rng_chance(&rng, 50) ? 0 : 60,
                          .in_bytes = { rng_chance(&rng, 60) ? 0 : 8 * rng_range(&rng, 32, 600) },
                  });
        p.side[0].hold_places = rng_chance(&rng, 30) ? 40 : 0;
        for (int i = 0; i < 2; i++)
                session_share_lanes(p.side[i].session, (unsigned)rng_below(&rng, SESSION_LANES));
        for (int step = 0; step < 150; step++) {
                int i = (int)rng_below(&rng, 2);
                switch (rng_below(&rng, 6)) {
                case 0:
                case 1:
                        assert_int_equal(pair_send(&p, i, any_size(&rng)), 0);
                        break;
                case 2: {
                        uint64_t total = any_total(&rng);
                        bool whole = rng_chance(&rng, 60);
                        struct pair_transfer **slot = &growing[rng_below(&rng, 16)];
                        size_t piece = rng_range(&rng, 1 + total / 50, total);
                        if (!whole && *slot)
                                break;
                        assert_int_equal(pair_bulk(&p, i, total,
                                                   whole ? total : rng_below(&rng, total), piece,
                                                   whole ? NULL : slot),
                                         0);
                        break;
                }
                case 3: {
                        struct pair_transfer **t = &growing[rng_below(&rng, 16)];
                        if (!*t)
                                break;
                        uint64_t ready = rng_range(&rng, (*t)->bulk.ready, (*t)->total);
                        if (rng_chance(&rng, 50))
                                ready = (*t)->total;
                        pair_ready(*t, ready);
                        if (ready == (*t)->total)
                                *t = NULL;
                        break;
                }
                default:
                        for (uint64_t n = rng_below(&rng, 30); n; n--) {
                                unsigned w = (unsigned)rng_below(&rng, 8);
                                size_t max = rng_range(&rng, 1, 1 << rng_below(&rng, 20));
                                int r = w & 4 ? pair_push(&p, w & 1, w >> 1 & 1, max)
                                              : pair_pull(&p, w & 1, w >> 1 & 1, max);
                                assert_true(r >= 0);
                        }
                }
        }
        for (size_t k = 0; k < 16; k++)
                if (growing[k])
                        pair_ready(growing[k], growing[k]->total);
        assert_int_equal(pair_settle(&p), 0);
        pair_check_complete(&p);
        pair_fini(&p);
}

TEST(random_traffic_arrives_exactly_once_and_in_order)
{
        uint64_t first = 1, count = 60;
        const char *seeds = getenv("SPANCL_TEST_SEEDS"); /* "FIRST COUNT" */
        if (seeds)
                sscanf(seeds, "%" SCNu64 " %" SCNu64, &first, &count);
        for (uint64_t seed = first; seed < first + count; seed++) {
                fprintf(stderr, "seed %" PRIu64 "\r", seed);
                random_traffic(seed);
        }
}

/* ---- acknowledgements and the window -------------------------------------------------------- */

TEST(window_fills_and_acknowledgements_empty_it)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1, .window_bytes = { 100000 } });
        struct session *s = p.side[0].session;
        assert_true(session_has_room(s));
        for (int i = 0; i < 100; i++)
                assert_int_equal(pair_send(&p, 0, 1000), 0);
        assert_false(session_has_room(s));
        assert_true(session_unsent(s) > 100000);
        assert_int_equal(pair_settle(&p), 0); /* side 1 has nothing to say but that it got them */
        assert_true(session_has_room(s));
        pair_check_complete(&p);
        const struct session_stats *stats = session_get_stats(p.side[1].session);
        assert_int_equal(stats->messages_received, 100);
        assert_int_equal(stats->messages_sent, 0);
        assert_true(stats->frames_sent >= 1 && stats->frames_sent <= 5);
        pair_fini(&p);
}

/* A window smaller or larger than the other side's must not wait for an acknowledgement for ever. */
TEST(sides_with_different_windows_do_not_stall)
{
        static const size_t windows[] = { 64 << 10, 100 << 10, 1 << 20, 16 << 20 };
        for (size_t i = 0; i < array_size(windows); i++) {
                struct pair p;
                start(&p, &(struct pair_params){ .seed = i, .window_bytes = { windows[i] } });
                for (int round = 0; round < 5; round++) {
                        while (session_has_room(p.side[0].session))
                                assert_int_equal(pair_send(&p, 0, 1000), 0);
                        assert_int_equal(pair_settle(&p), 0);
                        assert_true(session_has_room(p.side[0].session));
                }
                pair_check_complete(&p);
                pair_fini(&p);
        }
}

TEST(a_reply_carries_the_acknowledgement)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        for (int i = 0; i < 10; i++) {
                assert_int_equal(pair_send(&p, 0, 10), 0);
                assert_int_equal(pair_settle(&p), 0);
                assert_int_equal(pair_send(&p, 1, 10), 0);
                assert_int_equal(pair_settle(&p), 0);
        }
        for (int i = 0; i < 2; i++) {
                const struct session_stats *stats = session_get_stats(p.side[i].session);
                assert_int_equal(stats->frames_sent, 10);
                assert_int_equal(stats->messages_sent, 10);
        }
        pair_fini(&p);
}

TEST(messages_that_gathered_travel_in_one_frame)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        for (int i = 0; i < 1000; i++)
                assert_int_equal(pair_send(&p, 0, 100), 0);
        assert_int_equal(pair_settle(&p), 0);
        assert_int_equal(session_get_stats(p.side[0].session)->frames_sent, 1);
        assert_int_equal(session_get_stats(p.side[1].session)->frames_received, 1);
        pair_check_complete(&p);
        pair_fini(&p);
}

TEST(a_message_can_be_changed_until_a_frame_has_held_it)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct session *s = p.side[0].session;
        assert_int_equal(pair_send(&p, 0, 100), 0);
        uint64_t at = session_position(s);
        assert_null(session_unsent_at(s, at)); /* not there yet */
        assert_int_equal(pair_send(&p, 0, 40), 0);
        assert_int_equal(pair_send(&p, 0, 60), 0);
        const uint8_t *msg = session_unsent_at(s, at);
        assert_non_null(msg);
        assert_true(msg > session_unsent_at(s, 0));
        assert_ptr_equal(msg + wire_message_size(msg),
                         session_unsent_at(s, at + wire_message_size(msg)));
        struct iovec iov[2];
        assert_int_equal(session_lane_pending(s, 0, iov, 2), 2);
        assert_null(session_unsent_at(s, at));
        /* Nor when it will be sent again: the other side may have it. */
        pair_cut(&p);
        assert_null(session_unsent_at(s, at));
        assert_int_equal(pair_reattach(&p), 0);
        assert_int_equal(pair_settle(&p), 0);
        at = session_position(s);
        assert_int_equal(pair_send(&p, 0, 10), 0);
        assert_non_null(session_unsent_at(s, at));
        assert_int_equal(pair_settle(&p), 0);
        pair_check_complete(&p);
        pair_fini(&p);
}

/* ---- cuts ----------------------------------------------------------------------------------- */

/* One scenario, the connection broken after `cut` bytes of side 0's stream and `other_cut` of side 1's
 * have arrived. Returns whether it was. */
static bool cut_at(uint64_t cut, uint64_t other_cut, uint64_t seed)
{
        struct pair p;
        const size_t little = seed % 3 ? 0 : 256;
        start(&p, &(struct pair_params){ .seed = seed, .in_bytes = { little, little } });
        p.side[0].out[0].stop_at = cut;
        p.side[1].out[0].stop_at = other_cut;
        assert_int_equal(pair_send(&p, 0, 3), 0);
        assert_int_equal(pair_send(&p, 0, 0), 0);
        assert_int_equal(pair_bulk(&p, 0, 20, 20, 7, NULL), 0); /* inline */
        if (seed % 2)
                assert_int_equal(pair_settle(&p), 0);
        assert_int_equal(pair_send(&p, 1, 5), 0);
        assert_int_equal(pair_send(&p, 0, 9), 0);
        assert_int_equal(pair_settle(&p), 0);
        assert_int_equal(pair_send(&p, 1, 40), 0);
        assert_int_equal(pair_settle(&p), 0);
        bool cut_here = p.side[0].out[0].passed == cut || p.side[1].out[0].passed == other_cut;

        pair_cut(&p);
        assert_int_equal(session_lane_pending(p.side[0].session, 0, NULL, 0), 0);
        assert_int_equal(pair_send(&p, 0, 11), 0); /* while there is no connection */
        assert_int_equal(pair_reattach(&p), 0);
        assert_int_equal(pair_send(&p, 1, 12), 0);
        assert_int_equal(pair_settle(&p), 0);
        pair_check_complete(&p);
        assert_int_equal(p.side[1].received, 4);
        assert_int_equal(p.side[0].received, 3);
        pair_fini(&p);
        return cut_here;
}

TEST(a_cut_at_any_byte_loses_and_repeats_nothing)
{
        uint64_t cut = 1;
        for (; cut_at(cut, UINT64_MAX, cut); cut++) {
        }
        assert_true(cut > 200); /* the scenario's whole stream was covered */
        uint64_t other = 1;
        for (; cut_at(UINT64_MAX, other, other); other++) {
        }
        assert_true(other > 100);
        for (uint64_t seed = 0; seed < 300; seed++) {
                struct rng rng = { seed };
                cut_at(rng_range(&rng, 1, cut), rng_range(&rng, 1, other), seed);
        }
}

TEST(many_cuts_in_random_traffic)
{
        for (uint64_t seed = 0; seed < 40; seed++) {
                struct pair p;
                struct rng rng = { seed };
                start(&p, &(struct pair_params){
                                  .seed = seed,
                                  .pipe_room = rng_chance(&rng, 50) ? 0 : 5000,
                                  .packs = rng_chance(&rng, 50) ? 0 : 60,
                                  .in_bytes = { seed % 2 ? 256 : 0, seed % 3 ? 1024 : 0 } });
                for (int step = 0; step < 300; step++) {
                        int i = (int)rng_below(&rng, 2);
                        uint64_t total = rng_range(&rng, 1, 5000);
                        switch (rng_below(&rng, 8)) {
                        case 0:
                                assert_int_equal(pair_send(&p, i, any_size(&rng)), 0);
                                break;
                        case 1:
                                assert_int_equal(pair_bulk(&p, i, total, total, total, NULL), 0);
                                break;
                        case 2:
                                if (rng_chance(&rng, 30)) {
                                        if (rng_chance(&rng, 50)) {
                                                pair_cut_all(&p);
                                                assert_int_equal(pair_reattach_all(&p), 0);
                                                break;
                                        }
                                        pair_cut(&p);
                                        size_t early = rng_below(&rng, 1 << rng_below(&rng, 21));
                                        while (rng_chance(&rng, 30)) /* no answer comes */
                                                assert_int_equal(
                                                        pair_reattach_early(&p, i, early, false),
                                                        0);
                                        assert_int_equal(
                                                rng_chance(&rng, 50)
                                                        ? pair_reattach(&p)
                                                        : pair_reattach_early(&p, i, early, true),
                                                0);
                                }
                                break;
                        default: {
                                size_t max = rng_range(&rng, 1, 1 << rng_below(&rng, 18));
                                assert_true(pair_push(&p, i, 0, max) >= 0);
                                assert_true(pair_pull(&p, !i, 0, max) >= 0);
                        }
                        }
                }
                assert_int_equal(pair_settle(&p), 0);
                pair_check_complete(&p);
                pair_fini(&p);
        }
}

TEST(messages_behind_the_hello_are_not_sent_again)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct session *s = p.side[0].session;
        for (int i = 0; i < 3; i++)
                assert_int_equal(pair_send(&p, 0, 1000), 0);
        pair_cut(&p);
        assert_int_equal(pair_send(&p, 0, 1000), 0); /* while there is no connection */
        uint64_t before = session_get_stats(s)->bytes_sent;
        assert_int_equal(pair_reattach_early(&p, 0, 3500, true), 0);
        assert_int_equal(p.side[1].received, 3);
        assert_int_equal(pair_settle(&p), 0);
        assert_int_equal(p.side[1].received, 4);
        assert_true(session_get_stats(s)->bytes_sent - before < 1500);
        pair_check_complete(&p);

        /* Its answer was lost, and it had come */
        pair_cut(&p);
        assert_int_equal(pair_send(&p, 0, 1000), 0);
        do
                assert_int_equal(pair_reattach_early(&p, 0, 1 << 20, false), 0);
        while (p.side[1].received < 5);
        assert_int_equal(pair_reattach(&p), 0);
        assert_int_equal(pair_settle(&p), 0);
        assert_int_equal(p.side[1].received, 5);
        pair_check_complete(&p);
        pair_fini(&p);
}

TEST(a_new_connection_that_contradicts_the_old_one_is_refused)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        for (int i = 0; i < 3; i++)
                assert_int_equal(pair_send(&p, 0, 10), 0);
        assert_int_equal(pair_settle(&p), 0);
        assert_int_equal(pair_send(&p, 1, 10), 0); /* acknowledges all three */
        assert_int_equal(pair_settle(&p), 0);
        assert_int_equal(pair_send(&p, 0, 10), 0); /* the fourth, half sent */
        assert_int_equal(pair_push(&p, 0, 0, 30), 30);
        struct session *s = p.side[0].session;
        session_lane_down(s, 0);
        assert_int_equal(session_lane_up(s, 0, 2), SP_E_PROTO); /* was forgotten */
        assert_int_equal(session_lane_up(s, 0, 4), SP_E_PROTO); /* was not sent whole */
        assert_int_equal(session_lane_up(s, 0, 3), 0);
        pair_cut(&p);
        assert_int_equal(pair_reattach(&p), 0);
        assert_int_equal(pair_settle(&p), 0);
        pair_check_complete(&p);
        pair_fini(&p);
}

TEST(a_bulk_lane_that_breaks_in_a_frame_goes_on_where_it_was)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct pair_transfer *t;
        assert_int_equal(pair_bulk(&p, 0, 100000, 100000, 777, &t), 0);
        assert_true(pair_push(&p, 0, 1, 24 + 500) > 0);
        uint64_t sent = session_get_stats(p.side[0].session)->bulk_sent - FRAME_HEADER_SIZE;
        assert_true(sent > 0);
        session_lane_down(p.side[0].session, 1);
        assert_true(session_bulk_pending(p.side[0].session));
        assert_int_equal(session_lane_up(p.side[0].session, 1, 0), 0);
        struct iovec iov[2];
        assert_int_equal(session_lane_pending(p.side[0].session, 1, iov, 2), 2);
        struct frame f;
        assert_int_equal(frame_get(iov[0].iov_base, &f), 0);
        assert_int_equal(f.ack, sent);
        assert_int_equal(f.size, 100000 - sent);
        pair_fini(&p);
        (void)t;
}

/* All that there is on a lane from side 0. */
static void move_all(struct pair *p, unsigned lane)
{
        while (pair_push(p, 0, lane, SIZE_MAX / 2) > 0 || pair_pull(p, 1, lane, SIZE_MAX / 2) > 0)
                ;
}

TEST(bulk_data_moves_until_all_was_sent_and_within_a_frame)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct session *from = p.side[0].session, *to = p.side[1].session;
        struct pair_transfer *t;
        p.side[1].hold_places = 0;
        assert_false(session_bulk_moves(from));
        assert_false(session_bulk_moves(to));
        assert_int_equal(pair_bulk(&p, 0, 100000, 100000, 100000, &t), 0);
        assert_true(session_bulk_moves(from));
        move_all(&p, 0); /* which announces it */
        assert_true(pair_push(&p, 0, 1, 500) > 0);
        while (pair_pull(&p, 1, 1, SIZE_MAX / 2) > 0)
                ;
        assert_true(session_bulk_moves(from));
        assert_true(session_bulk_moves(to));
        move_all(&p, 1);
        assert_int_equal(t->done, 0); /* the acknowledgement is still to come */
        assert_false(session_bulk_moves(from));
        assert_false(session_bulk_moves(to));
        pair_fini(&p);
}

TEST(lanes_share_a_transfer_and_its_bytes_come_in_any_order)
{
        for (uint64_t seed = 0; seed < 10; seed++) {
                struct pair p;
                struct pair_transfer *t;
                start(&p, &(struct pair_params){ .seed = seed });
                assert_int_equal(pair_bulk(&p, 0, 3 << 20, 2700000, 300000, &t), 0);
                /* The last lane is first, and each takes its share. */
                for (unsigned lane = SESSION_LANES - 1; lane > 0; lane--) {
                        while (pair_push(&p, 0, lane, seed % 2 ? 50000 : 1 << 20) > 0) {
                                if (seed % 2)
                                        break;
                        }
                }
                pair_ready(t, 3 << 20);
                assert_int_equal(pair_settle(&p), 0);
                pair_check_complete(&p);
                pair_fini(&p);
        }
}

TEST(a_frame_cut_on_one_lane_goes_out_on_another)
{
        struct pair p;
        struct pair_transfer *t;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct session *s = p.side[0].session;
        assert_int_equal(pair_bulk(&p, 0, 3 << 20, 3 << 20, 3 << 20, &t), 0);
        struct iovec iov[2];
        struct frame f[SESSION_LANES];
        for (unsigned lane = 2; lane < SESSION_LANES; lane++) {
                assert_int_equal(session_lane_pending(s, lane, iov, 2), 2);
                assert_int_equal(frame_get(iov[0].iov_base, &f[lane]), 0);
        }
        assert_int_equal(f[2].ack, 0);
        assert_int_equal(f[3].ack, f[2].size);
        for (unsigned lane = 3; lane < SESSION_LANES; lane++)
                session_lane_sent(s, lane, FRAME_HEADER_SIZE + f[lane].size);
        session_lane_sent(s, 2, FRAME_HEADER_SIZE + 1000);
        session_lane_down(s, 2);
        assert_true(session_bulk_pending(s));
        struct frame again;
        assert_int_equal(session_lane_pending(s, 3, iov, 2), 2);
        assert_int_equal(frame_get(iov[0].iov_base, &again), 0);
        assert_int_equal(again.ack, 1000);
        assert_int_equal(again.size, f[2].size - 1000);
        session_lane_sent(s, 3, FRAME_HEADER_SIZE + again.size);
        assert_int_equal(session_lane_pending(s, 3, iov, 2), 0);
        pair_fini(&p);
}

TEST(small_transfers_have_a_lane_for_themselves_while_there_are_others)
{
        struct pair p;
        struct pair_transfer *large, *small;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct session *s = p.side[0].session;
        assert_int_equal(pair_bulk(&p, 0, 3 << 20, 3 << 20, 3 << 20, &large), 0);
        assert_int_equal(session_bulk_lanes(s, SESSION_LANES), SESSION_LANES - 2);
        assert_false(session_lane_has_pending(s, 1));
        assert_int_equal(pair_bulk(&p, 0, 100000, 100000, 100000, &small), 0);
        assert_int_equal(session_bulk_lanes(s, SESSION_LANES), SESSION_LANES - 2);
        struct iovec iov[2];
        struct frame f;
        assert_int_equal(session_lane_pending(s, 1, iov, 2), 2);
        assert_int_equal(frame_get(iov[0].iov_base, &f), 0);
        assert_int_equal(f.size, 100000);
        session_lane_sent(s, 1, FRAME_HEADER_SIZE + f.size);
        assert_false(session_lane_has_pending(s, 1));
        for (unsigned lane = 2; lane < SESSION_LANES; lane++)
                session_lane_down(s, lane);
        assert_true(session_lane_has_pending(s, 1)); /* alone it takes all */
        pair_fini(&p);
}

/* The waiting thread moves lane 1. More than a MiB at a time is for the threads of the other
 * lanes. */
TEST(excess_of_lane_1_goes_over_others)
{
        enum { SIZE = 600 << 10, SMALL = 100 << 10 };
        struct pair p;
        struct pair_transfer *t;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct session *s = p.side[0].session;
        assert_int_equal(pair_bulk(&p, 0, SIZE, SIZE, SIZE, &t), 0);
        assert_true(session_lane_has_pending(s, 1));
        assert_false(session_lane_has_pending(s, 2));
        assert_int_equal(pair_bulk(&p, 0, SIZE, SIZE, SIZE, &t), 0);
        assert_true(session_lane_has_pending(s, 2));
        /* Transfers on lane 1 count, those on other lanes do not. Small ones stay on lane 1. */
        assert_int_equal(pair_bulk(&p, 0, SMALL, SMALL, SMALL, &t), 0);
        assert_int_equal(pair_settle(&p), 0);
        assert_int_equal(pair_bulk(&p, 0, SIZE, SIZE, SIZE, &t), 0);
        assert_true(session_lane_has_pending(s, 1));
        assert_false(session_lane_has_pending(s, 2));
        assert_int_equal(pair_settle(&p), 0);
        pair_check_complete(&p);
        pair_fini(&p);
}

TEST(large_transfers_use_as_many_lanes_as_they_may)
{
        struct pair p;
        struct pair_transfer *t;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct session *s = p.side[0].session;
        session_share_lanes(s, 2);
        assert_int_equal(pair_bulk(&p, 0, 3 << 20, 3 << 20, 3 << 20, &t), 0);
        for (unsigned lane = 1; lane < SESSION_LANES; lane++)
                assert_int_equal(session_lane_has_pending(s, lane), lane == 2 || lane == 3);
        session_lane_down(s, 2);
        assert_false(session_lane_has_pending(s, 4));
        session_lane_down(s, 3);
        assert_true(session_lane_has_pending(s, 4)); /* better than none */
        pair_fini(&p);
}

TEST(packed_frames_bring_what_they_hold)
{
        for (uint64_t seed = 0; seed < 20; seed++) {
                struct pair p;
                struct pair_transfer *t;
                start(&p, &(struct pair_params){ .seed = seed, .packs = 100 });
                p.side[1].hold_places = seed % 2 ? 50 : 0;
                for (unsigned lane = 1; lane < SESSION_LANES; lane++)
                        session_lane_small(p.side[0].session, lane, true);
                /* Its place is in one piece, or in many. */
                size_t piece = seed % 3 ? 2 << 20 : 1000 + seed;
                assert_int_equal(pair_bulk(&p, 0, (2 << 20) - 3, 1500001, piece, &t), 0);
                for (int i = 0; i < 3; i++)
                        pair_push(&p, 0, 1, 40);
                pair_ready(t, (2 << 20) - 3);
                assert_int_equal(pair_settle(&p), 0);
                pair_check_complete(&p);
                assert_true(p.packed_frames.count > 0);
                assert_true(session_get_stats(p.side[0].session)->bulk_sent < 2 << 20);
                pair_fini(&p);
        }
}

TEST(a_packed_frame_that_was_cut_is_sent_again_whole)
{
        struct pair p;
        struct pair_transfer *t;
        start(&p, &(struct pair_params){ .seed = 1, .packs = 100 });
        struct session *s = p.side[0].session;
        assert_int_equal(pair_bulk(&p, 0, 100000, 100000, 777, &t), 0);
        struct iovec iov[2];
        uint8_t packed[500] = { 0 };
        struct frame f;
        assert_true(session_lane_pending(s, 1, iov, 2) > 0);
        assert_int_equal(session_lane_fresh(s, 1), 100000);
        assert_true(session_lane_packable(s, 1));
        session_lane_pack(s, 1, bytes_of(packed, sizeof(packed)));
        assert_int_equal(session_lane_fresh(s, 1), 0);
        assert_int_equal(session_lane_pending(s, 1, iov, 2), 2);
        assert_int_equal(frame_get(iov[0].iov_base, &f), 0);
        assert_int_equal(f.flags, FRAME_PACKED);
        assert_int_equal(f.size, 500);
        assert_int_equal(frame_plain(&f), 100000);
        session_lane_sent(s, 1, FRAME_HEADER_SIZE + 499);
        assert_true(session_bulk_pending(s));
        session_lane_down(s, 1);
        assert_int_equal(session_lane_up(s, 1, 0), 0);
        assert_true(session_lane_pending(s, 1, iov, 2) > 0);
        assert_int_equal(frame_get(iov[0].iov_base, &f), 0);
        assert_int_equal(f.flags, 0); /* nobody has agreed to that on the new connection */
        assert_int_equal(f.ack, 0);
        assert_int_equal(f.size, 100000);
        pair_fini(&p);
        (void)t;
}

TEST(a_packed_frame_with_wrong_content_ends_the_session)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1, .packs = 100 });
        struct pair_transfer *t;
        assert_int_equal(pair_bulk(&p, 0, 100000, 100000, 777, &t), 0);
        assert_true(pair_push(&p, 0, 0, 1000) > 0);
        assert_true(pair_pull(&p, 1, 0, 1000) > 0);
        struct session *s = p.side[1].session;
        uint8_t h[FRAME_HEADER_SIZE];
        frame_put(h, &(struct frame){ 5, FRAME_BULK, 100, t->id, 8000, FRAME_PACKED });
        struct iovec iov[2];
        assert_int_equal(session_lane_want(s, 1, iov), 1);
        memcpy(iov[0].iov_base, h, sizeof(h));
        assert_int_equal(session_lane_received(s, 1, sizeof(h)), 0);
        /* Its bytes, and the next header. */
        assert_int_equal(session_lane_want(s, 1, iov), 2);
        assert_int_equal(iov[0].iov_len, 5);
        struct session_packed_frame u;
        assert_int_equal(session_lane_received(s, 1, 4), 0);
        assert_false(session_lane_closed(s, 1, &u));
        assert_int_equal(session_lane_received(s, 1, 1), 0);
        assert_true(session_lane_closed(s, 1, &u));
        assert_int_equal(u.size, 800);
        assert_int_equal(session_lane_want(s, 1, iov), 0);
        assert_int_equal(session_lane_unpacked(s, 1, false), SP_E_PROTO);
        assert_int_equal(session_lane_want(s, 0, iov), SP_E_PROTO);
        pair_fini(&p);
}

TEST(arrivals_are_told_apart)
{
        struct arrivals a = { 0 };
        assert_int_equal(arrivals_add(&a, 10, 20), 0);
        assert_int_equal(arrivals_add(&a, 30, 40), 0);
        assert_int_equal(a.below, 0);
        assert_true(arrivals_meet(&a, 19, 21));
        assert_false(arrivals_meet(&a, 20, 30));
        assert_int_equal(arrivals_add(&a, 5, 11), SP_E_PROTO);
        assert_int_equal(arrivals_add(&a, 20, 30), 0); /* joins both */
        assert_int_equal(a.ahead.count, 1);
        assert_int_equal(arrivals_add(&a, 0, 10), 0);
        assert_int_equal(a.below, 40);
        assert_int_equal(a.ahead.count, 0);
        assert_int_equal(arrivals_add(&a, 39, 41), SP_E_PROTO);
        for (uint64_t i = 0; i < ARRIVALS_MAX; i++)
                assert_int_equal(arrivals_add(&a, 50 + 10 * i, 51 + 10 * i), 0);
        assert_int_equal(arrivals_add(&a, 1000000, 1000001), SP_E_PROTO);
        assert_int_equal(arrivals_add(&a, 40, 50), 0);
        assert_int_equal(a.below, 51);
        assert_int_equal(a.ahead.count, ARRIVALS_MAX - 1);
        arrivals_fini(&a);
}

/* ---- the other side breaks the protocol ----------------------------------------------------- */

/* Feed bytes to lane `lane` of side 1 as if side 0 had sent them; the result of the session. */
static int feed(struct pair *p, unsigned lane, const void *data, size_t size)
{
        struct session *s = p->side[1].session;
        for (size_t at = 0; at < size;) {
                struct iovec iov[2];
                int n = session_lane_want(s, lane, iov);
                if (n < 0)
                        return n;
                if (!n)
                        return SP_E_AGAIN;
                size_t len = iov[0].iov_len < size - at ? iov[0].iov_len : size - at;
                memcpy(iov[0].iov_base, (const uint8_t *)data + at, len);
                at += len;
                int r = session_lane_received(s, lane, len);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int feed_frame(struct pair *p, unsigned lane, const struct frame *f, const void *payload)
{
        struct buf b = { 0 };
        uint8_t h[FRAME_HEADER_SIZE];
        frame_put(h, f);
        assert_int_equal(buf_put(&b, h, sizeof(h)), 0);
        if (payload)
                assert_int_equal(buf_put(&b, payload, f->size), 0);
        int r = feed(p, lane, b.data, b.size);
        buf_fini(&b);
        return r;
}

/* Feed `f` to side 1 as its first frame, after it has sent one message that is not acknowledged.
 * Return the result. */
static int first_frame(unsigned lane, const struct frame *f, const void *payload)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        assert_int_equal(pair_send(&p, 1, 8), 0);
        assert_true(pair_push(&p, 1, 0, 1000) > 0);
        int r = feed_frame(&p, lane, f, payload);
        if (r < 0 && r != SP_E_AGAIN) {
                /* The session has ended, and every call returns its error. */
                struct iovec iov[2];
                assert_int_equal(session_lane_want(p.side[1].session, 0, iov), r);
                assert_int_equal(session_lane_pending(p.side[1].session, 0, iov, 2), 0);
                assert_int_equal(session_lane_up(p.side[1].session, 0, 0), r);
                assert_int_equal(pair_send(&p, 1, 8), r);
                struct pair_transfer *t;
                assert_int_equal(pair_bulk(&p, 1, 8, 8, 8, &t), r);
        }
        pair_fini(&p);
        return r;
}

TEST(malformed_frames_end_the_session)
{
        struct buf m = { 0 };
        assert_int_equal(
                wire_put_output(&m, &(struct wire_output){ .text = { "\0\0\0\0\0\0\0\0", 8 } }), 0);
        uint32_t size = (uint32_t)m.size;
        struct frame good = { size, FRAME_DATA, 1, 0, 0 };
        assert_int_equal(first_frame(0, &good, m.data), 0);
        good.ack = 1;
        assert_int_equal(first_frame(0, &good, m.data), 0);

        static const struct {
                unsigned lane;
                struct frame f;
        } bad[] = {
                { 0, { 24, FRAME_DATA, 1, 1, 0 } }, /* a message is missing */
                { 0, { 24, FRAME_DATA, 1, 0, 2 } }, /* acknowledges what was not sent */
                { 0, { 24, FRAME_DATA, 1, 0, UINT64_MAX } },
                { 0, { 24, FRAME_DATA, 2, 0, 0 } }, /* fewer messages than it says */
                { 0, { 24, FRAME_DATA, 65535, 0, 0 } },
                { 0, { 16, FRAME_DATA, 1, 0, 0 } }, /* a message cut off */
                { 0, { 8, FRAME_DATA, 1, 0, 0 } },
                { 0, { 0, FRAME_ACK, 0, 0, 2 } },
                { 0, { 72, FRAME_HELLO, 0, 0, 0 } }, /* a second hello */
                { 0, { 8, FRAME_BULK, 0, 1, 0 } },   /* bulk on lane 0 */
                { 0, { 9, FRAME_DATA, 1, 0, 0 } },
                { 1, { 24, FRAME_DATA, 1, 0, 0 } }, /* messages on lane 1 */
                { 1, { 0, FRAME_ACK, 0, 0, 0 } },
                { 1, { 0, FRAME_BULK, 0, 1, 0 } },
                { 1, { 8, FRAME_BULK, 2, 1, 0, FRAME_PACKED } }, /* nobody agreed to that */
        };
        for (size_t i = 0; i < array_size(bad); i++) {
                static uint8_t room[128];
                memcpy(room, m.data, m.size);
                assert_int_equal(first_frame(bad[i].lane, &bad[i].f, room), SP_E_PROTO);
        }

        /* The message's own size: 0, odd, beyond the frame. */
        static const uint32_t sizes[] = { 0, 4, 12, 32, UINT32_MAX - 7, UINT32_MAX };
        good.ack = 0;
        for (size_t i = 0; i < array_size(sizes); i++) {
                bytes_put_u32(m.data + 4, sizes[i]);
                assert_int_equal(first_frame(0, &good, m.data), SP_E_PROTO);
        }
        bytes_put_u32(m.data + 4, size - 8); /* bytes left behind the last message */
        good.count = 1;
        assert_int_equal(first_frame(0, &good, m.data), SP_E_PROTO);
        buf_fini(&m);
}

TEST(a_frame_may_not_acknowledge_what_is_half_sent)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        assert_int_equal(pair_send(&p, 1, 100000), 0);
        assert_int_equal(pair_push(&p, 1, 0, 24), 24);
        struct frame ack = { 0, FRAME_ACK, 0, 0, 1 };
        assert_int_equal(feed_frame(&p, 0, &ack, NULL), SP_E_PROTO);
        pair_fini(&p);

        start(&p, &(struct pair_params){ .seed = 1 });
        assert_int_equal(pair_send(&p, 1, 100000), 0);
        while (session_unsent(p.side[1].session) || p.side[1].out[0].bytes.size < 100000)
                assert_true(pair_push(&p, 1, 0, 1 << 20) > 0);
        assert_int_equal(feed_frame(&p, 0, &ack, NULL), 0);
        assert_int_equal(pair_send(&p, 1, 8), 0);
        pair_fini(&p);
}

TEST(a_transfer_acknowledged_wrongly_stays)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct pair_transfer *t;
        assert_int_equal(pair_bulk(&p, 1, 100000, 50000, 100000, &t), 0);
        static const uint64_t acks[][2] = {
                { 1, 100000 }, { 1, 0 }, { 2, 100000 }, { 1, UINT64_MAX }
        };
        struct buf m = { 0 };
        for (size_t i = 0; i < array_size(acks); i++)
                assert_int_equal(wire_put_transfer_ack(
                                         &m, &(struct wire_transfer_ack){ acks[i][0], acks[i][1] }),
                                 0);
        struct frame f = { (uint32_t)m.size, FRAME_DATA, array_size(acks), 0, 0 };
        assert_int_equal(feed_frame(&p, 0, &f, m.data), 0);
        assert_int_equal(t->done, 0);
        pair_fini(&p);
        buf_fini(&m);
}

TEST(bulk_of_an_unknown_transfer_waits_but_inline_ends_the_session)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct frame f = { 8, FRAME_BULK, 0, 99, 0 };
        assert_int_equal(feed_frame(&p, 1, &f, "01234567"), SP_E_AGAIN);
        assert_int_equal(p.side[1].places_refused, 1);
        struct iovec iov[2];
        for (int i = 0; i < 3; i++) /* asks once, not each time */
                assert_int_equal(session_lane_want(p.side[1].session, 1, iov), 0);
        assert_int_equal(p.side[1].places_refused, 1);
        session_bulk_retry(p.side[1].session);
        assert_int_equal(session_lane_want(p.side[1].session, 1, iov), 0);
        assert_int_equal(p.side[1].places_refused, 2);
        /* Lane 0 does not wait for it. */
        assert_int_equal(pair_send(&p, 0, 8), 0);
        assert_int_equal(pair_settle(&p), 0);
        assert_int_equal(p.side[1].received, 1);
        pair_fini(&p);
}

TEST(a_huge_frame_takes_memory_only_as_its_bytes_come)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct frame f = { WIRE_MESSAGE_MAX, FRAME_DATA, 1, 0, 0 };
        assert_int_equal(feed_frame(&p, 0, &f, NULL), 0);
        struct iovec iov[2];
        assert_int_equal(session_lane_want(p.side[1].session, 0, iov), 1);
        assert_true(iov[0].iov_len <= 256 << 10);
        static uint8_t zeros[300000];
        assert_int_equal(feed(&p, 0, zeros, sizeof(zeros)), 0);
        assert_int_equal(session_lane_want(p.side[1].session, 0, iov), 1);
        assert_true(iov[0].iov_len <= 1 << 20);
        pair_fini(&p);
}

/* ---- ends ----------------------------------------------------------------------------------- */

TEST(the_end_of_a_session_ends_its_transfers)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct pair_transfer *t[4];
        assert_int_equal(pair_bulk(&p, 0, 100000, 0, 100, &t[0]), 0);      /* not begun */
        assert_int_equal(pair_bulk(&p, 0, 100000, 100000, 100, &t[1]), 0); /* half sent */
        assert_int_equal(pair_bulk(&p, 0, 100000, 100000, 100, &t[2]), 0); /* waits */
        assert_true(pair_push(&p, 0, 1, 1000) > 0);
        p.side[0].session = session_free(p.side[0].session);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(t[i]->done, 1);
                assert_int_equal(t[i]->status, SP_E_GONE);
        }
        pair_fini(&p);
        assert_null(session_free(NULL));
}

TEST(an_acknowledgement_may_come_before_the_sender_knows_it_sent)
{
        struct pair p;
        start(&p, &(struct pair_params){ .seed = 1 });
        struct pair_transfer *t;
        struct iovec iov[3];
        assert_int_equal(pair_bulk(&p, 1, 100000, 100000, 100000, &t), 0);
        assert_int_equal(session_lane_pending(p.side[1].session, 1, iov, 3), 2);
        struct buf m = { 0 };
        assert_int_equal(wire_put_transfer_ack(&m, &(struct wire_transfer_ack){ t->id, 100000 }),
                         0);
        struct frame f = { (uint32_t)m.size, FRAME_DATA, 1, 0, 0 };
        assert_int_equal(feed_frame(&p, 0, &f, m.data), 0);
        assert_int_equal(t->done, 0); /* the transport may still read it */
        session_lane_sent(p.side[1].session, 1, 24 + 99999);
        assert_int_equal(t->done, 0);
        session_lane_sent(p.side[1].session, 1, 1);
        assert_int_equal(t->done, 1);
        assert_int_equal(t->status, 0);

        /* The same, but the lane breaks before it says so. */
        assert_int_equal(pair_bulk(&p, 1, 100000, 100000, 100000, &t), 0);
        assert_int_equal(session_lane_pending(p.side[1].session, 1, iov, 3), 2);
        m.size = 0;
        assert_int_equal(wire_put_transfer_ack(&m, &(struct wire_transfer_ack){ t->id, 100000 }),
                         0);
        f.seq = 1;
        assert_int_equal(feed_frame(&p, 0, &f, m.data), 0);
        assert_int_equal(t->done, 0);
        session_lane_down(p.side[1].session, 1);
        assert_int_equal(t->done, 1);
        assert_int_equal(t->status, 0);
        assert_false(session_bulk_pending(p.side[1].session));
        buf_fini(&m);
        pair_fini(&p);
}

TEST(a_message_that_is_too_large_is_refused_and_the_rest_goes)
{
        struct pair p;
        static char text[2000];
        start(&p, &(struct pair_params){ .seed = 1 });
        assert_int_equal(pair_send(&p, 0, 10), 0);
        assert_int_equal(session_send(p.side[0].session, close, .text = bytes_of(text, 2000)),
                         SP_E_LIMIT);
        assert_int_equal(pair_send(&p, 0, 10), 0);
        assert_int_equal(pair_settle(&p), 0);
        pair_check_complete(&p);
        pair_fini(&p);
}

/* ---- out of memory -------------------------------------------------------------------------- */

/* The scenario with the n-th allocation failing. True while the allocation was reached. */
static bool traffic_without_memory(unsigned long n)
{
        struct pair p;
        mem_fail_at(n);
        int r = pair_init(&p, &(struct pair_params){ .seed = n, .packs = 60 });
        for (int k = 0; !r && k < 4; k++) {
                r = pair_send(&p, k & 1, (size_t)k * 50000);
                if (!r)
                        r = pair_bulk(&p, k & 1, 10 + (uint64_t)k * 10000, 10 + (uint64_t)k * 10000,
                                      17000, NULL);
                if (!r)
                        r = pair_settle(&p);
        }
        /* It failed where somebody noticed, or where bytes were only not taken at once. */
        mem_fail_at(0);
        assert_true(r == 0 || r == -1 || r == SP_E_NOMEM);
        if (!r) {
                assert_int_equal(pair_settle(&p), 0);
                pair_check_complete(&p);
        }
        pair_fini(&p);
        return n < 120;
}

TEST(each_allocation_may_fail)
{
        unsigned long n = 1;
        while (traffic_without_memory(n))
                n++;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(random_traffic_arrives_exactly_once_and_in_order),
                cmocka_unit_test(window_fills_and_acknowledgements_empty_it),
                cmocka_unit_test(sides_with_different_windows_do_not_stall),
                cmocka_unit_test(a_reply_carries_the_acknowledgement),
                cmocka_unit_test(messages_that_gathered_travel_in_one_frame),
                cmocka_unit_test(a_message_can_be_changed_until_a_frame_has_held_it),
                cmocka_unit_test(a_cut_at_any_byte_loses_and_repeats_nothing),
                cmocka_unit_test(many_cuts_in_random_traffic),
                cmocka_unit_test(messages_behind_the_hello_are_not_sent_again),
                cmocka_unit_test(a_new_connection_that_contradicts_the_old_one_is_refused),
                cmocka_unit_test(a_bulk_lane_that_breaks_in_a_frame_goes_on_where_it_was),
                cmocka_unit_test(bulk_data_moves_until_all_was_sent_and_within_a_frame),
                cmocka_unit_test(lanes_share_a_transfer_and_its_bytes_come_in_any_order),
                cmocka_unit_test(a_frame_cut_on_one_lane_goes_out_on_another),
                cmocka_unit_test(small_transfers_have_a_lane_for_themselves_while_there_are_others),
                cmocka_unit_test(excess_of_lane_1_goes_over_others),
                cmocka_unit_test(large_transfers_use_as_many_lanes_as_they_may),
                cmocka_unit_test(packed_frames_bring_what_they_hold),
                cmocka_unit_test(a_packed_frame_that_was_cut_is_sent_again_whole),
                cmocka_unit_test(a_packed_frame_with_wrong_content_ends_the_session),
                cmocka_unit_test(arrivals_are_told_apart),
                cmocka_unit_test(malformed_frames_end_the_session),
                cmocka_unit_test(a_frame_may_not_acknowledge_what_is_half_sent),
                cmocka_unit_test(a_transfer_acknowledged_wrongly_stays),
                cmocka_unit_test(bulk_of_an_unknown_transfer_waits_but_inline_ends_the_session),
                cmocka_unit_test(a_huge_frame_takes_memory_only_as_its_bytes_come),
                cmocka_unit_test(the_end_of_a_session_ends_its_transfers),
                cmocka_unit_test(an_acknowledgement_may_come_before_the_sender_knows_it_sent),
                cmocka_unit_test(a_message_that_is_too_large_is_refused_and_the_rest_goes),
                cmocka_unit_test(each_allocation_may_fail),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
