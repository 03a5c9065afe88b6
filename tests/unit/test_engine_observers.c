/* The commands that an observer of a session sees (engine/observed.h). Queues that were made before record no times, so
 * the engine's own clock is in the records. */
#include "support/check.h"

#include "support/world.h"

enum { SEEN_MAX = 16 };

struct seen {
        uint64_t all[SEEN_MAX][INFO_TRACE_COMMAND_FIELDS];
        size_t count;
        uint64_t untimed;
};

static void observe(struct world *w, bool on)
{
        engine_lock(w->nodes[0].engine);
        assert_int_equal(engine_observe(w->nodes[0].engine, on), 0);
        engine_unlock(w->nodes[0].engine);
}

static struct seen look(struct world *w)
{
        struct seen s = { 0 };
        struct buf out = { 0 };
        struct info_entry e;
        engine_lock(w->nodes[0].engine);
        assert_int_equal(engine_get_observed(w->nodes[0].engine, &out), 0);
        engine_unlock(w->nodes[0].engine);
        for (struct bytes left = bytes_of(out.data, out.size); info_next(&left, &e);) {
                if (e.key == INFO_TRACE_UNTIMED)
                        s.untimed = bytes_get_u64(e.value.data);
                if (e.key != INFO_TRACE_COMMAND)
                        continue;
                assert_true(s.count < SEEN_MAX && e.value.size >= sizeof(s.all[0]));
                memcpy(s.all[s.count++], e.value.data, sizeof(s.all[0]));
        }
        buf_fini(&out);
        return s;
}

static struct world *begin(void)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        world_run(w);
        return w;
}

static void end(struct world *w)
{
        observe(w, false);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_command_lasts_from_its_submission_to_its_completion)
{
        struct world *w = begin();
        observe(w, true);
        now_ns += 1000;
        uint64_t submitted = now_ns;
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        pump(w);
        now_ns += 1000;
        world_run(w);
        struct seen s = look(w);
        assert_int_equal(s.count, 1);
        assert_int_equal(s.all[0][INFO_TRACE_COMMAND_EVENT], EVENT(1));
        assert_int_equal(s.all[0][INFO_TRACE_COMMAND_FLAGS],
                         TRACE_COMMAND_IN_ORDER | TRACE_COMMAND_BY_SERVER);
        assert_int_equal(s.all[0][INFO_TRACE_COMMAND_START], submitted);
        assert_int_equal(s.all[0][INFO_TRACE_COMMAND_END], submitted + 1000);
        assert_int_equal(s.untimed, 0);
        end(w);
}

TEST(a_command_buffer_lasts_from_its_first_commands_submission)
{
        struct world *w = begin();
        send(w, 0, recording_create, .recording = RECORDING,
             .slots = WAITS(QUEUE(SLOT), QUEUE(SLOT + 1)), .devices = WAITS(0, 1));
        fill_zero(w, 0, QUEUE(SLOT), EVENT(1), BUFFER(1), 64);
        launch_after(w, 0, QUEUE(SLOT + 1), EVENT(2), BUFFER(2), 5,
                     (struct wire_u64s)WAITS(EVENT(1)));
        for (uint64_t n = 0; n < 2; n++)
                send(w, 0, release, .object = QUEUE(SLOT + n));
        send(w, 0, event_import, .event = EVENT(90));
        world_run(w);
        observe(w, true);
        send(w, 0, recording_run, .event = EVENT(100), .flags = COMMAND_NOTIFY,
             .recording = RECORDING, .queues = WAITS(QUEUE(1), QUEUE(3)),
             .waits = WAITS(EVENT(90)));
        pump(w);
        now_ns += 1000; /* the wait list is not part of it */
        uint64_t submitted = now_ns;
        send(w, 0, event_done, .event = EVENT(90));
        pump(w);
        /* The second command waits for one of another domain, so it is submitted later. */
        while (status_of(w, 0, EVENT(100)) == PENDING) {
                now_ns += 1000;
                step(w, 0, 1);
                pump(w);
        }
        struct seen s = look(w);
        assert_int_equal(s.count, 1);
        assert_int_equal(s.all[0][INFO_TRACE_COMMAND_EVENT], EVENT(100));
        assert_int_equal(s.all[0][INFO_TRACE_COMMAND_START], submitted);
        assert_true(s.all[0][INFO_TRACE_COMMAND_END] >= submitted + 2000);
        send(w, 0, release, .object = RECORDING);
        end(w);
}

TEST(commands_that_never_ran_are_left_out)
{
        struct world *w = begin();
        observe(w, true);
        send(w, 0, marker, .event = EVENT(1), .queue = QUEUE(1), .flags = COMMAND_NOTIFY);
        send(w, 0, event_import, .event = EVENT(90));
        send(w, 0, buffer_fill, .event = EVENT(2), .queue = QUEUE(2), .buffer = BUFFER(1),
             .size = 64, .pattern = bytes_of("", 1), .flags = COMMAND_NOTIFY,
             .waits = WAITS(EVENT(90)));
        pump(w);
        send(w, 0, event_done, .event = EVENT(90), .status = -7);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        assert_true(status_of(w, 0, EVENT(2)) < 0);
        struct seen s = look(w);
        assert_int_equal(s.count, 0);
        assert_int_equal(s.untimed, 0);
        end(w);
}

TEST(a_failed_command_is_marked)
{
        struct world *w = begin();
        observe(w, true);
        send(w, 0, event_import, .event = EVENT(90));
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        send(w, 0, buffer_fill, .event = EVENT(2), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = 64, .pattern = bytes_of("", 1), .flags = COMMAND_NOTIFY,
             .waits = WAITS(EVENT(90)));
        send(w, 0, event_done, .event = EVENT(90), .status = -7);
        pump(w); /* the first one runs, so a marker keeps the order for the second one */
        world_run(w);
        assert_true(status_of(w, 0, EVENT(2)) < 0);
        struct seen s = look(w);
        assert_int_equal(s.count, 2);
        assert_int_equal(s.all[0][INFO_TRACE_COMMAND_FLAGS] & TRACE_COMMAND_FAILED, 0);
        assert_int_equal(s.all[1][INFO_TRACE_COMMAND_EVENT], EVENT(2));
        assert_true(s.all[1][INFO_TRACE_COMMAND_FLAGS] & TRACE_COMMAND_FAILED);
        end(w);
}

TEST(a_command_from_before_the_recording_is_counted_only)
{
        struct world *w = begin();
        send(w, 0, buffer_fill, .event = EVENT(1), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = 64, .pattern = bytes_of("", 1), .flags = COMMAND_NOTIFY);
        pump(w);
        observe(w, true);
        now_ns += 1000;
        fill_zero(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 64);
        pump(w);
        now_ns += 1000;
        step(w, 0, 1);
        uint64_t done = now_ns;
        now_ns += 1000;
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        struct seen s = look(w);
        assert_int_equal(s.untimed, 1);
        assert_int_equal(s.count, 1);
        assert_int_equal(s.all[0][INFO_TRACE_COMMAND_EVENT], EVENT(2));
        assert_int_equal(s.all[0][INFO_TRACE_COMMAND_START], done); /* it came behind that one */
        end(w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_command_lasts_from_its_submission_to_its_completion),
                cmocka_unit_test(a_command_buffer_lasts_from_its_first_commands_submission),
                cmocka_unit_test(commands_that_never_ran_are_left_out),
                cmocka_unit_test(a_failed_command_is_marked),
                cmocka_unit_test(a_command_from_before_the_recording_is_counted_only),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
