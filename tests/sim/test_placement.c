/* How bytes get to the server that needs them. */
#include "support/check.h"

#include "api/command_buffer.h"

#include <string.h>

#include "base/log.h"
#include "core/link/server.h"
#include "core/memory/content_size.h"
#include "core/memory/placement.h"
#include "os/vm.h"
#include "support/setup.h"

TEST(devices_of_all_servers_stand_in_one_platform)
{
        struct setup s;
        setup_begin(&s, &(struct sim_params){ .seed = 1, .servers = 3 });
        assert_int_equal(s.count, 6);
        setup_end(&s);
        setup_begin(&s, &(struct sim_params){ .seed = 1, .servers = 3, .refusing = 2 });
        assert_int_equal(s.count, 4);
        setup_end(&s);
}

TEST(buffers_travel_between_servers_and_not_through_the_client)
{
        struct setup s;
        cl_event e[6];
        setup_begin(&s, &(struct sim_params){ .seed = 1, .servers = 3 });
        assert_int_equal(setup_launch(&s, 0, 0, NULL, &e[0]), CL_SUCCESS);
        for (unsigned i = 1; i < 6; i++)
                assert_int_equal(setup_launch(&s, i, 1, &e[i - 1], &e[i]), CL_SUCCESS);
        for (unsigned i = 0; i < 6; i++)
                assert_int_equal(clFlush(s.queues[i]), CL_SUCCESS);
        assert_int_equal(clWaitForEvents(1, &e[5]), CL_SUCCESS);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(sim_traffic(s.sim, i, SIM_SERVERS_MAX), 0);
        assert_true(sim_traffic(s.sim, 0, 1) > 0); /* it may be packed */
        assert_true(sim_traffic(s.sim, 1, 2) > 0);
        setup_check(&s, 5, 6);
        for (unsigned i = 0; i < 6; i++)
                assert_int_equal(clReleaseEvent(e[i]), CL_SUCCESS);
        setup_end(&s);
}

/* Each device adds to the buffer in turn. */
static void go_round(struct setup *s, unsigned rounds)
{
        cl_event last = NULL;
        for (unsigned i = 0; i < rounds * s->count; i++) {
                cl_event next;
                unsigned q = (2 * i + (i >= s->count / 2)) % s->count;
                assert_int_equal(setup_launch(s, q, last ? 1 : 0, &last, &next), CL_SUCCESS);
                assert_int_equal(clFlush(s->queues[q]), CL_SUCCESS);
                if (last)
                        assert_int_equal(clReleaseEvent(last), CL_SUCCESS);
                last = next;
        }
        assert_int_equal(clWaitForEvents(1, &last), CL_SUCCESS);
        assert_int_equal(clReleaseEvent(last), CL_SUCCESS);
}

TEST(servers_that_can_reach_each_other_one_way_only_do_so)
{
        for (unsigned way = 0; way < 2; way++) {
                struct setup s;
                setup_begin(&s, &(struct sim_params){ .seed = way + 1,
                                                      .servers = 2,
                                                      .blocked = blocked(way, !way) });
                go_round(&s, 2);
                for (unsigned i = 0; i < 2; i++) {
                        assert_true(sim_traffic(s.sim, i, !i) > 0);
                        assert_int_equal(sim_traffic(s.sim, i, SIM_SERVERS_MAX), 0);
                }
                setup_check(&s, 0, 2 * s.count);
                setup_end(&s);
        }
}

TEST(servers_that_cannot_reach_each_other_exchange_data_through_the_client)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR; /* it is a warning */
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct setup s;
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = 3,
                                                      .blocked = blocked(0, 1) | blocked(1, 0) });
                go_round(&s, 2);
                assert_int_equal(sim_traffic(s.sim, 0, 1), 0);
                assert_int_equal(sim_traffic(s.sim, 1, 0), 0);
                setup_check(&s, 5, 2 * s.count);
                setup_end(&s);
        }
        log_threshold = before;
}

TEST(a_relayed_session_ends_with_its_server)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct setup s;
                setup_begin(&s, &(struct sim_params){
                                        .seed = seed, .servers = 2, .blocked = UINT64_MAX });
                cl_event e;
                go_round(&s, 1);
                assert_int_equal(setup_launch(&s, 0, 0, NULL, NULL), CL_SUCCESS);
                assert_int_equal(setup_launch(&s, 2, 0, NULL, &e), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[0]), CL_SUCCESS);
                assert_int_equal(clFlush(s.queues[2]), CL_SUCCESS);
                sim_run(s.sim, seed * seed * 97);
                sim_kill_server(s.sim, 0);
                cl_int r = clWaitForEvents(1, &e);
                assert_true(r == CL_SUCCESS || r == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
                assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
                sim_run(s.sim, 1000000000);
                struct client *c = sim_client(s.sim);
                client_lock(c);
                unsigned interests = c->progress.interests;
                client_unlock(c);
                assert_int_equal(interests, 0); /* the progress thread has nothing to do */
                setup_end(&s);
        }
        log_threshold = before;
}

/* One after the other add to the buffer, the i-th up to before the n-th; the seed decides how much is under way. */
static void take_turns(struct setup *s, uint64_t seed, uint32_t i, uint32_t n)
{
        for (; i < n; i++) {
                cl_event e;
                OK(setup_launch(s, i % 2, 0, NULL, &e));
                OK(clFlush(s->queues[i % 2]));
                if (i % (1 + seed % 4) == 0)
                        OK(clWaitForEvents(1, &e));
                OK(clEnqueueBarrierWithWaitList(s->queues[(i + 1) % 2], 1, &e, NULL));
                OK(clReleaseEvent(e));
        }
}

/* The same, but before the last ones there is time to find a way, which they must then go. */
static void take_turns_directly(struct setup *s, uint64_t seed, uint32_t i, uint32_t n)
{
        take_turns(s, seed, i, n - 6);
        OK(clFinish(s->queues[0]));
        OK(clFinish(s->queues[1]));
        sim_run(s->sim, 10000000000);
        uint64_t direct = sim_traffic(s->sim, 0, 1) + sim_traffic(s->sim, 1, 0);
        take_turns(s, seed, n - 6, n);
        OK(clFinish(s->queues[0]));
        OK(clFinish(s->queues[1]));
        if (sim_traffic(s->sim, 0, 1) + sim_traffic(s->sim, 1, 0) <= direct)
                sim_fail(s->sim, "still relayed");
}

/* Two servers each add to the buffer in turn. The client's words to one of them, also its
 * announcement of the other server, come `late_ns` late. Return true if the other server dialled
 * meanwhile. */
static bool announce_late(uint64_t seed, unsigned late, unsigned first, uint64_t late_ns,
                          unsigned *ret_refused)
{
        struct setup s;
        cl_event e[2];
        setup_begin(&s, &(struct sim_params){
                                .seed = seed, .servers = 2, .devices = "0", .delay_ns = 1000 });
        OK(clFinish(s.queues[0]));
        sim_hold_client(s.sim, late, true);
        OK(setup_launch(&s, first, 0, NULL, &e[0]));
        OK(setup_launch(&s, !first, 1, &e[0], &e[1]));
        OK(clFlush(s.queues[first]));
        OK(clFlush(s.queues[!first]));
        sim_run(s.sim, late_ns);
        unsigned early = sim_early_dials(s.sim);
        *ret_refused = sim_refused_dials(s.sim);
        assert_int_equal(sim_traffic(s.sim, 0, 1) + sim_traffic(s.sim, 1, 0), 0);
        sim_hold_client(s.sim, late, false);
        OK(clWaitForEvents(2, e));
        OK(clReleaseEvent(e[0]));
        OK(clReleaseEvent(e[1]));
        take_turns_directly(&s, seed, 2, 20);
        setup_check(&s, 0, 20);
        setup_end(&s);
        return early > 0;
}

TEST(a_server_that_dials_before_the_clients_announcement_arrived_waits_for_it)
{
        for (uint64_t seed = 1; seed <= 20; seed++) {
                unsigned early = 0, refused;
                for (unsigned way = 0; way < 4; way++) {
                        early += announce_late(seed, way & 1, way >> 1, 20000, &refused);
                        assert_int_equal(refused, 0);
                }
                assert_true(early >= 2); /* the client lets one of the two dial */
        }
}

TEST(servers_connect_though_the_clients_announcement_came_after_a_dial_was_refused)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR; /* it is a warning */
        for (uint64_t seed = 1; seed <= 3; seed++) {
                unsigned refused = 0;
                for (unsigned way = 0; way < 4; way++) {
                        unsigned n;
                        (void)announce_late(seed, way & 1, way >> 1, 1000000000, &n);
                        refused += n > 0;
                }
                assert_true(refused >= 2);
        }
        log_threshold = before;
}

TEST(servers_that_are_relayed_reach_each_other_as_soon_as_they_can)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR;
        for (uint64_t seed = 1; seed <= 60; seed++) {
                struct setup s;
                uint64_t neither = blocked(0, 1) | blocked(1, 0);
                uint64_t one = seed & 4 ? blocked(0, 1) : blocked(1, 0);
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = 2,
                                                      .devices = "0",
                                                      .blocked = neither });
                take_turns(&s, seed, 0, seed % 30);
                sim_set_ways(s.sim, seed & 8 ? 0 : neither & ~one);
                take_turns_directly(&s, seed, seed % 30, 40);
                /* Either direction will do, also where it was the other one before. */
                sim_set_ways(s.sim, one);
                sim_cut_peers(s.sim, 0, 1);
                take_turns_directly(&s, seed, 40, 60);
                setup_check(&s, 0, 60);
                setup_end(&s);
        }
        log_threshold = before;
}

TEST(data_for_many_servers_goes_down_a_chain)
{
        enum { SPREAD = 3 << 20, EIGHT = 8 };
        static uint8_t data[SPREAD], back[SPREAD];
        for (size_t i = 0; i < SPREAD; i++)
                data[i] = (uint8_t)(i * 31 + (i >> 8) * 7);
        for (uint64_t seed = 1; seed <= 5; seed++) {
                struct setup s;
                cl_int err;
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = EIGHT,
                                                      .devices = "0",
                                                      .room = 1 << 20 });
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
                setup_end(&s);
        }
}

/* ---- a server of a chain is lost ------------------------------------------------------------ */

enum { SPREAD_MAX = 3 << 20 };

struct spread {
        size_t size;
        uint8_t data[SPREAD_MAX], back[SPREAD_MAX];
        cl_mem from, to[SIM_SERVERS_MAX];
        cl_event copied[SIM_SERVERS_MAX];
        unsigned order[SIM_SERVERS_MAX];
};

/* Make the buffer that is spread. With CL_MEM_USE_HOST_PTR the application's memory stays a
 * source. Memory that initialized the buffer, or was written to it, does not. */
static void spread_begin(struct setup *s, struct rng *r, struct spread *p)
{
        static const cl_mem_flags flags[] = { 0, 0, CL_MEM_USE_HOST_PTR, CL_MEM_COPY_HOST_PTR };
        cl_mem_flags flag = flags[rng_below(r, array_size(flags))];
        cl_int err;
        p->size = 1 + (size_t)rng_below(r, rng_chance(r, 30) ? 30000 : SPREAD_MAX);
        for (size_t i = 0; i < p->size; i++)
                p->data[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + s->count);
        p->from = clCreateBuffer(s->context, CL_MEM_READ_WRITE | flag, p->size,
                                 flag ? p->data : NULL, &err);
        OK(err);
        if (!flag)
                OK(clEnqueueWriteBuffer(s->queues[0], p->from, CL_TRUE, 0, p->size, p->data, 0,
                                        NULL, NULL));
        else
                OK(clEnqueueMigrateMemObjects(s->queues[0], 1, &p->from, 0, 0, NULL, NULL));
        for (unsigned i = 0; i < s->count; i++) {
                unsigned k = (unsigned)rng_below(r, i + 1);
                p->order[i] = p->order[k];
                p->order[k] = i;
                p->to[i] = clCreateBuffer(s->context, CL_MEM_READ_WRITE, p->size, NULL, &err);
                OK(err);
        }
}

/* Each server copies it for itself; false: that one is gone already. */
static bool spread_to(struct setup *s, struct rng *r, struct spread *p, unsigned i)
{
        size_t half = p->size / 2;
        if (half && rng_chance(r, 30)) /* it comes in parts */
                (void)!clEnqueueCopyBuffer(s->queues[i], p->from, p->to[i], half, half,
                                           p->size - half, 0, NULL, NULL);
        cl_int e = clEnqueueCopyBuffer(s->queues[i], p->from, p->to[i], 0, 0, p->size, 0, NULL,
                                       &p->copied[i]);
        return e == CL_SUCCESS && clFlush(s->queues[i]) == CL_SUCCESS;
}

static void spread_end(struct setup *s, struct spread *p)
{
        for (unsigned i = 0; i < s->count; i++) {
                if (p->copied[i])
                        OK(clReleaseEvent(p->copied[i]));
                OK(clReleaseMemObject(p->to[i]));
        }
        OK(clReleaseMemObject(p->from));
}

TEST(data_that_a_lost_server_was_to_forward_comes_from_another)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 150; seed++) {
                static struct spread p;
                struct setup s;
                struct rng r = { seed };
                placement_chain_bytes = seed % 3 ? 1 << 20 : 1;
                memset(&p, 0, sizeof(p));
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = (unsigned)rng_range(&r, 3, 8),
                                                      .devices = "0",
                                                      .room = 1 << 20 });
                spread_begin(&s, &r, &p);
                unsigned victim = 1 + (unsigned)rng_below(&r, s.count - 1);
                unsigned second = rng_chance(&r, 30) ? 1 + (unsigned)rng_below(&r, s.count - 1) : 0;
                uint64_t gone = 0;
                for (unsigned k = 0; k < s.count; k++) {
                        unsigned i = p.order[k];
                        if (k && rng_chance(&r, 20))
                                sim_run(s.sim, rng_below(&r, 1000000));
                        assert_true(spread_to(&s, &r, &p, i));
                }
                sim_run(s.sim, rng_below(&r, 1ull << rng_range(&r, 10, 26)));
                sim_kill_server(s.sim, victim);
                gone |= 1ull << victim;
                sim_run(s.sim, rng_below(&r, 1ull << rng_range(&r, 10, 24)));
                if (second && second != victim)
                        sim_kill_server(s.sim, second);
                gone |= second ? 1ull << second : 0;
                for (unsigned i = 0; i < s.count; i++) {
                        if (gone >> i & 1)
                                continue;
                        cl_int e = clFinish(s.queues[i]);
                        if (e != CL_SUCCESS || command_status(p.copied[i]) != CL_COMPLETE)
                                sim_fail(s.sim, "server %u of %u fails with %d, since %u is lost",
                                         i, s.count, e, victim);
                        OK(clEnqueueReadBuffer(s.queues[i], p.to[i], CL_TRUE, 0, p.size, p.back, 0,
                                               NULL, NULL));
                        assert_memory_equal(p.data, p.back, p.size);
                }
                spread_end(&s, &p);
                setup_end(&s);
        }
        placement_chain_bytes = 1 << 20;
        log_threshold = before;
}

static uint64_t received(struct setup *s, unsigned to)
{
        uint64_t sum = 0;
        for (unsigned from = 0; from < sim_servers(s->sim); from++)
                sum += sim_traffic(s->sim, from, to);
        return sum;
}

TEST(data_on_several_servers_comes_from_each_of_them)
{
        enum { LARGE = 9 << 20, SERVERS = 4, LAST = SERVERS - 1 };
        static uint8_t data[LARGE], back[LARGE];
        for (size_t i = 0; i < LARGE; i++)
                data[i] = (uint8_t)(i * 29 + (i >> 8) * 11);
        for (uint64_t seed = 1; seed <= 10; seed++) {
                struct setup s;
                cl_int err;
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = SERVERS,
                                                      .devices = "0",
                                                      .room = 1 << 20 });
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
                setup_end(&s);
        }
}

TEST(a_buffer_with_a_content_size_moves_that_much_whatever_breaks)
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
                setup_begin(&s, &(struct sim_params){ .seed = seed,
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
                setup_end(&s);
        }
        log_threshold = before;
}

/* ---- more writers than are named one by one ------------------------------------------------- */

enum { PIECE = 64, PIECES = PLACEMENT_WRITERS_MAX + 8 };

static cl_command_queue queue_without_order(const struct setup *s, unsigned device)
{
        const cl_queue_properties p[] = { CL_QUEUE_PROPERTIES,
                                          CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0 };
        cl_int err;
        cl_command_queue q =
                clCreateCommandQueueWithProperties(s->context, s->devices[device], p, &err);
        OK(err);
        return q;
}

/* All pieces but the first; *ret: of the last one. */
static void write_pieces(cl_command_queue q, cl_mem m, cl_event *ret)
{
        static const uint8_t data[PIECE] = { 1, 2, 3 };
        for (size_t i = 1; i < PIECES; i++)
                OK(clEnqueueWriteBuffer(q, m, CL_FALSE, i * PIECE, PIECE, data, 0, NULL,
                                        i + 1 == PIECES ? ret : NULL));
}

TEST(with_many_writers_of_a_buffer_only_needed_ones_are_waited_for)
{
        struct setup s;
        cl_int err;
        uint8_t data[PIECE] = { 7 }, back[PIECE];
        cl_event written;
        setup_begin(&s, &(struct sim_params){ .seed = 1, .servers = 2, .devices = "0" });
        cl_command_queue q = queue_without_order(&s, 0);
        cl_mem m = clCreateBuffer(s.context, CL_MEM_READ_WRITE, (size_t)PIECES * PIECE, NULL, &err);
        OK(err);
        cl_event gate = clCreateUserEvent(s.context, &err);
        OK(err);
        OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, PIECE, data, 1, &gate, NULL));
        write_pieces(q, m, &written);
        /* A read that also waited for the first piece would wait for ever. */
        OK(clEnqueueReadBuffer(s.queues[0], m, CL_TRUE, (size_t)(PIECES - 1) * PIECE, PIECE, back,
                               1, &written, NULL));
        assert_int_equal(back[2], 3);
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        OK(clFinish(q));
        OK(clEnqueueReadBuffer(s.queues[1], m, CL_TRUE, 0, PIECE, back, 0, NULL, NULL));
        assert_int_equal(back[0], 7);
        OK(clReleaseEvent(gate));
        OK(clReleaseEvent(written));
        OK(clReleaseMemObject(m));
        OK(clReleaseCommandQueue(q));
        setup_end(&s);
}

/* The first piece is on its way, in two halves, to the first server from one that dies; device `at` needs it. */
static void lose_arrivals(unsigned at, bool many)
{
        struct setup s;
        cl_int err;
        uint8_t data[PIECE] = { 7 };
        size_t size = (size_t)PIECES * PIECE, half = PIECE / 2;
        cl_event got;
        setup_begin(&s, &(struct sim_params){ .seed = 1, .servers = 3, .devices = "0" });
        cl_command_queue q = queue_without_order(&s, 0);
        cl_mem m = clCreateBuffer(s.context, CL_MEM_READ_WRITE, size, NULL, &err);
        OK(err);
        cl_mem copy = clCreateBuffer(s.context, CL_MEM_READ_WRITE, size, NULL, &err);
        OK(err);
        OK(clEnqueueWriteBuffer(s.queues[0], m, CL_TRUE, 0, PIECE, data, 0, NULL, NULL));
        cl_event gate = clCreateUserEvent(s.context, &err);
        OK(err);
        for (size_t i = 0; i < 2; i++) {
                OK(clEnqueueWriteBuffer(s.queues[1], m, CL_FALSE, i * half, half, data, 1, &gate,
                                        NULL));
                OK(clEnqueueMigrateMemObjects(q, 1, &m, 0, 0, NULL, NULL));
        }
        if (many)
                write_pieces(q, m, NULL);
        OK(clEnqueueCopyBuffer(s.queues[at], m, copy, 0, 0, PIECE, 0, NULL, &got));
        OK(clFlush(s.queues[at]));
        sim_run(s.sim, 100000000);
        assert_true(command_status(got) > CL_COMPLETE);
        sim_kill_server(s.sim, 1);
        assert_int_equal(clWaitForEvents(1, &got), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        OK(clReleaseEvent(got));
        OK(clReleaseEvent(gate));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(copy));
        OK(clReleaseCommandQueue(q));
        setup_end(&s);
}

TEST(commands_fail_whose_bytes_did_not_arrive)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (unsigned many = 0; many < 2; many++) {
                lose_arrivals(0, many);
                lose_arrivals(2, many);
        }
        log_threshold = before;
}

TEST(links_between_servers_that_are_cut_are_made_again)
{
        for (uint64_t seed = 1; seed <= 40; seed++) {
                struct setup s;
                cl_event last = NULL;
                setup_begin(&s, &(struct sim_params){ .seed = seed, .servers = 2 });
                go_round(&s, 1);
                for (unsigned i = 0; i < 8; i++) {
                        cl_event next;
                        unsigned q = 2 * (i % 2);
                        assert_int_equal(setup_launch(&s, q, last ? 1 : 0, &last, &next),
                                         CL_SUCCESS);
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
                setup_check(&s, 3, s.count + 8);
                setup_end(&s);
        }
}

/* Chunks of memory follow each other (core/memory/svm.c), if nothing is in the way. */
TEST(shared_virtual_memory_gives_way_to_what_is_there)
{
        struct setup s;
        uint64_t at, size = 8 << 20;
        static uint8_t got[64];
        setup_begin(&s, &(struct sim_params){ .seed = 5, .servers = 2 });
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
        setup_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(devices_of_all_servers_stand_in_one_platform),
                cmocka_unit_test(buffers_travel_between_servers_and_not_through_the_client),
                cmocka_unit_test(servers_that_can_reach_each_other_one_way_only_do_so),
                cmocka_unit_test(
                        servers_that_cannot_reach_each_other_exchange_data_through_the_client),
                cmocka_unit_test(a_relayed_session_ends_with_its_server),
                cmocka_unit_test(
                        a_server_that_dials_before_the_clients_announcement_arrived_waits_for_it),
                cmocka_unit_test(
                        servers_connect_though_the_clients_announcement_came_after_a_dial_was_refused),
                cmocka_unit_test(servers_that_are_relayed_reach_each_other_as_soon_as_they_can),
                cmocka_unit_test(data_for_many_servers_goes_down_a_chain),
                cmocka_unit_test(data_that_a_lost_server_was_to_forward_comes_from_another),
                cmocka_unit_test(data_on_several_servers_comes_from_each_of_them),
                cmocka_unit_test(a_buffer_with_a_content_size_moves_that_much_whatever_breaks),
                cmocka_unit_test(with_many_writers_of_a_buffer_only_needed_ones_are_waited_for),
                cmocka_unit_test(commands_fail_whose_bytes_did_not_arrive),
                cmocka_unit_test(links_between_servers_that_are_cut_are_made_again),
                cmocka_unit_test(shared_virtual_memory_gives_way_to_what_is_there),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
