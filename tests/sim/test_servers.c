/* Servers that are disconnected, come back, come back anew, or are lost. */
#include "support/check.h"

#include <stdlib.h>

#include "base/log.h"
#include <spancl/availability.h>

#include "core/server_set.h"
#include "support/setup.h"

enum { IDLE_NS = 100000000 };

static bool is_available(cl_device_id d)
{
        cl_bool available;
        assert_int_equal(
                clGetDeviceInfo(d, CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL),
                CL_SUCCESS);
        return available;
}

static void expect_no_context(cl_device_id d)
{
        cl_int err;
        assert_null(clCreateContext(NULL, 1, &d, NULL, NULL, &err));
        assert_int_equal(err, CL_DEVICE_NOT_AVAILABLE);
}

/* Until the client has noticed (false), or has it back (true). */
static void run_until(struct setup *s, bool available)
{
        while (is_available(s->devices[0]) != available)
                sim_run(s->sim, 1000);
        sim_run(s->sim, 1); /* callbacks */
}

TEST(while_a_server_is_disconnected_calls_fail_and_what_is_in_flight_is_kept)
{
        for (uint64_t seed = 1; seed <= 50; seed++) {
                struct setup s;
                static uint32_t got[ITEMS], ones[ITEMS];
                size_t size = sizeof(got);
                cl_event e;
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = 2,
                                                      .delay_ns = 1000000,
                                                      .reconnect_ns = 1000000000000 });
                setup_check(&s, 0, 0);
                for (unsigned i = 0; i < 5; i++)
                        assert_int_equal(setup_launch(&s, 0, 0, NULL, i == 4 ? &e : NULL),
                                         CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[0]), CL_SUCCESS);
                sim_cut_client(s.sim, 0);
                run_until(&s, false);
                assert_true(notices > 0);
                assert_true(is_available(s.devices[2])); /* the other server's */
                assert_int_equal(setup_launch(&s, 0, 0, NULL, NULL), CL_DEVICE_NOT_AVAILABLE);
                assert_int_equal(clFinish(s.queues[0]), CL_DEVICE_NOT_AVAILABLE);
                assert_int_equal(clEnqueueReadBuffer(s.queues[0], s.buffer, CL_TRUE, 0, size, got,
                                                     0, NULL, NULL),
                                 CL_DEVICE_NOT_AVAILABLE);
                assert_int_equal(clEnqueueWriteBuffer(s.queues[0], s.buffer, CL_TRUE, 0, size, ones,
                                                      0, NULL, NULL),
                                 CL_DEVICE_NOT_AVAILABLE);
                run_until(&s, true);
                assert_int_equal(clWaitForEvents(1, &e), CL_SUCCESS);
                assert_int_equal(setup_launch(&s, 0, 0, NULL, NULL), CL_SUCCESS);
                setup_check(&s, 0, 6);
                assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
                setup_end(&s);
        }
}

static void CL_CALLBACK on_change(cl_device_id d, cl_bool available, void *user)
{
        (void)d;
        (void)available;
        ++*(unsigned *)user;
}

TEST(calls_wait_for_a_server_until_the_application_asks_to_be_told)
{
        for (uint64_t seed = 1; seed <= 50; seed++) {
                struct setup s;
                unsigned calls = 0;
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = 1,
                                                      .delay_ns = 1000000,
                                                      .reconnect_ns = 1000000000000,
                                                      .wait_ns = UINT64_MAX,
                                                      .watchers_fail = true });
                for (uint32_t round = 1; round <= 3; round++) {
                        sim_cut_client(s.sim, 0);
                        assert_int_equal(setup_launch(&s, 0, 0, NULL, NULL), CL_SUCCESS);
                        setup_check(&s, 0, round);
                }
                assert_true(is_available(s.devices[0]));
                sim_cut_client(s.sim, 0);
                sim_run(s.sim, 1);
                /* Also in the middle of an outage. */
                assert_int_equal(
                        clSetDeviceAvailabilityCallbackSPANCL(s.devices[0], on_change, &calls),
                        CL_SUCCESS);
                run_until(&s, false);
                assert_int_equal(clFinish(s.queues[0]), CL_DEVICE_NOT_AVAILABLE);
                run_until(&s, true);
                assert_true(calls >= 1);
                setup_check(&s, 0, 3);
                sim_cut_client(s.sim, 0);
                run_until(&s, false);
                assert_int_equal(setup_launch(&s, 0, 0, NULL, NULL), CL_DEVICE_NOT_AVAILABLE);
                run_until(&s, true);
                assert_int_equal(clSetDeviceAvailabilityCallbackSPANCL(s.devices[0], NULL, NULL),
                                 CL_SUCCESS);
                sim_cut_client(s.sim, 0);
                setup_check(&s, 0, 3);
                setup_end(&s);
        }
}

/* The client sleeps in `call` when the cut comes. */
TEST(a_call_that_waits_for_a_server_that_goes_away_fails_and_lets_go_of_memory)
{
        unsigned failed = 0;
        for (uint64_t seed = 1; seed <= 200; seed++) {
                struct setup s;
                static uint32_t values[ITEMS];
                cl_int err;
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = 1,
                                                      .room = 20000,
                                                      .delay_ns = 100000,
                                                      .reconnect_ns = 1000000000000 });
                sim_cut_often(s.sim, 100, 3);
                uint32_t *memory = malloc(sizeof(values));
                for (size_t i = 0; i < ITEMS; i++)
                        memory[i] = values[i] = (uint32_t)i;
                err = clEnqueueWriteBuffer(s.queues[0], s.buffer, CL_TRUE, 0, sizeof(values),
                                           memory, 0, NULL, NULL);
                failed += err != CL_SUCCESS;
                free(memory);
                run_until(&s, true);
                memory = malloc(sizeof(values));
                cl_int read = clEnqueueReadBuffer(s.queues[0], s.buffer, CL_TRUE, 0, sizeof(values),
                                                  memory, 0, NULL, NULL);
                failed += read != CL_SUCCESS;
                free(memory);
                static uint32_t got[ITEMS];
                do {
                        run_until(&s, true);
                        read = clEnqueueReadBuffer(s.queues[0], s.buffer, CL_TRUE, 0, sizeof(got),
                                                   got, 0, NULL, NULL);
                } while (read != CL_SUCCESS);
                if (err == CL_SUCCESS || got[1])
                        for (size_t i = 0; i < ITEMS; i++)
                                assert_int_equal(got[i], values[i]);
                sim_cut_often(s.sim, 0, 0);
                run_until(&s, true);
                setup_end(&s);
        }
        assert_true(failed > 50);
}

/* The last bytes of the connection arrive as one piece. The client answers the first message in
 * it, a clock's, at once, and so notices the loss. */
TEST(the_last_message_before_a_lost_connection_counts)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR; /* the loss is a warning */
        for (uint64_t seed = 1; seed <= 100; seed++) {
                struct setup s;
                cl_event e[2];
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = 2,
                                                      .room = 1 << 20,
                                                      .delay_ns = 1000,
                                                      .reconnect_ns = UINT64_MAX / 2,
                                                      .wait_ns = UINT64_MAX,
                                                      .blocked = blocked(0, 1) });
                for (unsigned i = 0; i < 2; i++) {
                        assert_int_equal(clEnqueueMarkerWithWaitList(s.queues[2 * i], i,
                                                                     i ? e : NULL, &e[i]),
                                         CL_SUCCESS);
                        assert_int_equal(clFlush(s.queues[2 * i]), CL_SUCCESS);
                }
                sim_freeze(s.sim, 0, true);
                sim_run_until_idle(s.sim); /* it can't reach server 1 */
                sim_run(s.sim, 1000000);
                sim_run(s.sim, 1);
                sim_cut_client(s.sim, 0);
                sim_freeze(s.sim, 0, false);
                assert_int_equal(clWaitForEvents(1, &e[1]), CL_SUCCESS);
                for (unsigned i = 0; i < 2; i++)
                        assert_int_equal(clReleaseEvent(e[i]), CL_SUCCESS);
                setup_end(&s);
        }
        log_threshold = before;
}

TEST(a_server_that_does_not_come_back_in_time_is_lost)
{
        struct setup s;
        cl_event e;
        setup_begin(&s, &(struct sim_params){ .seed = 1,
                                              .servers = 2,
                                              .reconnect_ns = 1000000000,
                                              .forgiving = true });
        assert_int_equal(setup_launch(&s, 0, 0, NULL, &e), CL_SUCCESS);
        assert_int_equal(clFlush(s.queues[0]), CL_SUCCESS);
        sim_kill_server(s.sim, 0);
        run_until(&s, false);
        sim_run(s.sim, 100000000);
        assert_true(command_status(e) > CL_COMPLETE);
        sim_run(s.sim, 2000000000);
        assert_int_equal(command_status(e), CL_DEVICE_NOT_AVAILABLE);
        assert_int_equal(setup_launch(&s, 0, 0, NULL, NULL), CL_DEVICE_NOT_AVAILABLE);
        assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
        setup_end(&s);
}

/* Objects of the session that has ended get errors and do not reach the new one. */
TEST(a_server_that_was_started_anew_has_the_same_devices_and_nothing_of_the_old_session)
{
        for (uint64_t seed = 1; seed <= 40; seed++) {
                struct setup s, t;
                struct engine_counts n;
                cl_event e;
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = 2,
                                                      .reconnect_ns = 1000000000000 });
                t = s;
                assert_int_equal(setup_launch(&s, 0, 0, NULL, &e), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[0]), CL_SUCCESS);
                sim_run(s.sim, seed * 1000);
                sim_restart_server(s.sim, 0, NULL);
                run_until(&s, false);
                run_until(&s, true);
                assert_true(command_status(e) <= CL_COMPLETE);
                assert_int_equal(setup_launch(&s, 0, 0, NULL, NULL), CL_DEVICE_NOT_AVAILABLE);
                assert_int_equal(setup_launch(&s, 0, 1, &e, NULL), CL_DEVICE_NOT_AVAILABLE);
                assert_int_equal(setup_launch(&s, 2, 0, NULL, NULL),
                                 CL_SUCCESS); /* the other one's */
                assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
                setup_begin_in(&t);
                assert_int_equal(setup_launch(&t, 0, 0, NULL, NULL), CL_SUCCESS);
                assert_int_equal(setup_launch(&s, 1, 0, NULL, NULL), CL_DEVICE_NOT_AVAILABLE);
                setup_check(&t, 3, 1);
                setup_end_in(&t);
                sim_run_until_idle(s.sim);
                engine_lock(sim_engine(s.sim, 0));
                engine_get_counts(sim_engine(s.sim, 0), &n);
                engine_unlock(sim_engine(s.sim, 0));
                assert_int_equal(n.objects, 0);
                setup_end(&s);
        }
}

/* Sessions that nothing uses give their numbers back, more often than there are numbers. */
TEST(a_server_may_be_started_anew_any_number_of_times)
{
        struct setup s;
        setup_begin(&s,
                    &(struct sim_params){ .seed = 1, .servers = 1, .reconnect_ns = 1000000000000 });
        for (unsigned round = 0; round < CLIENT_SERVERS_MAX + 10; round++) {
                sim_restart_server(s.sim, 0, NULL);
                run_until(&s, false);
                run_until(&s, true);
                setup_end_in(&s);
                setup_begin_in(&s);
                assert_int_equal(setup_launch(&s, 0, 0, NULL, NULL), CL_SUCCESS);
                setup_check(&s, 0, 1);
        }
        setup_end(&s);
}

TEST(a_device_that_does_not_come_back_stays_unavailable)
{
        struct setup s;
        setup_begin(&s,
                    &(struct sim_params){ .seed = 1, .servers = 1, .reconnect_ns = 1000000000000 });
        for (unsigned round = 0; round < 3; round++) {
                sim_restart_server(s.sim, 0, round == 1 ? "0" : "1");
                run_until(&s, false);
                while (!is_available(s.devices[round != 1]))
                        sim_run(s.sim, 1000);
                assert_false(is_available(s.devices[round == 1]));
                setup_end_in(&s);
                cl_device_id both[2] = { s.devices[0], s.devices[1] };
                s.devices[0] = s.devices[round != 1];
                s.count = 1;
                setup_begin_in(&s);
                assert_int_equal(setup_launch(&s, 0, 0, NULL, NULL), CL_SUCCESS);
                setup_check(&s, 0, 1);
                s.devices[0] = both[0];
        }
        setup_end(&s);
}

static void run_until_idle(struct setup *s, unsigned server)
{
        while (sim_server_alive(s->sim, server))
                sim_run(s->sim, IDLE_NS / 4);
        sim_run(s->sim, IDLE_NS);
}

/* More often than there are numbers of sessions. */
TEST(a_server_that_no_context_has_keeps_no_session_and_is_used_again)
{
        struct setup s;
        setup_begin(&s, &(struct sim_params){ .seed = 1,
                                              .servers = 2,
                                              .delay_ns = 1000000,
                                              .reconnect_ns = 1000000000000,
                                              .idle_ns = IDLE_NS });
        struct setup one = s;
        one.count = 2; /* of the first server */
        for (unsigned round = 0; round < CLIENT_SERVERS_MAX + 10; round++) {
                sim_run(s.sim, 3 * IDLE_NS);
                assert_true(sim_server_alive(s.sim, 0) && sim_server_alive(s.sim, 1));
                setup_end_in(&s);
                setup_begin_in(&one); /* before the time is over */
                run_until_idle(&s, 1);
                assert_true(sim_server_alive(s.sim, 0));
                assert_true(is_available(s.devices[2]));
                assert_int_equal(setup_launch(&one, 0, 0, NULL, NULL), CL_SUCCESS);
                setup_check(&one, 1, 1);
                sim_restart_server(s.sim, 1, NULL);
                setup_begin_in(&s);
                setup_end_in(&one);
                assert_int_equal(setup_launch(&s, 3, 0, NULL, NULL), CL_SUCCESS);
                setup_check(&s, 0, 1);
        }
        setup_end(&s);
}

TEST(an_idle_server_that_is_gone_is_not_available_when_it_is_used_until_it_is_back)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct setup s;
                unsigned calls = 0;
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = 1,
                                                      .reconnect_ns = 1000000000000,
                                                      .idle_ns = IDLE_NS });
                setup_end_in(&s);
                run_until_idle(&s, 0);
                sim_kill_server(s.sim, 0);
                sim_run(s.sim, 3 * IDLE_NS);
                assert_true(is_available(s.devices[0])); /* nobody has tried */
                expect_no_context(s.devices[0]);
                assert_false(is_available(s.devices[0]) || is_available(s.devices[1]));
                sim_run(s.sim, 3 * IDLE_NS);
                expect_no_context(s.devices[0]);
                sim_restart_server(s.sim, 0, seed % 2 ? NULL : "0");
                run_until(&s, true);
                run_until_idle(&s, 0);
                /* It has another device than before. */
                sim_restart_server(s.sim, 0, "1");
                assert_true(is_available(s.devices[0]));
                expect_no_context(s.devices[0]);
                assert_false(is_available(s.devices[0]));
                assert_true(is_available(s.devices[1]));
                run_until_idle(&s, 0);
                /* An application that watches a device hears of its loss. */
                sim_restart_server(s.sim, 0, NULL);
                assert_int_equal(
                        clSetDeviceAvailabilityCallbackSPANCL(s.devices[1], on_change, &calls),
                        CL_SUCCESS);
                run_until(&s, true);
                sim_run(s.sim, 10 * IDLE_NS);
                assert_true(sim_server_alive(s.sim, 0));
                calls = 0;
                sim_kill_server(s.sim, 0);
                run_until(&s, false);
                assert_int_equal(calls, 1);
                assert_int_equal(clSetDeviceAvailabilityCallbackSPANCL(s.devices[1], NULL, NULL),
                                 CL_SUCCESS);
                sim_restart_server(s.sim, 0, NULL);
                run_until(&s, true);
                setup_begin_in(&s);
                setup_check(&s, 0, 0);
                setup_end(&s);
        }
        log_threshold = before;
}

/* Make a world whose servers describe their devices, most of them. */
static void list_devices(struct setup *s, uint64_t seed, unsigned servers, bool had[])
{
        *s = (struct setup){ .sim = sim_new(&(struct sim_params){ .seed = seed,
                                                                  .servers = servers,
                                                                  .delay_ns = 1000000,
                                                                  .reconnect_ns = 1000000000000,
                                                                  .idle_ns = IDLE_NS }) };
        assert_int_equal(clGetDeviceIDs(sim_platform(s->sim), CL_DEVICE_TYPE_CUSTOM, 16, s->devices,
                                        &s->count),
                         CL_SUCCESS);
        assert_int_equal(s->count, 2 * servers);
        unsigned sessions = 0;
        for (unsigned i = 0; i < servers; i++)
                sessions += had[i] = sim_server_has_session(s->sim, i);
        assert_int_equal(sessions + sim_described(s->sim), servers);
        for (cl_uint i = 0; i < s->count; i++)
                assert_true(is_available(s->devices[i]));
}

/* A server has one session here, so one that was not described must be started anew for the next. */
static void end_session(struct setup *s, unsigned server)
{
        run_until_idle(s, server);
        sim_restart_server(s->sim, server, NULL);
}

TEST(devices_are_listed_without_sessions_and_a_context_begins_those_of_its_servers)
{
        unsigned described = 0;
        for (uint64_t seed = 1; seed <= 40; seed++) {
                struct setup s;
                bool had[3];
                list_devices(&s, seed, 3, had);
                described += sim_described(s.sim);
                struct setup one = s;
                one.count = 2;
                memcpy(one.devices, &s.devices[2], 2 * sizeof(*s.devices));
                setup_begin_in(&one);
                for (unsigned i = 0; i < 3; i++)
                        assert_int_equal(sim_server_has_session(s.sim, i), had[i] || i == 1);
                assert_int_equal(setup_launch(&one, 1, 0, NULL, NULL), CL_SUCCESS);
                setup_check(&one, 0, 1);
                for (unsigned i = 0; i < 3; i++)
                        if (had[i] && i != 1)
                                end_session(&s, i);
                setup_begin_in(&s); /* those of the others, with the same devices */
                assert_int_equal(setup_launch(&s, 5, 0, NULL, NULL), CL_SUCCESS);
                setup_check(&s, 0, 1);
                setup_end_in(&one);
                setup_end(&s);
        }
        assert_true(described > 40);
}

TEST(one_server_has_its_session_at_once)
{
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct setup s;
                bool had[1];
                list_devices(&s, seed, 1, had);
                assert_true(had[0]);
                sim_free(s.sim);
        }
}

TEST(a_server_may_be_started_anew_or_be_gone_after_it_has_described_its_devices)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 40; seed++) {
                struct setup s;
                bool had[2];
                list_devices(&s, seed, 2, had);
                if (had[0]) {
                        sim_free(s.sim);
                        continue;
                }
                if (had[1])
                        end_session(&s, 1);
                sim_kill_server(s.sim, 0);
                sim_run(s.sim, IDLE_NS / 2);
                assert_true(is_available(s.devices[0])); /* nobody has tried */
                if (seed % 2) {
                        expect_no_context(s.devices[0]);
                        assert_false(is_available(s.devices[0]));
                        sim_restart_server(s.sim, 0, NULL);
                        run_until(&s, true);
                } else {
                        sim_restart_server(s.sim, 0, "1");
                        expect_no_context(s.devices[0]);
                        assert_false(is_available(s.devices[0]));
                        assert_true(is_available(s.devices[1]));
                        run_until_idle(&s, 0);
                        sim_restart_server(s.sim, 0, NULL);
                }
                struct setup all = s;
                setup_begin_in(&all);
                assert_int_equal(setup_launch(&all, 0, 0, NULL, NULL), CL_SUCCESS);
                setup_check(&all, 3, 1);
                setup_end(&all);
        }
        log_threshold = before;
}

TEST(a_server_that_describes_one_of_its_devices_by_nothing_has_none)
{
        enum log_level before = log_threshold;
        unsigned dropped = 0;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 40; seed++) {
                cl_device_id devices[16];
                cl_uint count;
                struct sim *sim = sim_new(&(struct sim_params){ .seed = seed,
                                                                .servers = 4,
                                                                .half_described = 0xb,
                                                                .delay_ns = 1000000,
                                                                .reconnect_ns = 1000000000000,
                                                                .idle_ns = IDLE_NS });
                assert_int_equal(clGetDeviceIDs(sim_platform(sim), CL_DEVICE_TYPE_CUSTOM, 16,
                                                devices, &count),
                                 CL_SUCCESS);
                unsigned expected = 2;
                for (unsigned i = 0; i < 4; i++)
                        expected += i != 2 && sim_server_has_session(sim, i) ? 2 : 0;
                assert_int_equal(count, expected);
                dropped += 8 - count;
                for (cl_uint i = 0; i < count; i++)
                        assert_true(is_available(devices[i]));
                sim_run(sim, 10 * IDLE_NS);
                sim_free(sim);
        }
        assert_true(dropped > 40);
        log_threshold = before;
}

/* A server that has answered is lost while the client waits for the others: its next session is one server more. */
TEST(a_session_may_begin_while_other_servers_have_not_answered)
{
        enum log_level before = log_threshold;
        unsigned lost = 0;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 200; seed++) {
                cl_device_id devices[16];
                cl_uint count;
                struct sim *sim = sim_new(&(struct sim_params){ .seed = seed,
                                                                .servers = 4,
                                                                .delay_ns = 1000000,
                                                                .reconnect_ns = 1,
                                                                .cut_chance = 100,
                                                                .cuts = 4 });
                cl_int r = clGetDeviceIDs(sim_platform(sim), CL_DEVICE_TYPE_CUSTOM, 16, devices,
                                          &count);
                assert_true(r == CL_SUCCESS || r == CL_DEVICE_NOT_FOUND);
                for (cl_uint i = 0; r == CL_SUCCESS && i < count; i++)
                        lost += !is_available(devices[i]);
                sim_free(sim);
        }
        assert_true(lost > 20);
        log_threshold = before;
}

TEST(an_application_that_watches_a_described_device_hears_of_its_loss)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct setup s;
                unsigned calls = 0;
                bool had[2];
                list_devices(&s, seed, 2, had);
                assert_int_equal(
                        clSetDeviceAvailabilityCallbackSPANCL(s.devices[0], on_change, &calls),
                        CL_SUCCESS);
                assert_true(sim_server_has_session(s.sim, 0));
                sim_run(s.sim, 10 * IDLE_NS);
                sim_kill_server(s.sim, 0);
                run_until(&s, false);
                assert_int_equal(calls, 1);
                sim_restart_server(s.sim, 0, NULL);
                run_until(&s, true);
                sim_free(s.sim);
        }
        log_threshold = before;
}

TEST(a_lost_server_fails_its_commands_and_no_others)
{
        for (uint64_t seed = 0; seed < 40; seed++) {
                struct setup s;
                cl_event lost[8], kept;
                cl_int err;
                unsigned n = 0;
                static uint32_t data[ITEMS];
                setup_begin(&s, &(struct sim_params){ .seed = seed, .servers = 2 });
                cl_mem own = clCreateBuffer(s.context, CL_MEM_READ_WRITE, sizeof(data), NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
                for (; n < 8; n++)
                        assert_int_equal(setup_launch(&s, n % 2, 0, NULL, &lost[n]), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[0]), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[1]), CL_SUCCESS);
                assert_int_equal(clEnqueueWriteBuffer(s.queues[2], own, CL_FALSE, 0, sizeof(data),
                                                      data, 0, NULL, &kept),
                                 CL_SUCCESS);
                sim_run(s.sim, seed * seed * 997);
                sim_kill_server(s.sim, 0);
                for (unsigned i = 0; i < n; i++) {
                        cl_int r = clWaitForEvents(1, &lost[i]);
                        cl_int status = command_status(lost[i]);
                        assert_true(r == CL_SUCCESS
                                            ? status == CL_COMPLETE
                                            : r == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST &&
                                                      status < 0);
                        assert_int_equal(clReleaseEvent(lost[i]), CL_SUCCESS);
                }
                /* By now at the latest, calls that need the server fail. */
                sim_run(s.sim, 1000000000);
                assert_int_equal(setup_launch(&s, 0, 0, NULL, NULL), CL_DEVICE_NOT_AVAILABLE);
                cl_bool available = CL_TRUE;
                assert_int_equal(clGetDeviceInfo(s.devices[0], CL_DEVICE_AVAILABLE,
                                                 sizeof(available), &available, NULL),
                                 CL_SUCCESS);
                assert_int_equal(available, CL_FALSE);
                assert_true(notices >= 1);
                /* The other one goes on. */
                assert_int_equal(clWaitForEvents(1, &kept), CL_SUCCESS);
                assert_int_equal(clReleaseEvent(kept), CL_SUCCESS);
                assert_int_equal(clEnqueueReadBuffer(s.queues[3], own, CL_TRUE, 0, sizeof(data),
                                                     data, 0, NULL, NULL),
                                 CL_SUCCESS);
                assert_int_equal(clFinish(s.queues[2]), CL_SUCCESS);
                assert_int_equal(clReleaseMemObject(own), CL_SUCCESS);
                setup_end(&s);
        }
}

TEST(the_only_server_dies_while_the_client_waits)
{
        for (uint64_t seed = 0; seed < 40; seed++) {
                struct setup s;
                static uint32_t data[ITEMS];
                setup_begin(&s, &(struct sim_params){ .seed = seed, .servers = 1 });
                for (unsigned i = 0; i < seed; i++)
                        assert_int_equal(setup_launch(&s, i % 2, 0, NULL, NULL), CL_SUCCESS);
                sim_kill_server(s.sim, 0);
                cl_int r = clEnqueueReadBuffer(s.queues[0], s.buffer, CL_TRUE, 0, sizeof(data),
                                               data, 0, NULL, NULL);
                assert_true(r == CL_DEVICE_NOT_AVAILABLE ||
                            r == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
                assert_int_equal(clFinish(s.queues[1]), CL_DEVICE_NOT_AVAILABLE);
                setup_end(&s);
        }
}

/* Half of the seeds cut links, also while the notice is on its way. */
TEST(sessions_that_are_open_compute_on_while_their_server_drains)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR; /* that it drains is a warning */
        for (uint64_t seed = 1; seed <= 100; seed++) {
                struct setup s;
                struct rng rng = { seed };
                uint32_t launched = 0;
                unsigned drains_after = (unsigned)rng_below(&rng, 12);
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = 2,
                                                      .reconnect_ns = UINT64_MAX / 2,
                                                      .wait_ns = UINT64_MAX,
                                                      .cut_chance = seed % 2 ? 50 : 0,
                                                      .cuts = 20 });
                for (unsigned i = 0; i < 24; i++) {
                        if (i == drains_after)
                                sim_drain(s.sim, 0);
                        /* One queue for each of both servers, in turn; the buffer goes with it. */
                        unsigned queue = rng_chance(&rng, 50) ? 0 : 2;
                        assert_int_equal(setup_launch(&s, queue, 0, NULL, NULL), CL_SUCCESS);
                        assert_int_equal(clFinish(s.queues[queue]), CL_SUCCESS);
                        launched++;
                        if (rng_chance(&rng, 20))
                                sim_cut_client(s.sim, (unsigned)rng_below(&rng, seed % 2 + 1));
                }
                run_until(&s, false);
                assert_true(notices > 0);
                assert_true(is_available(s.devices[2]));
                expect_no_context(s.devices[0]);
                setup_check(&s, 0, launched);
                /* A link that comes back does not make its devices available again. */
                for (unsigned i = 0; i < 3; i++) {
                        sim_cut_client(s.sim, 0);
                        assert_int_equal(setup_launch(&s, 1, 0, NULL, NULL), CL_SUCCESS);
                        setup_check(&s, 1, ++launched);
                        assert_false(is_available(s.devices[0]));
                }
                setup_end(&s);
        }
        log_threshold = before;
}

TEST(a_server_that_drains_while_a_client_connects_has_it_or_refuses_it)
{
        enum log_level before = log_threshold;
        unsigned accepted = 0, refused = 0;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 60; seed++) {
                cl_device_id devices[4];
                cl_uint count;
                struct sim *sim = sim_new(&(struct sim_params){
                        .seed = seed, .servers = 2, .draining = 1, .reconnect_ns = 1000000000 });
                assert_int_equal(clGetDeviceIDs(sim_platform(sim), CL_DEVICE_TYPE_CUSTOM, 4,
                                                devices, &count),
                                 CL_SUCCESS);
                assert_true(count == 2 || count == 4);
                accepted += count == 4;
                refused += count == 2;
                for (cl_uint i = 0; count == 4 && i < 2; i++) {
                        while (is_available(devices[i]))
                                sim_run(sim, 1000);
                        expect_no_context(devices[i]);
                }
                assert_true(is_available(devices[count - 1]));
                sim_free(sim);
        }
        assert_true(accepted > 10 && refused > 10);
        log_threshold = before;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        while_a_server_is_disconnected_calls_fail_and_what_is_in_flight_is_kept),
                cmocka_unit_test(
                        a_call_that_waits_for_a_server_that_goes_away_fails_and_lets_go_of_memory),
                cmocka_unit_test(the_last_message_before_a_lost_connection_counts),
                cmocka_unit_test(a_server_that_does_not_come_back_in_time_is_lost),
                cmocka_unit_test(
                        a_server_that_was_started_anew_has_the_same_devices_and_nothing_of_the_old_session),
                cmocka_unit_test(calls_wait_for_a_server_until_the_application_asks_to_be_told),
                cmocka_unit_test(a_server_may_be_started_anew_any_number_of_times),
                cmocka_unit_test(a_device_that_does_not_come_back_stays_unavailable),
                cmocka_unit_test(a_server_that_no_context_has_keeps_no_session_and_is_used_again),
                cmocka_unit_test(
                        an_idle_server_that_is_gone_is_not_available_when_it_is_used_until_it_is_back),
                cmocka_unit_test(
                        devices_are_listed_without_sessions_and_a_context_begins_those_of_its_servers),
                cmocka_unit_test(one_server_has_its_session_at_once),
                cmocka_unit_test(
                        a_server_may_be_started_anew_or_be_gone_after_it_has_described_its_devices),
                cmocka_unit_test(a_server_that_describes_one_of_its_devices_by_nothing_has_none),
                cmocka_unit_test(a_session_may_begin_while_other_servers_have_not_answered),
                cmocka_unit_test(an_application_that_watches_a_described_device_hears_of_its_loss),
                cmocka_unit_test(a_lost_server_fails_its_commands_and_no_others),
                cmocka_unit_test(sessions_that_are_open_compute_on_while_their_server_drains),
                cmocka_unit_test(a_server_that_drains_while_a_client_connects_has_it_or_refuses_it),
                cmocka_unit_test(the_only_server_dies_while_the_client_waits),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
