/* Bytes that travel between the client and buffers, piece by piece. */
#include "support/check.h"

#include <stdlib.h>

#include "support/world.h"

TEST(data_of_any_size_is_read_as_written)
{
        static const size_t sizes[] = { 1,
                                        100,
                                        SESSION_INLINE_DEFAULT,
                                        SESSION_INLINE_DEFAULT + 1,
                                        MIB - 1,
                                        MIB,
                                        2 * MIB + 1,
                                        9 * MIB + 77 };
        for (size_t i = 0; i < array_size(sizes); i++) {
                struct world *w = world_new(1);
                make_objects(w, 0, sizes[i]);
                for (unsigned q = 1; q <= 2; q++) {
                        struct data *sent = write_buffer(w, 0, QUEUE(q), EVENT(10 * q), BUFFER(q),
                                                         sizes[i], (uint8_t)q);
                        world_run(w);
                        assert_true(sent->acked);
                        struct data *got =
                                read_buffer(w, 0, QUEUE(q), EVENT(10 * q + 1), BUFFER(q), sizes[i]);
                        world_run(w);
                        expect_same(sent, got);
                        assert_int_equal(status_of(w, 0, EVENT(10 * q)), CL_SUCCESS);
                        assert_int_equal(status_of(w, 0, EVENT(10 * q + 1)), CL_SUCCESS);
                }
                release_objects(w, 0);
                world_free(w);
        }
}

TEST(a_write_starts_while_its_bytes_still_arrive)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 8 * MIB);
        struct data *d = data_new(w, 8 * MIB, 3);
        send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(1), .flags = COMMAND_NOTIFY,
             .buffer = BUFFER(1), .size = d->size, .transfer = 5);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(2), BUFFER(1), d->size);
        send_data(w, 0, 5, d, 1000);
        world_run(w);
        assert_int_equal(counts(w, 0).commands_running, 0);
        session_bulk_ready(w->nodes[0].client, &d->bulk, 2 * MIB + 1);
        pump(w);
        assert_int_equal(counts(w, 0).commands_running, 1);
        assert_int_equal(counts(w, 0).commands_held, 2); /* itself, and the read behind it */
        assert_int_equal(step(w, 0, SIZE_MAX), 2);       /* parts of 1 MiB */
        session_bulk_ready(w->nodes[0].client, &d->bulk, 3 * MIB);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), PENDING);
        session_bulk_ready(w->nodes[0].client, &d->bulk, d->size);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        expect_same(d, got);
        release_objects(w, 0);
        world_free(w);
}

static struct world *world_in_place(void)
{
        backend_reference_bytes = true;
        struct world *w = world_new(1);
        backend_reference_bytes = false;
        make_objects(w, 0, 4 * MIB);
        return w;
}

TEST(a_write_behind_nothing_comes_straight_into_the_buffer)
{
        struct world *w = world_in_place();
        for (unsigned q = 1; q <= 2; q++) { /* with and without order */
                struct data *d = data_new(w, 3 * MIB + 7, (uint8_t)q);
                send(w, 0, buffer_write, .event = EVENT(10 * q), .queue = QUEUE(q),
                     .flags = COMMAND_NOTIFY, .buffer = BUFFER(1), .offset = 100, .size = d->size,
                     .transfer = q);
                send(w, 0, marker, .event = EVENT(10 * q + 1), .queue = QUEUE(q),
                     .flags = COMMAND_NOTIFY, .waits = WAITS(EVENT(10 * q)));
                send_data(w, 0, q, d, 2 * MIB + 1);
                pump(w);
                assert_int_equal(status_of(w, 0, EVENT(10 * q)), PENDING);
                session_bulk_ready(w->nodes[0].client, &d->bulk, d->size);
                pump(w);
                assert_int_equal(status_of(w, 0, EVENT(10 * q)), CL_SUCCESS);
                assert_int_equal(status_of(w, 0, EVENT(10 * q + 1)), CL_SUCCESS);
                assert_int_equal(step(w, 0, SIZE_MAX), 0); /* the device had nothing to do */
                assert_int_equal(counts(w, 0).transfer_bytes, 0);
                struct data *got =
                        read_buffer(w, 0, QUEUE(q), EVENT(10 * q + 2), BUFFER(1), 4 * MIB);
                world_run(w);
                assert_memory_equal(got->bytes + 100, d->bytes, d->size);
        }
        release_objects(w, 0);
        world_free(w);
}

TEST(a_write_behind_a_command_waits_for_it_beside_the_buffer)
{
        struct world *w = world_in_place();
        uint64_t event = 1;
        for (unsigned q = 1; q <= 2; q++)
                for (size_t size = 100; size <= MIB; size += MIB - 100) {
                        fill_zero(w, 0, QUEUE(q), EVENT(event), BUFFER(1), MIB);
                        struct data *before =
                                read_buffer(w, 0, QUEUE(q), EVENT(event + 1), BUFFER(1), MIB);
                        struct data *d = data_new(w, size, 5);
                        send(w, 0, buffer_write, .event = EVENT(event + 2), .queue = QUEUE(q),
                             .flags = COMMAND_NOTIFY, .buffer = BUFFER(1), .size = size,
                             .transfer = event, .waits = WAITS(EVENT(event + 1)));
                        send_data(w, 0, event, d, size);
                        pump(w);
                        assert_int_equal(status_of(w, 0, EVENT(event + 2)), PENDING);
                        world_run(w);
                        for (size_t i = 0; i < MIB; i++)
                                assert_int_equal(before->bytes[i], 0);
                        struct data *got =
                                read_buffer(w, 0, QUEUE(q), EVENT(event + 3), BUFFER(1), MIB);
                        world_run(w);
                        assert_memory_equal(got->bytes, d->bytes, size);
                        event += 4;
                }
        release_objects(w, 0);
        world_free(w);
}

TEST(the_buffer_of_a_write_stays_while_its_bytes_come)
{
        struct world *w = world_in_place();
        struct data *d = data_new(w, 2 * MIB, 1);
        send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = d->size, .transfer = 1);
        send_data(w, 0, 1, d, MIB + 1);
        send(w, 0, release, .object = BUFFER(1));
        pump(w);
        session_bulk_ready(w->nodes[0].client, &d->bulk, 2 * MIB - 1);
        pump(w);
        world_free(w); /* and the session ends before the last one has */
}

TEST(a_read_is_sent_while_its_rest_is_still_read)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 9 * MIB);
        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 9 * MIB, 1);
        world_run(w);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(2), BUFFER(1), 9 * MIB);
        pump(w);
        assert_int_equal(step(w, 0, 1), 1);
        pump(w);
        assert_true(got->arrived >= MIB && got->arrived < 9 * MIB);
        assert_int_equal(status_of(w, 0, EVENT(2)), PENDING);
        size_t before = got->arrived;
        assert_int_equal(step(w, 0, 1), 1);
        pump(w);
        assert_true(got->arrived > before);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        expect_same(d, got);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_read_is_only_so_far_ahead_of_what_has_arrived)
{
        struct world *w = world_new(1);
        size_t size = 40 * MIB;
        make_objects(w, 0, size);
        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), size, 1);
        world_run(w);
        /* The data goes nowhere: there is no lane for it. */
        session_lane_down(w->nodes[0].client, 1);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(2), BUFFER(1), size);
        pump(w);
        size_t parts = step(w, 0, SIZE_MAX);
        assert_true(parts >= 4 && parts <= 20);
        pump(w);
        assert_int_equal(step(w, 0, SIZE_MAX), 0);
        assert_int_equal(status_of(w, 0, EVENT(2)), PENDING);
        assert_int_equal(session_lane_up(w->nodes[0].client, 1, 0), 0);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        expect_same(d, got);
        release_objects(w, 0);
        world_free(w);
}

/* Deliver the pending bytes of the lane, but do not report to the sender that they were sent.
 * Return their number. */
static size_t deliver(struct session *from, struct session *to, unsigned lane)
{
        struct iovec out[8], in[2];
        size_t size = 0;
        int n = session_lane_pending(from, lane, out, 8);
        for (int i = 0; i < n; i++)
                for (size_t at = 0, len; at < out[i].iov_len; at += len, size += len) {
                        assert_true(session_lane_want(to, lane, in) > 0);
                        len = out[i].iov_len - at;
                        len = len < in[0].iov_len ? len : in[0].iov_len;
                        memcpy(in[0].iov_base, (const uint8_t *)out[i].iov_base + at, len);
                        assert_int_equal(session_lane_received(to, lane, len), 0);
                }
        return size;
}

static void lane_up(struct node *n, unsigned lane) LOCK_UNCHECKED
{
        assert_int_equal(session_lane_up(n->client, lane, 0), 0);
        assert_int_equal(session_lane_up(engine_session(n->engine), lane, 0), 0);
}

TEST(a_lane_that_is_late_to_hear_that_it_sent_does_not_stop_a_read)
{
        struct world *w = world_new(1);
        struct node *n = &w->nodes[0];
        engine_lock(n->engine);
        struct session *s = engine_session(n->engine);
        engine_unlock(n->engine);
        size_t size = 40 * MIB;
        bool died = false;
        make_objects(w, 0, size);
        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), size, 1);
        world_run(w);
        lane_up(n, 2);
        lane_up(n, 3);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(2), BUFFER(1), size);
        pump(w);
        step(w, 0, 1);
        size_t sent = deliver(s, n->client, 2);
        assert_true(sent >= MIB);
        do
                world_run(w);
        while (move_lane(s, n->client, 3, SIZE_MAX, &died));
        assert_false(died);
        session_lane_sent(s, 2, sent);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        expect_same(d, got);
        release_objects(w, 0);
        world_free(w);
}

TEST(boxes_travel_without_gaps)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 4096);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 4096);
        struct data *d = data_new(w, 4 * 3 * 2, 9);
        send(w, 0, buffer_write_rect, .event = EVENT(2), .queue = QUEUE(1), .buffer = BUFFER(1),
             .origin = WAITS(8, 1, 1), .region = WAITS(4, 3, 2), .row_pitch = 32,
             .slice_pitch = 320, .transfer = 1);
        send_data(w, 0, 1, d, d->size);
        struct data *got = expect_data(w, 0, 2, d->size);
        send(w, 0, buffer_copy_rect, .event = EVENT(3), .queue = QUEUE(1), .src = BUFFER(1),
             .dst = BUFFER(2), .src_origin = WAITS(8, 1, 1), .dst_origin = WAITS(0, 2, 0),
             .region = WAITS(4, 3, 2), .src_row_pitch = 32, .src_slice_pitch = 320,
             .dst_row_pitch = 4, .dst_slice_pitch = 100);
        send(w, 0, buffer_read_rect, .event = EVENT(4), .queue = QUEUE(1), .flags = COMMAND_NOTIFY,
             .buffer = BUFFER(2), .origin = WAITS(0, 2, 0), .region = WAITS(4, 3, 2),
             .row_pitch = 4, .slice_pitch = 100, .transfer = 2);
        struct data *whole = read_buffer(w, 0, QUEUE(1), EVENT(5), BUFFER(1), 4096);
        world_run(w);
        expect_same(d, got);
        assert_memory_equal(whole->bytes + 320 + 32 + 8, d->bytes, 4);
        assert_memory_equal(whole->bytes + 2 * 320 + 3 * 32 + 8, d->bytes + 20, 4);
        /* Out of the buffer: the bytes are swallowed. */
        send(w, 0, buffer_write_rect, .event = EVENT(6), .queue = QUEUE(1), .buffer = BUFFER(1),
             .origin = WAITS(8, 1, 1), .region = WAITS(4, 3, 20), .row_pitch = 32,
             .slice_pitch = UINT64_MAX, .transfer = 3);
        struct data *lost = send_data(w, 0, 3, data_new(w, 240, 0), 240);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(6)), CL_INVALID_VALUE);
        assert_true(lost->acked);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_failed_write_swallows_its_bytes)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 4 * MIB);
        send(w, 0, event_import, .event = EVENT(100));
        struct data *d = data_new(w, 3 * MIB, 3);
        send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = d->size, .transfer = 5, .waits = WAITS(EVENT(100)));
        send_data(w, 0, 5, d, MIB + 5);
        pump(w);
        send(w, 0, event_done, .event = EVENT(100), .status = -9);
        /* Out of the buffer. */
        struct data *other = data_new(w, 3 * MIB, 3);
        send(w, 0, buffer_write, .event = EVENT(2), .queue = QUEUE(1), .buffer = BUFFER(1),
             .offset = 2 * MIB, .size = other->size, .transfer = 6);
        send_data(w, 0, 6, other, other->size);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), -14);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_INVALID_VALUE);
        session_bulk_ready(w->nodes[0].client, &d->bulk, d->size);
        world_run(w);
        assert_true(d->acked && other->acked);
        release_objects(w, 0);
        world_free(w);
}

/* The reference backend, but every completion from the n-th on is a failure. */
static struct {
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        void *user;
        unsigned good;
} flaky;

static void flaky_complete(void *user, void *cookie, cl_int status, const struct backend_times *t)
{
        (void)user;
        flaky.complete(flaky.user, cookie, flaky.good ? status : CL_OUT_OF_RESOURCES, t);
        flaky.good -= flaky.good > 0;
}

static int flaky_open(const struct backend_params *params, struct backend **ret)
{
        struct backend_params p = *params;
        flaky.complete = p.complete;
        flaky.user = p.user;
        p.complete = flaky_complete;
        return backend_reference.open(&p, ret);
}

TEST(a_read_that_fails_in_the_middle_is_sent_to_its_end_and_then_reported)
{
        struct backend_ops ops = backend_reference;
        ops.open = flaky_open;
        struct world *w = calloc(1, sizeof(*w));
        struct node *n = &w->nodes[0];
        w->count = 1;
        backend_reference_manual = true;
        assert_int_equal(node_init_on(n, &ops, true, NULL), 0);
        flaky.good = 4;
        make_objects(w, 0, 9 * MIB);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 9 * MIB);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 1);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(3), BUFFER(1), 9 * MIB);
        pump(w);
        step(w, 0, 3);
        pump(w);
        assert_int_equal(number(got, 0), 1);
        size_t before = got->arrived;
        step(w, 0, 3);
        engine_lock(n->engine);
        bool died = false;
        move_lane(engine_session(n->engine), n->client, 0, SIZE_MAX, &died);
        engine_unlock(n->engine);
        assert_int_equal(got->arrived, before);
        assert_int_equal(status_of(w, 0, EVENT(3)), PENDING);
        world_run(w);
        assert_int_equal(got->arrived, got->size);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_OUT_OF_RESOURCES);
        release_objects(w, 0);
        world_free(w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(data_of_any_size_is_read_as_written),
                cmocka_unit_test(a_write_starts_while_its_bytes_still_arrive),
                cmocka_unit_test(a_write_behind_nothing_comes_straight_into_the_buffer),
                cmocka_unit_test(a_write_behind_a_command_waits_for_it_beside_the_buffer),
                cmocka_unit_test(the_buffer_of_a_write_stays_while_its_bytes_come),
                cmocka_unit_test(a_read_is_sent_while_its_rest_is_still_read),
                cmocka_unit_test(a_read_is_only_so_far_ahead_of_what_has_arrived),
                cmocka_unit_test(a_lane_that_is_late_to_hear_that_it_sent_does_not_stop_a_read),
                cmocka_unit_test(boxes_travel_without_gaps),
                cmocka_unit_test(a_failed_write_swallows_its_bytes),
                cmocka_unit_test(
                        a_read_that_fails_in_the_middle_is_sent_to_its_end_and_then_reported),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
