/* Commands on one server: their waits, their completions and failures, and the notifications of
 * the client. */
#include "support/check.h"

#include "support/world.h"

/* ---- order -------------------------------------------------------------------------------------- */

TEST(commands_run_in_order_and_are_reported)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 5);
        launch(w, 0, QUEUE(1), EVENT(3), 0, 0);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(4), BUFFER(1), 64);
        pump(w);
        assert_int_equal(counts(w, 0).commands_held, 0);
        assert_int_equal(counts(w, 0).commands_running, 4);
        world_run(w);
        assert_int_equal(number(got, 0), 10);
        assert_int_equal(number(got, 15), 10);
        assert_int_equal(status_of(w, 0, EVENT(1)), PENDING); /* nobody asked */
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_user_event_holds_what_waits_and_what_follows_in_order)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        send(w, 0, event_import, .event = EVENT(100));
        launch_after(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 5,
                     (struct wire_u64s)WAITS(EVENT(100), EVENT(99)));
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(3), BUFFER(1), 64);
        world_run(w);
        assert_int_equal(counts(w, 0).commands_held, 2);
        assert_int_equal(counts(w, 0).commands_running, 0);
        assert_int_equal(status_of(w, 0, EVENT(3)), PENDING);
        send(w, 0, event_done, .event = EVENT(100));
        world_run(w);
        assert_int_equal(number(got, 3), 5);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_failed_dependency_fails_the_command_but_not_its_in_order_successor)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, event_import, .event = EVENT(100));
        launch_after(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 5, (struct wire_u64s)WAITS(EVENT(100)));
        fill_zero(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 64);
        launch_after(w, 0, QUEUE(2), EVENT(3), 0, 0, (struct wire_u64s)WAITS(EVENT(1)));
        launch_after(w, 0, QUEUE(3), EVENT(4), 0, 0, (struct wire_u64s)WAITS(EVENT(3)));
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(5), BUFFER(1), 64);
        pump(w);
        assert_int_equal(counts(w, 0).commands_held, 5);
        send(w, 0, event_done, .event = EVENT(100), .status = -77);
        world_run(w);
        for (unsigned e = 1; e <= 4; e++)
                assert_int_equal(status_of(w, 0, EVENT(e)), e == 2 ? PENDING : -14);
        assert_int_equal(number(got, 0), 0);
        /* It is remembered. */
        launch_after(w, 0, QUEUE(2), EVENT(6), 0, 0, (struct wire_u64s)WAITS(EVENT(1)));
        launch_after(w, 0, QUEUE(2), EVENT(7), 0, 0, (struct wire_u64s)WAITS(EVENT(100)));
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(6)), -14);
        assert_int_equal(status_of(w, 0, EVENT(7)), -14);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_failed_command_ends_after_those_before_it)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, event_import, .event = EVENT(100));
        send(w, 0, event_done, .event = EVENT(100), .status = -3);
        launch(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1);
        launch_after(w, 0, QUEUE(1), EVENT(2), 0, 0, (struct wire_u64s)WAITS(EVENT(100)));
        launch_after(w, 0, QUEUE(2), EVENT(3), 0, 0, (struct wire_u64s)WAITS(EVENT(100)));
        pump(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), PENDING);
        assert_int_equal(status_of(w, 0, EVENT(3)), -14);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(2)), -14);
        release_objects(w, 0);
        world_free(w);
}

TEST(native_failures_reach_the_client_and_dependents_in_every_domain)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 32); /* too small for 16 numbers */
        launch(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1);
        send(w, 0, marker, .event = EVENT(2), .queue = QUEUE(2), .waits = WAITS(EVENT(1)));
        send(w, 0, marker, .event = EVENT(3), .queue = QUEUE(3), .waits = WAITS(EVENT(1)));
        pump(w);
        assert_int_equal(counts(w, 0).commands_held, 1); /* the one in the other domain */
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_OUT_OF_RESOURCES);
        assert_int_equal(status_of(w, 0, EVENT(2)), -14);
        assert_int_equal(status_of(w, 0, EVENT(3)), -14);
        /* At submission. */
        send(w, 0, kernel_launch, .event = EVENT(4), .queue = QUEUE(1), .kernel = KERNEL(2),
             .global = WAITS(1), .local = WAITS(5000));
        launch(w, 0, QUEUE(1), EVENT(5), BUFFER(77), 1);
        fill_zero(w, 0, QUEUE(1), EVENT(6), BUFFER(1), 33);
        world_run(w);
        assert_true(status_of(w, 0, EVENT(4)) < 0);
        assert_int_equal(status_of(w, 0, EVENT(5)), CL_INVALID_MEM_OBJECT);
        assert_int_equal(status_of(w, 0, EVENT(6)), CL_INVALID_VALUE);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_held_barrier_holds_what_follows_and_waits_for_what_is_before)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, event_import, .event = EVENT(100));
        send(w, 0, event_import, .event = EVENT(101));
        fill_zero(w, 0, QUEUE(2), EVENT(1), BUFFER(1), 64);
        world_run(w);
        launch_after(w, 0, QUEUE(2), EVENT(2), BUFFER(1), 1, (struct wire_u64s)WAITS(EVENT(100)));
        send(w, 0, marker, .event = EVENT(3), .queue = QUEUE(2),
             .flags = COMMAND_BARRIER | COMMAND_NOTIFY);
        launch(w, 0, QUEUE(2), EVENT(4), 0, 10);
        send(w, 0, marker, .event = EVENT(5), .queue = QUEUE(2), .flags = COMMAND_BARRIER,
             .waits = WAITS(EVENT(101)));
        launch(w, 0, QUEUE(2), EVENT(6), 0, 100);
        send(w, 0, marker, .event = EVENT(7), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
        world_run(w);
        assert_int_equal(counts(w, 0).commands_held, 6);
        send(w, 0, event_done, .event = EVENT(100));
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(6)), PENDING);
        assert_int_equal(status_of(w, 0, EVENT(7)), PENDING);
        assert_int_equal(counts(w, 0).commands_held, 3);
        send(w, 0, event_done, .event = EVENT(101));
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(6)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(7)), CL_SUCCESS);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(8), BUFFER(1), 64);
        world_run(w);
        assert_int_equal(number(got, 0), 111);
        release_objects(w, 0);
        world_free(w);
}

TEST(without_a_barrier_an_out_of_order_queue_overtakes)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, event_import, .event = EVENT(100));
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        world_run(w);
        /* Each launch keeps the arguments of its own time. */
        launch_after(w, 0, QUEUE(2), EVENT(2), BUFFER(1), 1, (struct wire_u64s)WAITS(EVENT(100)));
        launch(w, 0, QUEUE(2), EVENT(3), BUFFER(2), 10);
        send(w, 0, marker, .event = EVENT(4), .queue = QUEUE(2), .flags = COMMAND_NOTIFY,
             .waits = WAITS(EVENT(3)));
        send(w, 0, marker, .event = EVENT(5), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(5)), PENDING);
        send(w, 0, event_done, .event = EVENT(100));
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(5)), CL_SUCCESS);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(6), BUFFER(1), 64);
        world_run(w);
        assert_int_equal(number(got, 0), 1);
        release_objects(w, 0);
        world_free(w);
}

TEST(arguments_set_once_serve_launches_in_every_domain)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        fill_zero(w, 0, QUEUE(3), EVENT(2), BUFFER(1), 64);
        launch(w, 0, QUEUE(1), EVENT(3), BUFFER(1), 7);
        launch(w, 0, QUEUE(3), EVENT(4), 0, 0);
        launch(w, 0, QUEUE(3), EVENT(5), 0, 1);
        launch(w, 0, QUEUE(1), EVENT(6), 0, 0);
        struct data *one = read_buffer(w, 0, QUEUE(1), EVENT(7), BUFFER(1), 64);
        struct data *two = read_buffer(w, 0, QUEUE(3), EVENT(8), BUFFER(1), 64);
        world_run(w);
        assert_int_equal(number(one, 5), 8);
        assert_int_equal(number(two, 5), 8);
        release_objects(w, 0);
        world_free(w);
}

/* ---- recordings --------------------------------------------------------------------------------- */

TEST(profiled_queues_tell_times_and_others_do_not)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, queue_create, .queue = QUEUE(9), .device = 0,
             .properties = CL_QUEUE_PROFILING_ENABLE);
        launch(w, 0, QUEUE(9), EVENT(1), BUFFER(1), 7);
        world_run(w);
        assert_int_equal(w->nodes[0].last_time_count, 3);
        assert_true(w->nodes[0].last_times[0] <= w->nodes[0].last_times[1]);
        assert_true(w->nodes[0].last_times[1] < w->nodes[0].last_times[2]);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 7);
        world_run(w);
        assert_int_equal(w->nodes[0].last_time_count, 0);
        send(w, 0, release, .object = QUEUE(9));
        release_objects(w, 0);
        world_free(w);
}

/* ---- events ------------------------------------------------------------------------------------- */

TEST(watching_answers_at_once_or_at_completion)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        pump(w);
        send(w, 0, event_watch, .event = EVENT(1));
        send(w, 0, event_watch, .event = EVENT(50));
        pump(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), PENDING);
        assert_int_equal(status_of(w, 0, EVENT(50)), CL_SUCCESS);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        release_objects(w, 0);
        world_free(w);
}

/* Else the client would take the second word for another command's failure. */
TEST(a_failure_is_told_once)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, event_import, .event = EVENT(9));
        send(w, 0, buffer_fill, .event = EVENT(1), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = 64, .pattern = bytes_of("", 1), .waits = WAITS(EVENT(9)));
        send(w, 0, event_done, .event = EVENT(9), .status = -5);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        unsigned told = w->nodes[0].done_count;
        send(w, 0, event_watch, .event = EVENT(1));
        world_run(w);
        assert_int_equal(w->nodes[0].done_count, told);
        release_objects(w, 0);
        world_free(w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(commands_run_in_order_and_are_reported),
                cmocka_unit_test(a_user_event_holds_what_waits_and_what_follows_in_order),
                cmocka_unit_test(
                        a_failed_dependency_fails_the_command_but_not_its_in_order_successor),
                cmocka_unit_test(a_failed_command_ends_after_those_before_it),
                cmocka_unit_test(native_failures_reach_the_client_and_dependents_in_every_domain),
                cmocka_unit_test(a_held_barrier_holds_what_follows_and_waits_for_what_is_before),
                cmocka_unit_test(without_a_barrier_an_out_of_order_queue_overtakes),
                cmocka_unit_test(arguments_set_once_serve_launches_in_every_domain),
                cmocka_unit_test(profiled_queues_tell_times_and_others_do_not),
                cmocka_unit_test(watching_answers_at_once_or_at_completion),
                cmocka_unit_test(a_failure_is_told_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
