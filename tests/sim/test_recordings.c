/* Command buffers over several servers. */
#include "support/check.h"

#include "api/command_buffer.h"

#include "base/log.h"
#include "support/setup.h"

enum { RUNS = 12 };

/* Launches that each wait for one or two earlier ones, so that all are in one chain, on `queues` in no order;
 * sometimes a barrier. */
static void *record_chain(struct setup *s, struct rng *r, cl_uint queue_count,
                          const cl_command_queue *queues, unsigned *ret_count)
{
        void *b = cb_create(queue_count, queues, SIMULTANEOUS_USE);
        size_t items = ITEMS;
        cl_uint last = 0;
        *ret_count = 1 + (unsigned)rng_below(r, 6);
        for (unsigned i = 0; i < *ret_count; i++) {
                bool barrier = last && !rng_below(r, 3);
                cl_command_queue q = queues[rng_below(r, queue_count)];
                if (barrier)
                        OK(cb.barrier(b, q, NULL, 0, NULL, &last, NULL));
                OK(cb.kernel(b, q, NULL, s->inc, 1, NULL, &items, NULL, last && !barrier,
                             last && !barrier ? &last : NULL, &last, NULL));
        }
        OK(cb.finalize(b));
        return b;
}

/* One buffer, recordings on every device, runs in a chain of events; single launches in between. */
static uint32_t run_chain(struct setup *s, struct rng *r, void **buffers, const unsigned *counts,
                          cl_event *last)
{
        uint32_t expected = 0;
        *last = NULL;
        for (unsigned i = 0; i < RUNS; i++) {
                unsigned k = (unsigned)rng_below(r, s->count);
                cl_event next = NULL;
                cl_int e;
                if (rng_below(r, 4)) {
                        e = cb.enqueue(0, NULL, buffers[k], *last != NULL, *last ? last : NULL,
                                       &next);
                        expected += counts[k];
                } else {
                        e = setup_launch(s, k, *last != NULL, last, &next);
                        expected++;
                }
                if (e != CL_SUCCESS)
                        break;
                OK(clFlush(s->queues[k]));
                if (*last)
                        OK(clReleaseEvent(*last));
                *last = next;
        }
        return expected;
}

static void chain_of_recordings(uint64_t seed, bool damage)
{
        struct setup s;
        struct rng r = { seed };
        void *buffers[16];
        unsigned counts[16];
        cl_event last;
        setup_begin(&s, &(struct sim_params){ .seed = seed, .servers = 2, .forgiving = damage });
        cb_load(sim_platform(s.sim));
        for (unsigned i = 0; i < s.count; i++) {
                cl_int err;
                OK(clReleaseCommandQueue(s.queues[i]));
                cl_queue_properties properties[] = {
                        CL_QUEUE_PROPERTIES,
                        rng_below(&r, 2) ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, 0
                };
                s.queues[i] = clCreateCommandQueueWithProperties(s.context, s.devices[i],
                                                                 properties, &err);
                OK(err);
        }
        /* Some of them on both devices of a server. */
        for (unsigned i = 0; i < s.count; i++) {
                cl_command_queue queues[2] = { s.queues[i], s.queues[i ^ 1] };
                cl_uint one_or_two = 1 + (cl_uint)rng_below(&r, 2);
                buffers[i] = record_chain(&s, &r, one_or_two, queues, &counts[i]);
        }
        uint32_t expected = run_chain(&s, &r, buffers, counts, &last);
        if (damage) {
                sim_run(s.sim, rng_below(&r, 2000000));
                sim_kill_server(s.sim, (unsigned)rng_below(&r, 2));
                if (last)
                        (void)!clWaitForEvents(1, &last);
        }
        for (unsigned i = 0; i < s.count; i++)
                OK(cb.release(buffers[i]));
        if (!damage) {
                OK(clWaitForEvents(1, &last));
                setup_check(&s, (unsigned)rng_below(&r, s.count), expected);
        }
        if (last)
                OK(clReleaseEvent(last));
        setup_end(&s);
}

TEST(recordings_compute_what_their_commands_would)
{
        for (uint64_t seed = 1; seed <= 60; seed++)
                chain_of_recordings(seed, false);
}

TEST(recordings_survive_lost_servers)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 40; seed++)
                chain_of_recordings(seed, true);
        log_threshold = before;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(recordings_compute_what_their_commands_would),
                cmocka_unit_test(recordings_survive_lost_servers),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
