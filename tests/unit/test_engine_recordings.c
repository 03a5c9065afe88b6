/* Command buffers, which the engine replays. */
#include "support/check.h"

#include "support/world.h"

TEST(a_recording_runs_as_often_as_wanted_and_has_one_event)
{
        for (uint64_t q = 1; q <= 2; q++) {
                struct world *w = world_new(1);
                make_objects(w, 0, 64);
                record(w, 0);
                world_run(w);
                assert_int_equal(w->nodes[0].done_count, 0);
                for (uint64_t n = 0; n < 3; n++) {
                        fill_zero(w, 0, QUEUE(q), EVENT(100 + 10 * n), BUFFER(1), 64);
                        run_recording(w, 0, QUEUE(q), EVENT(101 + 10 * n),
                                      (struct wire_u64s)WAITS(EVENT(100 + 10 * n)));
                        pump(w);
                        assert_int_equal(status_of(w, 0, EVENT(101 + 10 * n)), PENDING);
                        world_run(w);
                        assert_int_equal(status_of(w, 0, EVENT(101 + 10 * n)), CL_SUCCESS);
                }
                assert_int_equal(w->nodes[0].done_count, 3);
                struct data *got = read_buffer(w, 0, QUEUE(q), EVENT(200), BUFFER(1), 64);
                world_run(w);
                assert_int_equal(number(got, 9), 12);
                send(w, 0, release, .object = RECORDING);
                release_objects(w, 0);
                world_free(w);
        }
}

TEST(a_recording_may_be_held_and_changed_and_released_meanwhile)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        record(w, 0);
        send(w, 0, event_import, .event = EVENT(100));
        run_recording(w, 0, QUEUE(2), EVENT(101), (struct wire_u64s)WAITS(EVENT(100)));
        struct buf args = { 0 };
        put_args(&args, 0, 1000);
        send(w, 0, recording_update, .recording = RECORDING, .command = EVENT(3),
             .global = WAITS(4), .args = bytes_of(args.data, args.size));
        buf_fini(&args);
        run_recording(w, 0, QUEUE(2), EVENT(102), (struct wire_u64s)WAITS(EVENT(101)));
        send(w, 0, release, .object = RECORDING);
        world_run(w);
        assert_int_equal(w->nodes[0].done_count, 0);
        struct data *got = expect_data(w, 0, 7, 64);
        send(w, 0, event_done, .event = EVENT(100));
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(101)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(102)), CL_SUCCESS);
        send(w, 0, buffer_read, .event = EVENT(103), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = 64, .transfer = 7);
        world_run(w);
        assert_int_equal(number(got, 3), 1005);
        assert_int_equal(number(got, 4), 5);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_recording_fails_as_a_whole_and_is_told_of_once)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        record(w, 0);
        send(w, 0, event_import, .event = EVENT(100));
        for (uint64_t q = 1; q <= 2; q++)
                run_recording(w, 0, QUEUE(q), EVENT(100 + q), (struct wire_u64s)WAITS(EVENT(100)));
        send(w, 0, event_done, .event = EVENT(100), .status = -7);
        world_run(w);
        for (uint64_t q = 1; q <= 2; q++)
                assert_int_equal(status_of(w, 0, EVENT(100 + q)),
                                 CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        assert_int_equal(w->nodes[0].done_count, 2);
        send(w, 0, release, .object = RECORDING);
        release_objects(w, 0);
        world_free(w);
}

/* Two slots, the second one's command between two of the first's by a barrier. */
TEST(a_recording_spans_queues_and_orders_them)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, recording_create, .recording = RECORDING,
             .slots = WAITS(QUEUE(SLOT), QUEUE(SLOT + 1)), .devices = WAITS(0, 0));
        fill_zero(w, 0, QUEUE(SLOT), EVENT(1), BUFFER(1), 64);
        send(w, 0, marker, .event = EVENT(2), .queue = QUEUE(SLOT), .flags = COMMAND_BARRIER);
        launch(w, 0, QUEUE(SLOT + 1), EVENT(3), BUFFER(1), 9);
        send(w, 0, marker, .event = EVENT(4), .queue = QUEUE(SLOT), .flags = COMMAND_BARRIER);
        send(w, 0, buffer_copy, .event = EVENT(5), .queue = QUEUE(SLOT), .src = BUFFER(1),
             .dst = BUFFER(2), .size = 64);
        for (uint64_t q = 1; q <= 2; q++) {
                backend_reference_seed = 17 * q;
                fill_zero(w, 0, QUEUE(q), EVENT(90 + q), BUFFER(2), 64);
                world_run(w);
                send(w, 0, recording_run, .event = EVENT(100 + q), .flags = COMMAND_NOTIFY,
                     .recording = RECORDING, .queues = WAITS(QUEUE(q), QUEUE(3 - q)));
                struct data *got = expect_data(w, 0, 10 + q, 64);
                send(w, 0, buffer_read, .event = EVENT(110 + q), .queue = QUEUE(q),
                     .buffer = BUFFER(2), .size = 64, .transfer = 10 + q,
                     .waits = WAITS(EVENT(100 + q)));
                world_run(w);
                assert_int_equal(status_of(w, 0, EVENT(100 + q)), CL_SUCCESS);
                assert_int_equal(number(got, 15), 9);
        }
        backend_reference_seed = 0;
        for (uint64_t n = 0; n < 2; n++)
                send(w, 0, release, .object = QUEUE(SLOT + n));
        send(w, 0, release, .object = RECORDING);
        release_objects(w, 0);
        world_free(w);
}

/* Two devices, whose memories differ: the recording itself brings what one has written to the other. */
TEST(a_recording_moves_data_between_domains)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, recording_create, .recording = RECORDING,
             .slots = WAITS(QUEUE(SLOT), QUEUE(SLOT + 1)), .devices = WAITS(0, 1));
        launch(w, 0, QUEUE(SLOT), EVENT(1), BUFFER(1), 9);
        send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(SLOT), .buffer = BUFFER(1),
             .size = 64, .peer = PEER_SELF, .transfer = EVENT(2), .waits = WAITS(EVENT(1)));
        send(w, 0, buffer_write, .event = EVENT(3), .queue = QUEUE(SLOT + 1), .buffer = BUFFER(1),
             .size = 64, .peer = PEER_SELF, .transfer = EVENT(2));
        launch_after(w, 0, QUEUE(SLOT + 1), EVENT(4), BUFFER(1), 1,
                     (struct wire_u64s)WAITS(EVENT(3)));
        fill_zero(w, 0, QUEUE(1), EVENT(90), BUFFER(1), 64);
        world_run(w);
        for (uint64_t n = 1; n <= 3; n++) {
                send(w, 0, recording_run, .event = EVENT(100 + n), .flags = COMMAND_NOTIFY,
                     .recording = RECORDING, .queues = WAITS(QUEUE(1), QUEUE(3)));
                struct data *got = expect_data(w, 0, 10 + n, 64);
                send(w, 0, buffer_read, .event = EVENT(110 + n), .queue = QUEUE(3),
                     .buffer = BUFFER(1), .size = 64, .transfer = 10 + n,
                     .waits = WAITS(EVENT(100 + n)));
                world_run(w);
                assert_int_equal(status_of(w, 0, EVENT(100 + n)), CL_SUCCESS);
                assert_int_equal(number(got, 15), 9 * n + 1);
        }
        for (uint64_t n = 0; n < 2; n++)
                send(w, 0, release, .object = QUEUE(SLOT + n));
        send(w, 0, release, .object = RECORDING);
        release_objects(w, 0);
        world_free(w);
}

static bool recording_survives(void (*misuse)(struct world *w))
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, recording_create, .recording = RECORDING, .slots = WAITS(QUEUE(SLOT)),
             .devices = WAITS(0));
        fill_zero(w, 0, QUEUE(SLOT), EVENT(1), BUFFER(1), 64);
        misuse(w);
        for (int i = 0; i < 8 && !w->nodes[0].died; i++) {
                pump(w);
                step(w, 0, SIZE_MAX);
        }
        bool alive = !w->nodes[0].died;
        world_free(w);
        return alive;
}

static void wrong_number(struct world *w)
{
        fill_zero(w, 0, QUEUE(SLOT), EVENT(3), BUFFER(1), 64);
}

static void waits_for_itself(struct world *w)
{
        launch_after(w, 0, QUEUE(SLOT), EVENT(2), BUFFER(1), 1, (struct wire_u64s)WAITS(EVENT(2)));
}

static void records_bulk(struct world *w)
{
        send(w, 0, buffer_write, .event = EVENT(2), .queue = QUEUE(SLOT), .buffer = BUFFER(1),
             .size = 64, .transfer = 7);
}

static void takes_what_nobody_gives(struct world *w)
{
        send(w, 0, buffer_write, .event = EVENT(2), .queue = QUEUE(SLOT), .buffer = BUFFER(1),
             .size = 64, .peer = PEER_SELF, .transfer = 7);
}

static void takes_more_than_is_given(struct world *w)
{
        send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(SLOT), .buffer = BUFFER(1),
             .size = 32, .peer = PEER_SELF, .transfer = 7);
        send(w, 0, buffer_write, .event = EVENT(3), .queue = QUEUE(SLOT), .buffer = BUFFER(1),
             .size = 64, .peer = PEER_SELF, .transfer = 7);
}

static void runs_on_a_slot(struct world *w)
{
        run_recording(w, 0, QUEUE(SLOT), EVENT(100), (struct wire_u64s){ NULL, 0 });
}

static void runs_on_another_device(struct world *w)
{
        run_recording(w, 0, QUEUE(3), EVENT(100), (struct wire_u64s){ NULL, 0 });
}

static void changes_what_is_no_kernel(struct world *w)
{
        send(w, 0, recording_update, .recording = RECORDING, .command = EVENT(1),
             .global = WAITS(4));
}

static void records_after_its_end(struct world *w)
{
        send(w, 0, release, .object = RECORDING);
        fill_zero(w, 0, QUEUE(SLOT), EVENT(2), BUFFER(1), 64);
}

TEST(misuse_of_a_recording_ends_the_session)
{
        assert_false(recording_survives(wrong_number));
        assert_false(recording_survives(waits_for_itself));
        assert_false(recording_survives(records_bulk));
        assert_false(recording_survives(takes_what_nobody_gives));
        assert_false(recording_survives(takes_more_than_is_given));
        assert_false(recording_survives(runs_on_a_slot));
        assert_false(recording_survives(runs_on_another_device));
        assert_false(recording_survives(changes_what_is_no_kernel));
        /* A released recording leaves a queue that can't execute. */
        assert_true(recording_survives(records_after_its_end));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_recording_runs_as_often_as_wanted_and_has_one_event),
                cmocka_unit_test(a_recording_may_be_held_and_changed_and_released_meanwhile),
                cmocka_unit_test(a_recording_fails_as_a_whole_and_is_told_of_once),
                cmocka_unit_test(a_recording_spans_queues_and_orders_them),
                cmocka_unit_test(a_recording_moves_data_between_domains),
                cmocka_unit_test(misuse_of_a_recording_ends_the_session),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
