/* Waits between commands on several servers, and calls that send no query to the server. */
#include "support/check.h"

#include <string.h>

#include "support/setup.h"

/* Reads and then something that comes after the read: when that is complete, the bytes are here. `how`: the
 * next command of the queue, one that waits for the read, one behind a barrier, one of another server. */
static void read_and_more(uint64_t seed, int how)
{
        static uint32_t got[ITEMS], more[ITEMS];
        struct setup s;
        cl_int err;
        cl_event read, kernel, after;
        bool in_order = how == 0;
        setup_begin(&s, &(struct sim_params){ .seed = seed, .servers = 2 });
        cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
                                       0 };
        cl_command_queue q = clCreateCommandQueueWithProperties(s.context, s.devices[0],
                                                                in_order ? NULL : list, &err);
        assert_int_equal(err, CL_SUCCESS);
        memset(got, 255, sizeof(got));
        assert_int_equal(
                clEnqueueReadBuffer(q, s.buffer, CL_FALSE, 0, sizeof(got), got, 0, NULL, &read),
                CL_SUCCESS);
        if (how == 0)
                assert_int_equal(clEnqueueMarkerWithWaitList(q, 0, NULL, &after), CL_SUCCESS);
        if (how == 1)
                assert_int_equal(
                        clEnqueueReadBuffer(q, s.buffer, CL_FALSE, 0, 4, more, 1, &read, &after),
                        CL_SUCCESS);
        if (how == 2) {
                assert_int_equal(clEnqueueBarrierWithWaitList(q, 0, NULL, NULL), CL_SUCCESS);
                assert_int_equal(
                        clEnqueueReadBuffer(q, s.buffer, CL_FALSE, 0, 4, more, 0, NULL, &after),
                        CL_SUCCESS);
        }
        if (how == 3) {
                assert_int_equal(setup_launch(&s, 2, 1, &read, &kernel), CL_SUCCESS);
                assert_int_equal(setup_launch(&s, 3, 1, &kernel, &after), CL_SUCCESS);
                assert_int_equal(clReleaseEvent(kernel), CL_SUCCESS);
        }
        sim_run(s.sim, seed * 1000);
        for (unsigned i = 0; i < s.count; i++)
                assert_int_equal(clFlush(s.queues[i]), CL_SUCCESS);
        assert_int_equal(clFlush(q), CL_SUCCESS);
        assert_int_equal(clWaitForEvents(1, &after), CL_SUCCESS);
        for (size_t i = 0; i < ITEMS; i++)
                assert_int_equal(got[i], 0);
        assert_int_equal(command_status(read), CL_COMPLETE);
        assert_int_equal(clReleaseEvent(read), CL_SUCCESS);
        assert_int_equal(clReleaseEvent(after), CL_SUCCESS);
        assert_int_equal(clReleaseCommandQueue(q), CL_SUCCESS);
        setup_end(&s);
}

TEST(commands_after_a_read_complete_after_its_bytes_arrived)
{
        for (int how = 0; how < 4; how++)
                for (uint64_t seed = 1; seed <= 100; seed++)
                        read_and_more(seed, how);
}

/* The bytes of a read are written to another buffer, without a wait in between. */
TEST(a_write_of_what_was_read_before_it_sends_the_bytes_that_were_read)
{
        for (uint64_t seed = 1; seed <= 100; seed++) {
                static uint32_t through[ITEMS];
                struct setup s;
                cl_int err;
                setup_begin(&s, &(struct sim_params){ .seed = seed, .servers = 1 });
                size_t size = seed % 2 ? sizeof(through) : 400;
                memset(through, 255, sizeof(through));
                cl_mem copy = clCreateBuffer(s.context, CL_MEM_READ_WRITE, size, NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
                assert_int_equal(setup_launch(&s, 0, 0, NULL, NULL), CL_SUCCESS);
                assert_int_equal(clEnqueueReadBuffer(s.queues[0], s.buffer, CL_FALSE, 0, size,
                                                     through, 0, NULL, NULL),
                                 CL_SUCCESS);
                assert_int_equal(clEnqueueWriteBuffer(s.queues[0], copy, seed % 3 == 0, 0, size,
                                                      through, 0, NULL, NULL),
                                 CL_SUCCESS);
                assert_int_equal(clFinish(s.queues[0]), CL_SUCCESS);
                memset(through, 255, sizeof(through));
                assert_int_equal(clEnqueueReadBuffer(s.queues[0], copy, CL_TRUE, 0, size, through,
                                                     0, NULL, NULL),
                                 CL_SUCCESS);
                for (size_t i = 0; i < size / 4; i++)
                        assert_int_equal(through[i], 1);
                assert_int_equal(clReleaseMemObject(copy), CL_SUCCESS);
                setup_end(&s);
        }
}

/* A blocking write is complete for the application: what it enqueues then, on any queue, comes after it. */
static void write_and_go_on(uint64_t seed, bool in_order, size_t items)
{
        static uint32_t values[ITEMS], got[ITEMS];
        struct setup s;
        cl_int err;
        cl_command_queue q[2];
        setup_begin(&s, &(struct sim_params){ .seed = seed, .servers = 1 });
        cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
                                       0 };
        for (int i = 0; i < 2; i++) {
                q[i] = clCreateCommandQueueWithProperties(s.context, s.devices[0],
                                                          in_order ? NULL : list, &err);
                assert_int_equal(err, CL_SUCCESS);
        }
        for (uint32_t round = 1; round <= 6; round++) {
                for (size_t i = 0; i < items; i++)
                        values[i] = round;
                assert_int_equal(clEnqueueWriteBuffer(q[round % 3 == 0], s.buffer, CL_TRUE, 0,
                                                      items * 4, values, 0, NULL, NULL),
                                 CL_SUCCESS);
        }
        assert_int_equal(
                clEnqueueReadBuffer(q[1], s.buffer, CL_TRUE, 0, items * 4, got, 0, NULL, NULL),
                CL_SUCCESS);
        for (size_t i = 0; i < items; i++)
                assert_int_equal(got[i], 6);
        for (int i = 0; i < 2; i++)
                assert_int_equal(clReleaseCommandQueue(q[i]), CL_SUCCESS);
        setup_end(&s);
}

TEST(commands_after_a_blocking_write_come_after_it)
{
        for (uint64_t seed = 1; seed <= 100; seed++)
                write_and_go_on(seed, seed % 2, seed % 3 ? ITEMS : 100);
}

TEST(a_user_event_holds_commands_on_every_server)
{
        struct setup s;
        cl_int err;
        cl_event e[3], gate;
        setup_begin(&s, &(struct sim_params){ .seed = 2, .servers = 3 });
        gate = clCreateUserEvent(s.context, &err);
        assert_int_equal(err, CL_SUCCESS);
        cl_event before = gate;
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(setup_launch(&s, 2 * i, 1, &before, &e[i]), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[2 * i]), CL_SUCCESS);
                before = e[i];
        }
        sim_run(s.sim, 1000000000);
        for (unsigned i = 0; i < 3; i++)
                assert_true(command_status(e[i]) > CL_COMPLETE);
        assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        assert_int_equal(clWaitForEvents(3, e), CL_SUCCESS);
        setup_check(&s, 4, 3);
        assert_int_equal(clReleaseEvent(gate), CL_SUCCESS);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(clReleaseEvent(e[i]), CL_SUCCESS);
        setup_end(&s);
}

TEST(a_failed_user_event_fails_what_waits_for_it_and_nothing_else)
{
        struct setup s;
        cl_int err;
        cl_event e[3], gate, other;
        setup_begin(&s, &(struct sim_params){ .seed = 3, .servers = 2 });
        gate = clCreateUserEvent(s.context, &err);
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(setup_launch(&s, 1, 1, &gate, &e[0]), CL_SUCCESS);
        assert_int_equal(setup_launch(&s, 2, 1, &e[0], &e[1]), CL_SUCCESS);
        assert_int_equal(clEnqueueMarkerWithWaitList(s.queues[3], 1, &e[1], &e[2]), CL_SUCCESS);
        assert_int_equal(clEnqueueMarkerWithWaitList(s.queues[0], 0, NULL, &other), CL_SUCCESS);
        for (unsigned i = 0; i < 4; i++)
                assert_int_equal(clFlush(s.queues[i]), CL_SUCCESS);
        assert_int_equal(clSetUserEventStatus(gate, -7), CL_SUCCESS);
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(clWaitForEvents(1, &e[i]),
                                 CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
                assert_true(command_status(e[i]) < 0);
                assert_int_equal(clReleaseEvent(e[i]), CL_SUCCESS);
        }
        assert_int_equal(clWaitForEvents(1, &other), CL_SUCCESS);
        assert_int_equal(clReleaseEvent(other), CL_SUCCESS);
        assert_int_equal(clReleaseEvent(gate), CL_SUCCESS);
        setup_end(&s);
}

TEST(nothing_stays_on_the_servers_when_the_client_releases_it)
{
        struct setup s;
        setup_begin(&s, &(struct sim_params){ .seed = 5, .servers = 2 });
        struct engine_counts n[2][2];
        for (unsigned round = 0; round < 2; round++) {
                for (unsigned i = 0; i < 50; i++) {
                        cl_int err;
                        cl_event e;
                        static uint32_t data[ITEMS];
                        cl_mem m = clCreateBuffer(s.context, CL_MEM_READ_WRITE, sizeof(data), NULL,
                                                  &err);
                        assert_int_equal(err, CL_SUCCESS);
                        assert_int_equal(clEnqueueWriteBuffer(s.queues[i % 4], m, CL_FALSE, 0,
                                                              sizeof(data), data, 0, NULL, &e),
                                         CL_SUCCESS);
                        assert_int_equal(
                                clEnqueueMarkerWithWaitList(s.queues[3 - i % 4], 1, &e, NULL),
                                CL_SUCCESS);
                        assert_int_equal(clReleaseMemObject(m), CL_SUCCESS);
                        assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
                }
                for (unsigned i = 0; i < 4; i++)
                        assert_int_equal(clFinish(s.queues[i]), CL_SUCCESS);
                sim_run(s.sim, 1000000000);
                for (unsigned i = 0; i < 2; i++) {
                        engine_lock(sim_engine(s.sim, i));
                        engine_get_counts(sim_engine(s.sim, i), &n[round][i]);
                        engine_unlock(sim_engine(s.sim, i));
                        assert_int_equal(n[round][i].events, 0);
                        assert_int_equal(n[round][i].transfers, 0);
                        assert_int_equal(n[round][i].commands_held, 0);
                        assert_int_equal(n[round][i].commands_running, 0);
                }
        }
        for (unsigned i = 0; i < 2; i++)
                assert_int_equal(n[1][i].objects, n[0][i].objects);
        setup_end(&s);
}

/* Frames that the client has had from the server so far. */
static uint64_t frames_received(struct setup *s, unsigned server)
{
        struct engine *e = sim_engine(s->sim, server);
        engine_lock(e);
        uint64_t n = session_get_stats(engine_session(e))->frames_sent;
        engine_unlock(e);
        return n;
}

TEST(creating_setting_enqueuing_and_releasing_ask_the_server_nothing)
{
        struct setup s;
        setup_begin(&s, &(struct sim_params){ .seed = 6, .servers = 1 });
        assert_int_equal(clFinish(s.queues[0]), CL_SUCCESS);
        sim_run_until_idle(s.sim);
        uint64_t before = frames_received(&s, 0);
        uint64_t start = sim_now(s.sim);
        for (uint32_t i = 0; i < 1000; i++) {
                cl_int err;
                cl_mem m = clCreateBuffer(s.context, CL_MEM_READ_WRITE, 4096, NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
                cl_kernel k = clCreateKernel(s.program, "spancl.inc.i32", &err);
                assert_int_equal(err, CL_SUCCESS);
                size_t items = 1;
                assert_int_equal(clSetKernelArg(k, 0, sizeof(cl_mem), &s.buffer), CL_SUCCESS);
                assert_int_equal(clSetKernelArg(k, 1, sizeof(i), &i), CL_SUCCESS);
                assert_int_equal(clEnqueueNDRangeKernel(s.queues[0], k, 1, NULL, &items, NULL, 0,
                                                        NULL, NULL),
                                 CL_SUCCESS);
                assert_int_equal(clEnqueueFillBuffer(s.queues[0], m, &i, 4, 0, 4096, 0, NULL, NULL),
                                 CL_SUCCESS);
                assert_int_equal(clReleaseKernel(k), CL_SUCCESS);
                assert_int_equal(clReleaseMemObject(m), CL_SUCCESS);
        }
        assert_int_equal(sim_now(s.sim), start); /* nothing waited */
        assert_int_equal(clFinish(s.queues[0]), CL_SUCCESS);
        /* One completion; the rest are acknowledgements, one for 64 KiB. */
        assert_true(frames_received(&s, 0) - before <= 12);
        setup_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(commands_after_a_read_complete_after_its_bytes_arrived),
                cmocka_unit_test(a_write_of_what_was_read_before_it_sends_the_bytes_that_were_read),
                cmocka_unit_test(commands_after_a_blocking_write_come_after_it),
                cmocka_unit_test(a_user_event_holds_commands_on_every_server),
                cmocka_unit_test(a_failed_user_event_fails_what_waits_for_it_and_nothing_else),
                cmocka_unit_test(nothing_stays_on_the_servers_when_the_client_releases_it),
                cmocka_unit_test(creating_setting_enqueuing_and_releasing_ask_the_server_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
