/* Small reads ahead (SPANCL_PREFETCH=1): repeated reads of a program take no time, and all reads are right. */
#include "support/check.h"

#include <string.h>

#include "base/log.h"
#include "support/setup.h"

enum { STEPS = 8, LEARNT = 3 }; /* from step LEARNT on the client sends the reads ahead */

static void begin(struct setup *s, uint64_t seed, unsigned servers)
{
        setup_begin(s, &(struct sim_params){ .seed = seed, .servers = servers, .prefetch = true });
}

static void finish(struct setup *s, unsigned queue)
{
        assert_int_equal(clFinish(s->queues[queue]), CL_SUCCESS);
}

static void launch(struct setup *s, unsigned queue)
{
        assert_int_equal(setup_launch(s, queue, 0, NULL, NULL), CL_SUCCESS);
}

static void step_on(struct setup *s, unsigned queue)
{
        launch(s, queue);
        finish(s, queue);
}

/* Read a number of the buffer. Returns the time that it took. */
static uint64_t read_number(struct setup *s, unsigned queue, cl_mem m, size_t at, cl_uint expected)
{
        cl_uint got = ~expected;
        uint64_t begin = sim_now(s->sim);
        assert_int_equal(clEnqueueReadBuffer(s->queues[queue], m, CL_TRUE, at * sizeof(got),
                                             sizeof(got), &got, 0, NULL, NULL),
                         CL_SUCCESS);
        assert_int_equal(got, expected);
        return sim_now(s->sim) - begin;
}

/* Run steps until the client sends the read ahead, and the commands of one more. Returns the number that the next read
 * has to give. */
static cl_uint steps_until_ahead(struct setup *s)
{
        cl_uint step = 0;
        while (step < LEARNT) {
                step_on(s, 0);
                read_number(s, 0, s->buffer, 7, ++step);
        }
        step_on(s, 0);
        return step + 1;
}

TEST(a_read_that_follows_each_step_comes_with_the_step)
{
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct setup s;
                begin(&s, seed, 1);
                for (cl_uint step = 1; step <= STEPS; step++) {
                        step_on(&s, 0);
                        uint64_t took = read_number(&s, 0, s.buffer, 7, step);
                        assert_int_equal(took == 0, step >= LEARNT);
                }
                setup_end(&s);
        }
}

TEST(a_read_without_the_option_takes_a_round_trip_each_time)
{
        struct setup s;
        setup_begin(&s, &(struct sim_params){ .seed = 1, .servers = 1 });
        for (cl_uint step = 1; step <= STEPS; step++) {
                step_on(&s, 0);
                assert_true(read_number(&s, 0, s.buffer, 7, step) > 0);
        }
        setup_end(&s);
}

/* Two reads behind two launches, of which the second read does not wait for the first one's answer. */
TEST(all_reads_of_a_step_come_with_the_step)
{
        struct setup s;
        begin(&s, 2, 1);
        for (cl_uint step = 1; step <= STEPS; step++) {
                launch(&s, 0);
                step_on(&s, 0);
                uint64_t took = read_number(&s, 0, s.buffer, 7, 2 * step) +
                                read_number(&s, 0, s.buffer, ITEMS - 1, 2 * step);
                assert_int_equal(took == 0, step >= LEARNT);
        }
        setup_end(&s);
}

/* Two buffers: the steps write and read them in turn. */
TEST(the_read_of_the_buffer_that_the_step_wrote_is_sent_ahead)
{
        struct setup s;
        cl_int err;
        begin(&s, 3, 1);
        cl_mem other =
                clCreateBuffer(s.context, CL_MEM_READ_WRITE, ITEMS * sizeof(cl_uint), NULL, &err);
        const cl_uint zero = 0;
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(clEnqueueFillBuffer(s.queues[0], other, &zero, sizeof(zero), 0,
                                             ITEMS * sizeof(cl_uint), 0, NULL, NULL),
                         CL_SUCCESS);
        for (cl_uint step = 1; step <= 3 * STEPS; step++) {
                cl_mem m = step % 2 ? s.buffer : other;
                assert_int_equal(clSetKernelArg(s.inc, 0, sizeof(m), &m), CL_SUCCESS);
                step_on(&s, 0);
                uint64_t took = read_number(&s, 0, m, 7, (step + 1) / 2);
                if (step > STEPS)
                        assert_int_equal(took, 0);
        }
        assert_int_equal(clReleaseMemObject(other), CL_SUCCESS);
        setup_end(&s);
}

/* ---- other writers -------------------------------------------------------------------------- */

static const cl_uint other_value = 12345;

static void by_write(struct setup *s, unsigned queue)
{
        assert_int_equal(clEnqueueWriteBuffer(s->queues[queue], s->buffer, CL_TRUE,
                                              7 * sizeof(cl_uint), sizeof(other_value),
                                              &other_value, 0, NULL, NULL),
                         CL_SUCCESS);
}

static void by_fill(struct setup *s, unsigned queue)
{
        assert_int_equal(clEnqueueFillBuffer(s->queues[queue], s->buffer, &other_value,
                                             sizeof(other_value), 0, 400, 0, NULL, NULL),
                         CL_SUCCESS);
}

static void by_copy(struct setup *s, unsigned queue)
{
        cl_int err;
        cl_uint values[100];
        for (size_t i = 0; i < 100; i++)
                values[i] = other_value;
        cl_mem from =
                clCreateBuffer(s->context, CL_MEM_COPY_HOST_PTR, sizeof(values), values, &err);
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(clEnqueueCopyBuffer(s->queues[queue], from, s->buffer, 0, 0,
                                             sizeof(values), 0, NULL, NULL),
                         CL_SUCCESS);
        assert_int_equal(clReleaseMemObject(from), CL_SUCCESS);
}

static void by_map(struct setup *s, unsigned queue)
{
        cl_int err;
        cl_uint *at = clEnqueueMapBuffer(s->queues[queue], s->buffer, CL_TRUE, CL_MAP_WRITE, 0, 400,
                                         0, NULL, NULL, &err);
        assert_int_equal(err, CL_SUCCESS);
        at[7] = other_value;
        assert_int_equal(clEnqueueUnmapMemObject(s->queues[queue], s->buffer, at, 0, NULL, NULL),
                         CL_SUCCESS);
}

static void by_sub_buffer(struct setup *s, unsigned queue)
{
        cl_int err;
        cl_mem sub = clCreateSubBuffer(s->buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                       &(cl_buffer_region){ 0, 400 }, &err);
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(clEnqueueFillBuffer(s->queues[queue], sub, &other_value,
                                             sizeof(other_value), 0, 400, 0, NULL, NULL),
                         CL_SUCCESS);
        assert_int_equal(clReleaseMemObject(sub), CL_SUCCESS);
}

static void by_rect(struct setup *s, unsigned queue)
{
        assert_int_equal(clEnqueueWriteBufferRect(s->queues[queue], s->buffer, CL_TRUE,
                                                  (size_t[]){ 28, 0, 0 }, (size_t[]){ 0, 0, 0 },
                                                  (size_t[]){ sizeof(other_value), 1, 1 }, 0, 0, 0,
                                                  0, &other_value, 0, NULL, NULL),
                         CL_SUCCESS);
}

static void by_kernel(struct setup *s, unsigned queue)
{
        by_write(s, queue);
        launch(s, queue);
}

/* The client has sent a read ahead in queue 0. Then a queue of the same or of another device writes the bytes, with or
 * without a wait of the program. */
TEST(bytes_that_were_written_meanwhile_are_read_anew)
{
        static void (*const writers[])(struct setup * s,
                                       unsigned queue) = { by_write,      by_fill, by_copy,  by_map,
                                                           by_sub_buffer, by_rect, by_kernel };
        for (size_t i = 0; i < array_size(writers); i++) {
                for (unsigned queue = 0; queue < 3; queue++) {
                        struct setup s;
                        begin(&s, i + 1, 2);
                        steps_until_ahead(&s);
                        writers[i](&s, queue);
                        if (queue || i % 2)
                                finish(&s, queue);
                        read_number(&s, 0, s.buffer, 7, other_value + (writers[i] == by_kernel));
                        setup_end(&s);
                }
        }
}

/* A writer in another queue that the program has not ordered before the step: the read that comes after a wait for it
 * has to have its bytes. */
TEST(a_read_is_not_sent_ahead_of_writers_in_other_queues)
{
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct setup s;
                cl_int err;
                begin(&s, seed, 1);
                cl_uint expected = steps_until_ahead(&s);
                read_number(&s, 0, s.buffer, 7, expected);
                cl_event gate = clCreateUserEvent(s.context, &err);
                assert_int_equal(err, CL_SUCCESS);
                cl_mem sub =
                        clCreateSubBuffer(s.buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                          &(cl_buffer_region){ 0, 400 }, &err);
                assert_int_equal(err, CL_SUCCESS);
                cl_command_queue q =
                        clCreateCommandQueueWithProperties(s.context, s.devices[0], NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
                assert_int_equal(clEnqueueFillBuffer(q, sub, &other_value, sizeof(other_value), 0,
                                                     400, 1, &gate, NULL),
                                 CL_SUCCESS);
                /* A step on the other numbers of the buffer. */
                assert_int_equal(clEnqueueNDRangeKernel(s.queues[0], s.inc, 1, &(size_t){ 1000 },
                                                        &(size_t){ ITEMS - 1000 }, NULL, 0, NULL,
                                                        NULL),
                                 CL_SUCCESS);
                finish(&s, 0);
                assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
                assert_int_equal(clFinish(q), CL_SUCCESS);
                read_number(&s, 0, s.buffer, 7, other_value);
                assert_int_equal(clReleaseEvent(gate), CL_SUCCESS);
                assert_int_equal(clReleaseMemObject(sub), CL_SUCCESS);
                assert_int_equal(clReleaseCommandQueue(q), CL_SUCCESS);
                setup_end(&s);
        }
}

/* ---- events and errors ---------------------------------------------------------------------- */

static cl_int read_behind(struct setup *s, cl_bool blocking, cl_uint waits, const cl_event *list,
                          cl_uint *ret, cl_event *event)
{
        return clEnqueueReadBuffer(s->queues[0], s->buffer, blocking, 7 * sizeof(*ret),
                                   sizeof(*ret), ret, waits, list, event);
}

TEST(the_event_of_a_read_that_was_sent_ahead_is_complete)
{
        struct setup s;
        cl_uint got = 0, expected;
        cl_event e[2];
        begin(&s, 4, 1);
        expected = steps_until_ahead(&s);
        assert_int_equal(read_behind(&s, CL_TRUE, 0, NULL, &got, &e[0]), CL_SUCCESS);
        assert_int_equal(got, expected);
        uint64_t now = sim_now(s.sim);
        assert_int_equal(command_status(e[0]), CL_COMPLETE);
        assert_int_equal(sim_now(s.sim), now);
        /* Wait lists of all servers take the event, and other commands go on. */
        assert_int_equal(setup_launch(&s, 1, 1, e, &e[1]), CL_SUCCESS);
        assert_int_equal(clWaitForEvents(2, e), CL_SUCCESS);
        setup_check(&s, 0, expected + 1);
        for (int i = 0; i < 2; i++)
                assert_int_equal(clReleaseEvent(e[i]), CL_SUCCESS);
        setup_end(&s);
}

TEST(a_read_that_does_not_block_is_complete_at_once_if_its_bytes_are_there)
{
        struct setup s;
        cl_uint got = 0, expected;
        cl_event e;
        begin(&s, 5, 1);
        expected = steps_until_ahead(&s);
        uint64_t now = sim_now(s.sim);
        assert_int_equal(read_behind(&s, CL_FALSE, 0, NULL, &got, &e), CL_SUCCESS);
        assert_int_equal(clWaitForEvents(1, &e), CL_SUCCESS);
        assert_int_equal(sim_now(s.sim), now);
        assert_int_equal(got, expected);
        assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
        setup_end(&s);
}

TEST(a_read_waits_for_its_wait_list_and_fails_with_it)
{
        struct setup s;
        cl_uint got = 0, expected;
        cl_int err;
        cl_event gate, e;
        begin(&s, 6, 1);
        expected = steps_until_ahead(&s);
        gate = clCreateUserEvent(s.context, &err);
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(read_behind(&s, CL_FALSE, 1, &gate, &got, &e), CL_SUCCESS);
        sim_run(s.sim, 1000000000);
        assert_int_equal(got, 0);
        assert_true(command_status(e) > CL_COMPLETE);
        assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        assert_int_equal(clWaitForEvents(1, &e), CL_SUCCESS);
        assert_int_equal(got, expected);
        assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
        assert_int_equal(clReleaseEvent(gate), CL_SUCCESS);

        for (int i = 0; i < 3; i++) {
                step_on(&s, 0);
                read_number(&s, 0, s.buffer, 7, ++expected);
        }
        step_on(&s, 0);
        gate = clCreateUserEvent(s.context, &err);
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(clSetUserEventStatus(gate, -9), CL_SUCCESS);
        assert_int_equal(read_behind(&s, CL_TRUE, 1, &gate, &got, NULL),
                         CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        assert_int_equal(clReleaseEvent(gate), CL_SUCCESS);
        setup_end(&s);
}

TEST(a_read_behind_a_launch_that_fails_fails_if_it_waits_for_it)
{
        struct setup s;
        cl_uint got = 0, expected;
        cl_int err;
        cl_event gate, e;
        begin(&s, 9, 1);
        expected = steps_until_ahead(&s);
        read_number(&s, 0, s.buffer, 7, expected);
        gate = clCreateUserEvent(s.context, &err);
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(setup_launch(&s, 0, 1, &gate, &e), CL_SUCCESS);
        assert_int_equal(clSetUserEventStatus(gate, -9), CL_SUCCESS);
        assert_int_equal(read_behind(&s, CL_TRUE, 1, &e, &got, NULL),
                         CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        assert_true(command_status(e) < 0);
        read_number(&s, 0, s.buffer, 7, expected);
        assert_int_equal(clReleaseEvent(gate), CL_SUCCESS);
        assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
        setup_end(&s);
}

static void CL_CALLBACK release_event(cl_event e, cl_int status, void *user)
{
        assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
}

static void CL_CALLBACK release_all(cl_event e, cl_int status, void *user)
{
        struct setup *s = user;
        assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
        assert_int_equal(clReleaseMemObject(s->buffer), CL_SUCCESS);
        assert_int_equal(clReleaseCommandQueue(s->queues[0]), CL_SUCCESS);
        s->buffer = NULL;
}

/* The blocking read waits for the read ahead. Meanwhile a callback of the launch releases the objects of the call. */
TEST(a_callback_may_release_what_a_waiting_read_uses)
{
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct setup s;
                cl_int err;
                cl_event e;
                cl_uint got = 0;
                begin(&s, seed, 1);
                cl_uint step = 0;
                while (step < LEARNT + seed % 2) {
                        launch(&s, 0);
                        read_number(&s, 0, s.buffer, 7, ++step);
                }
                assert_int_equal(setup_launch(&s, 0, 0, NULL, &e), CL_SUCCESS);
                assert_int_equal(clSetEventCallback(e, CL_COMPLETE,
                                                    seed % 2 ? release_all : release_event, &s),
                                 CL_SUCCESS);
                assert_int_equal(read_behind(&s, CL_TRUE, 1, &e, &got, NULL), CL_SUCCESS);
                assert_int_equal(got, step + 1);
                sim_run(s.sim, 1000000000);
                if (!s.buffer) {
                        s.queues[0] = clCreateCommandQueueWithProperties(s.context, s.devices[0],
                                                                         NULL, &err);
                        assert_int_equal(err, CL_SUCCESS);
                        s.buffer = clCreateBuffer(s.context, CL_MEM_READ_WRITE, 4, NULL, &err);
                        assert_int_equal(err, CL_SUCCESS);
                }
                setup_end(&s);
        }
}

/* The times of a read are those of the command that the program enqueued. */
TEST(times_of_a_read_are_those_after_it_was_enqueued)
{
        struct setup s;
        cl_int err;
        cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0 };
        begin(&s, 7, 1);
        cl_command_queue plain = s.queues[0];
        s.queues[0] = clCreateCommandQueueWithProperties(s.context, s.devices[0], list, &err);
        assert_int_equal(err, CL_SUCCESS);
        for (cl_uint step = 1; step <= STEPS; step++) {
                cl_uint got = 0;
                cl_event kernel, read;
                cl_ulong end, queued;
                assert_int_equal(setup_launch(&s, 0, 0, NULL, &kernel), CL_SUCCESS);
                finish(&s, 0);
                assert_int_equal(read_behind(&s, CL_TRUE, 0, NULL, &got, &read), CL_SUCCESS);
                assert_int_equal(got, step);
                assert_int_equal(clGetEventProfilingInfo(kernel, CL_PROFILING_COMMAND_END,
                                                         sizeof(end), &end, NULL),
                                 CL_SUCCESS);
                assert_int_equal(clGetEventProfilingInfo(read, CL_PROFILING_COMMAND_QUEUED,
                                                         sizeof(queued), &queued, NULL),
                                 CL_SUCCESS);
                assert_true(queued >= end);
                assert_int_equal(clReleaseEvent(kernel), CL_SUCCESS);
                assert_int_equal(clReleaseEvent(read), CL_SUCCESS);
        }
        assert_int_equal(clReleaseCommandQueue(s.queues[0]), CL_SUCCESS);
        s.queues[0] = plain;
        setup_end(&s);
}

/* The program never takes the bytes. The buffer and the queue end as always, and later steps are right. */
TEST(a_read_that_nobody_asks_for_costs_its_bytes)
{
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct setup s;
                cl_int err;
                begin(&s, seed, 1);
                cl_uint expected = steps_until_ahead(&s);
                for (int i = 0; i < STEPS; i++) {
                        launch(&s, 0);
                        expected++;
                }
                setup_check(&s, 0, expected);
                assert_int_equal(clReleaseCommandQueue(s.queues[0]), CL_SUCCESS);
                s.queues[0] =
                        clCreateCommandQueueWithProperties(s.context, s.devices[0], NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
                for (int i = 0; i < STEPS; i++) {
                        step_on(&s, 0);
                        read_number(&s, 0, s.buffer, 7, ++expected);
                }
                launch(&s, 0); /* with a read ahead that is on its way at the end */
                setup_end(&s);
        }
}

TEST(a_read_behind_the_loss_of_its_server_fails)
{
        struct setup s;
        cl_uint got = 0;
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        setup_begin(&s, &(struct sim_params){
                                .seed = 8, .servers = 1, .prefetch = true, .forgiving = true });
        steps_until_ahead(&s);
        sim_kill_server(s.sim, 0);
        sim_run(s.sim, 1000000000);
        cl_int err = read_behind(&s, CL_TRUE, 0, NULL, &got, NULL);
        assert_int_equal(err, CL_DEVICE_NOT_AVAILABLE);
        setup_end(&s);
        log_threshold = before;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_read_that_follows_each_step_comes_with_the_step),
                cmocka_unit_test(a_read_without_the_option_takes_a_round_trip_each_time),
                cmocka_unit_test(all_reads_of_a_step_come_with_the_step),
                cmocka_unit_test(the_read_of_the_buffer_that_the_step_wrote_is_sent_ahead),
                cmocka_unit_test(bytes_that_were_written_meanwhile_are_read_anew),
                cmocka_unit_test(a_read_is_not_sent_ahead_of_writers_in_other_queues),
                cmocka_unit_test(the_event_of_a_read_that_was_sent_ahead_is_complete),
                cmocka_unit_test(
                        a_read_that_does_not_block_is_complete_at_once_if_its_bytes_are_there),
                cmocka_unit_test(a_read_waits_for_its_wait_list_and_fails_with_it),
                cmocka_unit_test(a_read_behind_a_launch_that_fails_fails_if_it_waits_for_it),
                cmocka_unit_test(a_callback_may_release_what_a_waiting_read_uses),
                cmocka_unit_test(times_of_a_read_are_those_after_it_was_enqueued),
                cmocka_unit_test(a_read_that_nobody_asks_for_costs_its_bytes),
                cmocka_unit_test(a_read_behind_the_loss_of_its_server_fails),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
