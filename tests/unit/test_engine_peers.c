/* Two connected engines: events and bytes go from one to the other. Domains of one engine
 * exchange them in the same way. */
#include "support/check.h"

#include "engine/program/content.h"
#include "support/world.h"

/* ---- events ------------------------------------------------------------------------------------- */

TEST(completion_reaches_the_other_server_before_or_after_its_import)
{
        for (int early = 0; early < 2; early++) {
                struct world *w = two_servers(64);
                fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
                send(w, 0, event_subscribe, .event = EVENT(1), .peer = PEER(2));
                if (early)
                        world_run(w);
                send(w, 1, event_import, .event = EVENT(1), .peer = PEER(1));
                launch_after(w, 1, QUEUE(1), EVENT(2), BUFFER(1), 1,
                             (struct wire_u64s)WAITS(EVENT(1)));
                pump(w);
                assert_int_equal(counts(w, 1).commands_held, !early);
                world_run(w);
                assert_int_equal(status_of(w, 1, EVENT(2)), CL_SUCCESS);
                release_objects(w, 0);
                release_objects(w, 1);
                world_free(w);
        }
}

TEST(failure_reaches_the_other_server)
{
        for (int early = 0; early < 2; early++) {
                struct world *w = two_servers(32);
                launch(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1);
                if (early)
                        world_run(w);
                send(w, 0, event_subscribe, .event = EVENT(1), .peer = PEER(2));
                if (early)
                        world_run(w);
                send(w, 1, event_import, .event = EVENT(1), .peer = PEER(1));
                fill_zero(w, 1, QUEUE(1), EVENT(2), BUFFER(1), 32);
                send(w, 1, marker, .event = EVENT(3), .queue = QUEUE(1), .waits = WAITS(EVENT(1)));
                world_run(w);
                assert_int_equal(status_of(w, 1, EVENT(3)), -14);
                assert_int_equal(status_of(w, 1, EVENT(1)), PENDING); /* node 0 told */
                release_objects(w, 0);
                release_objects(w, 1);
                world_free(w);
        }
}

/* An engine remembers only the newest completions that arrive before their import. A command that
 * waits for a forgotten one fails, and does not wait for ever. */
TEST(events_that_were_told_too_early_and_forgotten_fail)
{
        enum { TOLD = 65536 + 10 };
        struct world *w = two_servers(64);
        send(w, 1, event_import, .event = EVENT(3), .peer = PEER(1));
        for (unsigned i = 1; i <= TOLD; i++) {
                send(w, 0, event_subscribe, .event = EVENT(i), .peer = PEER(2));
                if (i % 1000 == 0)
                        pump(w);
        }
        pump(w);
        const unsigned asked[] = { 1, 3, 10, 11, TOLD, TOLD + 1 };
        const cl_int expected[] = { -14, 0, -14, 0, 0, PENDING };
        for (unsigned i = 0; i < array_size(asked); i++) {
                const uint64_t id = EVENT(asked[i]), waiting = EVENT(TOLD + 100 + i);
                if (asked[i] != 3)
                        send(w, 1, event_import, .event = id, .peer = PEER(1));
                send(w, 1, marker, .event = waiting, .flags = COMMAND_NOTIFY, .queue = QUEUE(2),
                     .waits = { &id, 1 });
                world_run(w);
                assert_int_equal(status_of(w, 1, waiting), expected[i]);
        }
        send(w, 0, event_subscribe, .event = EVENT(TOLD + 1), .peer = PEER(2));
        world_run(w);
        assert_int_equal(status_of(w, 1, EVENT(TOLD + 105)), CL_SUCCESS);
        release_objects(w, 0);
        release_objects(w, 1);
        world_free(w);
}

TEST(a_lost_peer_fails_what_waits_for_it)
{
        struct world *w = two_servers(8 * MIB);
        send(w, 1, event_import, .event = EVENT(1), .peer = PEER(1));
        send(w, 1, event_import, .event = EVENT(2)); /* the client's */
        send(w, 1, marker, .event = EVENT(3), .queue = QUEUE(2), .waits = WAITS(EVENT(1)));
        send(w, 1, marker, .event = EVENT(4), .queue = QUEUE(2), .waits = WAITS(EVENT(2)));
        send(w, 1, buffer_write, .event = EVENT(5), .queue = QUEUE(2), .buffer = BUFFER(1),
             .size = 8 * MIB, .peer = PEER(1), .transfer = 9);
        world_run(w);
        struct node *n = &w->nodes[1];
        engine_lock(n->engine);
        engine_peer_failed(n->engine, engine_peer_session(n->engine, w->nodes[0].token), SP_E_LINK,
                           "cut");
        engine_unlock(n->engine);
        w->nodes[0].dialled = NULL;
        world_run(w);
        assert_int_equal(n->peers_lost, 1);
        assert_int_equal(status_of(w, 1, EVENT(3)), -14);
        assert_int_equal(status_of(w, 1, EVENT(4)), PENDING);
        assert_int_equal(status_of(w, 1, EVENT(5)), CL_DEVICE_NOT_AVAILABLE);
        /* Later ones fail at once. */
        send(w, 1, event_import, .event = EVENT(11), .peer = PEER(1));
        send(w, 1, marker, .event = EVENT(13), .queue = QUEUE(2), .waits = WAITS(EVENT(11)));
        send(w, 1, buffer_write, .event = EVENT(15), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = 8 * MIB, .peer = PEER(1), .transfer = 19);
        send(w, 1, buffer_read, .event = EVENT(16), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = 8 * MIB, .peer = PEER(1), .transfer = 20);
        send(w, 1, event_done, .event = EVENT(2));
        world_run(w);
        assert_int_equal(status_of(w, 1, EVENT(13)), -14);
        assert_int_equal(status_of(w, 1, EVENT(15)), CL_DEVICE_NOT_AVAILABLE);
        assert_int_equal(status_of(w, 1, EVENT(16)), CL_DEVICE_NOT_AVAILABLE);
        release_objects(w, 0);
        release_objects(w, 1);
        world_free(w);
}

TEST(data_for_a_lost_peer_is_released)
{
        for (unsigned sent = 0; sent < 2; sent++) {
                struct world *w = two_servers(40 * MIB);
                struct node *n = &w->nodes[0];
                struct session *to = n->dialled;
                struct iovec out[8];
                /* One more than is read ahead, and one that is read whole. */
                send(w, 0, buffer_read, .event = EVENT(1), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .size = 40 * MIB, .peer = PEER(2), .transfer = 9);
                send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(2),
                     .flags = COMMAND_NOTIFY, .buffer = BUFFER(1), .size = 4 * MIB, .peer = PEER(2),
                     .transfer = 10);
                world_run(w);
                assert_true(counts(w, 0).transfers > 0);
                /* A lane may be reading from it. */
                if (sent)
                        assert_true(session_lane_pending(to, 1, out, 8) > 0);
                send(w, 0, peer_lost, .peer = PEER(2), .status = SP_E_LINK);
                world_run(w);
                session_lane_down(to, 1);
                world_run(w);
                assert_int_equal(status_of(w, 0, EVENT(1)), CL_DEVICE_NOT_AVAILABLE);
                assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
                assert_int_equal(counts(w, 0).commands_held, 0);
                assert_int_equal(counts(w, 0).transfers, 0);
                assert_int_equal(counts(w, 0).transfer_bytes, 0);
                world_free(w);
        }
}

/* Node 0 gets 8 MiB and passes them on to node 1, which it does as they come. */
static struct world *forwarding(struct data **ret_data)
{
        struct world *w = two_servers(8 * MIB);
        send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(2), .buffer = BUFFER(1),
             .size = 8 * MIB, .transfer = EVENT(1));
        *ret_data = send_data(w, 0, EVENT(1), data_new(w, 8 * MIB, 3), 4 * MIB);
        send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(2),
             .flags = COMMAND_REGARDLESS | COMMAND_FOLLOW, .buffer = BUFFER(1), .offset = MIB,
             .size = 7 * MIB, .peer = PEER(2), .transfer = EVENT(3), .waits = WAITS(EVENT(1)));
        send(w, 1, buffer_write, .event = EVENT(3), .queue = QUEUE(2), .flags = COMMAND_NOTIFY,
             .buffer = BUFFER(1), .offset = MIB, .size = 7 * MIB, .peer = PEER(1),
             .transfer = EVENT(3));
        world_run(w);
        return w;
}

TEST(data_still_arriving_is_forwarded)
{
        struct data *d;
        struct world *w = forwarding(&d);
        /* Of the first half all but the first MiB is there. */
        assert_true(session_get_stats(w->nodes[0].dialled)->bulk_sent >= 3 * MIB);
        assert_int_equal(status_of(w, 1, EVENT(3)), PENDING);
        engine_lock(w->nodes[0].engine);
        session_bulk_ready(w->nodes[0].client, &d->bulk, 8 * MIB);
        engine_unlock(w->nodes[0].engine);
        world_run(w);
        assert_int_equal(status_of(w, 1, EVENT(3)), CL_SUCCESS);
        struct data *got = expect_data(w, 1, EVENT(9), 7 * MIB);
        send(w, 1, buffer_read, .event = EVENT(9), .queue = QUEUE(2), .buffer = BUFFER(1),
             .offset = MIB, .size = 7 * MIB, .transfer = EVENT(9));
        world_run(w);
        assert_memory_equal(got->bytes, d->bytes + MIB, 7 * MIB);
        release_objects(w, 0);
        release_objects(w, 1);
        world_free(w);
}

TEST(data_that_does_not_arrive_fails_its_forwarding)
{
        for (int early = 0; early < 2; early++) {
                struct world *w = two_servers(8 * MIB);
                /* The source is a peer that is lost. */
                send(w, 0, peer_expect, .peer = PEER(3), .token_hi = 1, .token_lo = 1);
                send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .size = 8 * MIB, .peer = PEER(3), .transfer = EVENT(1));
                if (early)
                        send(w, 0, peer_lost, .peer = PEER(3), .status = SP_E_GONE);
                send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(2),
                     .flags = COMMAND_REGARDLESS | COMMAND_FOLLOW, .buffer = BUFFER(1),
                     .size = 8 * MIB, .peer = PEER(2), .transfer = EVENT(3),
                     .waits = WAITS(EVENT(1)));
                send(w, 1, buffer_write, .event = EVENT(3), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .size = 8 * MIB, .peer = PEER(1), .transfer = EVENT(3));
                world_run(w);
                if (!early)
                        send(w, 0, peer_lost, .peer = PEER(3), .status = SP_E_GONE);
                world_run(w);
                assert_int_equal(status_of(w, 0, EVENT(1)), CL_DEVICE_NOT_AVAILABLE);
                assert_true(status_of(w, 1, EVENT(3)) < 0);
                release_objects(w, 0);
                release_objects(w, 1);
                world_free(w);
        }
}

TEST(data_of_a_lost_peer_comes_from_another)
{
        for (int again = 0; again < 2; again++) {
                struct data *d;
                struct world *w = forwarding(&d);
                struct node *n = &w->nodes[1];
                n->instead = 30;
                n->lost_peer = again ? PEER(1) : 0;
                engine_lock(n->engine);
                engine_peer_failed(n->engine, engine_peer_session(n->engine, w->nodes[0].token),
                                   SP_E_LINK, "cut");
                engine_unlock(n->engine);
                w->nodes[0].dialled = NULL;
                world_run(w);
                assert_int_equal(n->orphaned, 1 + again);
                assert_int_equal(status_of(w, 1, EVENT(3)), PENDING);
                /* All of it, some of which is there already. */
                struct data *rest = data_new(w, 7 * MIB, 0);
                memcpy(rest->bytes, d->bytes + MIB, 7 * MIB);
                send_data(w, 1, 30, rest, 7 * MIB);
                world_run(w);
                assert_int_equal(status_of(w, 1, EVENT(3)), CL_SUCCESS);
                send(w, 1, buffer_read, .event = EVENT(4), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .offset = MIB, .size = 7 * MIB, .transfer = EVENT(4));
                struct data *got = expect_data(w, 1, EVENT(4), 7 * MIB);
                world_run(w);
                expect_same(rest, got);
                session_bulk_ready(w->nodes[0].client, &d->bulk, 8 * MIB);
                world_run(w);
                assert_int_equal(counts(w, 1).commands_held, 0);
                assert_int_equal(counts(w, 1).events, 0);
                world_free(w);
        }
}

static void lose_peer(struct world *w)
{
        struct node *n = &w->nodes[1];
        engine_lock(n->engine);
        engine_peer_failed(n->engine, engine_peer_session(n->engine, w->nodes[0].token), SP_E_LINK,
                           "cut");
        engine_unlock(n->engine);
        w->nodes[0].dialled = NULL;
        world_run(w);
}

TEST(partial_data_of_a_lost_peer_is_released)
{
        struct world *w = two_servers(8 * MIB);
        engine_lock(w->nodes[1].engine);
        struct session *there = engine_peer_session(w->nodes[1].engine, w->nodes[0].token);
        engine_unlock(w->nodes[1].engine);
        struct iovec out[8], in[2];
        w->nodes[0].bulk_cut = true;
        send(w, 0, buffer_read, .event = EVENT(1), .queue = QUEUE(2), .buffer = BUFFER(1),
             .size = 8 * MIB, .peer = PEER(2), .transfer = EVENT(2));
        send(w, 1, buffer_write, .event = EVENT(2), .queue = QUEUE(2), .buffer = BUFFER(1),
             .size = 8 * MIB, .peer = PEER(1), .transfer = EVENT(2));
        world_run(w);
        assert_true(session_lane_pending(w->nodes[0].dialled, 1, out, 8) > 1);
        for (unsigned i = 0; i < 2; i++) {
                assert_true(session_lane_want(there, 1, in) > 0);
                memcpy(in[0].iov_base, out[i].iov_base, i ? 1000 : in[0].iov_len);
                assert_int_equal(session_lane_received(there, 1, i ? 1000 : in[0].iov_len), 0);
        }
        assert_true(counts(w, 1).transfer_bytes > 0);
        lose_peer(w);
        assert_int_equal(status_of(w, 1, EVENT(2)), CL_DEVICE_NOT_AVAILABLE);
        assert_int_equal(counts(w, 1).transfers, 0);
        assert_int_equal(counts(w, 1).transfer_bytes, 0);
        world_free(w);
}

/* Node 0 has bytes in buffer 1, and in buffer 2 how many of them mean something. */
static struct data *counted(struct world *w, uint64_t content)
{
        struct data *d = write_buffer(w, 0, QUEUE(2), EVENT(1), BUFFER(1), 8 * MIB, 5);
        struct data *n = data_new(w, 8, 0);
        bytes_put_u64(n->bytes, content);
        send(w, 0, buffer_write, .event = EVENT(2), .queue = QUEUE(2), .buffer = BUFFER(2),
             .offset = 100, .size = 8, .transfer = EVENT(2));
        send_data(w, 0, EVENT(2), n, 8);
        world_run(w);
        return d;
}

TEST(only_bytes_that_mean_something_are_sent_whoever_is_first)
{
        static const uint64_t contents[] = { 0, 1, 20000, MIB, 5 * MIB + 3, 8 * MIB, UINT64_MAX };
        for (unsigned i = 0; i < 2 * array_size(contents); i++) {
                struct world *w = two_servers(8 * MIB);
                uint64_t content = contents[i / 2], rest = 8 * MIB - 4096;
                struct data *d = counted(w, content);
                uint64_t before = session_get_stats(w->nodes[0].dialled)->bulk_sent;
                send(w, 0, content_size, .event = EVENT(3), .buffer = BUFFER(2), .offset = 100);
                send(w, 0, buffer_read, .event = EVENT(3), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .offset = 4096, .size = rest, .peer = PEER(2), .transfer = EVENT(4));
                if (i % 2)
                        world_run(w);
                send(w, 1, buffer_write, .event = EVENT(4), .queue = QUEUE(2),
                     .flags = COMMAND_NOTIFY, .buffer = BUFFER(1), .offset = 4096, .size = rest,
                     .peer = PEER(1), .transfer = EVENT(4));
                world_run(w);
                assert_int_equal(status_of(w, 1, EVENT(4)), CL_SUCCESS);
                uint64_t useful = content < 4096 ? 0 : content - 4096;
                useful = useful < rest ? useful : rest;
                uint64_t sent = session_get_stats(w->nodes[0].dialled)->bulk_sent - before;
                assert_true(sent >= useful && sent <= useful + 70000);
                struct data *got = expect_data(w, 1, EVENT(9), 8 * MIB);
                send(w, 1, buffer_read, .event = EVENT(9), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .size = 8 * MIB, .transfer = EVENT(9));
                world_run(w);
                assert_memory_equal(got->bytes + 4096, d->bytes + 4096, useful);
                assert_int_equal(counts(w, 0).transfers, 0);
                assert_int_equal(counts(w, 1).transfers, 0);
                release_objects(w, 0);
                release_objects(w, 1);
                world_free(w);
        }
}

TEST(a_cut_transfer_fails_when_its_peer_is_lost_before_its_command_comes)
{
        struct world *w = two_servers(8 * MIB);
        counted(w, MIB);
        w->nodes[0].bulk_cut = true;
        send(w, 0, content_size, .event = EVENT(3), .buffer = BUFFER(2), .offset = 100);
        send(w, 0, buffer_read, .event = EVENT(3), .queue = QUEUE(2), .buffer = BUFFER(1),
             .size = 8 * MIB, .peer = PEER(2), .transfer = EVENT(4));
        world_run(w);
        lose_peer(w);
        send(w, 1, buffer_write, .event = EVENT(4), .queue = QUEUE(2), .buffer = BUFFER(1),
             .size = 8 * MIB, .peer = PEER(1), .transfer = EVENT(4));
        world_run(w);
        assert_int_equal(status_of(w, 1, EVENT(4)), CL_DEVICE_NOT_AVAILABLE);
        assert_int_equal(counts(w, 1).transfers, 0);
        assert_int_equal(counts(w, 1).commands_held, 0);
        world_free(w);
}

TEST(between_domains_only_bytes_that_mean_something_are_moved)
{
        for (int early = 0; early < 2; early++) {
                struct world *w = world_new(1);
                make_objects(w, 0, 8 * MIB);
                struct data *d = counted(w, MIB);
                if (early)
                        send(w, 0, buffer_write, .event = EVENT(4), .queue = QUEUE(3),
                             .flags = COMMAND_NOTIFY, .buffer = BUFFER(1), .size = 8 * MIB,
                             .peer = PEER_SELF, .transfer = 77);
                send(w, 0, content_size, .event = EVENT(3), .buffer = BUFFER(2), .offset = 100);
                send(w, 0, buffer_read, .event = EVENT(3), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .size = 8 * MIB, .peer = PEER_SELF, .transfer = 77);
                world_run(w);
                if (!early)
                        send(w, 0, buffer_write, .event = EVENT(4), .queue = QUEUE(3),
                             .flags = COMMAND_NOTIFY, .buffer = BUFFER(1), .size = 8 * MIB,
                             .peer = PEER_SELF, .transfer = 77);
                world_run(w);
                assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
                struct data *got = expect_data(w, 0, EVENT(9), MIB);
                send(w, 0, buffer_read, .event = EVENT(9), .queue = QUEUE(3), .buffer = BUFFER(1),
                     .size = MIB, .transfer = EVENT(9));
                world_run(w);
                assert_memory_equal(got->bytes, d->bytes, MIB);
                assert_int_equal(counts(w, 0).transfers, 0);
                release_objects(w, 0);
                world_free(w);
        }
}

TEST(a_number_that_is_not_there_fails_its_command)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, content_size, .event = EVENT(1), .buffer = BUFFER(2), .offset = 60);
        send(w, 0, buffer_copy, .event = EVENT(1), .queue = QUEUE(1), .flags = COMMAND_NOTIFY,
             .src = BUFFER(1), .dst = BUFFER(2), .size = 32);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_INVALID_VALUE);
        release_objects(w, 0);
        world_free(w);
}

/* ---- data --------------------------------------------------------------------------------------- */

/* From device 0 to device 1 of one server. */
TEST(data_goes_from_domain_to_domain_in_either_order_of_commands)
{
        for (int write_first = 0; write_first < 2; write_first++) {
                for (size_t size = 100; size <= 5 * MIB; size += 5 * MIB - 100) {
                        struct world *w = world_new(1);
                        make_objects(w, 0, size);
                        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), size, 1);
                        for (int k = 0; k < 2; k++) {
                                if (k == write_first)
                                        send(w, 0, buffer_read, .event = EVENT(2),
                                             .queue = QUEUE(1), .buffer = BUFFER(1), .size = size,
                                             .peer = PEER_SELF, .transfer = 77);
                                else
                                        send(w, 0, buffer_write, .event = EVENT(3),
                                             .queue = QUEUE(3), .buffer = BUFFER(1), .size = size,
                                             .peer = PEER_SELF, .transfer = 77);
                        }
                        struct data *got = read_buffer(w, 0, QUEUE(3), EVENT(4), BUFFER(1), size);
                        world_run(w);
                        expect_same(d, got);
                        release_objects(w, 0);
                        world_free(w);
                }
        }
}

TEST(a_local_read_is_not_far_ahead_of_its_write)
{
        enum { SIZE = 21 * MIB + 5, AHEAD = 8 * MIB };
        struct world *w = world_new(1);
        make_objects(w, 0, SIZE);
        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), SIZE, 1);
        world_run(w);
        send(w, 0, event_import, .event = EVENT(9));
        send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(2), .flags = COMMAND_NOTIFY,
             .buffer = BUFFER(1), .size = SIZE, .peer = PEER_SELF, .transfer = 77);
        send(w, 0, buffer_write, .event = EVENT(3), .queue = QUEUE(3), .buffer = BUFFER(1),
             .size = SIZE, .peer = PEER_SELF, .transfer = 77, .waits = WAITS(EVENT(9)));
        world_run(w);
        assert_int_equal(counts(w, 0).transfer_bytes, AHEAD);
        assert_int_equal(status_of(w, 0, EVENT(2)), PENDING);
        send(w, 0, event_done, .event = EVENT(9), .status = CL_COMPLETE);
        while (status_of(w, 0, EVENT(2)) == PENDING) {
                pump(w);
                assert_true(counts(w, 0).transfer_bytes <= AHEAD);
                step(w, 0, 1);
        }
        struct data *got = read_buffer(w, 0, QUEUE(3), EVENT(4), BUFFER(1), SIZE);
        world_run(w);
        expect_same(d, got);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_local_read_ends_when_its_write_has_failed)
{
        for (int before = 0; before < 2; before++) {
                struct world *w = world_new(1);
                make_objects(w, 0, 21 * MIB);
                send(w, 0, event_import, .event = EVENT(9));
                send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(2),
                     .flags = COMMAND_NOTIFY, .buffer = BUFFER(1), .size = 21 * MIB,
                     .peer = PEER_SELF, .transfer = 77);
                send(w, 0, buffer_write, .event = EVENT(3), .queue = QUEUE(3),
                     .flags = COMMAND_NOTIFY, .buffer = BUFFER(1), .size = 21 * MIB,
                     .peer = PEER_SELF, .transfer = 77, .waits = WAITS(EVENT(9)));
                if (!before)
                        world_run(w);
                send(w, 0, event_done, .event = EVENT(9), .status = -5);
                world_run(w);
                assert_int_equal(status_of(w, 0, EVENT(3)),
                                 CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
                assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
                assert_int_equal(counts(w, 0).transfers, 0);
                assert_int_equal(counts(w, 0).transfer_bytes, 0);
                release_objects(w, 0);
                world_free(w);
        }
}

TEST(a_failed_local_read_fails_its_write)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 100);
        send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = 101, .peer = PEER_SELF, .transfer = 77);
        send(w, 0, buffer_write, .event = EVENT(3), .queue = QUEUE(3), .buffer = BUFFER(1),
             .size = 101, .peer = PEER_SELF, .transfer = 77);
        send(w, 0, buffer_write, .event = EVENT(4), .queue = QUEUE(2), .buffer = BUFFER(1),
             .offset = 50, .size = 50, .peer = PEER_SELF, .transfer = 78);
        send(w, 0, buffer_read, .event = EVENT(5), .queue = QUEUE(3), .buffer = BUFFER(1),
             .offset = 51, .size = 50, .peer = PEER_SELF, .transfer = 78);
        world_run(w);
        for (unsigned i = 2; i <= 5; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), CL_INVALID_VALUE);
        release_objects(w, 0);
        world_free(w);
}

/* From server 0 to server 1, not through the client. */
TEST(data_goes_from_server_to_server_whoever_is_first)
{
        for (int write_first = 0; write_first < 2; write_first++) {
                for (size_t size = 100; size <= 5 * MIB; size += 5 * MIB - 100) {
                        struct world *w = two_servers(size);
                        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), size, 1);
                        for (int k = 0; k < 2; k++) {
                                if (k == write_first)
                                        send(w, 0, buffer_read, .event = EVENT(2),
                                             .queue = QUEUE(1), .buffer = BUFFER(1), .size = size,
                                             .peer = PEER(2), .transfer = 77);
                                else
                                        send(w, 1, buffer_write, .event = EVENT(3),
                                             .queue = QUEUE(3), .buffer = BUFFER(1), .size = size,
                                             .peer = PEER(1), .transfer = 77);
                                world_run(w);
                        }
                        struct data *got = read_buffer(w, 1, QUEUE(3), EVENT(4), BUFFER(1), size);
                        world_run(w);
                        expect_same(d, got);
                        release_objects(w, 0);
                        release_objects(w, 1);
                        world_free(w);
                }
        }
}

TEST(a_failed_read_fails_the_write_on_the_other_server)
{
        for (int write_first = 0; write_first < 2; write_first++) {
                struct world *w = two_servers(100);
                for (int k = 0; k < 2; k++) {
                        if (k == write_first)
                                send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(1),
                                     .buffer = BUFFER(1), .offset = 1, .size = 100, .peer = PEER(2),
                                     .transfer = 77);
                        else
                                send(w, 1, buffer_write, .event = EVENT(3), .queue = QUEUE(3),
                                     .buffer = BUFFER(1), .size = 100, .peer = PEER(1),
                                     .transfer = 77);
                        world_run(w);
                }
                assert_int_equal(status_of(w, 0, EVENT(2)), CL_INVALID_VALUE);
                assert_int_equal(status_of(w, 1, EVENT(3)), CL_INVALID_VALUE);
                release_objects(w, 0);
                release_objects(w, 1);
                world_free(w);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(completion_reaches_the_other_server_before_or_after_its_import),
                cmocka_unit_test(failure_reaches_the_other_server),
                cmocka_unit_test(events_that_were_told_too_early_and_forgotten_fail),
                cmocka_unit_test(a_lost_peer_fails_what_waits_for_it),
                cmocka_unit_test(data_for_a_lost_peer_is_released),
                cmocka_unit_test(partial_data_of_a_lost_peer_is_released),
                cmocka_unit_test(
                        a_cut_transfer_fails_when_its_peer_is_lost_before_its_command_comes),
                cmocka_unit_test(data_still_arriving_is_forwarded),
                cmocka_unit_test(data_that_does_not_arrive_fails_its_forwarding),
                cmocka_unit_test(data_of_a_lost_peer_comes_from_another),
                cmocka_unit_test(only_bytes_that_mean_something_are_sent_whoever_is_first),
                cmocka_unit_test(between_domains_only_bytes_that_mean_something_are_moved),
                cmocka_unit_test(a_number_that_is_not_there_fails_its_command),
                cmocka_unit_test(data_goes_from_domain_to_domain_in_either_order_of_commands),
                cmocka_unit_test(a_local_read_is_not_far_ahead_of_its_write),
                cmocka_unit_test(a_local_read_ends_when_its_write_has_failed),
                cmocka_unit_test(a_failed_local_read_fails_its_write),
                cmocka_unit_test(data_goes_from_server_to_server_whoever_is_first),
                cmocka_unit_test(a_failed_read_fails_the_write_on_the_other_server),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
