/* cli/replay: replays of hand-made runs take exactly as long as the rules of docs/PROFILE.md say. A fit explains a
 * recording exactly. Bad runs, timelines and options are refused. */
#include "support/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/replay/fit.h"
#include "cli/replay/what_if.h"

#define MS           UINT64_C(1000000)
#define MEGABYTE_S   UINT64_C(1000000) /* a byte takes a microsecond */
#define NOTIFICATION (64 * 1000)       /* ns that the message of an end takes at this rate */

static const struct replay_server one_slot[2] = { { .slots = 1 }, { .slots = 1 } };
static const struct replay_server two_slots[1] = { { .slots = 2 } };

static struct replay_step send(uint64_t own_ms, uint32_t command)
{
        return (struct replay_step){ .own_ns = own_ms * MS,
                                     .action = REPLAY_SEND,
                                     .target = command };
}

static struct replay_step wait_for(uint64_t own_ms, uint32_t command)
{
        return (struct replay_step){ .own_ns = own_ms * MS,
                                     .action = REPLAY_WAIT,
                                     .target = command };
}

static struct replay_command kernel(uint64_t device_ms)
{
        return (struct replay_command){ .kind = REPLAY_KERNEL, .device_ns = device_ms * MS };
}

static struct replay_command transfer(uint64_t up_bytes, uint64_t down_bytes)
{
        return (struct replay_command){ .kind = REPLAY_OTHER,
                                        .up_bytes = up_bytes,
                                        .down_bytes = down_bytes };
}

/* The run of one thread. */
#define RUN_OF(all_servers, all_commands, all_after, all_steps, all_threads)                      \
        (struct replay_run)                                                                       \
        {                                                                                         \
                .servers = (all_servers), .server_count = array_size(all_servers),                \
                .commands = (all_commands), .command_count = array_size(all_commands),            \
                .after = (all_after), .after_count = array_size(all_after), .steps = (all_steps), \
                .step_count = array_size(all_steps), .threads = (all_threads),                    \
                .thread_count = array_size(all_threads)                                           \
        }

#define ONE_THREAD(steps)                                    \
        {                                                    \
                {                                            \
                        0, array_size(steps), REPLAY_NONE, 0 \
                }                                            \
        }

static uint64_t takes(const struct replay_run *run, uint64_t round_trip_ns, uint64_t bytes_per_s)
{
        struct replay_link links[2];
        uint64_t ns = 0;
        for (size_t i = 0; i < array_size(links); i++)
                links[i] = (struct replay_link){ round_trip_ns, bytes_per_s };
        assert_int_equal(replay(run, links, (struct replay_without){ 0 }, &ns), 0);
        return ns;
}

TEST(a_launch_and_its_wait_take_a_round_trip_and_the_kernel)
{
        const struct replay_command commands[] = { kernel(3) };
        const struct replay_step steps[] = { send(1, 0), wait_for(2, 0) };
        const struct replay_thread threads[] = ONE_THREAD(steps);
        const uint32_t after[] = { 0 };
        struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        assert_int_equal(takes(&run, 0, 0), 4 * MS);
        assert_int_equal(takes(&run, 10 * MS, 0), 14 * MS);
        run.own_ns = 7 * MS;
        run.own_trips = 2;
        assert_int_equal(takes(&run, 10 * MS, 0), 41 * MS);
}

TEST(longer_sleeps_than_the_recorded_ones_end_later)
{
        const struct replay_command commands[] = { kernel(7) };
        struct replay_step steps[] = { send(0, 0), wait_for(0, 0) };
        const struct replay_thread threads[] = ONE_THREAD(steps);
        const uint32_t after[] = { 0 };
        struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        const struct replay_sleep sleeps[REPLAY_SLEEPS] = { { 10 * MS, 1 * MS },
                                                            { 20 * MS, 3 * MS },
                                                            { 100 * MS, 4 * MS } };
        memcpy(run.sleeps, sleeps, sizeof(sleeps));
        /* The program waits for 7 ms and the round trip, and two sides wake up. */
        assert_int_equal(takes(&run, 3 * MS, 0), (10 + 2 * 1) * MS);
        assert_int_equal(takes(&run, 8 * MS, 0), (15 + 2 * 2) * MS);
        assert_int_equal(takes(&run, 200 * MS, 0), (207 + 2 * 4) * MS);
        /* In the recording they have slept for 10 ms. */
        steps[1].slept_ns = 10 * MS;
        assert_int_equal(takes(&run, 8 * MS, 0), (15 + 2 * 1) * MS);
        assert_int_equal(takes(&run, 1 * MS, 0), 8 * MS);
}

TEST(a_wait_for_what_is_complete_costs_nothing)
{
        const struct replay_command commands[] = { kernel(3) };
        const struct replay_step steps[] = { send(1, 0), wait_for(100, 0) };
        const struct replay_thread threads[] = ONE_THREAD(steps);
        const uint32_t after[] = { 0 };
        const struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        assert_int_equal(takes(&run, 10 * MS, 0), 101 * MS);
        assert_int_equal(takes(&run, 200 * MS, 0), 204 * MS);
}

TEST(launches_in_a_row_hide_the_link)
{
        struct replay_command commands[] = { kernel(4), kernel(4), kernel(4) };
        const uint32_t after[] = { 0, 1 };
        const struct replay_step steps[] = { send(1, 0), send(1, 1), send(1, 2), wait_for(0, 2) };
        const struct replay_thread threads[] = ONE_THREAD(steps);
        for (uint32_t i = 1; i < 3; i++) {
                commands[i].after = i - 1;
                commands[i].after_count = 1;
        }
        struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        assert_int_equal(takes(&run, 10 * MS, 0), (1 + 5 + 12 + 5) * MS);
        commands[1].before_ns = 2 * MS; /* the server's own time before the second one */
        assert_int_equal(takes(&run, 10 * MS, 0), (1 + 5 + 14 + 5) * MS);
}

TEST(messages_wait_behind_each_other)
{
        struct replay_command commands[] = { kernel(0), kernel(0) };
        const struct replay_step steps[] = { send(0, 0), send(0, 1), wait_for(0, 1) };
        const struct replay_thread threads[] = ONE_THREAD(steps);
        const uint32_t after[] = { 0 };
        commands[0].message_bytes = commands[1].message_bytes = 1000; /* a ms each */
        const struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        assert_int_equal(takes(&run, 10 * MS, MEGABYTE_S), 12 * MS + NOTIFICATION);
}

TEST(a_write_is_taken_when_the_server_has_confirmed_it)
{
        struct replay_command commands[] = { transfer(1000000, 0), kernel(3) };
        struct replay_step steps[] = {
                send(0, 0), { .action = REPLAY_TAKEN, .target = 0 }, send(0, 1), wait_for(0, 1)
        };
        const struct replay_thread threads[] = ONE_THREAD(steps);
        const uint32_t after[] = { 0 };
        commands[1].after_count = 1;
        const struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        /* The data, its confirmation, the launch. */
        assert_int_equal(takes(&run, 10 * MS, MEGABYTE_S),
                         (1005 + 5 + 5 + 3 + 5) * MS + NOTIFICATION);
        commands[0].opens = true; /* a connection for it */
        assert_int_equal(takes(&run, 10 * MS, MEGABYTE_S),
                         (20 + 1005 + 5 + 5 + 3 + 5) * MS + NOTIFICATION);
}

TEST(a_read_takes_its_bytes_at_the_rate_of_the_link)
{
        const struct replay_command commands[] = { transfer(0, 500000), transfer(0, 1000) };
        const struct replay_step steps[] = { send(0, 0), wait_for(0, 0), send(0, 1),
                                             wait_for(0, 1) };
        const struct replay_thread threads[] = ONE_THREAD(steps);
        const uint32_t after[] = { 0 };
        const struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        /* The small one travels with the message of its end. */
        assert_int_equal(takes(&run, 10 * MS, MEGABYTE_S), (10 + 500 + 10 + 1) * MS + NOTIFICATION);
}

TEST(hosts_work_while_bulk_data_travels)
{
        /* 100 ms of the recorded 150 are the link's. */
        static const struct replay_server recorded[] = { { .slots = 1, .bytes_per_s = 10000000 } };
        struct replay_command commands[] = { transfer(0, 1000000) };
        const struct replay_step steps[] = { send(0, 0), wait_for(0, 0) };
        const struct replay_thread threads[] = ONE_THREAD(steps);
        const uint32_t after[] = { 0 };
        commands[0].carry_ns = 150 * MS;
        const struct replay_run run = RUN_OF(recorded, commands, after, steps, threads);
        assert_int_equal(takes(&run, 10 * MS, 10000000), 160 * MS);
        assert_int_equal(takes(&run, 10 * MS, 8000000), 160 * MS);
        assert_int_equal(takes(&run, 10 * MS, 1000000), 1010 * MS);
        assert_int_equal(takes(&run, 10 * MS, 20000000), 110 * MS);
        assert_int_equal(takes(&run, 10 * MS, 0), 60 * MS);
}

TEST(kernels_of_several_queues_share_the_slots)
{
        const struct replay_command commands[] = { kernel(4), kernel(4), kernel(4) };
        const struct replay_step steps[] = { send(0, 0),     send(0, 1),     send(0, 2),
                                             wait_for(0, 0), wait_for(0, 1), wait_for(0, 2) };
        const struct replay_thread threads[] = ONE_THREAD(steps);
        const uint32_t after[] = { 0 };
        struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        assert_int_equal(takes(&run, 2 * MS, 0), 14 * MS);
        run.servers = two_slots;
        run.server_count = 1;
        assert_int_equal(takes(&run, 2 * MS, 0), 10 * MS);
}

TEST(a_move_between_servers_takes_what_it_took)
{
        struct replay_command commands[] = { kernel(4),
                                             { .kind = REPLAY_MOVE,
                                               .server = 1,
                                               .after_count = 1,
                                               .before_ns = 1 * MS,
                                               .device_ns = 6 * MS },
                                             kernel(3) };
        const uint32_t after[] = { 0, 1 };
        const struct replay_step steps[] = { send(0, 0), send(0, 1), send(0, 2), wait_for(0, 2) };
        const struct replay_thread threads[] = ONE_THREAD(steps);
        commands[2].server = 1;
        commands[2].after = 1;
        commands[2].after_count = 1;
        const struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        struct replay_link links[] = { { 10 * MS, 0 }, { 40 * MS, 0 } };
        uint64_t ns;
        /* The message is at the second server after 20 ms, when the first kernel is complete. */
        assert_int_equal(replay(&run, links, (struct replay_without){ 0 }, &ns), 0);
        assert_int_equal(ns, (20 + 1 + 6 + 3 + 20) * MS);
        links[0].round_trip_ns = 100 * MS;
        assert_int_equal(replay(&run, links, (struct replay_without){ 0 }, &ns), 0);
        assert_int_equal(ns, (50 + 4 + 1 + 6 + 3 + 20) * MS);
        assert_int_equal(replay(&run, links, (struct replay_without){ .devices = true }, &ns), 0);
        assert_int_equal(ns, (50 + 1 + 20) * MS);
}

TEST(threads_run_beside_each_other)
{
        const struct replay_command commands[] = { kernel(4), kernel(4) };
        const struct replay_step steps[] = { send(1, 0), wait_for(0, 0), send(2, 1),
                                             wait_for(0, 1) };
        struct replay_thread threads[] = { { 0, 2, REPLAY_NONE, 0 },
                                           { 2, 2, REPLAY_NONE, 3 * MS } };
        const uint32_t after[] = { 0 };
        const struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        assert_int_equal(takes(&run, 10 * MS, 0), (1 + 5 + 4 + 4 + 5) * MS); /* one slot */
        threads[1].after_step = 1; /* the first thread's wait */
        assert_int_equal(takes(&run, 10 * MS, 0), (1 + 14 + 3 + 2 + 14) * MS);
}

TEST(an_answer_takes_its_round_trips)
{
        const struct replay_command commands[] = { kernel(0) };
        const struct replay_step steps[] = {
                { .action = REPLAY_ANSWER, .target = 0, .trips = 1, .ns = 30 * MS, .own_ns = MS },
                { .action = REPLAY_ANSWER, .target = 0, .trips = 0, .ns = MS },
        };
        const struct replay_thread threads[] = ONE_THREAD(steps);
        const uint32_t after[] = { 0 };
        const struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        assert_int_equal(takes(&run, 50 * MS, 0), (1 + 50 + 30 + 1) * MS);
}

/* ---- what is not well-formed ---------------------------------------------------------------- */

static void refused(const struct replay_run *run)
{
        const struct replay_link links[2] = { { 1, 0 }, { 1, 0 } };
        uint64_t ns = 17;
        assert_int_equal(replay(run, links, (struct replay_without){ 0 }, &ns), SP_E_PROTO);
        assert_int_equal(ns, 17);
}

TEST(bad_runs_are_refused)
{
        struct replay_command commands[] = { kernel(1), kernel(1) };
        uint32_t after[] = { 0 };
        struct replay_step steps[] = { send(0, 0), send(0, 1), wait_for(0, 1) };
        struct replay_thread threads[] = ONE_THREAD(steps);
        const struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        commands[1].after_count = 1;
        assert_int_equal(takes(&run, 0, 0), 2 * MS);
        after[0] = 1; /* a cycle */
        refused(&run);
        after[0] = UINT32_MAX;
        refused(&run);
        struct replay_command shared[64];
        for (size_t i = 0; i < array_size(shared); i++) {
                shared[i] = kernel(1);
                shared[i].after_count = i > 0;
        }
        after[0] = 0; /* all have the same place */
        struct replay_run sharing = run;
        sharing.commands = shared;
        sharing.command_count = array_size(shared);
        refused(&sharing);
        commands[1].after = UINT32_MAX;
        refused(&run);
        commands[1].after = 0;
        commands[1].after_count = 2;
        refused(&run);
        commands[1].after_count = 1;
        commands[0].server = 2;
        refused(&run);
        commands[0].server = 0;
        steps[1].target = 0; /* sent twice, and the other one never */
        refused(&run);
        steps[1] = wait_for(0, 1); /* nothing sends it */
        refused(&run);
        steps[1] = send(0, 2);
        refused(&run);
        steps[1] = send(0, 1);
        steps[2].action = 9;
        refused(&run);
        steps[2].action = REPLAY_WAIT;
        threads[0].after_step = 1; /* it begins after itself */
        refused(&run);
        threads[0].after_step = REPLAY_NONE;
        threads[0].count = 4;
        refused(&run);
        threads[0].count = 3;
        struct replay_run many = run;
        many.command_count = (size_t)REPLAY_ENTRIES_MAX + 1;
        refused(&many);
        const struct replay_link long_way[2] = { { REPLAY_TRIP_MAX + 1, 0 } };
        uint64_t ns;
        assert_int_equal(replay(&run, long_way, (struct replay_without){ 0 }, &ns), SP_E_PROTO);
        assert_int_equal(takes(&run, 0, 0), 2 * MS);
}

TEST(endless_times_stay_bounded)
{
        struct replay_command commands[] = { kernel(0), transfer(UINT64_MAX, UINT64_MAX) };
        struct replay_step steps[] = { send(0, 0), send(0, 1), wait_for(0, 1), wait_for(0, 0) };
        struct replay_thread threads[] = ONE_THREAD(steps);
        const uint32_t after[] = { 0 };
        struct replay_run run = RUN_OF(one_slot, commands, after, steps, threads);
        commands[0].before_ns = commands[0].device_ns = commands[1].before_ns = UINT64_MAX;
        steps[0].own_ns = steps[2].ns = threads[0].begin_ns = run.own_ns = UINT64_MAX;
        run.own_trips = 3;
        assert_int_equal(takes(&run, REPLAY_TRIP_MAX, 1), REPLAY_TIME_MAX);
}

TEST(many_commands_are_replayed)
{
        enum { COMMANDS = 200000 };
        struct replay_command *commands = calloc(COMMANDS, sizeof(*commands));
        struct replay_step *steps = calloc(COMMANDS + 1, sizeof(*steps));
        uint32_t *after = calloc(COMMANDS, sizeof(*after));
        assert_true(commands && steps && after);
        for (uint32_t i = 0; i < COMMANDS; i++) {
                commands[i] = kernel(1);
                commands[i].after = i;
                commands[i].after_count = i != 0;
                after[i] = i ? i - 1 : 0;
                steps[i] = send(0, i);
        }
        steps[COMMANDS] = wait_for(0, COMMANDS - 1);
        const struct replay_thread threads[] = { { 0, COMMANDS + 1, REPLAY_NONE, 0 } };
        const struct replay_run run = { one_slot, commands, after,        steps, threads, 1,
                                        COMMANDS, COMMANDS, COMMANDS + 1, 1,     0,       0 };
        assert_int_equal(takes(&run, 10 * MS, 0), (COMMANDS + 10) * MS);
        free(commands);
        free(steps);
        free(after);
}

/* ---- timelines ------------------------------------------------------------------------------ */

static struct ledger_file_server server = { .index = 0, .round_trip_ns = 2 * MS, .name = "gpu1" };
static const struct ledger_file ledger = { .wall_ns = 100 * MS,
                                           .servers = &server,
                                           .server_count = 1 };

/* Times in ms. */
#define CALL(begin, ms, event)                                                \
        "{\"ph\":\"X\",\"pid\":1,\"tid\":7,\"ts\":" #begin "000,\"dur\":" #ms \
        "000,\"name\":\"enqueue\",\"cat\":\"client\",\"args\":{\"event\":" #event "}},"
#define WAITED(begin, ms, what, event)                                                            \
        "{\"ph\":\"X\",\"pid\":1,\"tid\":7,\"ts\":" #begin "000,\"dur\":" #ms ",\"name\":\"" what \
        "\",\"cat\":\"waited\",\"args\":{\"event\":" #event ",\"server\":\"gpu1\"}},"
#define KERNEL_OF(row, begin, ms, event, after)                                                    \
        "{\"ph\":\"X\",\"pid\":322,\"tid\":" #row ",\"ts\":" #begin "000,\"dur\":" #ms             \
        "000,\"name\":\"k\",\"cat\":\"kernel\",\"args\":{\"event\":" #event ",\"after\":\"" #after \
        "\"}},"
#define KERNEL(begin, ms, event, after) KERNEL_OF(16, begin, ms, event, after)
#define UNTIMED_OF(row, begin, event, after)                                          \
        "{\"ph\":\"X\",\"pid\":322,\"tid\":" #row ",\"ts\":" #begin                   \
        "000,\"dur\":0,\"name\":\"k\",\"cat\":\"kernel\",\"args\":{\"event\":" #event \
        ",\"after\":\"" #after "\",\"asked\":1,\"untimed\":1}},"
#define UNTIMED(begin, event) UNTIMED_OF(16, begin, event, )
#define TIMELINE(events) \
        "{\"traceEvents\":[" events "{\"ph\":\"?\"}],\"otherData\":{\"dropped\":0}}"

/* Predict for a round trip. Returns the error, or 0. */
static int predict(const char *text, uint64_t round_trip_ns, struct what_if_results *ret)
{
        const struct what_if link = { "rtt", true, false, round_trip_ns, 0 };
        struct recording recording;
        struct fit f;
        int r = recording_read(text, strlen(text), &ledger, &recording);
        if (r < 0)
                return r;
        r = fit_make(&recording, &ledger, &f);
        recording_fini(&recording);
        if (r < 0)
                return r;
        r = what_if_run(&f, ledger.wall_ns, &link, 1, ret);
        fit_fini(&f);
        return r;
}

TEST(a_fit_explains_the_recording)
{
        /* Two launches: sent at 11 and 12, the first one runs from 15, 3 ms after it could begin. The wait ends at 30:
         * the second kernel ends at 27, the way back takes a ms, and the thread 2 ms to wake up. */
        static const char text[] = TIMELINE(CALL(10, 1, 1) CALL(11, 1, 2) KERNEL(15, 5, 1, ) KERNEL(
                21, 6, 2, 1) WAITED(13, 17000, "clFinish", 2));
        struct what_if_results r;
        assert_int_equal(predict(text, 12 * MS, &r), 0);
        assert_int_equal(r.all[0].ns, 100 * MS);
        assert_int_equal(r.round_trip_ns, 2 * MS);
        /* 10 ms more there and back, and for TCP's and the session's hello. */
        assert_int_equal(r.all[1].ns, (100 + 10 + 2 * 10) * MS);
        assert_int_equal(r.all[1].bound, WHAT_IF_PROGRAM);
        assert_int_equal(predict(text, 1000 * MS, &r), 0);
        assert_int_equal(r.all[1].bound, WHAT_IF_LATENCY);
}

TEST(launches_without_times_are_explained_by_the_others)
{
        /* Sent at 11, 12 and 13. The first one runs from 15 to 20. The others take as long, but the last one had ended
         * at 29, because a wait ends at 30. */
        static const char text[] = TIMELINE(CALL(10, 1, 1) CALL(11, 1, 2) CALL(12, 1, 3) KERNEL(
                15, 5, 1, ) UNTIMED(11, 2) UNTIMED(12, 3) WAITED(14, 16000, "clFinish", 3));
        struct what_if_results r;
        assert_int_equal(predict(text, 12 * MS, &r), 0);
        assert_int_equal(r.all[0].ns, 100 * MS);
        assert_int_equal(r.all[1].ns, (100 + 10 + 2 * 10) * MS);
        /* One that has ended long before asks the server, which takes a round trip. */
        assert_int_equal(predict(TIMELINE(CALL(10, 1, 1) CALL(11, 1, 2) KERNEL(15, 5, 1, )
                                                  UNTIMED(11, 2) WAITED(60, 2000, "clFinish", 2)),
                                 12 * MS, &r),
                         0);
        assert_int_equal(r.all[0].ns, 100 * MS);
        assert_int_equal(r.all[1].ns, (100 + 10 + 2 * 10) * MS);
}

static struct fit fit_of(const char *text)
{
        struct recording recording;
        struct fit f;
        assert_int_equal(recording_read(text, strlen(text), &ledger, &recording), 0);
        assert_int_equal(fit_make(&recording, &ledger, &f), 0);
        recording_fini(&recording);
        return f;
}

TEST(launches_without_times_take_the_median_of_their_size)
{
        /* A kernel of 3, 4 and 90 ms. The fourth and the fifth launch take 4 ms. But both had ended before the sixth one
         * began, so only 2 ms are left for the fourth. */
        static const char text[] = TIMELINE(
                CALL(1, 1, 1) CALL(2, 1, 2) CALL(3, 1, 3) CALL(4, 1, 4) CALL(5, 1, 5) CALL(6, 1, 6)
                        KERNEL(4, 3, 1, ) KERNEL(7, 4, 2, ) KERNEL(11, 90, 3, ) UNTIMED(4, 4)
                                UNTIMED(5, 5) KERNEL(107, 4, 6, ) WAITED(7, 105000, "clFinish", 6));
        struct fit f = fit_of(text);
        assert_int_equal(f.run.command_count, 6);
        assert_int_equal(f.run.servers[0].slots, 1);
        assert_int_equal(f.run.commands[3].device_ns + f.run.commands[4].device_ns, 6 * MS);
        assert_int_equal(f.run.commands[4].device_ns, 4 * MS);
        assert_true(f.run.commands[4].asked && !f.run.commands[5].asked);
        fit_fini(&f);
}

TEST(launches_without_times_end_before_what_depends_on_them)
{
        /* Two queues with a kernel each in turn, which ran one after the other: the second one of the first queue ran
         * between the kernels around it, and the other queue's launch waited for it. */
        static const char text[] =
                TIMELINE(CALL(1, 1, 1) CALL(2, 1, 2) CALL(3, 1, 3) CALL(4, 1, 4) CALL(5, 1, 5)
                                 KERNEL(4, 10, 1, ) KERNEL_OF(32, 14, 10, 2, 1) UNTIMED(3, 3)
                                         UNTIMED_OF(32, 4, 4, 3) KERNEL(44, 10, 5, 4)
                                                 WAITED(6, 49000, "clFinish", 5));
        struct fit f = fit_of(text);
        assert_int_equal(f.run.command_count, 5);
        assert_int_equal(f.run.servers[0].slots, 1);
        for (unsigned i = 0; i < 5; i++)
                assert_int_equal(f.run.commands[i].device_ns, 10 * MS);
        fit_fini(&f);
}

TEST(a_recording_that_makes_no_sense_is_bounded)
{
        static const char *const texts[] = {
                /* Dependencies in a circle and on itself, events named twice, waits without a command, an end before
                 * the begin of others. */
                TIMELINE(CALL(10, 1, 1) CALL(11, 1, 2) KERNEL(15, 5, 1, 2 1)
                                 KERNEL(21, 6, 2, 1 2 1 2 1 2) WAITED(13, 17000, "clFinish", 2)),
                TIMELINE(CALL(10, 1, 1) CALL(10, 1, 1) KERNEL(15, 5, 1, ) KERNEL(15, 5, 1, 1)
                                 WAITED(13, 17000, "clFinish", 1)),
                TIMELINE(CALL(10, 1, 1) KERNEL(1, 1, 1, 99999999999999999999) WAITED(
                        2, 17000, "clWaitForEvents", 1) WAITED(30, 1, "clFinish", 9)),
                TIMELINE(CALL(90, 1, 1) WAITED(13, 17000, "blocking command", 1)
                                 WAITED(13, 17000, "until the link has the bytes", 0)
                                         WAITED(13, 99000, "answer", 0) KERNEL(1, 900, 1, 1)),
                /* No launch has times, an end is before the begin, and a wait before all. */
                TIMELINE(CALL(10, 1, 1) CALL(11, 1, 2) UNTIMED(99, 1) UNTIMED(5, 2) UNTIMED(5, 2)
                                 WAITED(12, 1, "clFinish", 1) WAITED(13, 1000, "clFinish", 2)),
                TIMELINE(CALL(10, 1, 1) CALL(11, 1, 2) CALL(12, 1, 3) KERNEL(50, 9, 1, ) UNTIMED(
                        5, 2) KERNEL(20, 900, 3, ) WAITED(13, 1000, "clFinish", 2)),
        };
        for (size_t i = 0; i < array_size(texts); i++) {
                struct what_if_results r;
                assert_int_equal(predict(texts[i], 50 * MS, &r), 0);
                assert_true(r.all[1].ns <= REPLAY_TIME_MAX);
        }
        struct what_if_results r;
        assert_int_equal(predict(TIMELINE(""), 1, &r), SP_E_NOENT);
        assert_int_equal(predict("{\"traceEvents\":[", 1, &r), SP_E_PROTO);
        assert_int_equal(predict("[]", 1, &r), SP_E_PROTO);
}

TEST(without_memory_nothing_is_predicted_and_nothing_is_lost)
{
        static const char text[] = TIMELINE(CALL(10, 1, 1) CALL(11, 1, 2) KERNEL(15, 5, 1, ) KERNEL(
                21, 6, 2, 1) CALL(12, 1, 3) UNTIMED(12, 3) WAITED(14, 17000, "clFinish", 3));
        struct what_if_results r;
        int status = SP_E_NOMEM;
        long before = mem_live();
        for (unsigned n = 1; status < 0; n++) {
                mem_fail_at(n);
                status = predict(text, MS, &r);
                mem_fail_at(0);
                assert_true(status == 0 || status == SP_E_NOMEM || status == SP_E_NOENT);
                assert_int_equal(mem_live(), before);
                assert_true(n < 1000);
        }
}

/* ---- options -------------------------------------------------------------------------------- */

TEST(links_are_read_with_their_units)
{
        static const struct {
                const char *text;
                uint64_t round_trip_ns, bytes_per_s;
        } good[] = {
                { "rtt=5ms", 5 * MS, 0 },
                { "rtt=300us,bw=1Gbit", 300000, 125000000 },
                { "bw=100Mbit,rtt=0.005s", 5 * MS, 12500000 },
                { "bw=50MB/s", 0, 50000000 },
                { "rtt=0ms,bw=8bit", 0, 1 },
                { "bw=2.5Gbit/s", 0, 312500000 },
        };
        static const char *const bad[] = {
                "",
                "rtt",
                "rtt=",
                "rtt=5",
                "rtt=ms",
                "rtt=5 ms",
                "rtt=-5ms",
                "rtt=5m",
                "rtt=5ms,",
                ",rtt=5ms",
                "rtt=5ms,rtt=5ms",
                "bw=0Mbit",
                "bw=1",
                "bw=1gbit",
                "bw=1e3Mbit",
                "rtt=1.2.3ms",
                "rtt=1.ms",
                "rtt=.5ms",
                "rtt=61s",
                "bw=99999999Gbit",
                "loss=1%",
                "rtt=5msbw=1Gbit",
                "bw=1Gbit,bw=1Gbit",
                "rtt=00000000000000000000000000000000000000000001ms",
                "rtt=inf",
                "RTT=5ms",
        };
        char error[WHAT_IF_ERROR_MAX];
        struct what_if w;
        for (size_t i = 0; i < array_size(good); i++) {
                assert_int_equal(what_if_parse(good[i].text, &w, error), 0);
                assert_int_equal(w.round_trip_ns, good[i].round_trip_ns);
                assert_int_equal(w.bytes_per_s, good[i].bytes_per_s);
                assert_int_equal(w.has_rate, good[i].bytes_per_s != 0);
        }
        for (size_t i = 0; i < array_size(bad); i++) {
                *error = 0;
                if (what_if_parse(bad[i], &w, error) != SP_E_INVAL)
                        fail_msg("'%s' was accepted", bad[i]);
                assert_true(*error);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_launch_and_its_wait_take_a_round_trip_and_the_kernel),
                cmocka_unit_test(longer_sleeps_than_the_recorded_ones_end_later),
                cmocka_unit_test(a_wait_for_what_is_complete_costs_nothing),
                cmocka_unit_test(launches_in_a_row_hide_the_link),
                cmocka_unit_test(messages_wait_behind_each_other),
                cmocka_unit_test(a_write_is_taken_when_the_server_has_confirmed_it),
                cmocka_unit_test(a_read_takes_its_bytes_at_the_rate_of_the_link),
                cmocka_unit_test(hosts_work_while_bulk_data_travels),
                cmocka_unit_test(kernels_of_several_queues_share_the_slots),
                cmocka_unit_test(a_move_between_servers_takes_what_it_took),
                cmocka_unit_test(threads_run_beside_each_other),
                cmocka_unit_test(an_answer_takes_its_round_trips),
                cmocka_unit_test(bad_runs_are_refused),
                cmocka_unit_test(endless_times_stay_bounded),
                cmocka_unit_test(many_commands_are_replayed),
                cmocka_unit_test(a_fit_explains_the_recording),
                cmocka_unit_test(launches_without_times_are_explained_by_the_others),
                cmocka_unit_test(launches_without_times_take_the_median_of_their_size),
                cmocka_unit_test(launches_without_times_end_before_what_depends_on_them),
                cmocka_unit_test(a_recording_that_makes_no_sense_is_bounded),
                cmocka_unit_test(without_memory_nothing_is_predicted_and_nothing_is_lost),
                cmocka_unit_test(links_are_read_with_their_units),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
