/* The client core and real engines in virtual time (support/sim.h): random programs against an oracle,
 * and single claims about servers, peers and events.
 *
 *   sim_sim --seeds FIRST LAST [--verbose] [--check-each] [--damage] [--no-memory] [--cuts]
 *     [--restarts] */
#include "support/check.h"

#include "api/command_buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vm.h"
#include "core/content_size.h"
#include "core/placement.h"
#include "support/program.h"
#include "support/sim.h"

struct options {
        bool verbose, check_each, damage, no_memory, cuts, restarts;
};

/* Until all devices are (not) available. */
static void wait_for_devices(struct sim *sim, cl_bool wanted)
{
        cl_device_id devices[16];
        cl_uint count;
        cl_bool available;
        assert_int_equal(
                clGetDeviceIDs(sim_platform(sim), CL_DEVICE_TYPE_CUSTOM, 16, devices, &count),
                CL_SUCCESS);
        for (cl_uint i = 0; i < count;) {
                assert_int_equal(clGetDeviceInfo(devices[i], CL_DEVICE_AVAILABLE, sizeof(available),
                                                 &available, NULL),
                                 CL_SUCCESS);
                if (available == wanted)
                        i++;
                else
                        sim_run(sim, 1000000);
        }
}

static void random_program(uint64_t seed, struct options o)
{
        struct rng rng = { ~seed };
        placement_chain_bytes = seed % 2 ? 1 : 1 << 20;
        struct sim *sim = sim_new(&(struct sim_params){
                .seed = seed,
                .servers = (unsigned)rng_range(&rng, 1, 3),
                .one_way = rng_chance(&rng, 20) ? 1u << rng_below(&rng, 3) : 0,
                /* None, any, or all of the ways between servers. */
                .blocked = rng_chance(&rng, 70) ? 0 : rng_u64(&rng) | -rng_below(&rng, 2),
                .verbose = o.verbose,
                .forgiving = o.no_memory,
                .reconnect_ns = o.cuts || o.restarts ? UINT64_MAX / 2 : 0,
                .wait_ns = o.cuts || (o.restarts && rng_chance(&rng, 50)) ? UINT64_MAX : 0,
                .cut_chance = o.cuts ? (unsigned)rng_range(&rng, 1, 100) : 0,
                .cuts = o.cuts ? 200 : 0,
        });
        program_run(sim,
                    &(struct program_params){
                            .seed = rng_u64(&rng),
                            .verbose = o.verbose,
                            .check_each = o.check_each,
                            .broken = o.no_memory,
                            .no_memory = o.no_memory,
                            .restart = o.restarts,
                            .break_after =
                                    o.damage || o.restarts ? (unsigned)rng_range(&rng, 1, 60) : 0,
                    });
        if (o.restarts) { /* whatever was left of the first, a second one computes */
                wait_for_devices(sim, CL_TRUE);
                program_run(sim, &(struct program_params){ .seed = rng_u64(&rng),
                                                           .verbose = o.verbose });
        }
        sim_free(sim);
}

TEST(random_programs_survive_lost_servers_and_links)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE; /* each loss is an error there */
        for (uint64_t seed = 1; seed <= 200; seed++)
                random_program(seed, (struct options){ .damage = true });
        log_threshold = before;
}

TEST(random_programs_survive_without_memory)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 200; seed++)
                random_program(seed, (struct options){ .no_memory = true });
        log_threshold = before;
}

TEST(random_programs_compute_what_the_oracle_says)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR; /* servers that can't reach each other are a warning */
        for (uint64_t seed = 1; seed <= 300; seed++)
                random_program(seed, (struct options){ 0 });
        log_threshold = before;
}

TEST(random_programs_do_not_notice_that_links_are_cut)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR; /* each cut is a warning */
        for (uint64_t seed = 1; seed <= 300; seed++)
                random_program(seed, (struct options){ .cuts = true });
        log_threshold = before;
}

TEST(random_programs_compute_on_servers_that_were_started_anew)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 200; seed++)
                random_program(seed, (struct options){ .restarts = true });
        log_threshold = before;
}

/* ---- single claims -------------------------------------------------------------------------- */

/* What most claims need: a context over all devices, one queue on each, a buffer and a kernel. */
struct setup {
        struct sim *sim;
        cl_device_id devices[16];
        cl_uint count;
        cl_context context;
        cl_command_queue queues[16];
        cl_program program;
        cl_kernel inc;
        cl_mem buffer;
};

enum { ITEMS = 25000 }; /* more than travels inline */

static void on_notice(const char *text, const void *info, size_t size, void *user)
{
        ++*(unsigned *)user;
}

static unsigned notices;

static void begin_in(struct setup *s)
{
        cl_int err;
        uint32_t by = 1;
        s->context = clCreateContext(NULL, s->count, s->devices, on_notice, &notices, &err);
        assert_int_equal(err, CL_SUCCESS);
        for (cl_uint i = 0; i < s->count; i++) {
                s->queues[i] =
                        clCreateCommandQueueWithProperties(s->context, s->devices[i], NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
        }
        s->program = clCreateProgramWithBuiltInKernels(s->context, s->count, s->devices,
                                                       "spancl.inc.i32", &err);
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(clBuildProgram(s->program, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
        s->inc = clCreateKernel(s->program, "spancl.inc.i32", &err);
        assert_int_equal(err, CL_SUCCESS);
        static uint32_t zeros[ITEMS];
        s->buffer = clCreateBuffer(s->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                   sizeof(zeros), zeros, &err);
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(clSetKernelArg(s->inc, 0, sizeof(cl_mem), &s->buffer), CL_SUCCESS);
        assert_int_equal(clSetKernelArg(s->inc, 1, sizeof(by), &by), CL_SUCCESS);
}

static void begin(struct setup *s, const struct sim_params *params)
{
        *s = (struct setup){ .sim = sim_new(params) };
        notices = 0;
        assert_int_equal(clGetDeviceIDs(sim_platform(s->sim), CL_DEVICE_TYPE_CUSTOM, 16, s->devices,
                                        &s->count),
                         CL_SUCCESS);
        begin_in(s);
}

static void end_in(struct setup *s)
{
        assert_int_equal(clReleaseKernel(s->inc), CL_SUCCESS);
        assert_int_equal(clReleaseProgram(s->program), CL_SUCCESS);
        assert_int_equal(clReleaseMemObject(s->buffer), CL_SUCCESS);
        for (cl_uint i = 0; i < s->count; i++)
                assert_int_equal(clReleaseCommandQueue(s->queues[i]), CL_SUCCESS);
        sim_run(s->sim, 1000); /* notices that are due hold the context */
        assert_int_equal(clReleaseContext(s->context), CL_SUCCESS);
}

static void end(struct setup *s)
{
        end_in(s);
        sim_free(s->sim);
}

static cl_int launch(struct setup *s, unsigned queue, cl_uint waits, const cl_event *list,
                     cl_event *ret)
{
        size_t items = ITEMS;
        return clEnqueueNDRangeKernel(s->queues[queue], s->inc, 1, NULL, &items, NULL, waits,
                                      waits ? list : NULL, ret);
}

static void check_items(struct setup *s, unsigned queue, uint32_t expected)
{
        static uint32_t got[ITEMS];
        assert_int_equal(clEnqueueReadBuffer(s->queues[queue], s->buffer, CL_TRUE, 0, sizeof(got),
                                             got, 0, NULL, NULL),
                         CL_SUCCESS);
        for (size_t i = 0; i < ITEMS; i++)
                assert_int_equal(got[i], expected);
}

static cl_int status_of(cl_event e)
{
        cl_int status = 99;
        assert_int_equal(
                clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL),
                CL_SUCCESS);
        return status;
}

TEST(devices_of_all_servers_stand_in_one_platform)
{
        struct setup s;
        begin(&s, &(struct sim_params){ .seed = 1, .servers = 3 });
        assert_int_equal(s.count, 6);
        end(&s);
        begin(&s, &(struct sim_params){ .seed = 1, .servers = 3, .refusing = 2 });
        assert_int_equal(s.count, 4);
        end(&s);
}

TEST(buffers_travel_between_servers_and_not_through_the_client)
{
        struct setup s;
        cl_event e[6];
        begin(&s, &(struct sim_params){ .seed = 1, .servers = 3 });
        assert_int_equal(launch(&s, 0, 0, NULL, &e[0]), CL_SUCCESS);
        for (unsigned i = 1; i < 6; i++)
                assert_int_equal(launch(&s, i, 1, &e[i - 1], &e[i]), CL_SUCCESS);
        for (unsigned i = 0; i < 6; i++)
                assert_int_equal(clFlush(s.queues[i]), CL_SUCCESS);
        assert_int_equal(clWaitForEvents(1, &e[5]), CL_SUCCESS);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(sim_traffic(s.sim, i, SIM_SERVERS_MAX), 0);
        assert_true(sim_traffic(s.sim, 0, 1) >= ITEMS * 4);
        assert_true(sim_traffic(s.sim, 1, 2) >= ITEMS * 4);
        check_items(&s, 5, 6);
        for (unsigned i = 0; i < 6; i++)
                assert_int_equal(clReleaseEvent(e[i]), CL_SUCCESS);
        end(&s);
}

/* Chunks of memory follow each other (core/svm.c), if nothing is in the way. */
/* Each device adds to the buffer in turn. */
static void go_round(struct setup *s, unsigned rounds)
{
        cl_event last = NULL;
        for (unsigned i = 0; i < rounds * s->count; i++) {
                cl_event next;
                unsigned q = (2 * i + (i >= s->count / 2)) % s->count;
                assert_int_equal(launch(s, q, last ? 1 : 0, &last, &next), CL_SUCCESS);
                assert_int_equal(clFlush(s->queues[q]), CL_SUCCESS);
                if (last)
                        assert_int_equal(clReleaseEvent(last), CL_SUCCESS);
                last = next;
        }
        assert_int_equal(clWaitForEvents(1, &last), CL_SUCCESS);
        assert_int_equal(clReleaseEvent(last), CL_SUCCESS);
}

static uint64_t blocked(unsigned from, unsigned to)
{
        return 1ull << (8 * from + to);
}

TEST(servers_that_can_reach_each_other_one_way_only_do_so)
{
        for (unsigned way = 0; way < 2; way++) {
                struct setup s;
                begin(&s, &(struct sim_params){
                                  .seed = way + 1, .servers = 2, .blocked = blocked(way, !way) });
                go_round(&s, 2);
                for (unsigned i = 0; i < 2; i++) {
                        assert_true(sim_traffic(s.sim, i, !i) >= ITEMS * 4);
                        assert_int_equal(sim_traffic(s.sim, i, SIM_SERVERS_MAX), 0);
                }
                check_items(&s, 0, 2 * s.count);
                end(&s);
        }
}

TEST(what_servers_that_cannot_reach_each_other_exchange_goes_through_the_client)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR; /* it is a warning */
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct setup s;
                begin(&s, &(struct sim_params){ .seed = seed,
                                                .servers = 3,
                                                .blocked = blocked(0, 1) | blocked(1, 0) });
                go_round(&s, 2);
                assert_int_equal(sim_traffic(s.sim, 0, 1), 0);
                assert_int_equal(sim_traffic(s.sim, 1, 0), 0);
                check_items(&s, 5, 2 * s.count);
                end(&s);
        }
        log_threshold = before;
}

TEST(a_relayed_session_ends_with_its_server)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct setup s;
                begin(&s,
                      &(struct sim_params){ .seed = seed, .servers = 2, .blocked = UINT64_MAX });
                cl_event e;
                go_round(&s, 1);
                assert_int_equal(launch(&s, 0, 0, NULL, NULL), CL_SUCCESS);
                assert_int_equal(launch(&s, 2, 0, NULL, &e), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[0]), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[2]), CL_SUCCESS);
                sim_run(s.sim, seed * seed * 97);
                sim_kill_server(s.sim, 0);
                cl_int r = clWaitForEvents(1, &e);
                assert_true(r == CL_SUCCESS || r == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
                assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
                end(&s);
        }
        log_threshold = before;
}

TEST(what_goes_to_many_servers_goes_down_a_chain)
{
        enum { SPREAD = 3 << 20, EIGHT = 8 };
        static uint8_t data[SPREAD], back[SPREAD];
        for (size_t i = 0; i < SPREAD; i++)
                data[i] = (uint8_t)(i * 31 + (i >> 8) * 7);
        for (uint64_t seed = 1; seed <= 5; seed++) {
                struct setup s;
                cl_int err;
                begin(&s,
                      &(struct sim_params){
                              .seed = seed, .servers = EIGHT, .devices = "0", .room = 1 << 20 });
                cl_mem m = clCreateBuffer(s.context, CL_MEM_READ_WRITE, SPREAD, NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
                assert_int_equal(clEnqueueWriteBuffer(s.queues[0], m, CL_TRUE, 0, SPREAD, data, 0,
                                                      NULL, NULL),
                                 CL_SUCCESS);
                for (unsigned i = 1; i < s.count; i++)
                        assert_int_equal(
                                clEnqueueMigrateMemObjects(s.queues[i], 1, &m, 0, 0, NULL, NULL),
                                CL_SUCCESS);
                for (unsigned i = 1; i < s.count; i++)
                        assert_int_equal(clFinish(s.queues[i]), CL_SUCCESS);
                for (unsigned from = 0; from < EIGHT; from++) {
                        uint64_t sent = 0;
                        for (unsigned to = 0; to < EIGHT; to++)
                                sent += sim_traffic(s.sim, from, to);
                        assert_true(sent < SPREAD + SPREAD / 16); /* one copy and its frames */
                }
                for (unsigned i = 0; i < s.count; i++) {
                        assert_int_equal(clEnqueueReadBuffer(s.queues[i], m, CL_TRUE, 0, SPREAD,
                                                             back, 0, NULL, NULL),
                                         CL_SUCCESS);
                        assert_memory_equal(data, back, SPREAD);
                }
                assert_int_equal(clReleaseMemObject(m), CL_SUCCESS);
                end(&s);
        }
}

static uint64_t received(struct setup *s, unsigned to)
{
        uint64_t sum = 0;
        for (unsigned from = 0; from < sim_servers(s->sim); from++)
                sum += sim_traffic(s->sim, from, to);
        return sum;
}

TEST(what_several_servers_have_comes_from_each_of_them)
{
        enum { LARGE = 9 << 20, SERVERS = 4, LAST = SERVERS - 1 };
        static uint8_t data[LARGE], back[LARGE];
        for (size_t i = 0; i < LARGE; i++)
                data[i] = (uint8_t)(i * 29 + (i >> 8) * 11);
        for (uint64_t seed = 1; seed <= 10; seed++) {
                struct setup s;
                cl_int err;
                begin(&s,
                      &(struct sim_params){
                              .seed = seed, .servers = SERVERS, .devices = "0", .room = 1 << 20 });
                cl_mem m = clCreateBuffer(s.context, CL_MEM_READ_WRITE, LARGE, NULL, &err);
                OK(err);
                OK(clEnqueueWriteBuffer(s.queues[0], m, CL_TRUE, 0, LARGE, data, 0, NULL, NULL));
                for (unsigned i = 1; i < LAST; i++) {
                        OK(clEnqueueMigrateMemObjects(s.queues[i], 1, &m, 0, 0, NULL, NULL));
                        OK(clFinish(s.queues[i]));
                }
                uint64_t before[SERVERS];
                for (unsigned i = 0; i < SERVERS; i++)
                        before[i] = sim_traffic(s.sim, i, LAST);
                OK(clEnqueueMigrateMemObjects(s.queues[LAST], 1, &m, 0, 0, NULL, NULL));
                OK(clFinish(s.queues[LAST]));
                for (unsigned i = 0; i < LAST; i++)
                        assert_true(sim_traffic(s.sim, i, LAST) - before[i] >= 1 << 20);
                assert_true(received(&s, LAST) < LARGE + LARGE / 16); /* nothing twice */
                for (unsigned i = 0; i < s.count; i++) {
                        OK(clEnqueueReadBuffer(s.queues[i], m, CL_TRUE, 0, LARGE, back, 0, NULL,
                                               NULL));
                        assert_memory_equal(data, back, LARGE);
                }
                OK(clReleaseMemObject(m));
                end(&s);
        }
}

TEST(of_a_buffer_with_a_content_size_that_much_is_moved_whatever_breaks)
{
        enum { WHOLE = 300000, CONTENT = 70000 };
        static uint8_t data[WHOLE], back[WHOLE];
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR; /* each cut is a warning */
        for (uint64_t seed = 1; seed <= 30; seed++) {
                struct setup s;
                struct rng rng = { seed };
                cl_int err;
                uint64_t n = CONTENT;
                begin(&s, &(struct sim_params){ .seed = seed,
                                                .servers = 3,
                                                .reconnect_ns = UINT64_MAX / 2,
                                                .wait_ns = UINT64_MAX,
                                                .blocked = seed % 4 ? 0 : UINT64_MAX });
                cl_mem m = clCreateBuffer(s.context, CL_MEM_READ_WRITE, WHOLE, NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
                cl_mem size = clCreateBuffer(s.context, CL_MEM_READ_WRITE, 8, NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
                assert_int_equal(clSetContentSizeBufferPoCL(m, size), CL_SUCCESS);
                sim_cut_often(s.sim, seed % 2 ? 50 : 0, 20);
                for (unsigned round = 0; round < 6; round++) {
                        unsigned from = (unsigned)rng_below(&rng, s.count);
                        unsigned to = (unsigned)rng_below(&rng, s.count);
                        for (size_t i = 0; i < WHOLE; i++)
                                data[i] = (uint8_t)(rng_u64(&rng) >> 7);
                        assert_int_equal(clEnqueueWriteBuffer(s.queues[from], m, CL_TRUE, 0, WHOLE,
                                                              data, 0, NULL, NULL),
                                         CL_SUCCESS);
                        assert_int_equal(clEnqueueWriteBuffer(s.queues[from], size, CL_TRUE, 0, 8,
                                                              &n, 0, NULL, NULL),
                                         CL_SUCCESS);
                        memset(back, 0xee, WHOLE);
                        assert_int_equal(clEnqueueReadBuffer(s.queues[to], m, CL_TRUE, 0, WHOLE,
                                                             back, 0, NULL, NULL),
                                         CL_SUCCESS);
                        assert_memory_equal(data, back, CONTENT);
                        assert_int_equal(back[WHOLE - 1], 0xee);
                }
                assert_int_equal(clReleaseMemObject(m), CL_SUCCESS);
                assert_int_equal(clReleaseMemObject(size), CL_SUCCESS);
                sim_cut_often(s.sim, 0, 0);
                end(&s);
        }
        log_threshold = before;
}

TEST(links_between_servers_that_are_cut_are_made_again)
{
        for (uint64_t seed = 1; seed <= 40; seed++) {
                struct setup s;
                cl_event last = NULL;
                begin(&s, &(struct sim_params){ .seed = seed, .servers = 2 });
                go_round(&s, 1);
                for (unsigned i = 0; i < 8; i++) {
                        cl_event next;
                        unsigned q = 2 * (i % 2);
                        assert_int_equal(launch(&s, q, last ? 1 : 0, &last, &next), CL_SUCCESS);
                        assert_int_equal(clFlush(s.queues[q]), CL_SUCCESS);
                        if (last)
                                assert_int_equal(clReleaseEvent(last), CL_SUCCESS);
                        last = next;
                        sim_run(s.sim, seed * seed * seed);
                        sim_cut_peers(s.sim, 0, 1);
                }
                assert_int_equal(clWaitForEvents(1, &last), CL_SUCCESS);
                assert_int_equal(clReleaseEvent(last), CL_SUCCESS);
                assert_int_equal(sim_traffic(s.sim, 0, SIM_SERVERS_MAX), 0);
                assert_int_equal(sim_traffic(s.sim, 1, SIM_SERVERS_MAX), 0);
                check_items(&s, 3, s.count + 8);
                end(&s);
        }
}

TEST(shared_virtual_memory_gives_way_to_what_is_there)
{
        struct setup s;
        uint64_t at, size = 8 << 20;
        static uint8_t got[64];
        begin(&s, &(struct sim_params){ .seed = 5, .servers = 2 });
        uint8_t *first = clSVMAlloc(s.context, 0, 100, 0);
        assert_non_null(first);
        uint64_t next = (uint64_t)(uintptr_t)first + (4 << 20);
        assert_int_equal(vm_map(next, VM_GRANULE, &at), 0);
        memset((void *)(uintptr_t)at, 7, 64);
        uint8_t *second = clSVMAlloc(s.context, 0, size, 0);
        assert_non_null(second);
        assert_true((uint64_t)(uintptr_t)second + size <= next ||
                    (uint64_t)(uintptr_t)second >= next + VM_GRANULE);
        assert_int_equal(*(uint8_t *)(uintptr_t)at, 7);
        assert_int_equal(
                clEnqueueSVMMemFill(s.queues[1], second + size - 64, "abcd", 4, 64, 0, NULL, NULL),
                CL_SUCCESS);
        assert_int_equal(clFinish(s.queues[1]), CL_SUCCESS);
        assert_int_equal(clEnqueueSVMMemcpy(s.queues[2], CL_TRUE, got, second + size - 64, 64, 0,
                                            NULL, NULL),
                         CL_SUCCESS);
        assert_memory_equal(got + 60, "abcd", 4);
        vm_unmap(at, VM_GRANULE);
        clSVMFree(s.context, first);
        clSVMFree(s.context, second);
        end(&s);
}

/* Reads and then something that comes after the read: when that is complete, the bytes are here. `how`: the
 * next command of the queue, one that waits for the read, one behind a barrier, one of another server. */
static void read_and_more(uint64_t seed, int how)
{
        static uint32_t got[ITEMS], more[ITEMS];
        struct setup s;
        cl_int err;
        cl_event read, kernel, after;
        bool in_order = how == 0;
        begin(&s, &(struct sim_params){ .seed = seed, .servers = 2 });
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
                assert_int_equal(launch(&s, 2, 1, &read, &kernel), CL_SUCCESS);
                assert_int_equal(launch(&s, 3, 1, &kernel, &after), CL_SUCCESS);
                assert_int_equal(clReleaseEvent(kernel), CL_SUCCESS);
        }
        sim_run(s.sim, seed * 1000);
        for (unsigned i = 0; i < s.count; i++)
                assert_int_equal(clFlush(s.queues[i]), CL_SUCCESS);
        assert_int_equal(clFlush(q), CL_SUCCESS);
        assert_int_equal(clWaitForEvents(1, &after), CL_SUCCESS);
        for (size_t i = 0; i < ITEMS; i++)
                assert_int_equal(got[i], 0);
        assert_int_equal(status_of(read), CL_COMPLETE);
        assert_int_equal(clReleaseEvent(read), CL_SUCCESS);
        assert_int_equal(clReleaseEvent(after), CL_SUCCESS);
        assert_int_equal(clReleaseCommandQueue(q), CL_SUCCESS);
        end(&s);
}

TEST(what_comes_after_a_read_is_not_complete_before_its_bytes_are_here)
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
                begin(&s, &(struct sim_params){ .seed = seed, .servers = 1 });
                size_t size = seed % 2 ? sizeof(through) : 400;
                memset(through, 255, sizeof(through));
                cl_mem copy = clCreateBuffer(s.context, CL_MEM_READ_WRITE, size, NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
                assert_int_equal(launch(&s, 0, 0, NULL, NULL), CL_SUCCESS);
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
                end(&s);
        }
}

/* A blocking write is complete for the application: what it enqueues then, on any queue, comes after it. */
static void write_and_go_on(uint64_t seed, bool in_order, size_t items)
{
        static uint32_t values[ITEMS], got[ITEMS];
        struct setup s;
        cl_int err;
        cl_command_queue q[2];
        begin(&s, &(struct sim_params){ .seed = seed, .servers = 1 });
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
        end(&s);
}

TEST(what_is_enqueued_after_a_blocking_write_comes_after_it)
{
        for (uint64_t seed = 1; seed <= 100; seed++)
                write_and_go_on(seed, seed % 2, seed % 3 ? ITEMS : 100);
}

/* ---- connections that are lost ---- */

static bool is_available(cl_device_id d)
{
        cl_bool available;
        assert_int_equal(
                clGetDeviceInfo(d, CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL),
                CL_SUCCESS);
        return available;
}

/* Until the client has noticed (false), or has it back (true). */
static void run_until(struct setup *s, bool available)
{
        while (is_available(s->devices[0]) != available)
                sim_run(s->sim, 1000);
        sim_run(s->sim, 1); /* callbacks */
}

TEST(while_a_server_is_away_calls_fail_and_what_is_in_flight_is_kept)
{
        for (uint64_t seed = 1; seed <= 50; seed++) {
                struct setup s;
                static uint32_t got[ITEMS], ones[ITEMS];
                size_t size = sizeof(got);
                cl_event e;
                begin(&s, &(struct sim_params){ .seed = seed,
                                                .servers = 2,
                                                .delay_ns = 1000000,
                                                .reconnect_ns = 1000000000000 });
                check_items(&s, 0, 0);
                for (unsigned i = 0; i < 5; i++)
                        assert_int_equal(launch(&s, 0, 0, NULL, i == 4 ? &e : NULL), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[0]), CL_SUCCESS);
                sim_cut_client(s.sim, 0);
                run_until(&s, false);
                assert_true(notices > 0);
                assert_true(is_available(s.devices[2])); /* the other server's */
                assert_int_equal(launch(&s, 0, 0, NULL, NULL), CL_DEVICE_NOT_AVAILABLE);
                assert_int_equal(clFinish(s.queues[0]), CL_DEVICE_NOT_AVAILABLE);
                assert_int_equal(clEnqueueReadBuffer(s.queues[0], s.buffer, CL_TRUE, 0, size, got,
                                                     0, NULL, NULL),
                                 CL_DEVICE_NOT_AVAILABLE);
                assert_int_equal(clEnqueueWriteBuffer(s.queues[0], s.buffer, CL_TRUE, 0, size, ones,
                                                      0, NULL, NULL),
                                 CL_DEVICE_NOT_AVAILABLE);
                run_until(&s, true);
                assert_int_equal(clWaitForEvents(1, &e), CL_SUCCESS);
                assert_int_equal(launch(&s, 0, 0, NULL, NULL), CL_SUCCESS);
                check_items(&s, 0, 6);
                assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
                end(&s);
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
                begin(&s, &(struct sim_params){ .seed = seed,
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
                end(&s);
        }
        assert_true(failed > 50);
}

/* What arrives last is of one piece; its first message, a clock's, is answered at once, and that shows the loss. */
TEST(what_a_server_said_last_before_its_connection_was_lost_counts)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR; /* the loss is a warning */
        for (uint64_t seed = 1; seed <= 100; seed++) {
                struct setup s;
                cl_event e[2];
                begin(&s, &(struct sim_params){ .seed = seed,
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
                end(&s);
        }
        log_threshold = before;
}

TEST(a_server_that_does_not_come_back_in_time_is_lost)
{
        struct setup s;
        cl_event e;
        begin(&s, &(struct sim_params){
                          .seed = 1, .servers = 2, .reconnect_ns = 1000000000, .forgiving = true });
        assert_int_equal(launch(&s, 0, 0, NULL, &e), CL_SUCCESS);
        assert_int_equal(clFlush(s.queues[0]), CL_SUCCESS);
        sim_kill_server(s.sim, 0);
        run_until(&s, false);
        sim_run(s.sim, 100000000);
        assert_true(status_of(e) > CL_COMPLETE);
        sim_run(s.sim, 2000000000);
        assert_int_equal(status_of(e), CL_DEVICE_NOT_AVAILABLE);
        assert_int_equal(launch(&s, 0, 0, NULL, NULL), CL_DEVICE_NOT_AVAILABLE);
        assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
        end(&s);
}

/* Objects of the session that has ended get errors and do not reach the new one. */
TEST(a_server_that_was_started_anew_has_the_same_devices_and_nothing_of_the_old_session)
{
        for (uint64_t seed = 1; seed <= 40; seed++) {
                struct setup s, t;
                struct engine_counts n;
                cl_event e;
                begin(&s, &(struct sim_params){
                                  .seed = seed, .servers = 2, .reconnect_ns = 1000000000000 });
                t = s;
                assert_int_equal(launch(&s, 0, 0, NULL, &e), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[0]), CL_SUCCESS);
                sim_run(s.sim, seed * 1000);
                sim_restart_server(s.sim, 0, NULL);
                run_until(&s, false);
                run_until(&s, true);
                assert_true(status_of(e) <= CL_COMPLETE);
                assert_int_equal(launch(&s, 0, 0, NULL, NULL), CL_DEVICE_NOT_AVAILABLE);
                assert_int_equal(launch(&s, 0, 1, &e, NULL), CL_DEVICE_NOT_AVAILABLE);
                assert_int_equal(launch(&s, 2, 0, NULL, NULL), CL_SUCCESS); /* the other one's */
                assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
                begin_in(&t);
                assert_int_equal(launch(&t, 0, 0, NULL, NULL), CL_SUCCESS);
                assert_int_equal(launch(&s, 1, 0, NULL, NULL), CL_DEVICE_NOT_AVAILABLE);
                check_items(&t, 3, 1);
                end_in(&t);
                sim_run_until_idle(s.sim);
                engine_lock(sim_engine(s.sim, 0));
                engine_get_counts(sim_engine(s.sim, 0), &n);
                engine_unlock(sim_engine(s.sim, 0));
                assert_int_equal(n.objects, 0);
                end(&s);
        }
}

TEST(a_device_that_does_not_come_back_stays_unavailable)
{
        struct setup s;
        begin(&s, &(struct sim_params){ .seed = 1, .servers = 1, .reconnect_ns = 1000000000000 });
        for (unsigned round = 0; round < 3; round++) {
                sim_restart_server(s.sim, 0, round == 1 ? "0" : "1");
                run_until(&s, false);
                while (!is_available(s.devices[round != 1]))
                        sim_run(s.sim, 1000);
                assert_false(is_available(s.devices[round == 1]));
                end_in(&s);
                cl_device_id both[2] = { s.devices[0], s.devices[1] };
                s.devices[0] = s.devices[round != 1];
                s.count = 1;
                begin_in(&s);
                assert_int_equal(launch(&s, 0, 0, NULL, NULL), CL_SUCCESS);
                check_items(&s, 0, 1);
                s.devices[0] = both[0];
        }
        end(&s);
}

TEST(a_user_event_holds_commands_on_every_server)
{
        struct setup s;
        cl_int err;
        cl_event e[3], gate;
        begin(&s, &(struct sim_params){ .seed = 2, .servers = 3 });
        gate = clCreateUserEvent(s.context, &err);
        assert_int_equal(err, CL_SUCCESS);
        cl_event before = gate;
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(launch(&s, 2 * i, 1, &before, &e[i]), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[2 * i]), CL_SUCCESS);
                before = e[i];
        }
        sim_run(s.sim, 1000000000);
        for (unsigned i = 0; i < 3; i++)
                assert_true(status_of(e[i]) > CL_COMPLETE);
        assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        assert_int_equal(clWaitForEvents(3, e), CL_SUCCESS);
        check_items(&s, 4, 3);
        assert_int_equal(clReleaseEvent(gate), CL_SUCCESS);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(clReleaseEvent(e[i]), CL_SUCCESS);
        end(&s);
}

TEST(a_failed_user_event_fails_what_waits_for_it_and_nothing_else)
{
        struct setup s;
        cl_int err;
        cl_event e[3], gate, other;
        begin(&s, &(struct sim_params){ .seed = 3, .servers = 2 });
        gate = clCreateUserEvent(s.context, &err);
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(launch(&s, 1, 1, &gate, &e[0]), CL_SUCCESS);
        assert_int_equal(launch(&s, 2, 1, &e[0], &e[1]), CL_SUCCESS);
        assert_int_equal(clEnqueueMarkerWithWaitList(s.queues[3], 1, &e[1], &e[2]), CL_SUCCESS);
        assert_int_equal(clEnqueueMarkerWithWaitList(s.queues[0], 0, NULL, &other), CL_SUCCESS);
        for (unsigned i = 0; i < 4; i++)
                assert_int_equal(clFlush(s.queues[i]), CL_SUCCESS);
        assert_int_equal(clSetUserEventStatus(gate, -7), CL_SUCCESS);
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(clWaitForEvents(1, &e[i]),
                                 CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
                assert_true(status_of(e[i]) < 0);
                assert_int_equal(clReleaseEvent(e[i]), CL_SUCCESS);
        }
        assert_int_equal(clWaitForEvents(1, &other), CL_SUCCESS);
        assert_int_equal(clReleaseEvent(other), CL_SUCCESS);
        assert_int_equal(clReleaseEvent(gate), CL_SUCCESS);
        end(&s);
}

TEST(a_lost_server_fails_its_commands_and_no_others)
{
        for (uint64_t seed = 0; seed < 40; seed++) {
                struct setup s;
                cl_event lost[8], kept;
                cl_int err;
                unsigned n = 0;
                static uint32_t data[ITEMS];
                begin(&s, &(struct sim_params){ .seed = seed, .servers = 2 });
                cl_mem own = clCreateBuffer(s.context, CL_MEM_READ_WRITE, sizeof(data), NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
                for (; n < 8; n++)
                        assert_int_equal(launch(&s, n % 2, 0, NULL, &lost[n]), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[0]), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[1]), CL_SUCCESS);
                assert_int_equal(clEnqueueWriteBuffer(s.queues[2], own, CL_FALSE, 0, sizeof(data),
                                                      data, 0, NULL, &kept),
                                 CL_SUCCESS);
                sim_run(s.sim, seed * seed * 997);
                sim_kill_server(s.sim, 0);
                for (unsigned i = 0; i < n; i++) {
                        cl_int r = clWaitForEvents(1, &lost[i]);
                        cl_int status = status_of(lost[i]);
                        assert_true(r == CL_SUCCESS
                                            ? status == CL_COMPLETE
                                            : r == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST &&
                                                      status < 0);
                        assert_int_equal(clReleaseEvent(lost[i]), CL_SUCCESS);
                }
                /* What needs the server says so, at the latest now. */
                sim_run(s.sim, 1000000000);
                assert_int_equal(launch(&s, 0, 0, NULL, NULL), CL_DEVICE_NOT_AVAILABLE);
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
                end(&s);
        }
}

TEST(the_only_server_dies_while_the_client_waits)
{
        for (uint64_t seed = 0; seed < 40; seed++) {
                struct setup s;
                static uint32_t data[ITEMS];
                begin(&s, &(struct sim_params){ .seed = seed, .servers = 1 });
                for (unsigned i = 0; i < seed; i++)
                        assert_int_equal(launch(&s, i % 2, 0, NULL, NULL), CL_SUCCESS);
                sim_kill_server(s.sim, 0);
                cl_int r = clEnqueueReadBuffer(s.queues[0], s.buffer, CL_TRUE, 0, sizeof(data),
                                               data, 0, NULL, NULL);
                assert_true(r == CL_DEVICE_NOT_AVAILABLE ||
                            r == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
                assert_int_equal(clFinish(s.queues[1]), CL_DEVICE_NOT_AVAILABLE);
                end(&s);
        }
}

TEST(nothing_stays_on_the_servers_when_the_client_releases_it)
{
        struct setup s;
        begin(&s, &(struct sim_params){ .seed = 5, .servers = 2 });
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
        end(&s);
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
        begin(&s, &(struct sim_params){ .seed = 6, .servers = 1 });
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
        end(&s);
}

/* ---- command buffers ------------------------------------------------------------------------ */

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
                        e = launch(s, k, *last != NULL, last, &next);
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
        begin(&s, &(struct sim_params){ .seed = seed, .servers = 2, .forgiving = damage });
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
                check_items(&s, (unsigned)rng_below(&r, s.count), expected);
        }
        if (last)
                OK(clReleaseEvent(last));
        end(&s);
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

int main(int argc, char **argv)
{
        if (argc >= 4 && !strcmp(argv[1], "--seeds")) {
                uint64_t first = strtoull(argv[2], NULL, 0), last = strtoull(argv[3], NULL, 0);
                struct options o = { 0 };
                for (int i = 4; i < argc; i++) {
                        o.verbose |= !strcmp(argv[i], "--verbose");
                        o.check_each |= !strcmp(argv[i], "--check-each");
                        o.damage |= !strcmp(argv[i], "--damage");
                        o.cuts |= !strcmp(argv[i], "--cuts");
                        o.restarts |= !strcmp(argv[i], "--restarts");
                        o.no_memory |= !strcmp(argv[i], "--no-memory");
                }
                if (!o.verbose)
                        log_threshold = LOG_NONE;
                for (uint64_t seed = first; seed <= last; seed++)
                        random_program(seed, o);
                printf("%" PRIu64 " seeds passed\n", last - first + 1);
                return 0;
        }
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(devices_of_all_servers_stand_in_one_platform),
                cmocka_unit_test(buffers_travel_between_servers_and_not_through_the_client),
                cmocka_unit_test(servers_that_can_reach_each_other_one_way_only_do_so),
                cmocka_unit_test(
                        what_servers_that_cannot_reach_each_other_exchange_goes_through_the_client),
                cmocka_unit_test(a_relayed_session_ends_with_its_server),
                cmocka_unit_test(what_goes_to_many_servers_goes_down_a_chain),
                cmocka_unit_test(what_several_servers_have_comes_from_each_of_them),
                cmocka_unit_test(
                        of_a_buffer_with_a_content_size_that_much_is_moved_whatever_breaks),
                cmocka_unit_test(links_between_servers_that_are_cut_are_made_again),
                cmocka_unit_test(shared_virtual_memory_gives_way_to_what_is_there),
                cmocka_unit_test(a_user_event_holds_commands_on_every_server),
                cmocka_unit_test(what_is_enqueued_after_a_blocking_write_comes_after_it),
                cmocka_unit_test(what_comes_after_a_read_is_not_complete_before_its_bytes_are_here),
                cmocka_unit_test(a_write_of_what_was_read_before_it_sends_the_bytes_that_were_read),
                cmocka_unit_test(a_failed_user_event_fails_what_waits_for_it_and_nothing_else),
                cmocka_unit_test(while_a_server_is_away_calls_fail_and_what_is_in_flight_is_kept),
                cmocka_unit_test(
                        a_call_that_waits_for_a_server_that_goes_away_fails_and_lets_go_of_memory),
                cmocka_unit_test(what_a_server_said_last_before_its_connection_was_lost_counts),
                cmocka_unit_test(a_server_that_does_not_come_back_in_time_is_lost),
                cmocka_unit_test(
                        a_server_that_was_started_anew_has_the_same_devices_and_nothing_of_the_old_session),
                cmocka_unit_test(a_device_that_does_not_come_back_stays_unavailable),
                cmocka_unit_test(random_programs_compute_on_servers_that_were_started_anew),
                cmocka_unit_test(a_lost_server_fails_its_commands_and_no_others),
                cmocka_unit_test(the_only_server_dies_while_the_client_waits),
                cmocka_unit_test(nothing_stays_on_the_servers_when_the_client_releases_it),
                cmocka_unit_test(creating_setting_enqueuing_and_releasing_ask_the_server_nothing),
                cmocka_unit_test(recordings_compute_what_their_commands_would),
                cmocka_unit_test(recordings_survive_lost_servers),
                cmocka_unit_test(random_programs_compute_what_the_oracle_says),
                cmocka_unit_test(random_programs_survive_lost_servers_and_links),
                cmocka_unit_test(random_programs_survive_without_memory),
                cmocka_unit_test(random_programs_do_not_notice_that_links_are_cut),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
