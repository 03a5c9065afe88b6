/* Launches without named events: they complete when a later command does, alone, in chains and in
 * chain queues. */
#include "support/check.h"

#include <stdlib.h>

#include "support/world.h"

TEST(unnamed_launches_are_complete_when_a_later_one_is)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        for (unsigned i = 2; i < 302; i++)
                launch_unnamed(w, EVENT(i), i == 2 ? BUFFER(1) : 0, (int32_t)i);
        pump(w);
        assert_int_equal(counts(w, 0).events, 301);
        assert_int_equal(counts(w, 0).commands_held, 0);
        assert_int_equal(counts(w, 0).commands_running, 301);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(400), BUFFER(1), 64);
        world_run(w);
        assert_int_equal(number(got, 7), 300 * (2 + 301) / 2);
        assert_int_equal(counts(w, 0).events, 0);
        assert_int_equal(counts(w, 0).commands_running, 0);
        assert_int_equal(status_of(w, 0, EVENT(301)), PENDING); /* nobody asked */
        launch_unnamed(w, EVENT(401), 0, 0);
        launch_unnamed(w, EVENT(402), 0, 0);
        pump(w);
        assert_int_equal(counts(w, 0).commands_running, 3); /* with a marker for both */
        world_run(w);
        assert_int_equal(counts(w, 0).commands_running, 0);
        release_objects(w, 0);
        world_free(w);
}

TEST(an_unnamed_launch_can_be_waited_for_after_all)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        for (unsigned i = 2; i < 6; i++)
                launch_unnamed(w, EVENT(i), i == 2 ? BUFFER(1) : 0, 1);
        /* By the client, in another queue and in another domain. */
        send(w, 0, event_watch, .event = EVENT(3));
        send(w, 0, marker, .event = EVENT(6), .queue = QUEUE(2), .flags = COMMAND_NOTIFY,
             .waits = WAITS(EVENT(2)));
        send(w, 0, marker, .event = EVENT(7), .queue = QUEUE(3), .flags = COMMAND_NOTIFY,
             .waits = WAITS(EVENT(5), EVENT(2)));
        pump(w);
        assert_int_equal(counts(w, 0).commands_held, 1);
        assert_int_equal(status_of(w, 0, EVENT(3)), PENDING);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(6)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(7)), CL_SUCCESS);
        send(w, 0, event_watch, .event = EVENT(4)); /* long complete */
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
        assert_int_equal(counts(w, 0).events, 0);
        release_objects(w, 0);
        world_free(w);
}

TEST(an_unnamed_launch_that_fails_is_told_of_and_fails_what_waits_for_it)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 32); /* too small for 16 numbers */
        for (unsigned i = 1; i < 4; i++)
                launch_unnamed(w, EVENT(i), i == 1 ? BUFFER(1) : 0, 1);
        send(w, 0, marker, .event = EVENT(4), .queue = QUEUE(2), .waits = WAITS(EVENT(2)));
        send(w, 0, marker, .event = EVENT(5), .queue = QUEUE(3), .waits = WAITS(EVENT(2)));
        world_run(w);
        for (unsigned i = 1; i < 4; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), CL_OUT_OF_RESOURCES);
        assert_int_equal(status_of(w, 0, EVENT(4)), -14);
        assert_int_equal(status_of(w, 0, EVENT(5)), -14);
        /* It is remembered. */
        send(w, 0, marker, .event = EVENT(6), .queue = QUEUE(2), .waits = WAITS(EVENT(3)));
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(6)), -14);
        /* One whose argument is gone is not launched with what was there before. */
        launch_unnamed(w, EVENT(7), BUFFER(2), 0);
        send(w, 0, release, .object = BUFFER(2));
        launch_unnamed(w, EVENT(8), 0, 0);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(8)), CL_INVALID_MEM_OBJECT);
        send(w, 0, buffer_create, .buffer = BUFFER(2), .flags = CL_MEM_READ_WRITE, .size = 64);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_release_is_answered_when_unnamed_launches_are_over)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, sub_buffer_create, .buffer = BUFFER(9), .parent = BUFFER(2),
             .flags = CL_MEM_READ_WRITE, .size = 64);
        launch_unnamed(w, EVENT(2), BUFFER(9), 5);
        send(w, 0, release, .object = BUFFER(2), .request = 77);
        launch_unnamed(w, EVENT(3), 0, 0);
        send(w, 0, release, .object = BUFFER(9));
        pump(w);
        assert_int_equal(step(w, 0, 2), 2); /* the first launch and a marker */
        pump(w);
        assert_int_equal(w->nodes[0].released, 0);
        world_run(w);
        assert_int_equal(w->nodes[0].released, 77);
        send(w, 0, buffer_create, .buffer = BUFFER(2), .flags = CL_MEM_READ_WRITE, .size = 64);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_queue_may_be_released_while_unnamed_launches_are_in_flight)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        launch_unnamed(w, EVENT(2), BUFFER(1), 5);
        send(w, 0, release, .object = QUEUE(1));
        launch_after(w, 0, QUEUE(2), EVENT(3), 0, 2, (struct wire_u64s)WAITS(EVENT(2)));
        world_run(w);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(4), BUFFER(1), 64);
        world_run(w);
        assert_int_equal(number(got, 3), 7);
        send(w, 0, queue_create, .queue = QUEUE(1), .device = 0);
        release_objects(w, 0);
        world_free(w);
}

/* Launches in the queue without order, from event `first` to `last`, each after the one before. */
static void chain(struct world *w, uint64_t first, uint64_t last, uint64_t buffer)
{
        struct buf args = { 0 };
        put_args(&args, buffer, 1);
        for (uint64_t i = first; i <= last; i++)
                send(w, 0, kernel_launch, .event = EVENT(i), .queue = QUEUE(2),
                     .flags = COMMAND_NAMED, .kernel = KERNEL(1), .global = WAITS(16),
                     .args = bytes_of(args.data, args.size), .waits = WAITS(EVENT(i - 1)));
        buf_fini(&args);
}

TEST(a_chain_is_complete_when_its_last_command_is)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        fill_zero(w, 0, QUEUE(2), EVENT(1), BUFFER(1), 64);
        chain(w, 2, 101, BUFFER(1));
        pump(w);
        assert_int_equal(counts(w, 0).commands_running, 101);
        assert_int_equal(step(w, 0, 60), 60);
        assert_int_equal(counts(w, 0).commands_running, 101); /* nobody wants to know */
        send(w, 0, event_watch, .event = EVENT(50));
        send(w, 0, marker, .event = EVENT(200), .queue = QUEUE(3), .flags = COMMAND_NOTIFY,
             .waits = WAITS(EVENT(51)));
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(201), BUFFER(1), 64);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(50)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(200)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(101)), PENDING); /* nobody asked */
        assert_int_equal(got->arrived, 64);
        send(w, 0, marker, .event = EVENT(202), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
        world_run(w);
        got = read_buffer(w, 0, QUEUE(2), EVENT(203), BUFFER(1), 64);
        world_run(w);
        assert_int_equal(number(got, 0), 100);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_failure_in_a_chain_is_told_before_what_comes_behind_it)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 32); /* too small for 16 numbers */
        chain(w, 2, 4, BUFFER(1));
        send(w, 0, marker, .event = EVENT(5), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_OUT_OF_RESOURCES);
        assert_int_equal(status_of(w, 0, EVENT(3)), -14);
        assert_int_equal(status_of(w, 0, EVENT(4)), -14);
        assert_int_equal(status_of(w, 0, EVENT(5)), CL_SUCCESS);
        /* Without a marker, too. */
        chain(w, 12, 14, BUFFER(1));
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(12)), CL_OUT_OF_RESOURCES);
        assert_int_equal(status_of(w, 0, EVENT(13)), -14);
        assert_int_equal(status_of(w, 0, EVENT(14)), -14);
        release_objects(w, 0);
        world_free(w);
}

/* Where failures stay, a chain goes through a chain queue. */
static struct world *world_with_chains(uint64_t seed)
{
        backend_reference_failure_stays = true;
        backend_reference_seed = seed;
        struct world *w = world_new(1);
        backend_reference_failure_stays = false;
        backend_reference_seed = 0;
        return w;
}

TEST(a_chain_is_waited_for_by_all_that_comes_behind_it)
{
        for (uint64_t seed = 0; seed < 30; seed++) {
                struct world *w = world_with_chains(seed);
                make_objects(w, 0, 64);
                fill_zero(w, 0, QUEUE(2), EVENT(1), BUFFER(1), 64);
                chain(w, 2, 30, BUFFER(1));
                send(w, 0, marker, .event = EVENT(31), .queue = QUEUE(2), .flags = COMMAND_BARRIER);
                fill_zero(w, 0, QUEUE(2), EVENT(32), BUFFER(1), 64);
                chain(w, 33, 60, BUFFER(1));
                /* Whether or not what is behind a chain queue comes while the barrier is in flight. */
                if (seed % 3)
                        world_run(w);
                chain(w, 61, 70, BUFFER(1));
                send(w, 0, marker, .event = EVENT(71), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
                send(w, 0, buffer_copy, .event = EVENT(72), .queue = QUEUE(2), .dst = BUFFER(2),
                     .src = BUFFER(1), .size = 64, .waits = WAITS(EVENT(70)));
                launch_after(w, 0, QUEUE(1), EVENT(73), BUFFER(2), 1,
                             (struct wire_u64s)WAITS(EVENT(71), EVENT(72)));
                struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(74), BUFFER(2), 64);
                world_run(w);
                assert_int_equal(number(got, 5), 28 + 10 + 1);
                assert_int_equal(status_of(w, 0, EVENT(71)), CL_SUCCESS);
                chain(w, 75, 90, BUFFER(1));
                send(w, 0, release, .object = QUEUE(2));
                world_run(w);
                send(w, 0, queue_create, .queue = QUEUE(2), .device = 0);
                release_objects(w, 0);
                world_free(w);
        }
}

/* Where a marker takes too long behind many commands, it is submitted behind few, or not at all. */
TEST(a_marker_behind_many_is_waited_for_by_the_engine)
{
        enum { FEW = 2 };
        backend_reference_marker_max = FEW;
        struct world *w = world_new(1);
        backend_reference_marker_max = SIZE_MAX;
        const struct wire_u64s none = { NULL, 0 };
        make_objects(w, 0, 64);
        fill_zero(w, 0, QUEUE(2), EVENT(1), BUFFER(1), 64);
        world_run(w);
        for (unsigned i = 2; i < 7; i++)
                launch_after(w, 0, QUEUE(2), EVENT(i), BUFFER(1), 1, none);
        send(w, 0, marker, .event = EVENT(7), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
        send(w, 0, marker, .event = EVENT(8), .queue = QUEUE(2), .flags = COMMAND_NOTIFY,
             .waits = WAITS(EVENT(3), EVENT(2)));
        pump(w);
        assert_int_equal(counts(w, 0).commands_running, 5);
        assert_int_equal(counts(w, 0).commands_held, 2);
        assert_int_equal(step(w, 0, 1), 1);
        pump(w);
        assert_int_equal(counts(w, 0).commands_held, 2);
        assert_int_equal(step(w, 0, 1), 1);
        pump(w);
        assert_int_equal(counts(w, 0).commands_running, 3);
        assert_int_equal(counts(w, 0).commands_held, 1);
        assert_int_equal(status_of(w, 0, EVENT(8)), CL_SUCCESS);
        assert_int_equal(step(w, 0, 1), 1);
        pump(w);
        assert_int_equal(counts(w, 0).commands_running, FEW + 1); /* with the marker */
        assert_int_equal(counts(w, 0).commands_held, 0);
        assert_int_equal(status_of(w, 0, EVENT(7)), PENDING);
        /* A command behind a barrier runs after all of the barrier's commands. */
        for (unsigned i = 10; i < 15; i++)
                launch_after(w, 0, QUEUE(2), EVENT(i), BUFFER(1), 1, none);
        send(w, 0, marker, .event = EVENT(15), .queue = QUEUE(2), .flags = COMMAND_BARRIER);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(16), BUFFER(1), 64);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(7)), CL_SUCCESS);
        assert_int_equal(number(got, 5), 10);
        /* The commands that a marker waits for may be submitted later only. */
        send(w, 0, event_import, .event = EVENT(20));
        for (unsigned i = 21; i < 26; i++)
                launch_after(w, 0, QUEUE(2), EVENT(i), BUFFER(1), 1,
                             (struct wire_u64s)WAITS(EVENT(20)));
        send(w, 0, marker, .event = EVENT(26), .queue = QUEUE(2), .flags = COMMAND_NOTIFY,
             .waits = WAITS(EVENT(24), EVENT(25)));
        send(w, 0, event_done, .event = EVENT(20));
        pump(w);
        assert_int_equal(counts(w, 0).commands_running, 5);
        assert_int_equal(counts(w, 0).commands_held, 1);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(26)), CL_SUCCESS);
        expect_idle(w);
        release_objects(w, 0);
        world_free(w);
}

/* The reference backend, which counts the commands without events. */
static unsigned untracked_launches;

static cl_int count_untracked(struct backend_queue *q, const struct backend_command *c,
                              struct backend_event **ret)
{
        untracked_launches += c->untracked;
        return backend_reference.submit(q, c, ret);
}

TEST(a_queue_whose_commands_are_no_chain_loses_its_chain_queue)
{
        struct backend_ops ops = backend_reference;
        ops.submit = count_untracked;
        struct world *w = calloc(1, sizeof(*w));
        w->count = 1;
        backend_reference_manual = backend_reference_failure_stays = true;
        assert_int_equal(node_init_on(&w->nodes[0], &ops, true, NULL), 0);
        backend_reference_failure_stays = false;
        make_objects(w, 0, 64);
        untracked_launches = 0;
        for (unsigned i = 2; i < 10; i++)
                launch_after(w, 0, QUEUE(2), EVENT(i), BUFFER(1), 1, (struct wire_u64s){ NULL, 0 });
        world_run(w);
        assert_int_equal(untracked_launches, 0);
        chain(w, 12, 101, BUFFER(1));
        pump(w);
        assert_true(untracked_launches > 80 && untracked_launches < 90);
        send(w, 0, event_watch, .event = EVENT(101)); /* as who waits for all of it does */
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(101)), CL_SUCCESS);
        untracked_launches = 0;
        chain(w, 102, 201, BUFFER(1));
        send(w, 0, event_watch, .event = EVENT(150));
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(150)), CL_SUCCESS);
        assert_true(untracked_launches > 80);
        untracked_launches = 0;
        chain(w, 202, 301, BUFFER(1));
        send(w, 0, event_watch, .event = EVENT(301));
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(301)), CL_SUCCESS);
        assert_int_equal(untracked_launches, 0);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_failure_in_a_chain_is_that_of_all_its_commands)
{
        for (unsigned end = 0; end < 3; end++) {
                struct world *w = world_with_chains(0);
                make_objects(w, 0, 32); /* too small for 16 numbers */
                send(w, 0, buffer_create, .buffer = BUFFER(3), .flags = CL_MEM_READ_WRITE,
                     .size = 64);
                chain(w, 2, 12, BUFFER(3));
                chain(w, 13, 30, BUFFER(1));
                if (end == 1)
                        send(w, 0, event_watch, .event = EVENT(30));
                if (end == 2)
                        send(w, 0, marker, .event = EVENT(31), .queue = QUEUE(2),
                             .flags = COMMAND_NOTIFY);
                world_run(w);
                for (unsigned i = 13; i <= 30; i++)
                        assert_true(status_of(w, 0, EVENT(i)) < 0);
                send(w, 0, marker, .event = EVENT(32), .queue = QUEUE(3),
                     .waits = WAITS(EVENT(20)));
                world_run(w);
                assert_int_equal(status_of(w, 0, EVENT(32)), -14);
                send(w, 0, release, .object = BUFFER(3));
                release_objects(w, 0);
                world_free(w);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(unnamed_launches_are_complete_when_a_later_one_is),
                cmocka_unit_test(an_unnamed_launch_can_be_waited_for_after_all),
                cmocka_unit_test(
                        an_unnamed_launch_that_fails_is_told_of_and_fails_what_waits_for_it),
                cmocka_unit_test(a_release_is_answered_when_unnamed_launches_are_over),
                cmocka_unit_test(a_queue_may_be_released_while_unnamed_launches_are_in_flight),
                cmocka_unit_test(a_chain_is_complete_when_its_last_command_is),
                cmocka_unit_test(a_failure_in_a_chain_is_told_before_what_comes_behind_it),
                cmocka_unit_test(a_chain_is_waited_for_by_all_that_comes_behind_it),
                cmocka_unit_test(a_marker_behind_many_is_waited_for_by_the_engine),
                cmocka_unit_test(a_queue_whose_commands_are_no_chain_loses_its_chain_queue),
                cmocka_unit_test(a_failure_in_a_chain_is_that_of_all_its_commands),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
