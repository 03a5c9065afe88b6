/* One or two engines on the reference backend, their sessions joined in memory to sessions of the test,
 * which plays the client. In manual mode commands run when the test says so. */
#include "support/check.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "engine/content.h"
#include "engine/engine.h"
#include "engine/include.h"
#include "proto/info.h"
#include "support/random.h"

enum { NODES = 2, MIB = 1 << 20 };

#define QUEUE(n)  object_id(OBJECT_QUEUE, n)
#define BUFFER(n) object_id(OBJECT_BUFFER, n)
#define KERNEL(n) object_id(OBJECT_KERNEL, n)
#define EVENT(n)  object_id(OBJECT_EVENT, n)
#define PEER(n)   object_id(OBJECT_PEER, n)
#define PROGRAM   object_id(OBJECT_PROGRAM, 1)
#define WAITS(...)                                                                                \
        {                                                                                         \
                (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8, \
        }

/* Bytes that the client sends or expects. */
struct data {
        struct session_bulk bulk;
        uint8_t *bytes;
        size_t size, arrived;
        bool acked;
};

/* One engine, and the client's end of its session. */
struct node {
        struct world *world;
        struct engine *engine;
        struct session *client;
        struct session *dialled; /* to the other node's engine */
        uint64_t token[2];
        bool bulk_cut;    /* bulk lanes between engines stand still */
        struct map done;  /* event → status + 1000 */
        struct map reads; /* transfer → struct data */
        unsigned done_count;
        uint64_t order[64]; /* the first of them, as they were told */
        unsigned peers_lost;
        uint64_t released; /* the newest request */
        uint64_t last_times[3];
        size_t last_time_count;
        cl_int answer;
        struct buf info;
        unsigned answers;
        bool died;
};

struct world {
        struct node nodes[NODES];
        unsigned count;
        struct data *data[256];
        size_t data_count;
};

/* ---- the client ----------------------------------------------------------------------------- */

static int on_event_done(void *user, const struct wire_event_done *m)
{
        struct node *n = user;
        assert_null(map_get(&n->done, m->event));
        int r = map_put(&n->done, m->event, (void *)(intptr_t)(m->status + 1000));
        if (r < 0)
                return r;
        if (n->done_count < array_size(n->order))
                n->order[n->done_count] = m->event;
        n->done_count++;
        n->last_time_count = m->times.count;
        for (size_t i = 0; i < m->times.count; i++)
                n->last_times[i] = wire_u64s_at(m->times, i);
        return 0;
}

static int answer(struct node *n, int64_t status, struct bytes info)
{
        n->answer = (cl_int)status;
        n->answers++;
        n->info.size = 0;
        return buf_put(&n->info, info.data, info.size);
}

static int on_server_info(void *user, const struct wire_server_info *m)
{
        return answer(user, m->status, m->devices);
}

static int on_program_built(void *user, const struct wire_program_built *m)
{
        return answer(user, m->status, m->info);
}

static int on_program_binaries(void *user, const struct wire_program_binaries *m)
{
        return answer(user, m->status, m->parts);
}

static int on_stats(void *user, const struct wire_stats *m)
{
        return answer(user, 0, m->links);
}

static int on_svm_created(void *user, const struct wire_svm_created *m)
{
        return answer(user, m->status, bytes_of(&m->address, 8));
}

static int on_clock_reply(void *user, const struct wire_clock_reply *m)
{
        return answer(user, (int64_t)m->time_ns, bytes_of(&m->remote_ns, 8));
}

static int on_peer_lost(void *user, const struct wire_peer_lost *m)
{
        (void)m;
        ((struct node *)user)->peers_lost++;
        return 0;
}

static int on_released(void *user, const struct wire_released *m)
{
        ((struct node *)user)->released = m->request;
        return 0;
}

static const struct wire_handlers client_handlers = {
        .event_done = on_event_done,
        .released = on_released,
        .server_info = on_server_info,
        .program_built = on_program_built,
        .program_binaries = on_program_binaries,
        .stats = on_stats,
        .svm_created = on_svm_created,
        .clock_reply = on_clock_reply,
        .peer_lost = on_peer_lost,
};

static int client_message(void *user, struct bytes msg)
{
        return wire_dispatch(&client_handlers, user, msg);
}

static int client_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                        void **ret)
{
        struct data *d = map_get(&((struct node *)user)->reads, transfer);
        (void)inlined, (void)len;
        assert_non_null(d);
        *ret = d->bytes + offset;
        return 0;
}

static int client_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                          uint64_t *ret_below)
{
        struct data *d = map_get(&((struct node *)user)->reads, transfer);
        assert_int_equal(offset, d->arrived);
        *ret_below = d->arrived += len;
        return d->arrived == d->size;
}

static const struct session_ops client_ops = { client_message, client_place, client_arrived };

/* ---- what the loop does --------------------------------------------------------------------- */

static void on_flush(void *user, struct session *s)
{
        (void)user, (void)s;
}

static void on_dial(void *user, struct session *s, uint64_t peer, const char *host, unsigned port,
                    const char *near, const uint64_t session_id[2], const uint64_t token[2])
{
        struct node *n = user;
        (void)peer, (void)port;
        assert_string_equal(host, "other");
        assert_int_equal(session_id[1], 42);
        n->dialled = s;
        memcpy(n->token, token, sizeof(n->token));
}

static void on_hang_up(void *user, struct session *s)
{
        struct node *n = user;
        if (n->dialled == s)
                n->dialled = NULL;
        for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                session_lane_down(s, lane);
}

static uint64_t now_ns = 12345;

static uint64_t on_now(void *user)
{
        (void)user;
        return now_ns;
}

static const struct engine_ops engine_ops = {
        .flush = on_flush,
        .dial = on_dial,
        .hang_up = on_hang_up,
        .now_ns = on_now,
};

/* Move at most `budget` bytes of one lane. Returns how many. */
static size_t move_lane(struct session *from, struct session *to, unsigned lane, size_t budget,
                        bool *ret_died)
{
        size_t moved = 0;
        while (moved < budget) {
                struct iovec out[8], in[2];
                int n = session_lane_pending(from, lane, out, 8);
                if (n <= 0)
                        break;
                int k = session_lane_want(to, lane, in);
                *ret_died |= k < 0;
                if (k <= 0)
                        break;
                size_t len = in[0].iov_len < out[0].iov_len ? in[0].iov_len : out[0].iov_len;
                if (len > budget - moved)
                        len = budget - moved;
                memcpy(in[0].iov_base, out[0].iov_base, len);
                session_lane_sent(from, lane, len);
                moved += len;
                int r = session_lane_received(to, lane, len);
                *ret_died |= r < 0;
                if (r < 0)
                        break;
        }
        return moved;
}

static size_t move(struct session *a, struct session *b, bool *ret_died)
{
        return move_lane(a, b, 0, SIZE_MAX, ret_died) + move_lane(b, a, 0, SIZE_MAX, ret_died) +
               move_lane(a, b, 1, SIZE_MAX, ret_died) + move_lane(b, a, 1, SIZE_MAX, ret_died);
}

static size_t pump_node(struct node *n)
{
        engine_lock(n->engine);
        size_t moved = move(n->client, engine_session(n->engine), &n->died);
        engine_settle(n->engine);
        engine_unlock(n->engine);
        return moved;
}

/* Between the engines. */
static size_t pump_peers(struct world *w)
{
        struct node *a = &w->nodes[0], *b = &w->nodes[1];
        if (w->count < 2 || !a->dialled)
                return 0;
        engine_lock(a->engine);
        engine_lock(b->engine);
        struct session *there = engine_peer_session(b->engine, a->token);
        size_t moved = 0;
        bool died = false;
        if (there) {
                for (unsigned lane = 0; lane < SESSION_LANES; lane++) {
                        if (!session_lane_is_up(a->dialled, lane)) {
                                assert_int_equal(session_lane_up(a->dialled, lane, 0), 0);
                                assert_int_equal(session_lane_up(there, lane, 0), 0);
                        }
                }
                if (a->bulk_cut)
                        moved = move_lane(a->dialled, there, 0, SIZE_MAX, &died) +
                                move_lane(there, a->dialled, 0, SIZE_MAX, &died);
                else
                        moved = move(a->dialled, there, &died);
                assert_false(died);
        }
        engine_settle(a->engine);
        engine_settle(b->engine);
        engine_unlock(b->engine);
        engine_unlock(a->engine);
        return moved;
}

/* Move all messages; no command runs. */
static void pump(struct world *w)
{
        for (size_t moved = 1; moved;) {
                moved = pump_peers(w);
                for (unsigned i = 0; i < w->count; i++)
                        moved += pump_node(&w->nodes[i]);
        }
}

/* Let at most `max` commands of node `i` run. */
static size_t step(struct world *w, unsigned i, size_t max)
{
        return backend_reference_step(engine_backend(w->nodes[i].engine), max);
}

/* Until nothing happens any more. */
static void run(struct world *w)
{
        for (size_t ran = 1; ran;) {
                pump(w);
                ran = 0;
                for (unsigned i = 0; i < w->count; i++)
                        ran += step(w, i, SIZE_MAX);
        }
}

/* ---- worlds --------------------------------------------------------------------------------- */

/* Of engines that are made now. */
static struct engine_limits limits;

static int node_init_on(struct node *n, const struct backend_ops *backend, bool single_threaded,
                        const char *scratch)
{
        const struct engine_params params = {
                .backend = backend,
                .scratch_dir = scratch,
                .ops = &engine_ops,
                .user = n,
                .single_threaded = single_threaded,
                .limits = limits,
        };
        int r = engine_new(&params, &n->engine);
        if (r < 0)
                return r;
        r = session_new(&(struct session_params){ .ops = &client_ops, .user = n }, &n->client);
        if (r < 0)
                return r;
        engine_lock(n->engine);
        for (unsigned lane = 0; lane < SESSION_LANES && !r; lane++) {
                r = session_lane_up(n->client, lane, 0);
                if (!r)
                        r = session_lane_up(engine_session(n->engine), lane, 0);
        }
        engine_unlock(n->engine);
        return r;
}

static int node_init(struct node *n, bool single_threaded, const char *scratch)
{
        return node_init_on(n, &backend_reference, single_threaded, scratch);
}

static struct world *world_new(unsigned count)
{
        struct world *w = calloc(1, sizeof(*w));
        assert_non_null(w);
        backend_reference_manual = true;
        w->count = count;
        for (unsigned i = 0; i < count; i++) {
                w->nodes[i].world = w;
                assert_int_equal(node_init(&w->nodes[i], true, NULL), 0);
        }
        return w;
}

static struct engine_counts counts(struct world *w, unsigned i)
{
        struct engine_counts c;
        engine_lock(w->nodes[i].engine);
        engine_get_counts(w->nodes[i].engine, &c);
        engine_unlock(w->nodes[i].engine);
        return c;
}

static void world_free(struct world *w)
{
        for (unsigned i = 0; i < w->count; i++) {
                struct node *n = &w->nodes[i];
                engine_free(n->engine);
                session_free(n->client);
                map_fini(&n->done);
                map_fini(&n->reads);
                buf_fini(&n->info);
        }
        for (size_t i = 0; i < w->data_count; i++) {
                free(w->data[i]->bytes);
                free(w->data[i]);
        }
        free(w);
}

/* Everything is complete and nobody holds anything but the objects. */
static void expect_idle(struct world *w)
{
        for (unsigned i = 0; i < w->count; i++) {
                struct engine_counts c = counts(w, i);
                assert_false(w->nodes[i].died);
                assert_int_equal(c.commands_held, 0);
                assert_int_equal(c.commands_running, 0);
                assert_int_equal(c.events, 0);
                assert_int_equal(c.transfers, 0);
                assert_int_equal(c.transfer_bytes, 0);
        }
}

#define send(w, i, name, ...)                                                               \
        do {                                                                                \
                assert_int_equal(session_send((w)->nodes[i].client, name, __VA_ARGS__), 0); \
        } while (0)

/* ---- data ----------------------------------------------------------------------------------- */

static const void *data_at(struct session_bulk *b, uint64_t offset, size_t *ret_len)
{
        struct data *d = container_of(b, struct data, bulk);
        *ret_len = d->size - offset;
        return d->bytes + offset;
}

static void data_done(struct session_bulk *b, int status)
{
        container_of(b, struct data, bulk)->acked = status == 0;
}

static struct data *data_new(struct world *w, size_t size, uint8_t seed)
{
        struct data *d = calloc(1, sizeof(*d));
        assert_non_null(d);
        d->size = size;
        d->bytes = malloc(size);
        assert_non_null(d->bytes);
        for (size_t i = 0; i < size; i++)
                d->bytes[i] = (uint8_t)(seed + i * 31 + (i >> 8) * 7);
        assert_true(w->data_count < array_size(w->data));
        w->data[w->data_count++] = d;
        return d;
}

/* Send bytes as transfer `id`; `ready` of them now. */
static struct data *send_data(struct world *w, unsigned i, uint64_t id, struct data *d,
                              size_t ready)
{
        d->bulk = (struct session_bulk){
                .transfer = id,
                .total = d->size,
                .at = data_at,
                .done = data_done,
        };
        assert_int_equal(session_bulk_send(w->nodes[i].client, &d->bulk, ready), 0);
        return d;
}

static struct data *write_buffer(struct world *w, unsigned i, uint64_t queue, uint64_t event,
                                 uint64_t buffer, size_t size, uint8_t seed)
{
        send(w, i, buffer_write, .event = event, .queue = queue, .flags = COMMAND_NOTIFY,
             .buffer = buffer, .size = size, .transfer = event);
        return send_data(w, i, event, data_new(w, size, seed), size);
}

static struct data *expect_data(struct world *w, unsigned i, uint64_t transfer, size_t size)
{
        struct data *d = data_new(w, size, 0);
        memset(d->bytes, 0xee, size);
        assert_int_equal(map_put(&w->nodes[i].reads, transfer, d), 0);
        return d;
}

static struct data *read_buffer(struct world *w, unsigned i, uint64_t queue, uint64_t event,
                                uint64_t buffer, size_t size)
{
        struct data *d = expect_data(w, i, event, size);
        send(w, i, buffer_read, .event = event, .queue = queue, .flags = COMMAND_NOTIFY,
             .buffer = buffer, .size = size, .transfer = event);
        return d;
}

static void expect_same(const struct data *a, const struct data *b)
{
        assert_int_equal(a->size, b->size);
        assert_int_equal(b->arrived, b->size);
        assert_memory_equal(a->bytes, b->bytes, a->size);
}

enum { PENDING = 1 };

/* The status that the client was told, or PENDING. */
static int status_of(struct world *w, unsigned i, uint64_t event)
{
        void *v = map_get(&w->nodes[i].done, event);
        return v ? (int)(intptr_t)v - 1000 : PENDING;
}

/* ---- kernels -------------------------------------------------------------------------------- */

static void make_program(struct world *w, unsigned i)
{
        struct buf parts = { 0 };
        static const char names[] = "spancl.inc.i32;spancl.noop;pocl.add.i32";
        assert_int_equal(info_put(&parts, INFO_PART, names, sizeof(names) - 1), 0);
        send(w, i, program_create, .program = PROGRAM, .kind = 3, .devices = WAITS(0, 1),
             .parts = bytes_of(parts.data, parts.size));
        send(w, i, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(0, 1));
        send(w, i, kernel_create, .kernel = KERNEL(1), .program = PROGRAM,
             .name = bytes_str("spancl.inc.i32"));
        send(w, i, kernel_create, .kernel = KERNEL(2), .program = PROGRAM,
             .name = bytes_str("spancl.noop"));
        buf_fini(&parts);
}

/* In-order queue 1 and out-of-order queue 2 on device 0, in-order queue 3 on device 1. */
static void make_objects(struct world *w, unsigned i, size_t size)
{
        make_program(w, i);
        send(w, i, queue_create, .queue = QUEUE(1), .device = 0);
        send(w, i, queue_create, .queue = QUEUE(2), .device = 0,
             .properties = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        send(w, i, queue_create, .queue = QUEUE(3), .device = 1);
        send(w, i, buffer_create, .buffer = BUFFER(1), .flags = CL_MEM_READ_WRITE, .size = size);
        send(w, i, buffer_create, .buffer = BUFFER(2), .flags = CL_MEM_READ_WRITE, .size = size);
}

static void release_objects(struct world *w, unsigned i)
{
        const uint64_t ids[] = { QUEUE(1),  QUEUE(2),  QUEUE(3),  BUFFER(1),
                                 BUFFER(2), KERNEL(1), KERNEL(2), PROGRAM };
        for (size_t k = 0; k < array_size(ids); k++)
                send(w, i, release, .object = ids[k]);
        run(w);
        expect_idle(w);
        assert_int_equal(counts(w, i).objects, 0);
}

static void put_args(struct buf *b, uint64_t buffer, int32_t by)
{
        if (buffer)
                assert_int_equal(
                        args_put(b,
                                 &(struct arg){ .index = 0, .kind = ARG_BUFFER, .object = buffer }),
                        0);
        if (by)
                assert_int_equal(args_put(b, &(struct arg){ .index = 1,
                                                            .kind = ARG_VALUE,
                                                            .size = 4,
                                                            .value = &by }),
                                 0);
}

/* Add `by` to the first 16 numbers of the buffer; 0 stands for what was set before. */
static void launch_after(struct world *w, unsigned i, uint64_t queue, uint64_t event,
                         uint64_t buffer, int32_t by, struct wire_u64s waits)
{
        struct buf args = { 0 };
        put_args(&args, buffer, by);
        send(w, i, kernel_launch, .event = event, .queue = queue, .flags = COMMAND_NOTIFY,
             .kernel = KERNEL(1), .global = WAITS(16), .args = bytes_of(args.data, args.size),
             .waits = waits);
        buf_fini(&args);
}

static void launch(struct world *w, unsigned i, uint64_t queue, uint64_t event, uint64_t buffer,
                   int32_t by)
{
        launch_after(w, i, queue, event, buffer, by, (struct wire_u64s){ NULL, 0 });
}

/* Nobody wants to hear of its end. */
static void launch_unnoticed(struct world *w, uint64_t queue, uint64_t event, uint64_t buffer)
{
        struct buf args = { 0 };
        put_args(&args, buffer, 1);
        send(w, 0, kernel_launch, .event = event, .queue = queue, .flags = COMMAND_NAMED,
             .kernel = KERNEL(1), .global = WAITS(16), .args = bytes_of(args.data, args.size));
        buf_fini(&args);
}

static int32_t number(const struct data *d, size_t index)
{
        int32_t v;
        memcpy(&v, d->bytes + 4 * index, 4);
        return v;
}

static void fill_zero(struct world *w, unsigned i, uint64_t queue, uint64_t event, uint64_t buffer,
                      size_t size)
{
        send(w, i, buffer_fill, .event = event, .queue = queue, .buffer = buffer, .size = size,
             .pattern = bytes_of("", 1));
}

/* ---- order ---------------------------------------------------------------------------------- */

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
        run(w);
        assert_int_equal(number(got, 0), 10);
        assert_int_equal(number(got, 15), 10);
        assert_int_equal(status_of(w, 0, EVENT(1)), PENDING); /* nobody asked */
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
        release_objects(w, 0);
        world_free(w);
}

/* A launch without an event object. */
static void launch_unnamed(struct world *w, uint64_t event, uint64_t buffer, int32_t by)
{
        struct buf args = { 0 };
        put_args(&args, buffer, by);
        send(w, 0, kernel_launch, .event = event, .queue = QUEUE(1), .kernel = KERNEL(1),
             .global = WAITS(16), .args = bytes_of(args.data, args.size));
        buf_fini(&args);
}

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
        run(w);
        assert_int_equal(number(got, 7), 300 * (2 + 301) / 2);
        assert_int_equal(counts(w, 0).events, 0);
        assert_int_equal(counts(w, 0).commands_running, 0);
        assert_int_equal(status_of(w, 0, EVENT(301)), PENDING); /* nobody asked */
        launch_unnamed(w, EVENT(401), 0, 0);
        launch_unnamed(w, EVENT(402), 0, 0);
        pump(w);
        assert_int_equal(counts(w, 0).commands_running, 3); /* with a marker for both */
        run(w);
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
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(6)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(7)), CL_SUCCESS);
        send(w, 0, event_watch, .event = EVENT(4)); /* long complete */
        run(w);
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
        run(w);
        for (unsigned i = 1; i < 4; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), CL_OUT_OF_RESOURCES);
        assert_int_equal(status_of(w, 0, EVENT(4)), -14);
        assert_int_equal(status_of(w, 0, EVENT(5)), -14);
        /* It is remembered. */
        send(w, 0, marker, .event = EVENT(6), .queue = QUEUE(2), .waits = WAITS(EVENT(3)));
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(6)), -14);
        /* One whose argument is gone is not launched with what was there before. */
        launch_unnamed(w, EVENT(7), BUFFER(2), 0);
        send(w, 0, release, .object = BUFFER(2));
        launch_unnamed(w, EVENT(8), 0, 0);
        run(w);
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
        run(w);
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
        run(w);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(4), BUFFER(1), 64);
        run(w);
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
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(50)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(200)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(101)), PENDING); /* nobody asked */
        assert_int_equal(got->arrived, 64);
        send(w, 0, marker, .event = EVENT(202), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
        run(w);
        got = read_buffer(w, 0, QUEUE(2), EVENT(203), BUFFER(1), 64);
        run(w);
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
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_OUT_OF_RESOURCES);
        assert_int_equal(status_of(w, 0, EVENT(3)), -14);
        assert_int_equal(status_of(w, 0, EVENT(4)), -14);
        assert_int_equal(status_of(w, 0, EVENT(5)), CL_SUCCESS);
        /* Without a marker, too. */
        chain(w, 12, 14, BUFFER(1));
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(12)), CL_OUT_OF_RESOURCES);
        assert_int_equal(status_of(w, 0, EVENT(13)), -14);
        assert_int_equal(status_of(w, 0, EVENT(14)), -14);
        release_objects(w, 0);
        world_free(w);
}

/* Where failures stay, a chain goes through a strand. */
static struct world *world_with_strands(uint64_t seed)
{
        backend_reference_failure_stays = true;
        backend_reference_seed = seed;
        struct world *w = world_new(1);
        backend_reference_failure_stays = false;
        backend_reference_seed = 0;
        return w;
}

TEST(a_strand_is_waited_for_by_all_that_comes_behind_it)
{
        for (uint64_t seed = 0; seed < 30; seed++) {
                struct world *w = world_with_strands(seed);
                make_objects(w, 0, 64);
                fill_zero(w, 0, QUEUE(2), EVENT(1), BUFFER(1), 64);
                chain(w, 2, 30, BUFFER(1));
                send(w, 0, marker, .event = EVENT(31), .queue = QUEUE(2), .flags = COMMAND_BARRIER);
                fill_zero(w, 0, QUEUE(2), EVENT(32), BUFFER(1), 64);
                chain(w, 33, 60, BUFFER(1));
                /* Whether or not what is behind a strand comes while the barrier is in flight. */
                if (seed % 3)
                        run(w);
                chain(w, 61, 70, BUFFER(1));
                send(w, 0, marker, .event = EVENT(71), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
                send(w, 0, buffer_copy, .event = EVENT(72), .queue = QUEUE(2), .dst = BUFFER(2),
                     .src = BUFFER(1), .size = 64, .waits = WAITS(EVENT(70)));
                launch_after(w, 0, QUEUE(1), EVENT(73), BUFFER(2), 1,
                             (struct wire_u64s)WAITS(EVENT(71), EVENT(72)));
                struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(74), BUFFER(2), 64);
                run(w);
                assert_int_equal(number(got, 5), 28 + 10 + 1);
                assert_int_equal(status_of(w, 0, EVENT(71)), CL_SUCCESS);
                chain(w, 75, 90, BUFFER(1));
                send(w, 0, release, .object = QUEUE(2));
                run(w);
                send(w, 0, queue_create, .queue = QUEUE(2), .device = 0);
                release_objects(w, 0);
                world_free(w);
        }
}

/* The reference backend, which counts the commands without events. */
static unsigned quiet_ones;

static cl_int count_quiet(struct backend_queue *q, const struct backend_command *c,
                          struct backend_event **ret)
{
        quiet_ones += c->quiet;
        return backend_reference.submit(q, c, ret);
}

TEST(a_queue_whose_commands_are_no_chain_has_no_strand_any_more)
{
        struct backend_ops ops = backend_reference;
        ops.submit = count_quiet;
        struct world *w = calloc(1, sizeof(*w));
        w->count = 1;
        backend_reference_manual = backend_reference_failure_stays = true;
        assert_int_equal(node_init_on(&w->nodes[0], &ops, true, NULL), 0);
        backend_reference_failure_stays = false;
        make_objects(w, 0, 64);
        quiet_ones = 0;
        for (unsigned i = 2; i < 10; i++)
                launch_after(w, 0, QUEUE(2), EVENT(i), BUFFER(1), 1, (struct wire_u64s){ NULL, 0 });
        run(w);
        assert_int_equal(quiet_ones, 0);
        chain(w, 12, 101, BUFFER(1));
        pump(w);
        assert_true(quiet_ones > 80 && quiet_ones < 90);
        send(w, 0, event_watch, .event = EVENT(101)); /* as who waits for all of it does */
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(101)), CL_SUCCESS);
        quiet_ones = 0;
        chain(w, 102, 201, BUFFER(1));
        send(w, 0, event_watch, .event = EVENT(150));
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(150)), CL_SUCCESS);
        assert_true(quiet_ones > 80);
        quiet_ones = 0;
        chain(w, 202, 301, BUFFER(1));
        send(w, 0, event_watch, .event = EVENT(301));
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(301)), CL_SUCCESS);
        assert_int_equal(quiet_ones, 0);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_failure_in_a_strand_is_that_of_all_its_commands)
{
        for (unsigned end = 0; end < 3; end++) {
                struct world *w = world_with_strands(0);
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
                run(w);
                for (unsigned i = 13; i <= 30; i++)
                        assert_true(status_of(w, 0, EVENT(i)) < 0);
                send(w, 0, marker, .event = EVENT(32), .queue = QUEUE(3),
                     .waits = WAITS(EVENT(20)));
                run(w);
                assert_int_equal(status_of(w, 0, EVENT(32)), -14);
                send(w, 0, release, .object = BUFFER(3));
                release_objects(w, 0);
                world_free(w);
        }
}

/* The reference backend, but a read while nothing is in flight is complete when it is submitted. */
static struct backend *prompt;
static unsigned prompt_ones;

static int prompt_open(const struct backend_params *params, struct backend **ret)
{
        int r = backend_reference.open(params, ret);
        prompt = *ret;
        return r;
}

static cl_int prompt_submit(struct backend_queue *q, const struct backend_command *c,
                            struct backend_event **ret)
{
        if (!c->now)
                return backend_reference.submit(q, c, ret);
        struct backend_command unreported = *c;
        unreported.cookie = NULL;
        cl_int r = backend_reference.submit(q, &unreported, ret);
        if (r < 0)
                return r;
        assert_int_equal(backend_reference_step(prompt, 2), 1);
        r = backend_reference.event_status(*ret);
        backend_reference.event_release(steal(*ret));
        prompt_ones++;
        return r;
}

TEST(a_read_may_be_complete_at_once)
{
        struct backend_ops ops = backend_reference;
        ops.open = prompt_open;
        ops.submit = prompt_submit;
        struct world *w = calloc(1, sizeof(*w));
        w->count = 1;
        backend_reference_manual = true;
        assert_int_equal(node_init_on(&w->nodes[0], &ops, true, NULL), 0);
        make_objects(w, 0, 64 << 10);
        struct data *sent = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64 << 10, 1);
        struct data *behind = read_buffer(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 100);
        prompt_ones = 0;
        run(w);
        assert_int_equal(prompt_ones, 0); /* the write was in flight */
        assert_int_equal(behind->arrived, 100);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(3), BUFFER(1), 100);
        launch(w, 0, QUEUE(2), EVENT(4), BUFFER(2), 1);
        pump(w);
        assert_int_equal(prompt_ones, 1);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_int_equal(got->arrived, 100);
        assert_memory_equal(got->bytes, sent->bytes, 100);
        got = read_buffer(w, 0, QUEUE(1), EVENT(5), BUFFER(1), 100);
        pump(w);
        assert_int_equal(prompt_ones, 1); /* the launch is in flight */
        run(w);
        assert_memory_equal(got->bytes, sent->bytes, 100);
        got = read_buffer(w, 0, QUEUE(1), EVENT(6), BUFFER(1), 64 << 10);
        run(w);
        assert_int_equal(prompt_ones, 1); /* too large */
        expect_same(sent, got);
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
        run(w);
        assert_int_equal(counts(w, 0).commands_held, 2);
        assert_int_equal(counts(w, 0).commands_running, 0);
        assert_int_equal(status_of(w, 0, EVENT(3)), PENDING);
        send(w, 0, event_done, .event = EVENT(100));
        run(w);
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
        run(w);
        for (unsigned e = 1; e <= 4; e++)
                assert_int_equal(status_of(w, 0, EVENT(e)), e == 2 ? PENDING : -14);
        assert_int_equal(number(got, 0), 0);
        /* It is remembered. */
        launch_after(w, 0, QUEUE(2), EVENT(6), 0, 0, (struct wire_u64s)WAITS(EVENT(1)));
        launch_after(w, 0, QUEUE(2), EVENT(7), 0, 0, (struct wire_u64s)WAITS(EVENT(100)));
        run(w);
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
        run(w);
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
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_OUT_OF_RESOURCES);
        assert_int_equal(status_of(w, 0, EVENT(2)), -14);
        assert_int_equal(status_of(w, 0, EVENT(3)), -14);
        /* At submission. */
        send(w, 0, kernel_launch, .event = EVENT(4), .queue = QUEUE(1), .kernel = KERNEL(2),
             .global = WAITS(1), .local = WAITS(5000));
        launch(w, 0, QUEUE(1), EVENT(5), BUFFER(77), 1);
        fill_zero(w, 0, QUEUE(1), EVENT(6), BUFFER(1), 33);
        run(w);
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
        run(w);
        launch_after(w, 0, QUEUE(2), EVENT(2), BUFFER(1), 1, (struct wire_u64s)WAITS(EVENT(100)));
        send(w, 0, marker, .event = EVENT(3), .queue = QUEUE(2),
             .flags = COMMAND_BARRIER | COMMAND_NOTIFY);
        launch(w, 0, QUEUE(2), EVENT(4), 0, 10);
        send(w, 0, marker, .event = EVENT(5), .queue = QUEUE(2), .flags = COMMAND_BARRIER,
             .waits = WAITS(EVENT(101)));
        launch(w, 0, QUEUE(2), EVENT(6), 0, 100);
        send(w, 0, marker, .event = EVENT(7), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
        run(w);
        assert_int_equal(counts(w, 0).commands_held, 6);
        send(w, 0, event_done, .event = EVENT(100));
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(6)), PENDING);
        assert_int_equal(status_of(w, 0, EVENT(7)), PENDING);
        assert_int_equal(counts(w, 0).commands_held, 3);
        send(w, 0, event_done, .event = EVENT(101));
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(6)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(7)), CL_SUCCESS);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(8), BUFFER(1), 64);
        run(w);
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
        run(w);
        /* Each launch keeps the arguments of its own time. */
        launch_after(w, 0, QUEUE(2), EVENT(2), BUFFER(1), 1, (struct wire_u64s)WAITS(EVENT(100)));
        launch(w, 0, QUEUE(2), EVENT(3), BUFFER(2), 10);
        send(w, 0, marker, .event = EVENT(4), .queue = QUEUE(2), .flags = COMMAND_NOTIFY,
             .waits = WAITS(EVENT(3)));
        send(w, 0, marker, .event = EVENT(5), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(5)), PENDING);
        send(w, 0, event_done, .event = EVENT(100));
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(5)), CL_SUCCESS);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(6), BUFFER(1), 64);
        run(w);
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
        run(w);
        assert_int_equal(number(one, 5), 8);
        assert_int_equal(number(two, 5), 8);
        release_objects(w, 0);
        world_free(w);
}

/* ---- shared virtual memory ------------------------------------------------------------------ */

#define SVM(n)  object_id(OBJECT_SVM, n)
#define ADDRESS ((uint64_t)0x4200000000)

static void launch_at(struct world *w, uint64_t queue, uint64_t event, uint64_t address, int32_t by)
{
        struct buf args = { 0 };
        assert_int_equal(
                args_put(&args, &(struct arg){ .index = 0, .kind = ARG_SVM, .object = address }),
                0);
        assert_int_equal(
                args_put(&args,
                         &(struct arg){ .index = 1, .kind = ARG_VALUE, .size = 4, .value = &by }),
                0);
        send(w, 0, kernel_launch, .event = event, .queue = queue, .flags = COMMAND_NOTIFY,
             .kernel = KERNEL(1), .global = WAITS(16), .args = bytes_of(args.data, args.size));
        buf_fini(&args);
}

TEST(shared_virtual_memory_is_one_for_pointers_and_buffers_of_every_domain)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, svm_create, .request = 1, .svm = SVM(1), .address = ADDRESS, .size = 65536);
        run(w);
        assert_int_equal(w->nodes[0].answer, CL_SUCCESS);
        assert_int_equal(bytes_get_u64(w->nodes[0].info.data), ADDRESS);
        send(w, 0, svm_buffer_create, .buffer = BUFFER(8), .svm = SVM(1), .offset = 512,
             .size = 64);
        send(w, 0, svm_buffer_create, .buffer = BUFFER(9), .svm = SVM(1), .offset = 520,
             .size = 56);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(8), 64);
        launch_at(w, QUEUE(1), EVENT(2), ADDRESS + 512, 5);
        run(w);
        launch_at(w, QUEUE(3), EVENT(3), ADDRESS + 512, 2);
        launch_at(w, QUEUE(3), EVENT(4), ADDRESS - 8, 2);
        launch(w, 0, QUEUE(3), EVENT(5), BUFFER(8), 1);
        struct data *whole = read_buffer(w, 0, QUEUE(3), EVENT(6), BUFFER(8), 64);
        run(w);
        struct data *part = read_buffer(w, 0, QUEUE(1), EVENT(7), BUFFER(9), 56);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_INVALID_ARG_VALUE); /* nothing is there */
        assert_int_equal(number(whole, 0), 8);
        assert_int_equal(number(whole, 15), 8);
        assert_int_equal(number(part, 13), 8);
        send(w, 0, release, .object = SVM(1)); /* buffers have it still */
        struct data *after = read_buffer(w, 0, QUEUE(1), EVENT(8), BUFFER(8), 64);
        run(w);
        assert_int_equal(number(after, 3), 8);
        send(w, 0, release, .object = BUFFER(8));
        send(w, 0, release, .object = BUFFER(9));
        release_objects(w, 0);
        world_free(w);
}

TEST(shared_virtual_memory_that_cannot_be_had_is_told_of)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        /* These devices choose no address. */
        send(w, 0, svm_create, .request = 1, .svm = SVM(1), .size = 65536);
        run(w);
        assert_int_equal(w->nodes[0].answer, CL_INVALID_OPERATION);
        send(w, 0, svm_create, .request = 2, .svm = SVM(1), .address = ADDRESS,
             .size = (uint64_t)1 << 40);
        run(w);
        assert_true(w->nodes[0].answer < 0);
        send(w, 0, svm_create, .request = 3, .svm = SVM(1), .address = ADDRESS, .size = 65536);
        run(w);
        assert_int_equal(w->nodes[0].answer, CL_SUCCESS);
        send(w, 0, release, .object = SVM(1));
        release_objects(w, 0);
        world_free(w);
}

/* ---- recordings ----------------------------------------------------------------------------- */

#define RECORDING object_id(OBJECT_RECORDING, 1)
enum { SLOT = 50 };

/* Slot 0 records a fill of buffer 1 and two launches on it, of which the second waits for the first. */
static void record(struct world *w, unsigned i)
{
        send(w, i, recording_create, .recording = RECORDING, .slots = WAITS(QUEUE(SLOT)),
             .devices = WAITS(0));
        fill_zero(w, i, QUEUE(SLOT), EVENT(1), BUFFER(1), 64);
        launch_after(w, i, QUEUE(SLOT), EVENT(2), BUFFER(1), 5, (struct wire_u64s)WAITS(EVENT(1)));
        launch_after(w, i, QUEUE(SLOT), EVENT(3), 0, 7, (struct wire_u64s)WAITS(EVENT(2)));
        send(w, i, release, .object = QUEUE(SLOT));
}

static void run_recording(struct world *w, unsigned i, uint64_t queue, uint64_t event,
                          struct wire_u64s waits)
{
        send(w, i, recording_run, .event = event, .flags = COMMAND_NOTIFY, .recording = RECORDING,
             .queues = { &queue, 1 }, .waits = waits);
}

TEST(a_recording_runs_as_often_as_wanted_and_has_one_event)
{
        for (uint64_t q = 1; q <= 2; q++) {
                struct world *w = world_new(1);
                make_objects(w, 0, 64);
                record(w, 0);
                run(w);
                assert_int_equal(w->nodes[0].done_count, 0);
                for (uint64_t n = 0; n < 3; n++) {
                        fill_zero(w, 0, QUEUE(q), EVENT(100 + 10 * n), BUFFER(1), 64);
                        run_recording(w, 0, QUEUE(q), EVENT(101 + 10 * n),
                                      (struct wire_u64s)WAITS(EVENT(100 + 10 * n)));
                        pump(w);
                        assert_int_equal(status_of(w, 0, EVENT(101 + 10 * n)), PENDING);
                        run(w);
                        assert_int_equal(status_of(w, 0, EVENT(101 + 10 * n)), CL_SUCCESS);
                }
                assert_int_equal(w->nodes[0].done_count, 3);
                struct data *got = read_buffer(w, 0, QUEUE(q), EVENT(200), BUFFER(1), 64);
                run(w);
                assert_int_equal(number(got, 9), 12);
                send(w, 0, release, .object = RECORDING);
                release_objects(w, 0);
                world_free(w);
        }
}

TEST(a_recording_may_be_held_and_changed_and_released_meanwhile)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        record(w, 0);
        send(w, 0, event_import, .event = EVENT(100));
        run_recording(w, 0, QUEUE(2), EVENT(101), (struct wire_u64s)WAITS(EVENT(100)));
        struct buf args = { 0 };
        put_args(&args, 0, 1000);
        send(w, 0, recording_update, .recording = RECORDING, .command = EVENT(3),
             .global = WAITS(4), .args = bytes_of(args.data, args.size));
        buf_fini(&args);
        run_recording(w, 0, QUEUE(2), EVENT(102), (struct wire_u64s)WAITS(EVENT(101)));
        send(w, 0, release, .object = RECORDING);
        run(w);
        assert_int_equal(w->nodes[0].done_count, 0);
        struct data *got = expect_data(w, 0, 7, 64);
        send(w, 0, event_done, .event = EVENT(100));
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(101)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(102)), CL_SUCCESS);
        send(w, 0, buffer_read, .event = EVENT(103), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = 64, .transfer = 7);
        run(w);
        assert_int_equal(number(got, 3), 1005);
        assert_int_equal(number(got, 4), 5);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_recording_fails_as_a_whole_and_is_told_of_once)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        record(w, 0);
        send(w, 0, event_import, .event = EVENT(100));
        for (uint64_t q = 1; q <= 2; q++)
                run_recording(w, 0, QUEUE(q), EVENT(100 + q), (struct wire_u64s)WAITS(EVENT(100)));
        send(w, 0, event_done, .event = EVENT(100), .status = -7);
        run(w);
        for (uint64_t q = 1; q <= 2; q++)
                assert_int_equal(status_of(w, 0, EVENT(100 + q)),
                                 CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        assert_int_equal(w->nodes[0].done_count, 2);
        send(w, 0, release, .object = RECORDING);
        release_objects(w, 0);
        world_free(w);
}

/* Two slots, the second one's command between two of the first's by a barrier. */
TEST(a_recording_spans_queues_and_orders_them)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, recording_create, .recording = RECORDING,
             .slots = WAITS(QUEUE(SLOT), QUEUE(SLOT + 1)), .devices = WAITS(0, 0));
        fill_zero(w, 0, QUEUE(SLOT), EVENT(1), BUFFER(1), 64);
        send(w, 0, marker, .event = EVENT(2), .queue = QUEUE(SLOT), .flags = COMMAND_BARRIER);
        launch(w, 0, QUEUE(SLOT + 1), EVENT(3), BUFFER(1), 9);
        send(w, 0, marker, .event = EVENT(4), .queue = QUEUE(SLOT), .flags = COMMAND_BARRIER);
        send(w, 0, buffer_copy, .event = EVENT(5), .queue = QUEUE(SLOT), .src = BUFFER(1),
             .dst = BUFFER(2), .size = 64);
        for (uint64_t q = 1; q <= 2; q++) {
                backend_reference_seed = 17 * q;
                fill_zero(w, 0, QUEUE(q), EVENT(90 + q), BUFFER(2), 64);
                run(w);
                send(w, 0, recording_run, .event = EVENT(100 + q), .flags = COMMAND_NOTIFY,
                     .recording = RECORDING, .queues = WAITS(QUEUE(q), QUEUE(3 - q)));
                struct data *got = expect_data(w, 0, 10 + q, 64);
                send(w, 0, buffer_read, .event = EVENT(110 + q), .queue = QUEUE(q),
                     .buffer = BUFFER(2), .size = 64, .transfer = 10 + q,
                     .waits = WAITS(EVENT(100 + q)));
                run(w);
                assert_int_equal(status_of(w, 0, EVENT(100 + q)), CL_SUCCESS);
                assert_int_equal(number(got, 15), 9);
        }
        backend_reference_seed = 0;
        for (uint64_t n = 0; n < 2; n++)
                send(w, 0, release, .object = QUEUE(SLOT + n));
        send(w, 0, release, .object = RECORDING);
        release_objects(w, 0);
        world_free(w);
}

/* Two devices, whose memories differ: the recording itself brings what one has written to the other. */
TEST(a_recording_moves_data_between_domains)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, recording_create, .recording = RECORDING,
             .slots = WAITS(QUEUE(SLOT), QUEUE(SLOT + 1)), .devices = WAITS(0, 1));
        launch(w, 0, QUEUE(SLOT), EVENT(1), BUFFER(1), 9);
        send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(SLOT), .buffer = BUFFER(1),
             .size = 64, .peer = PEER_SELF, .transfer = EVENT(2), .waits = WAITS(EVENT(1)));
        send(w, 0, buffer_write, .event = EVENT(3), .queue = QUEUE(SLOT + 1), .buffer = BUFFER(1),
             .size = 64, .peer = PEER_SELF, .transfer = EVENT(2));
        launch_after(w, 0, QUEUE(SLOT + 1), EVENT(4), BUFFER(1), 1,
                     (struct wire_u64s)WAITS(EVENT(3)));
        fill_zero(w, 0, QUEUE(1), EVENT(90), BUFFER(1), 64);
        run(w);
        for (uint64_t n = 1; n <= 3; n++) {
                send(w, 0, recording_run, .event = EVENT(100 + n), .flags = COMMAND_NOTIFY,
                     .recording = RECORDING, .queues = WAITS(QUEUE(1), QUEUE(3)));
                struct data *got = expect_data(w, 0, 10 + n, 64);
                send(w, 0, buffer_read, .event = EVENT(110 + n), .queue = QUEUE(3),
                     .buffer = BUFFER(1), .size = 64, .transfer = 10 + n,
                     .waits = WAITS(EVENT(100 + n)));
                run(w);
                assert_int_equal(status_of(w, 0, EVENT(100 + n)), CL_SUCCESS);
                assert_int_equal(number(got, 15), 9 * n + 1);
        }
        for (uint64_t n = 0; n < 2; n++)
                send(w, 0, release, .object = QUEUE(SLOT + n));
        send(w, 0, release, .object = RECORDING);
        release_objects(w, 0);
        world_free(w);
}

static bool recording_survives(void (*misuse)(struct world *w))
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, recording_create, .recording = RECORDING, .slots = WAITS(QUEUE(SLOT)),
             .devices = WAITS(0));
        fill_zero(w, 0, QUEUE(SLOT), EVENT(1), BUFFER(1), 64);
        misuse(w);
        for (int i = 0; i < 8 && !w->nodes[0].died; i++) {
                pump(w);
                step(w, 0, SIZE_MAX);
        }
        bool alive = !w->nodes[0].died;
        world_free(w);
        return alive;
}

static void wrong_number(struct world *w)
{
        fill_zero(w, 0, QUEUE(SLOT), EVENT(3), BUFFER(1), 64);
}

static void waits_for_itself(struct world *w)
{
        launch_after(w, 0, QUEUE(SLOT), EVENT(2), BUFFER(1), 1, (struct wire_u64s)WAITS(EVENT(2)));
}

static void records_bulk(struct world *w)
{
        send(w, 0, buffer_write, .event = EVENT(2), .queue = QUEUE(SLOT), .buffer = BUFFER(1),
             .size = 64, .transfer = 7);
}

static void takes_what_nobody_gives(struct world *w)
{
        send(w, 0, buffer_write, .event = EVENT(2), .queue = QUEUE(SLOT), .buffer = BUFFER(1),
             .size = 64, .peer = PEER_SELF, .transfer = 7);
}

static void takes_more_than_is_given(struct world *w)
{
        send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(SLOT), .buffer = BUFFER(1),
             .size = 32, .peer = PEER_SELF, .transfer = 7);
        send(w, 0, buffer_write, .event = EVENT(3), .queue = QUEUE(SLOT), .buffer = BUFFER(1),
             .size = 64, .peer = PEER_SELF, .transfer = 7);
}

static void runs_on_a_slot(struct world *w)
{
        run_recording(w, 0, QUEUE(SLOT), EVENT(100), (struct wire_u64s){ NULL, 0 });
}

static void runs_on_another_device(struct world *w)
{
        run_recording(w, 0, QUEUE(3), EVENT(100), (struct wire_u64s){ NULL, 0 });
}

static void changes_what_is_no_kernel(struct world *w)
{
        send(w, 0, recording_update, .recording = RECORDING, .command = EVENT(1),
             .global = WAITS(4));
}

static void records_after_its_end(struct world *w)
{
        send(w, 0, release, .object = RECORDING);
        fill_zero(w, 0, QUEUE(SLOT), EVENT(2), BUFFER(1), 64);
}

TEST(misuse_of_a_recording_ends_the_session)
{
        assert_false(recording_survives(wrong_number));
        assert_false(recording_survives(waits_for_itself));
        assert_false(recording_survives(records_bulk));
        assert_false(recording_survives(takes_what_nobody_gives));
        assert_false(recording_survives(takes_more_than_is_given));
        assert_false(recording_survives(runs_on_a_slot));
        assert_false(recording_survives(runs_on_another_device));
        assert_false(recording_survives(changes_what_is_no_kernel));
        /* What is left of it is a queue that can't execute. */
        assert_true(recording_survives(records_after_its_end));
}

TEST(profiled_queues_tell_times_and_others_do_not)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, queue_create, .queue = QUEUE(9), .device = 0,
             .properties = CL_QUEUE_PROFILING_ENABLE);
        launch(w, 0, QUEUE(9), EVENT(1), BUFFER(1), 7);
        run(w);
        assert_int_equal(w->nodes[0].last_time_count, 3);
        assert_true(w->nodes[0].last_times[0] <= w->nodes[0].last_times[1]);
        assert_true(w->nodes[0].last_times[1] < w->nodes[0].last_times[2]);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 7);
        run(w);
        assert_int_equal(w->nodes[0].last_time_count, 0);
        send(w, 0, release, .object = QUEUE(9));
        release_objects(w, 0);
        world_free(w);
}

/* ---- events --------------------------------------------------------------------------------- */

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
        run(w);
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
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        unsigned told = w->nodes[0].done_count;
        send(w, 0, event_watch, .event = EVENT(1));
        run(w);
        assert_int_equal(w->nodes[0].done_count, told);
        release_objects(w, 0);
        world_free(w);
}

/* Two engines that know each other: node 0 dials node 1. Peer 1 is node 0, peer 2 node 1. */
static struct world *two_servers(size_t size)
{
        struct world *w = world_new(2);
        send(w, 0, peer_open, .peer = PEER(2), .host = bytes_str("other"), .port = 1,
             .session_lo = 42, .token_hi = 7, .token_lo = 8);
        send(w, 1, peer_expect, .peer = PEER(1), .token_hi = 7, .token_lo = 8);
        make_objects(w, 0, size);
        make_objects(w, 1, size);
        pump(w);
        return w;
}

TEST(completion_reaches_the_other_server_before_or_after_its_import)
{
        for (int early = 0; early < 2; early++) {
                struct world *w = two_servers(64);
                fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
                send(w, 0, event_subscribe, .event = EVENT(1), .peer = PEER(2));
                if (early)
                        run(w);
                send(w, 1, event_import, .event = EVENT(1), .peer = PEER(1));
                launch_after(w, 1, QUEUE(1), EVENT(2), BUFFER(1), 1,
                             (struct wire_u64s)WAITS(EVENT(1)));
                pump(w);
                assert_int_equal(counts(w, 1).commands_held, !early);
                run(w);
                assert_int_equal(status_of(w, 1, EVENT(2)), CL_SUCCESS);
                release_objects(w, 0);
                release_objects(w, 1);
                world_free(w);
        }
}

TEST(failure_reaches_the_other_server)
{
        for (int early = 0; early < 2; early++) {
                struct world *w = two_servers(32);
                launch(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1);
                if (early)
                        run(w);
                send(w, 0, event_subscribe, .event = EVENT(1), .peer = PEER(2));
                if (early)
                        run(w);
                send(w, 1, event_import, .event = EVENT(1), .peer = PEER(1));
                fill_zero(w, 1, QUEUE(1), EVENT(2), BUFFER(1), 32);
                send(w, 1, marker, .event = EVENT(3), .queue = QUEUE(1), .waits = WAITS(EVENT(1)));
                run(w);
                assert_int_equal(status_of(w, 1, EVENT(3)), -14);
                assert_int_equal(status_of(w, 1, EVENT(1)), PENDING); /* node 0 told */
                release_objects(w, 0);
                release_objects(w, 1);
                world_free(w);
        }
}

TEST(a_lost_peer_fails_what_waits_for_it)
{
        struct world *w = two_servers(8 * MIB);
        send(w, 1, event_import, .event = EVENT(1), .peer = PEER(1));
        send(w, 1, event_import, .event = EVENT(2)); /* the client's */
        send(w, 1, marker, .event = EVENT(3), .queue = QUEUE(2), .waits = WAITS(EVENT(1)));
        send(w, 1, marker, .event = EVENT(4), .queue = QUEUE(2), .waits = WAITS(EVENT(2)));
        send(w, 1, buffer_write, .event = EVENT(5), .queue = QUEUE(2), .buffer = BUFFER(1),
             .size = 8 * MIB, .peer = PEER(1), .transfer = 9);
        run(w);
        struct node *n = &w->nodes[1];
        engine_lock(n->engine);
        engine_peer_failed(n->engine, engine_peer_session(n->engine, w->nodes[0].token), SP_E_LINK,
                           "cut");
        engine_unlock(n->engine);
        w->nodes[0].dialled = NULL;
        run(w);
        assert_int_equal(n->peers_lost, 1);
        assert_int_equal(status_of(w, 1, EVENT(3)), -14);
        assert_int_equal(status_of(w, 1, EVENT(4)), PENDING);
        assert_int_equal(status_of(w, 1, EVENT(5)), CL_DEVICE_NOT_AVAILABLE);
        /* Later ones fail at once. */
        send(w, 1, event_import, .event = EVENT(11), .peer = PEER(1));
        send(w, 1, marker, .event = EVENT(13), .queue = QUEUE(2), .waits = WAITS(EVENT(11)));
        send(w, 1, buffer_write, .event = EVENT(15), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = 8 * MIB, .peer = PEER(1), .transfer = 19);
        send(w, 1, buffer_read, .event = EVENT(16), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = 8 * MIB, .peer = PEER(1), .transfer = 20);
        send(w, 1, event_done, .event = EVENT(2));
        run(w);
        assert_int_equal(status_of(w, 1, EVENT(13)), -14);
        assert_int_equal(status_of(w, 1, EVENT(15)), CL_DEVICE_NOT_AVAILABLE);
        assert_int_equal(status_of(w, 1, EVENT(16)), CL_DEVICE_NOT_AVAILABLE);
        release_objects(w, 0);
        release_objects(w, 1);
        world_free(w);
}

/* Node 0 gets 8 MiB and passes them on to node 1, which it does as they come. */
static struct world *forwarding(struct data **ret_data)
{
        struct world *w = two_servers(8 * MIB);
        send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(2), .buffer = BUFFER(1),
             .size = 8 * MIB, .transfer = EVENT(1));
        *ret_data = send_data(w, 0, EVENT(1), data_new(w, 8 * MIB, 3), 4 * MIB);
        send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(2),
             .flags = COMMAND_REGARDLESS | COMMAND_FOLLOW, .buffer = BUFFER(1), .offset = MIB,
             .size = 7 * MIB, .peer = PEER(2), .transfer = EVENT(3), .waits = WAITS(EVENT(1)));
        send(w, 1, buffer_write, .event = EVENT(3), .queue = QUEUE(2), .flags = COMMAND_NOTIFY,
             .buffer = BUFFER(1), .offset = MIB, .size = 7 * MIB, .peer = PEER(1),
             .transfer = EVENT(3));
        run(w);
        return w;
}

TEST(what_is_still_arriving_is_forwarded)
{
        struct data *d;
        struct world *w = forwarding(&d);
        /* Of the first half all but the first MiB is there. */
        assert_true(session_get_stats(w->nodes[0].dialled)->bulk_sent >= 3 * MIB);
        assert_int_equal(status_of(w, 1, EVENT(3)), PENDING);
        engine_lock(w->nodes[0].engine);
        session_bulk_ready(w->nodes[0].client, &d->bulk, 8 * MIB);
        engine_unlock(w->nodes[0].engine);
        run(w);
        assert_int_equal(status_of(w, 1, EVENT(3)), CL_SUCCESS);
        struct data *got = expect_data(w, 1, EVENT(9), 7 * MIB);
        send(w, 1, buffer_read, .event = EVENT(9), .queue = QUEUE(2), .buffer = BUFFER(1),
             .offset = MIB, .size = 7 * MIB, .transfer = EVENT(9));
        run(w);
        assert_memory_equal(got->bytes, d->bytes + MIB, 7 * MIB);
        release_objects(w, 0);
        release_objects(w, 1);
        world_free(w);
}

TEST(what_does_not_arrive_fails_those_that_it_is_forwarded_to)
{
        for (int early = 0; early < 2; early++) {
                struct world *w = two_servers(8 * MIB);
                /* The source is a peer that is lost. */
                send(w, 0, peer_expect, .peer = PEER(3), .token_hi = 1, .token_lo = 1);
                send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .size = 8 * MIB, .peer = PEER(3), .transfer = EVENT(1));
                if (early)
                        send(w, 0, peer_lost, .peer = PEER(3), .status = SP_E_GONE);
                send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(2),
                     .flags = COMMAND_REGARDLESS | COMMAND_FOLLOW, .buffer = BUFFER(1),
                     .size = 8 * MIB, .peer = PEER(2), .transfer = EVENT(3),
                     .waits = WAITS(EVENT(1)));
                send(w, 1, buffer_write, .event = EVENT(3), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .size = 8 * MIB, .peer = PEER(1), .transfer = EVENT(3));
                run(w);
                if (!early)
                        send(w, 0, peer_lost, .peer = PEER(3), .status = SP_E_GONE);
                run(w);
                assert_int_equal(status_of(w, 0, EVENT(1)), CL_DEVICE_NOT_AVAILABLE);
                assert_true(status_of(w, 1, EVENT(3)) < 0);
                release_objects(w, 0);
                release_objects(w, 1);
                world_free(w);
        }
}

/* Node 0 has bytes in buffer 1, and in buffer 2 how many of them mean something. */
static struct data *counted(struct world *w, uint64_t content)
{
        struct data *d = write_buffer(w, 0, QUEUE(2), EVENT(1), BUFFER(1), 8 * MIB, 5);
        struct data *n = data_new(w, 8, 0);
        bytes_put_u64(n->bytes, content);
        send(w, 0, buffer_write, .event = EVENT(2), .queue = QUEUE(2), .buffer = BUFFER(2),
             .offset = 100, .size = 8, .transfer = EVENT(2));
        send_data(w, 0, EVENT(2), n, 8);
        run(w);
        return d;
}

TEST(only_bytes_that_mean_something_are_sent_whoever_is_first)
{
        static const uint64_t contents[] = { 0, 1, 20000, MIB, 5 * MIB + 3, 8 * MIB, UINT64_MAX };
        for (unsigned i = 0; i < 2 * array_size(contents); i++) {
                struct world *w = two_servers(8 * MIB);
                uint64_t content = contents[i / 2], rest = 8 * MIB - 4096;
                struct data *d = counted(w, content);
                uint64_t before = session_get_stats(w->nodes[0].dialled)->bulk_sent;
                send(w, 0, content_size, .event = EVENT(3), .buffer = BUFFER(2), .offset = 100);
                send(w, 0, buffer_read, .event = EVENT(3), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .offset = 4096, .size = rest, .peer = PEER(2), .transfer = EVENT(4));
                if (i % 2)
                        run(w);
                send(w, 1, buffer_write, .event = EVENT(4), .queue = QUEUE(2),
                     .flags = COMMAND_NOTIFY, .buffer = BUFFER(1), .offset = 4096, .size = rest,
                     .peer = PEER(1), .transfer = EVENT(4));
                run(w);
                assert_int_equal(status_of(w, 1, EVENT(4)), CL_SUCCESS);
                uint64_t useful = content < 4096 ? 0 : content - 4096;
                useful = useful < rest ? useful : rest;
                uint64_t sent = session_get_stats(w->nodes[0].dialled)->bulk_sent - before;
                assert_true(sent >= useful && sent <= useful + 70000);
                struct data *got = expect_data(w, 1, EVENT(9), 8 * MIB);
                send(w, 1, buffer_read, .event = EVENT(9), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .size = 8 * MIB, .transfer = EVENT(9));
                run(w);
                assert_memory_equal(got->bytes + 4096, d->bytes + 4096, useful);
                assert_int_equal(counts(w, 0).transfers, 0);
                assert_int_equal(counts(w, 1).transfers, 0);
                release_objects(w, 0);
                release_objects(w, 1);
                world_free(w);
        }
}

TEST(between_domains_only_bytes_that_mean_something_are_moved)
{
        for (int early = 0; early < 2; early++) {
                struct world *w = world_new(1);
                make_objects(w, 0, 8 * MIB);
                struct data *d = counted(w, MIB);
                if (early)
                        send(w, 0, buffer_write, .event = EVENT(4), .queue = QUEUE(3),
                             .flags = COMMAND_NOTIFY, .buffer = BUFFER(1), .size = 8 * MIB,
                             .peer = PEER_SELF, .transfer = 77);
                send(w, 0, content_size, .event = EVENT(3), .buffer = BUFFER(2), .offset = 100);
                send(w, 0, buffer_read, .event = EVENT(3), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .size = 8 * MIB, .peer = PEER_SELF, .transfer = 77);
                run(w);
                if (!early)
                        send(w, 0, buffer_write, .event = EVENT(4), .queue = QUEUE(3),
                             .flags = COMMAND_NOTIFY, .buffer = BUFFER(1), .size = 8 * MIB,
                             .peer = PEER_SELF, .transfer = 77);
                run(w);
                assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
                struct data *got = expect_data(w, 0, EVENT(9), MIB);
                send(w, 0, buffer_read, .event = EVENT(9), .queue = QUEUE(3), .buffer = BUFFER(1),
                     .size = MIB, .transfer = EVENT(9));
                run(w);
                assert_memory_equal(got->bytes, d->bytes, MIB);
                assert_int_equal(counts(w, 0).transfers, 0);
                release_objects(w, 0);
                world_free(w);
        }
}

TEST(a_number_that_is_not_there_fails_its_command)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, content_size, .event = EVENT(1), .buffer = BUFFER(2), .offset = 60);
        send(w, 0, buffer_copy, .event = EVENT(1), .queue = QUEUE(1), .flags = COMMAND_NOTIFY,
             .src = BUFFER(1), .dst = BUFFER(2), .size = 32);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_INVALID_VALUE);
        release_objects(w, 0);
        world_free(w);
}

/* ---- data ----------------------------------------------------------------------------------- */

TEST(what_is_written_is_read_whatever_its_size)
{
        static const size_t sizes[] = { 1,
                                        100,
                                        SESSION_INLINE_DEFAULT,
                                        SESSION_INLINE_DEFAULT + 1,
                                        MIB - 1,
                                        MIB,
                                        2 * MIB + 1,
                                        9 * MIB + 77 };
        for (size_t i = 0; i < array_size(sizes); i++) {
                struct world *w = world_new(1);
                make_objects(w, 0, sizes[i]);
                for (unsigned q = 1; q <= 2; q++) {
                        struct data *sent = write_buffer(w, 0, QUEUE(q), EVENT(10 * q), BUFFER(q),
                                                         sizes[i], (uint8_t)q);
                        run(w);
                        assert_true(sent->acked);
                        struct data *got =
                                read_buffer(w, 0, QUEUE(q), EVENT(10 * q + 1), BUFFER(q), sizes[i]);
                        run(w);
                        expect_same(sent, got);
                        assert_int_equal(status_of(w, 0, EVENT(10 * q)), CL_SUCCESS);
                        assert_int_equal(status_of(w, 0, EVENT(10 * q + 1)), CL_SUCCESS);
                }
                release_objects(w, 0);
                world_free(w);
        }
}

TEST(a_write_starts_while_its_bytes_still_arrive)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 8 * MIB);
        struct data *d = data_new(w, 8 * MIB, 3);
        send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(1), .flags = COMMAND_NOTIFY,
             .buffer = BUFFER(1), .size = d->size, .transfer = 5);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(2), BUFFER(1), d->size);
        send_data(w, 0, 5, d, 1000);
        run(w);
        assert_int_equal(counts(w, 0).commands_running, 0);
        session_bulk_ready(w->nodes[0].client, &d->bulk, 2 * MIB + 1);
        pump(w);
        assert_int_equal(counts(w, 0).commands_running, 1);
        assert_int_equal(counts(w, 0).commands_held, 2); /* itself, and the read behind it */
        assert_int_equal(step(w, 0, SIZE_MAX), 2);       /* parts of 1 MiB */
        session_bulk_ready(w->nodes[0].client, &d->bulk, 3 * MIB);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), PENDING);
        session_bulk_ready(w->nodes[0].client, &d->bulk, d->size);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        expect_same(d, got);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_read_is_sent_while_its_rest_is_still_read)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 9 * MIB);
        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 9 * MIB, 1);
        run(w);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(2), BUFFER(1), 9 * MIB);
        pump(w);
        assert_int_equal(step(w, 0, 1), 1);
        pump(w);
        assert_true(got->arrived >= MIB && got->arrived < 9 * MIB);
        assert_int_equal(status_of(w, 0, EVENT(2)), PENDING);
        size_t before = got->arrived;
        assert_int_equal(step(w, 0, 1), 1);
        pump(w);
        assert_true(got->arrived > before);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        expect_same(d, got);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_read_is_only_so_far_ahead_of_what_has_arrived)
{
        struct world *w = world_new(1);
        size_t size = 40 * MIB;
        make_objects(w, 0, size);
        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), size, 1);
        run(w);
        /* The data goes nowhere: there is no lane for it. */
        session_lane_down(w->nodes[0].client, 1);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(2), BUFFER(1), size);
        pump(w);
        size_t parts = step(w, 0, SIZE_MAX);
        assert_true(parts >= 4 && parts <= 20);
        pump(w);
        assert_int_equal(step(w, 0, SIZE_MAX), 0);
        assert_int_equal(status_of(w, 0, EVENT(2)), PENDING);
        assert_int_equal(session_lane_up(w->nodes[0].client, 1, 0), 0);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        expect_same(d, got);
        release_objects(w, 0);
        world_free(w);
}

/* What the lane has to send arrives, but the lane does not hear yet that it was sent. Returns how much. */
static size_t deliver(struct session *from, struct session *to, unsigned lane)
{
        struct iovec out[8], in[2];
        size_t size = 0;
        int n = session_lane_pending(from, lane, out, 8);
        for (int i = 0; i < n; i++)
                for (size_t at = 0, len; at < out[i].iov_len; at += len, size += len) {
                        assert_true(session_lane_want(to, lane, in) > 0);
                        len = out[i].iov_len - at;
                        len = len < in[0].iov_len ? len : in[0].iov_len;
                        memcpy(in[0].iov_base, (const uint8_t *)out[i].iov_base + at, len);
                        assert_int_equal(session_lane_received(to, lane, len), 0);
                }
        return size;
}

TEST(a_lane_that_is_late_to_hear_that_it_sent_does_not_stop_a_read)
{
        struct world *w = world_new(1);
        struct node *n = &w->nodes[0];
        struct session *s = engine_session(n->engine);
        size_t size = 40 * MIB;
        make_objects(w, 0, size);
        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), size, 1);
        run(w);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(2), BUFFER(1), size);
        pump(w);
        step(w, 0, 1);
        size_t sent = deliver(s, n->client, 2);
        assert_true(sent > MIB);
        run(w);
        session_lane_sent(s, 2, sent);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        expect_same(d, got);
        release_objects(w, 0);
        world_free(w);
}

TEST(boxes_travel_without_gaps)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 4096);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 4096);
        struct data *d = data_new(w, 4 * 3 * 2, 9);
        send(w, 0, buffer_write_rect, .event = EVENT(2), .queue = QUEUE(1), .buffer = BUFFER(1),
             .origin = WAITS(8, 1, 1), .region = WAITS(4, 3, 2), .row_pitch = 32,
             .slice_pitch = 320, .transfer = 1);
        send_data(w, 0, 1, d, d->size);
        struct data *got = expect_data(w, 0, 2, d->size);
        send(w, 0, buffer_copy_rect, .event = EVENT(3), .queue = QUEUE(1), .src = BUFFER(1),
             .dst = BUFFER(2), .src_origin = WAITS(8, 1, 1), .dst_origin = WAITS(0, 2, 0),
             .region = WAITS(4, 3, 2), .src_row_pitch = 32, .src_slice_pitch = 320,
             .dst_row_pitch = 4, .dst_slice_pitch = 100);
        send(w, 0, buffer_read_rect, .event = EVENT(4), .queue = QUEUE(1), .flags = COMMAND_NOTIFY,
             .buffer = BUFFER(2), .origin = WAITS(0, 2, 0), .region = WAITS(4, 3, 2),
             .row_pitch = 4, .slice_pitch = 100, .transfer = 2);
        struct data *whole = read_buffer(w, 0, QUEUE(1), EVENT(5), BUFFER(1), 4096);
        run(w);
        expect_same(d, got);
        assert_memory_equal(whole->bytes + 320 + 32 + 8, d->bytes, 4);
        assert_memory_equal(whole->bytes + 2 * 320 + 3 * 32 + 8, d->bytes + 20, 4);
        /* Out of the buffer: the bytes are swallowed. */
        send(w, 0, buffer_write_rect, .event = EVENT(6), .queue = QUEUE(1), .buffer = BUFFER(1),
             .origin = WAITS(8, 1, 1), .region = WAITS(4, 3, 20), .row_pitch = 32,
             .slice_pitch = UINT64_MAX, .transfer = 3);
        struct data *lost = send_data(w, 0, 3, data_new(w, 240, 0), 240);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(6)), CL_INVALID_VALUE);
        assert_true(lost->acked);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_failed_write_swallows_its_bytes)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 4 * MIB);
        send(w, 0, event_import, .event = EVENT(100));
        struct data *d = data_new(w, 3 * MIB, 3);
        send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = d->size, .transfer = 5, .waits = WAITS(EVENT(100)));
        send_data(w, 0, 5, d, MIB + 5);
        pump(w);
        send(w, 0, event_done, .event = EVENT(100), .status = -9);
        /* Out of the buffer. */
        struct data *other = data_new(w, 3 * MIB, 3);
        send(w, 0, buffer_write, .event = EVENT(2), .queue = QUEUE(1), .buffer = BUFFER(1),
             .offset = 2 * MIB, .size = other->size, .transfer = 6);
        send_data(w, 0, 6, other, other->size);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), -14);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_INVALID_VALUE);
        session_bulk_ready(w->nodes[0].client, &d->bulk, d->size);
        run(w);
        assert_true(d->acked && other->acked);
        release_objects(w, 0);
        world_free(w);
}

/* From device 0 to device 1 of one server. */
TEST(data_goes_from_domain_to_domain_in_either_order_of_commands)
{
        for (int write_first = 0; write_first < 2; write_first++) {
                for (size_t size = 100; size <= 5 * MIB; size += 5 * MIB - 100) {
                        struct world *w = world_new(1);
                        make_objects(w, 0, size);
                        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), size, 1);
                        for (int k = 0; k < 2; k++) {
                                if (k == write_first)
                                        send(w, 0, buffer_read, .event = EVENT(2),
                                             .queue = QUEUE(1), .buffer = BUFFER(1), .size = size,
                                             .peer = PEER_SELF, .transfer = 77);
                                else
                                        send(w, 0, buffer_write, .event = EVENT(3),
                                             .queue = QUEUE(3), .buffer = BUFFER(1), .size = size,
                                             .peer = PEER_SELF, .transfer = 77);
                        }
                        struct data *got = read_buffer(w, 0, QUEUE(3), EVENT(4), BUFFER(1), size);
                        run(w);
                        expect_same(d, got);
                        release_objects(w, 0);
                        world_free(w);
                }
        }
}

TEST(a_failed_local_read_fails_its_write)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 100);
        send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(1), .buffer = BUFFER(1),
             .size = 101, .peer = PEER_SELF, .transfer = 77);
        send(w, 0, buffer_write, .event = EVENT(3), .queue = QUEUE(3), .buffer = BUFFER(1),
             .size = 101, .peer = PEER_SELF, .transfer = 77);
        send(w, 0, buffer_write, .event = EVENT(4), .queue = QUEUE(2), .buffer = BUFFER(1),
             .offset = 50, .size = 50, .peer = PEER_SELF, .transfer = 78);
        send(w, 0, buffer_read, .event = EVENT(5), .queue = QUEUE(3), .buffer = BUFFER(1),
             .offset = 51, .size = 50, .peer = PEER_SELF, .transfer = 78);
        run(w);
        for (unsigned i = 2; i <= 5; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), CL_INVALID_VALUE);
        release_objects(w, 0);
        world_free(w);
}

/* From server 0 to server 1, not through the client. */
TEST(data_goes_from_server_to_server_whoever_is_first)
{
        for (int write_first = 0; write_first < 2; write_first++) {
                for (size_t size = 100; size <= 5 * MIB; size += 5 * MIB - 100) {
                        struct world *w = two_servers(size);
                        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), size, 1);
                        for (int k = 0; k < 2; k++) {
                                if (k == write_first)
                                        send(w, 0, buffer_read, .event = EVENT(2),
                                             .queue = QUEUE(1), .buffer = BUFFER(1), .size = size,
                                             .peer = PEER(2), .transfer = 77);
                                else
                                        send(w, 1, buffer_write, .event = EVENT(3),
                                             .queue = QUEUE(3), .buffer = BUFFER(1), .size = size,
                                             .peer = PEER(1), .transfer = 77);
                                run(w);
                        }
                        struct data *got = read_buffer(w, 1, QUEUE(3), EVENT(4), BUFFER(1), size);
                        run(w);
                        expect_same(d, got);
                        release_objects(w, 0);
                        release_objects(w, 1);
                        world_free(w);
                }
        }
}

TEST(a_failed_read_fails_the_write_on_the_other_server)
{
        for (int write_first = 0; write_first < 2; write_first++) {
                struct world *w = two_servers(100);
                for (int k = 0; k < 2; k++) {
                        if (k == write_first)
                                send(w, 0, buffer_read, .event = EVENT(2), .queue = QUEUE(1),
                                     .buffer = BUFFER(1), .offset = 1, .size = 100, .peer = PEER(2),
                                     .transfer = 77);
                        else
                                send(w, 1, buffer_write, .event = EVENT(3), .queue = QUEUE(3),
                                     .buffer = BUFFER(1), .size = 100, .peer = PEER(1),
                                     .transfer = 77);
                        run(w);
                }
                assert_int_equal(status_of(w, 0, EVENT(2)), CL_INVALID_VALUE);
                assert_int_equal(status_of(w, 1, EVENT(3)), CL_INVALID_VALUE);
                release_objects(w, 0);
                release_objects(w, 1);
                world_free(w);
        }
}

/* The reference backend, but every completion from the n-th on says that it failed. */
static struct {
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        void *user;
        unsigned good;
} flaky;

static void flaky_complete(void *user, void *cookie, cl_int status, const struct backend_times *t)
{
        (void)user;
        flaky.complete(flaky.user, cookie, flaky.good ? status : CL_OUT_OF_RESOURCES, t);
        flaky.good -= flaky.good > 0;
}

static int flaky_open(const struct backend_params *params, struct backend **ret)
{
        struct backend_params p = *params;
        flaky.complete = p.complete;
        flaky.user = p.user;
        p.complete = flaky_complete;
        return backend_reference.open(&p, ret);
}

TEST(a_read_that_fails_in_the_middle_is_sent_to_its_end_and_then_reported)
{
        struct backend_ops ops = backend_reference;
        ops.open = flaky_open;
        struct world *w = calloc(1, sizeof(*w));
        struct node *n = &w->nodes[0];
        w->count = 1;
        backend_reference_manual = true;
        assert_int_equal(node_init_on(n, &ops, true, NULL), 0);
        flaky.good = 4;
        make_objects(w, 0, 9 * MIB);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 9 * MIB);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 1);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(3), BUFFER(1), 9 * MIB);
        pump(w);
        step(w, 0, 3);
        pump(w);
        assert_int_equal(number(got, 0), 1);
        size_t before = got->arrived;
        step(w, 0, 3);
        engine_lock(n->engine);
        bool died = false;
        move_lane(engine_session(n->engine), n->client, 0, SIZE_MAX, &died);
        engine_unlock(n->engine);
        assert_int_equal(got->arrived, before);
        assert_int_equal(status_of(w, 0, EVENT(3)), PENDING);
        run(w);
        assert_int_equal(got->arrived, got->size);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_OUT_OF_RESOURCES);
        release_objects(w, 0);
        world_free(w);
}

/* The reference backend, but ends are told when the test says, in any order. */
static struct {
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        void *user;
        struct {
                void *cookie;
                cl_int status;
        } ends[256];
        size_t count;
} late;

static void late_complete(void *user, void *cookie, cl_int status, const struct backend_times *t)
{
        (void)user, (void)t;
        assert_true(late.count < array_size(late.ends));
        late.ends[late.count].cookie = cookie;
        late.ends[late.count++].status = status;
}

static void late_tell(size_t i)
{
        static const struct backend_times none;
        void *cookie = late.ends[i].cookie;
        cl_int status = late.ends[i].status;
        late.ends[i] = late.ends[--late.count];
        late.complete(late.user, cookie, status, &none);
}

static int late_open(const struct backend_params *params, struct backend **ret)
{
        struct backend_params p = *params;
        late.complete = p.complete;
        late.user = p.user;
        late.count = 0;
        p.complete = late_complete;
        return backend_reference.open(&p, ret);
}

static struct world *late_world(void)
{
        static struct backend_ops ops;
        ops = backend_reference;
        ops.open = late_open;
        struct world *w = calloc(1, sizeof(*w));
        w->count = 1;
        backend_reference_manual = true;
        assert_int_equal(node_init_on(&w->nodes[0], &ops, true, NULL), 0);
        make_objects(w, 0, 64);
        return w;
}

static void late_world_free(struct world *w)
{
        run(w);
        for (; late.count; run(w))
                late_tell(late.count - 1);
        release_objects(w, 0);
        world_free(w);
}

static void expect_order(const struct world *w, const uint64_t *events, unsigned count)
{
        assert_int_equal(w->nodes[0].done_count, count);
        for (unsigned i = 0; i < count; i++)
                assert_int_equal(w->nodes[0].order[i], events[i]);
}

TEST(an_end_is_told_after_those_it_came_after_whoever_is_heard_of_first)
{
        struct world *w = late_world();
        launch(w, 0, QUEUE(2), EVENT(1), BUFFER(1), 1);
        send(w, 0, marker, .event = EVENT(2), .queue = QUEUE(2),
             .flags = COMMAND_NOTIFY | COMMAND_BARRIER);
        launch(w, 0, QUEUE(2), EVENT(3), BUFFER(2), 1);
        launch_after(w, 0, QUEUE(1), EVENT(4), BUFFER(2), 1, (struct wire_u64s)WAITS(EVENT(3)));
        send(w, 0, marker, .event = EVENT(5), .queue = QUEUE(2), .flags = COMMAND_NOTIFY,
             .waits = WAITS(EVENT(4)));
        run(w);
        assert_int_equal(late.count, 5);
        while (late.count)
                late_tell(late.count - 1);
        pump(w);
        expect_order(w, (const uint64_t[]){ EVENT(1), EVENT(2), EVENT(3), EVENT(4), EVENT(5) }, 5);
        late_world_free(w);
}

TEST(the_end_of_what_is_behind_all_is_not_that_of_what_comes_after_it)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, marker, .event = EVENT(1), .queue = QUEUE(2),
             .flags = COMMAND_NOTIFY | COMMAND_BARRIER);
        send(w, 0, buffer_fill, .event = EVENT(2), .queue = QUEUE(2), .buffer = BUFFER(2),
             .size = 64, .pattern = bytes_of("", 1));
        /* Its end is that of the one before, too. */
        launch_after(w, 0, QUEUE(2), EVENT(3), BUFFER(2), 1, (struct wire_u64s)WAITS(EVENT(2)));
        pump(w);
        while (status_of(w, 0, EVENT(1)) == PENDING) {
                assert_int_equal(step(w, 0, 1), 1);
                pump(w);
        }
        send(w, 0, event_watch, .event = EVENT(2));
        pump(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), PENDING);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        release_objects(w, 0);
        world_free(w);
}

enum { GRAPH = 40 };

/* Commands of all kinds in both queues; `after[i][k]`: i comes after k. */
static void make_graph(struct world *w, struct rng *rng, bool after[GRAPH][GRAPH])
{
        unsigned queue_of[GRAPH], barrier = GRAPH; /* GRAPH: none */
        for (unsigned i = 0; i < GRAPH; i++) {
                uint64_t waits[2], wait_count = i ? rng_below(rng, 3) : 0, kind = rng_below(rng, 6);
                unsigned q = queue_of[i] = rng_below(rng, 4) ? 2 : 1;
                for (unsigned k = 0; k < wait_count; k++) {
                        uint64_t other = rng_below(rng, i);
                        waits[k] = EVENT(1 + other);
                        after[i][other] = true;
                }
                const struct wire_u64s list = { waits, wait_count };
                const uint64_t notify = rng_below(rng, 3) ? COMMAND_NOTIFY : 0;
                if (q == 2 && barrier < i)
                        after[i][barrier] = true;
                if (kind < 4) {
                        send(w, 0, buffer_fill, .event = EVENT(1 + i), .queue = QUEUE(q),
                             .flags = notify, .buffer = BUFFER(q), .size = 64,
                             .pattern = bytes_of("", 1), .waits = list);
                        continue;
                }
                send(w, 0, marker, .event = EVENT(1 + i), .queue = QUEUE(q),
                     .flags = notify | (kind == 4 ? COMMAND_BARRIER : 0), .waits = list);
                for (unsigned k = 0; !wait_count && k < i; k++)
                        after[i][k] |= queue_of[k] == q;
                if (q == 2 && kind == 4)
                        barrier = i;
        }
        for (unsigned k = 0; k < GRAPH; k++) /* what comes after what comes after */
                for (unsigned i = 0; i < GRAPH; i++)
                        for (unsigned j = 0; after[i][k] && j < GRAPH; j++)
                                after[i][j] |= after[k][j];
}

TEST(ends_in_any_order_are_told_in_order)
{
        for (uint64_t seed = 1; seed <= 200; seed++) {
                struct rng rng = { seed };
                bool after[GRAPH][GRAPH] = { 0 };
                backend_reference_seed = seed;
                struct world *w = late_world();
                const struct node *n = &w->nodes[0];
                make_graph(w, &rng, after);
                send(w, 0, marker, .event = EVENT(50), .queue = QUEUE(1), .flags = COMMAND_NOTIFY);
                send(w, 0, marker, .event = EVENT(51), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
                pump(w);
                for (size_t ran = 1; ran || late.count; pump(w)) {
                        ran = step(w, 0, 1 + rng_below(&rng, 8));
                        for (size_t k = rng_below(&rng, 3) + !ran; k && late.count; k--)
                                late_tell(rng_below(&rng, late.count));
                }
                assert_int_equal(status_of(w, 0, EVENT(50)), CL_SUCCESS);
                assert_int_equal(status_of(w, 0, EVENT(51)), CL_SUCCESS);
                for (unsigned a = 0; a < n->done_count; a++)
                        for (unsigned b = a + 1; b < n->done_count; b++) {
                                uint64_t first = n->order[a] - EVENT(1),
                                         then = n->order[b] - EVENT(1);
                                if (first < GRAPH && then < GRAPH && after[first][then])
                                        fail_msg("seed %d: %d is told before %d", (int)seed,
                                                 (int)first, (int)then);
                        }
                late_world_free(w);
        }
        backend_reference_seed = 0;
}

TEST(what_fails_is_told_before_each_that_is_behind_all_after_it)
{
        for (uint64_t seed = 1; seed <= 200; seed++) {
                struct rng rng = { seed };
                bool fails[GRAPH] = { 0 }, behind_all[GRAPH] = { 0 };
                backend_reference_seed = seed;
                struct world *w = late_world();
                const struct node *n = &w->nodes[0];
                send(w, 0, buffer_create, .buffer = BUFFER(3), .flags = CL_MEM_READ_WRITE,
                     .size = 32); /* too small for 16 numbers */
                for (unsigned i = 0; i < GRAPH; i++) {
                        uint64_t kind = rng_below(&rng, 8),
                                 other = EVENT(1 + rng_below(&rng, i + 1));
                        fails[i] = kind < 2;
                        behind_all[i] = kind >= 6;
                        if (behind_all[i])
                                send(w, 0, marker, .event = EVENT(1 + i), .queue = QUEUE(2),
                                     .flags = COMMAND_NOTIFY | (kind == 6 ? COMMAND_BARRIER : 0));
                        else if (kind < 4) /* nobody looks, unless it fails */
                                launch_unnoticed(w, QUEUE(2), EVENT(1 + i),
                                                 BUFFER(fails[i] ? 3 : 1));
                        else
                                send(w, 0, buffer_fill, .event = EVENT(1 + i), .queue = QUEUE(2),
                                     .buffer = BUFFER(2), .size = 64, .pattern = bytes_of("", 1),
                                     .waits = { &other, other != EVENT(1 + i) });
                        if (!rng_below(&rng, 4))
                                pump(w);
                        if (!rng_below(&rng, 8))
                                step(w, 0, rng_below(&rng, 8));
                }
                send(w, 0, marker, .event = EVENT(50), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
                pump(w);
                for (size_t ran = 1; ran || late.count; pump(w)) {
                        ran = step(w, 0, 1 + rng_below(&rng, 8));
                        for (size_t k = rng_below(&rng, 3) + !ran; k && late.count; k--)
                                late_tell(rng_below(&rng, late.count));
                }
                assert_int_equal(status_of(w, 0, EVENT(50)), CL_SUCCESS);
                assert_int_equal(counts(w, 0).commands_running, 0);
                size_t at[GRAPH];
                for (unsigned i = 0; i < GRAPH; i++) {
                        at[i] = 0;
                        while (at[i] < n->done_count && n->order[at[i]] != EVENT(1 + i))
                                at[i]++;
                        if (fails[i])
                                assert_int_equal(status_of(w, 0, EVENT(1 + i)),
                                                 CL_OUT_OF_RESOURCES);
                        for (unsigned k = 0; behind_all[i] && k < i; k++)
                                if (fails[k] && at[k] > at[i])
                                        fail_msg("seed %d: %d is told before %d", (int)seed, (int)i,
                                                 (int)k);
                }
                send(w, 0, release, .object = BUFFER(3));
                late_world_free(w);
        }
        backend_reference_seed = 0;
}

/* ---- objects -------------------------------------------------------------------------------- */

TEST(what_is_in_flight_keeps_what_was_released)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, sub_buffer_create, .buffer = BUFFER(3), .parent = BUFFER(2), .size = 64);
        send(w, 0, event_import, .event = EVENT(100));
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(3), 64);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(3), 1);
        launch_after(w, 0, QUEUE(1), EVENT(3), 0, 0, (struct wire_u64s)WAITS(EVENT(100)));
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(4), BUFFER(3), 64);
        pump(w);
        send(w, 0, release, .object = BUFFER(3));
        const uint64_t ids[] = { QUEUE(1),  QUEUE(2),  QUEUE(3),  BUFFER(1),
                                 BUFFER(2), KERNEL(1), KERNEL(2), PROGRAM };
        for (size_t k = 0; k < array_size(ids); k++)
                send(w, 0, release, .object = ids[k]);
        run(w);
        assert_int_equal(counts(w, 0).objects, 0);
        assert_int_equal(counts(w, 0).commands_held, 2);
        send(w, 0, event_done, .event = EVENT(100));
        run(w);
        assert_int_equal(number(got, 0), 2);
        expect_idle(w);
        world_free(w);
}

TEST(sub_buffers_are_parts_of_their_parent_and_may_be_misaligned)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 1024);
        send(w, 0, sub_buffer_create, .buffer = BUFFER(3), .parent = BUFFER(1), .origin = 512,
             .size = 512);
        send(w, 0, sub_buffer_create, .buffer = BUFFER(4), .parent = BUFFER(1), .origin = 3,
             .size = 8);
        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1024, 1);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(2), BUFFER(3), 512);
        fill_zero(w, 0, QUEUE(1), EVENT(3), BUFFER(4), 8);
        run(w);
        assert_memory_equal(got->bytes, d->bytes + 512, 512);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_MISALIGNED_SUB_BUFFER_OFFSET);
        send(w, 0, release, .object = BUFFER(3));
        send(w, 0, release, .object = BUFFER(4));
        release_objects(w, 0);
        world_free(w);
}

TEST(storage_that_can_not_be_made_fails_its_commands)
{
        struct world *w = world_new(1);
        make_objects(w, 0, (size_t)1 << 40);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 1);
        run(w);
        assert_true(status_of(w, 0, EVENT(1)) < 0);
        assert_int_equal(status_of(w, 0, EVENT(2)), status_of(w, 0, EVENT(1)));
        release_objects(w, 0);
        world_free(w);
}

/* ---- requests ------------------------------------------------------------------------------- */

TEST(queries_are_answered)
{
        struct world *w = world_new(1);
        struct node *n = &w->nodes[0];
        send(w, 0, server_info_query, .request = 1);
        pump(w);
        assert_int_equal(n->answers, 1);
        struct bytes block = { n->info.data, n->info.size }, name;
        struct info_entry e;
        unsigned devices = 0;
        while (info_next(&block, &e)) {
                assert_int_equal(e.key, INFO_DEVICE);
                assert_int_equal(info_u64(e.value, INFO_DEVICE_DOMAIN, 99), devices);
                assert_true(info_find(e.value, CL_DEVICE_NAME, &name));
                devices++;
        }
        assert_int_equal(devices, 2);
        send(w, 0, clock_query, .time_ns = 4);
        pump(w);
        assert_int_equal(n->answer, 4);
        send(w, 0, stats_query, .request = 2);
        pump(w);
        assert_int_equal(n->answers, 3);
        assert_true(info_find(bytes_of(n->info.data, n->info.size), INFO_LINK, &block));
        assert_int_equal(info_u64(block, INFO_LINK_MESSAGES_RECEIVED, 0), 3);
        send(w, 0, close, .status = 0);
        pump(w);
        assert_true(engine_closed(n->engine));
        world_free(w);
}

/* Wait for an answer from a thread. */
static void await(struct world *w, unsigned *counter, unsigned value)
{
        for (int i = 0; i < 20000 && *counter < value; i++) {
                pump(w);
                nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
        }
        assert_true(*counter >= value);
}

TEST(builds_of_several_domains_are_one_answer)
{
        for (int threads = 0; threads < 2; threads++) {
                struct world *w = calloc(1, sizeof(*w));
                struct node *n = &w->nodes[0];
                w->count = 1;
                backend_reference_manual = true;
                assert_int_equal(node_init(n, !threads, NULL), 0);
                make_program(w, 0);
                await(w, &n->answers, 1);
                assert_int_equal(n->answer, CL_SUCCESS);
                struct bytes block = { n->info.data, n->info.size };
                struct info_entry e, inner;
                unsigned builds = 0, kernels = 0, devices = 0;
                while (info_next(&block, &e)) {
                        builds += e.key == INFO_BUILD;
                        kernels += e.key == INFO_KERNEL;
                        while (e.key == INFO_KERNEL && info_next(&e.value, &inner))
                                devices += inner.key == INFO_KERNEL_DEVICE;
                }
                assert_int_equal(builds, 2);
                assert_int_equal(kernels, 3);
                assert_int_equal(devices, 6);
                send(w, 0, program_binaries_query, .request = 2, .program = PROGRAM,
                     .devices = WAITS(1, 0));
                await(w, &n->answers, 2);
                assert_int_equal(n->answer, CL_SUCCESS);
                world_free(w);
        }
}

TEST(a_build_that_fails_says_so)
{
        struct world *w = world_new(1);
        struct node *n = &w->nodes[0];
        struct buf parts = { 0 };
        assert_int_equal(info_put(&parts, INFO_PART, "kernel void f() {}", 18), 0);
        send(w, 0, program_create, .program = PROGRAM, .kind = 0, .devices = WAITS(1),
             .parts = bytes_of(parts.data, parts.size));
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(1));
        pump(w);
        assert_int_equal(n->answer, CL_COMPILER_NOT_AVAILABLE);
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(0));
        pump(w);
        assert_int_equal(n->answer, CL_INVALID_DEVICE);
        buf_fini(&parts);
        world_free(w);
}

TEST(what_is_only_named_is_asked_for)
{
        struct world *w = world_new(1);
        struct node *n = &w->nodes[0];
        struct buf parts = { 0 };
        uint8_t digest[BLAKE2B_SIZE], none[BLAKE2B_SIZE];
        assert_int_equal(info_put(&parts, INFO_PART, "kernel void f() {}", 18), 0);
        blake2b_of(bytes_of(parts.data, parts.size), digest);
        blake2b_of(bytes_str("never sent"), none);
        send(w, 0, program_create, .program = PROGRAM, .kind = 0, .devices = WAITS(1),
             .digest = bytes_of(digest, sizeof(digest)));
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(1));
        pump(w);
        assert_int_equal(n->answer, BUILD_NEEDS);
        send(w, 0, content, .data = bytes_of(parts.data, parts.size));
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(1),
             .headers_digest = bytes_of(none, sizeof(none)));
        pump(w);
        assert_int_equal(n->answer, BUILD_NEEDS);
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(1));
        pump(w);
        assert_int_equal(n->answer, CL_COMPILER_NOT_AVAILABLE);
        /* Bytes that are no parts are as good as none. */
        blake2b_of(bytes_str("no parts"), digest);
        send(w, 0, program_create, .program = PROGRAM + 1, .kind = 0, .devices = WAITS(1),
             .digest = bytes_of(digest, sizeof(digest)));
        send(w, 0, content, .data = bytes_str("no parts"));
        send(w, 0, program_build, .request = 1, .program = PROGRAM + 1, .devices = WAITS(1));
        pump(w);
        assert_int_equal(n->answer, BUILD_NEEDS);
        buf_fini(&parts);
        world_free(w);
}

TEST(contents_go_when_there_are_too_many)
{
        struct content_store store = { 0 };
        struct content *c, *kept;
        char *large = mem_zalloc(CONTENT_STORE_MAX / 4);
        assert_non_null(large);
        content_store_init(&store);
        assert_int_equal(content_put(&store, bytes_str("kept"), &kept), 0);
        for (int i = 0; i < 2 * CONTENT_KEEP; i++) {
                large[0] = (char)i;
                assert_int_equal(content_put(&store, bytes_of(large, CONTENT_STORE_MAX / 4), &c),
                                 0);
                assert_ptr_equal(content_get(&store, c->digest), c);
                content_unref(c);
                content_unref(c);
        }
        assert_int_equal(store.count, CONTENT_KEEP);
        assert_null(content_get(&store, kept->digest));
        /* Who holds one has it. */
        assert_memory_equal(kept->data.data, "kept", 4);
        content_unref(kept);
        content_store_fini(&store);
        mem_free(large);
}

TEST(a_link_without_a_linker_says_so)
{
        struct world *w = world_new(1);
        struct node *n = &w->nodes[0];
        struct buf parts = { 0 };
        assert_int_equal(info_put(&parts, INFO_PART, "kernel void f() {}", 18), 0);
        send(w, 0, program_create, .program = PROGRAM, .kind = 0, .devices = WAITS(1),
             .parts = bytes_of(parts.data, parts.size));
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .flags = BUILD_COMPILE,
             .devices = WAITS(1));
        pump(w);
        assert_int_equal(n->answer, CL_COMPILER_NOT_AVAILABLE);
        send(w, 0, program_link, .request = 2, .program = PROGRAM + 1, .devices = WAITS(1),
             .inputs = WAITS(PROGRAM));
        pump(w);
        assert_int_equal(n->answer, CL_LINKER_NOT_AVAILABLE);
        /* It stays, as one without an executable, until it is released. */
        send(w, 0, release, .object = PROGRAM + 1);
        pump(w);
        assert_false(n->died);
        buf_fini(&parts);
        world_free(w);
}

static void put_header(struct buf *b, const char *path, const char *text)
{
        size_t mark;
        assert_int_equal(info_begin(b, INFO_HEADER, &mark), 0);
        assert_int_equal(info_put(b, INFO_HEADER_PATH, path, strlen(path)), 0);
        assert_int_equal(info_put(b, INFO_HEADER_TEXT, text, strlen(text)), 0);
        info_end(b, mark);
}

TEST(headers_are_mirrored_and_folders_translated)
{
        char top[] = "/tmp/spancl-test-XXXXXX", root[64], want[512];
        assert_non_null(mkdtemp(top));
        (void)snprintf(root, sizeof(root), "%s/h", top);
        struct buf b = { 0 };
        put_header(&b, "/inc/a b/x.h", "#define X 1\n");
        put_header(&b, "/inc/y.h", "");
        struct bytes headers = { b.data, b.size };
        assert_true(engine_include_valid(headers));
        assert_int_equal(engine_include_write(root, headers), 0);
        (void)snprintf(want, sizeof(want), "%s/inc/a b/x.h", root);
        FILE *f = fopen(want, "r");
        assert_non_null(f);
        char text[32] = "";
        assert_non_null(fgets(text, sizeof(text), f));
        assert_string_equal(text, "#define X 1\n");
        (void)fclose(f);

        char *options;
        static const char given[] =
                " -DA=1 -I /inc -I/inc/sub/../. -I \"/inc/a b\" -DI=\"-I x\"  -Werror -I'/q r' -I";
        assert_int_equal(engine_include_rewrite(root, given, &options), 0);
        (void)snprintf(want, sizeof(want),
                       "-DA=1 -I %s/inc -I %s/inc -I %s/.folder-2 -DI=\"-I x\" -Werror "
                       "-I %s/.folder-3 ",
                       root, root, root, root);
        assert_string_equal(options, want);
        mem_free(options);
        struct stat st;
        (void)snprintf(want, sizeof(want), "%s/q r", root);
        assert_int_equal(stat(want, &st), 0);
        engine_include_remove(root);
        assert_int_equal(stat(root, &st), -1);
        assert_int_equal(rmdir(top), 0);

        static const char *const bad[] = { "x.h", "/", "/a/../b", "/..", "/a//b", "/a/", "/./a" };
        for (size_t i = 0; i < array_size(bad); i++) {
                b.size = 0;
                put_header(&b, bad[i], "");
                assert_false(engine_include_valid(bytes_of(b.data, b.size)));
        }
        buf_fini(&b);
}

/* ---- what goes wrong ------------------------------------------------------------------------ */

/* 3 x 2 pixels of four bytes. */
static void make_image(struct world *w, uint64_t image, uint64_t parent)
{
        send(w, 0, image_create, .image = image, .type = CL_MEM_OBJECT_IMAGE2D, .order = CL_RGBA,
             .data_type = CL_UNSIGNED_INT8, .width = 3, .height = 2, .parent = parent);
}

/* The reference backend's devices have none: their commands fail with that, bytes are swallowed, those
 * asked for come as zeros or not at all, and nothing is left. */
TEST(images_fail_where_there_are_none)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        make_image(w, BUFFER(9), 0);
        send(w, 0, sampler_create, .sampler = object_id(OBJECT_SAMPLER, 1),
             .addressing = CL_ADDRESS_CLAMP, .filter = CL_FILTER_NEAREST);
        send(w, 0, image_write, .event = EVENT(1), .queue = QUEUE(1), .image = BUFFER(9),
             .origin = WAITS(0, 0, 0), .region = WAITS(3, 2, 1), .transfer = EVENT(1));
        send_data(w, 0, EVENT(1), data_new(w, 24, 1), 24);
        const uint8_t color[16] = { 0 };
        send(w, 0, image_fill, .event = EVENT(2), .queue = QUEUE(1), .image = BUFFER(9),
             .origin = WAITS(0, 0, 0), .region = WAITS(3, 2, 1),
             .color = bytes_of(color, sizeof(color)));
        send(w, 0, image_copy, .event = EVENT(3), .queue = QUEUE(1), .src = BUFFER(9),
             .dst = BUFFER(9), .src_origin = WAITS(0, 0, 0), .dst_origin = WAITS(2, 0, 0),
             .region = WAITS(1, 1, 1));
        send(w, 0, image_to_buffer, .event = EVENT(4), .queue = QUEUE(1), .image = BUFFER(9),
             .buffer = BUFFER(1), .origin = WAITS(0, 0, 0), .region = WAITS(3, 2, 1));
        send(w, 0, buffer_to_image, .event = EVENT(5), .queue = QUEUE(1), .image = BUFFER(9),
             .buffer = BUFFER(1), .origin = WAITS(0, 0, 0), .region = WAITS(3, 2, 1));
        /* out of bounds: known before the device is asked */
        send(w, 0, image_fill, .event = EVENT(6), .queue = QUEUE(1), .image = BUFFER(9),
             .origin = WAITS(1, 0, 0), .region = WAITS(3, 2, 1),
             .color = bytes_of(color, sizeof(color)));
        send(w, 0, buffer_to_image, .event = EVENT(7), .queue = QUEUE(1), .image = BUFFER(9),
             .buffer = BUFFER(1), .origin = WAITS(0, 0, 0), .region = WAITS(3, 2, 1), .offset = 41);
        run(w);
        for (unsigned i = 1; i <= 5; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), CL_INVALID_OPERATION);
        for (unsigned i = 6; i <= 7; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), CL_INVALID_VALUE);
        send(w, 0, release, .object = BUFFER(9));
        send(w, 0, release, .object = object_id(OBJECT_SAMPLER, 1));
        release_objects(w, 0);
        run(w);
        assert_int_equal(counts(w, 0).objects, 0);
        expect_idle(w);
        world_free(w);
}

/* One message that no client of ours would send. */
static void send_bad(struct world *w, unsigned which)
{
        switch (which) {
        case 0:
                send(w, 0, release, .object = BUFFER(9));
                break;
        case 1:
                send(w, 0, buffer_create, .buffer = BUFFER(1), .size = 1);
                break;
        case 2:
                send(w, 0, queue_create, .queue = QUEUE(9), .device = 2);
                break;
        case 3:
                fill_zero(w, 0, QUEUE(9), EVENT(1), BUFFER(1), 64);
                break;
        case 4:
                fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(9), 64);
                break;
        case 5:
                fill_zero(w, 0, QUEUE(1), EVENT(100), BUFFER(1), 64);
                break;
        case 6:
                send(w, 0, event_import, .event = EVENT(100));
                break;
        case 7:
                send(w, 0, peer_expect, .peer = PEER_SELF);
                break;
        case 8:
                send(w, 0, event_subscribe, .event = EVENT(1), .peer = PEER(9));
                break;
        case 9:
                send(w, 0, sub_buffer_create, .buffer = BUFFER(9), .parent = BUFFER(1),
                     .origin = 60, .size = 5);
                break;
        case 10:
                send(w, 0, kernel_launch, .event = EVENT(1), .queue = QUEUE(1), .kernel = KERNEL(9),
                     .global = WAITS(1));
                break;
        case 11:
                send(w, 0, kernel_launch, .event = EVENT(1), .queue = QUEUE(1), .kernel = KERNEL(2),
                     .global = WAITS(1), .local = WAITS(1, 1));
                break;
        case 12:
                send(w, 0, program_create, .program = PROGRAM, .devices = WAITS(0));
                break;
        case 13:
                send(w, 0, kernel_create, .kernel = KERNEL(9),
                     .program = object_id(OBJECT_PROGRAM, 9));
                break;
        case 14:
                send(w, 0, buffer_read_rect, .event = EVENT(1), .queue = QUEUE(1),
                     .buffer = BUFFER(1), .origin = WAITS(0), .region = WAITS(1, 1, 1),
                     .row_pitch = 1, .slice_pitch = 1, .transfer = 1);
                break;
        case 15:
                send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(1), .buffer = BUFFER(1),
                     .size = 4, .peer = PEER(5), .transfer = 1);
                break;
        case 16: /* bytes of nobody */
                send_data(w, 0, 55, data_new(w, 8, 0), 8);
                break;
        case 17: /* more bytes than announced */
                send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(1), .buffer = BUFFER(1),
                     .size = 4, .transfer = 1);
                send_data(w, 0, 1, data_new(w, 8, 0), 8);
                break;
        case 18: /* two writes of one transfer */
                for (unsigned i = 1; i <= 2; i++)
                        send(w, 0, buffer_write, .event = EVENT(i), .queue = QUEUE(1),
                             .buffer = BUFFER(1), .size = 4, .transfer = 1);
                break;
        case 19:
                send(w, 0, server_info, .request = 1);
                break;
        case 20:
                send(w, 0, program_build, .request = 1, .program = PROGRAM + 1);
                break;
        case 21:
                send(w, 0, queue_flush, .queue = QUEUE(9));
                break;
        case 31: /* a link of what there is not */
                send(w, 0, program_link, .request = 1, .program = PROGRAM + 1, .devices = WAITS(0),
                     .inputs = WAITS(PROGRAM + 2));
                break;
        case 32: /* of nothing */
                send(w, 0, program_link, .request = 1, .program = PROGRAM + 1, .devices = WAITS(0));
                break;
        case 33:
                send(w, 0, kernel_query, .request = 1, .kernel = KERNEL(7));
                break;
        case 22:
                send(w, 0, release, .object = EVENT(100));
                break;
        case 23: /* a buffer is no image, */
                send(w, 0, image_write, .event = EVENT(1), .queue = QUEUE(1), .image = BUFFER(1),
                     .origin = WAITS(0, 0, 0), .region = WAITS(1, 1, 1), .transfer = 1);
                break;
        case 24: /* nor an image a buffer, */
                make_image(w, BUFFER(9), 0);
                fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(9), 64);
                break;
        case 25: /* and has no parts. */
                make_image(w, BUFFER(9), 0);
                send(w, 0, sub_buffer_create, .buffer = BUFFER(10), .parent = BUFFER(9), .size = 4);
                break;
        case 26: /* larger than the buffer that it would be of */
                send(w, 0, image_create, .image = BUFFER(9), .type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                     .order = CL_RGBA, .data_type = CL_FLOAT, .width = 5, .parent = BUFFER(1));
                break;
        case 27: /* a pixel of no size */
                send(w, 0, image_create, .image = BUFFER(9), .type = CL_MEM_OBJECT_IMAGE2D,
                     .order = CL_RGBA, .data_type = 1, .width = 5, .height = 5);
                break;
        case 28: /* more bytes than can be counted */
                send(w, 0, image_create, .image = BUFFER(9), .type = CL_MEM_OBJECT_IMAGE3D,
                     .order = CL_RGBA, .data_type = CL_FLOAT, .width = UINT32_MAX,
                     .height = UINT32_MAX, .depth = UINT32_MAX);
                break;
        case 29: /* the region has to have three coordinates */
                make_image(w, BUFFER(9), 0);
                send(w, 0, image_read, .event = EVENT(1), .queue = QUEUE(1), .image = BUFFER(9),
                     .origin = WAITS(0, 0, 0), .region = WAITS(1, 1), .transfer = 1);
                break;
        case 34: /* bytes of a buffer as an image's, which come in other parts */
                send(w, 0, image_create, .image = BUFFER(9), .type = CL_MEM_OBJECT_IMAGE2D,
                     .order = CL_RGBA, .data_type = CL_UNSIGNED_INT8, .width = 1000,
                     .height = 2000);
                send(w, 0, buffer_read, .event = EVENT(1), .queue = QUEUE(1), .buffer = BUFFER(1),
                     .size = 8000000, .peer = PEER_SELF, .transfer = 7, .waits = WAITS(EVENT(100)));
                send(w, 0, image_write, .event = EVENT(2), .queue = QUEUE(1), .image = BUFFER(9),
                     .origin = WAITS(0, 0, 0), .region = WAITS(1000, 2000, 1), .peer = PEER_SELF,
                     .transfer = 7);
                break;
        case 30: /* a buffer as the parent of a 2D image without a pitch */
                make_image(w, BUFFER(9), BUFFER(1));
                break;
        default:
                fail();
        }
}

TEST(a_client_that_breaks_the_protocol_loses_its_session_alone)
{
        for (unsigned which = 0; which <= 34; which++) {
                struct world *w = world_new(1);
                make_objects(w, 0, 64);
                send(w, 0, event_import, .event = EVENT(100));
                pump(w);
                assert_false(w->nodes[0].died);
                send_bad(w, which);
                pump(w);
                if (!w->nodes[0].died)
                        print_error("bad message %u was taken\n", which);
                assert_true(w->nodes[0].died);
                world_free(w);
        }
}

TEST(an_engine_can_be_freed_at_any_time)
{
        for (size_t ran = 0; ran < 12; ran++) {
                struct world *w = two_servers(4 * MIB);
                send(w, 0, event_import, .event = EVENT(100));
                struct data *d = data_new(w, 4 * MIB, 3);
                send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .size = d->size, .transfer = 5);
                send_data(w, 0, 5, d, 2 * MIB);
                launch(w, 0, QUEUE(1), EVENT(2), BUFFER(2), 1);
                write_buffer(w, 0, QUEUE(1), EVENT(3), BUFFER(2), 3 * MIB, 1);
                read_buffer(w, 0, QUEUE(1), EVENT(4), BUFFER(2), 4 * MIB);
                send(w, 0, buffer_read, .event = EVENT(5), .queue = QUEUE(1), .buffer = BUFFER(2),
                     .size = 4 * MIB, .peer = PEER(2), .transfer = 6);
                launch_after(w, 0, QUEUE(1), EVENT(6), BUFFER(1), 1,
                             (struct wire_u64s)WAITS(EVENT(100), EVENT(5)));
                launch(w, 0, QUEUE(1), EVENT(7), BUFFER(1), 1);
                record(w, 0);
                run_recording(w, 0, QUEUE(2), EVENT(108), (struct wire_u64s)WAITS(EVENT(100)));
                run_recording(w, 0, QUEUE(2), EVENT(109), (struct wire_u64s){ NULL, 0 });
                pump(w);
                step(w, 0, ran);
                w->nodes[0].bulk_cut = ran % 2;
                if (ran % 3)
                        pump(w);
                world_free(w);
        }
}

/* Every allocation of a whole life fails in turn: the session may end, nothing else. */
static bool life(unsigned long fail_at)
{
        struct world *w = calloc(1, sizeof(*w));
        struct node *n = &w->nodes[0];
        w->count = 1;
        backend_reference_manual = true;
        assert_int_equal(node_init(n, true, NULL), 0);
        make_objects(w, 0, 256 << 10);
        send(w, 0, event_import, .event = EVENT(100));
        write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 200 << 10, 1);
        launch_after(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 1,
                     (struct wire_u64s)WAITS(EVENT(100), EVENT(1)));
        launch(w, 0, QUEUE(3), EVENT(3), 0, 0);
        read_buffer(w, 0, QUEUE(1), EVENT(4), BUFFER(1), 100);
        read_buffer(w, 0, QUEUE(1), EVENT(5), BUFFER(1), 256 << 10);
        record(w, 0);
        run_recording(w, 0, QUEUE(2), EVENT(6), (struct wire_u64s)WAITS(EVENT(100)));
        run_recording(w, 0, QUEUE(1), EVENT(7), (struct wire_u64s){ NULL, 0 });
        send(w, 0, event_done, .event = EVENT(100));
        /* The sessions' own buffers are not the point here. */
        mem_fail_at(fail_at);
        for (int i = 0; i < 8 && !n->died; i++) {
                pump(w);
                step(w, 0, SIZE_MAX);
        }
        mem_fail_at(0);
        bool whole = !n->died && status_of(w, 0, EVENT(5)) == CL_SUCCESS;
        world_free(w);
        return whole;
}

TEST(lack_of_memory_is_survived)
{
        log_threshold = LOG_ERROR;
        unsigned long n = 1;
        unsigned good = 0;
        for (; n < 3000 && good < 100; n++)
                good = life(n) ? good + 1 : 0;
        assert_true(good == 100); /* past the last allocation */
        assert_true(n > 160);
}

/* ---- limits --------------------------------------------------------------------------------- */

static struct world *world_limited(enum engine_limit which, uint64_t max)
{
        limits.max[which] = max;
        struct world *w = world_new(1);
        limits = (struct engine_limits){ 0 };
        return w;
}

TEST(more_objects_than_allowed_can_be_made_but_not_used)
{
        log_threshold = LOG_ERROR;
        struct world *w = world_limited(LIMIT_OBJECTS, 7);
        make_objects(w, 0, 64); /* the second buffer is one too many */
        send(w, 0, queue_create, .queue = QUEUE(9), .device = 0);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        fill_zero(w, 0, QUEUE(1), EVENT(2), BUFFER(2), 64);
        launch(w, 0, QUEUE(1), EVENT(3), BUFFER(1), 1);
        launch(w, 0, QUEUE(1), EVENT(4), BUFFER(2), 1);
        launch(w, 0, QUEUE(9), EVENT(5), BUFFER(1), 1);
        send(w, 0, svm_create, .request = 1, .svm = object_id(OBJECT_SVM, 1), .size = 65536);
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(status_of(w, 0, EVENT(5)), CL_OUT_OF_RESOURCES);
        assert_int_equal(w->nodes[0].answer, CL_MEM_OBJECT_ALLOCATION_FAILURE);
        send(w, 0, release, .object = QUEUE(9));
        release_objects(w, 0);
        world_free(w);
}

TEST(more_programs_than_allowed_are_not_built)
{
        struct world *w = world_limited(LIMIT_PROGRAMS, 1);
        struct node *n = &w->nodes[0];
        struct buf parts = { 0 };
        make_objects(w, 0, 64);
        pump(w);
        assert_int_equal(n->answer, CL_SUCCESS);
        assert_int_equal(info_put(&parts, INFO_PART, "spancl.noop", 11), 0);
        for (unsigned i = 0; i < 2; i++) {
                uint64_t second = object_id(OBJECT_PROGRAM, 2);
                send(w, 0, program_create, .program = second, .kind = 3, .devices = WAITS(0),
                     .parts = bytes_of(parts.data, parts.size));
                send(w, 0, program_build, .request = 2, .program = second, .devices = WAITS(0));
                pump(w);
                assert_int_equal(n->answer, i ? CL_SUCCESS : CL_OUT_OF_RESOURCES);
                send(w, 0, release, .object = second);
                if (!i) { /* then there is room */
                        launch(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1);
                        send(w, 0, release, .object = KERNEL(1));
                        send(w, 0, release, .object = KERNEL(2));
                        send(w, 0, release, .object = PROGRAM);
                        run(w);
                        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
                }
        }
        buf_fini(&parts);
        run(w);
        expect_idle(w);
        world_free(w);
}

TEST(transfers_wait_for_each_other_within_their_limit)
{
        enum { LIMIT = 4 * MIB, SIZE = 9 * MIB };
        struct world *w = world_limited(LIMIT_TRANSFERS, LIMIT);
        struct data *got[4];
        make_objects(w, 0, SIZE);
        struct data *a = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), SIZE, 1);
        struct data *b = write_buffer(w, 0, QUEUE(2), EVENT(2), BUFFER(2), SIZE, 2);
        for (size_t moved = 1; moved;) {
                pump(w);
                assert_true(counts(w, 0).transfer_bytes <= LIMIT);
                moved = step(w, 0, 1);
        }
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        for (unsigned i = 0; i < 4; i++)
                got[i] =
                        read_buffer(w, 0, QUEUE(1 + i % 2), EVENT(10 + i), BUFFER(1 + i % 2), SIZE);
        for (size_t moved = 1; moved;) {
                pump(w);
                assert_true(counts(w, 0).transfer_bytes <= LIMIT);
                moved = step(w, 0, 1);
        }
        for (unsigned i = 0; i < 4; i++) {
                assert_int_equal(status_of(w, 0, EVENT(10 + i)), CL_SUCCESS);
                expect_same(i % 2 ? b : a, got[i]);
        }
        release_objects(w, 0);
        world_free(w);
}

TEST(a_transfer_that_would_have_to_wait_for_commands_fails)
{
        struct world *w = world_limited(LIMIT_TRANSFERS, 4 * MIB);
        make_objects(w, 0, 9 * MIB);
        send(w, 0, event_import, .event = EVENT(1));
        for (unsigned i = 0; i < 2; i++) {
                send(w, 0, buffer_write, .event = EVENT(2 + i), .queue = QUEUE(2),
                     .flags = COMMAND_NOTIFY, .buffer = BUFFER(1 + i), .size = 3 * MIB,
                     .transfer = EVENT(2 + i), .waits = WAITS(EVENT(1)));
                send_data(w, 0, EVENT(2 + i), data_new(w, 3 * MIB, 1), 3 * MIB);
        }
        run(w);
        assert_true(counts(w, 0).transfer_bytes <= 4 * MIB);
        assert_int_equal(status_of(w, 0, EVENT(2)), PENDING);
        send(w, 0, event_done, .event = EVENT(1));
        run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_OUT_OF_RESOURCES);
        release_objects(w, 0);
        world_free(w);
}

static int expire(struct world *w)
{
        struct engine *e = w->nodes[0].engine;
        engine_lock(e);
        int r = engine_expire(e, now_ns);
        engine_unlock(e);
        return r;
}

static uint64_t deadline(struct world *w)
{
        struct engine *e = w->nodes[0].engine;
        engine_lock(e);
        uint64_t d = engine_deadline(e);
        engine_unlock(e);
        return d;
}

TEST(a_command_that_runs_too_long_ends_the_session_and_a_long_queue_does_not)
{
        enum { LIMIT = 1000 };
        struct world *w = world_limited(LIMIT_RUN_NS, LIMIT);
        make_objects(w, 0, 64);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        for (unsigned i = 2; i < 10; i++)
                launch_unnamed(w, EVENT(i), i == 2 ? BUFFER(1) : 0, 1);
        assert_true(deadline(w) == UINT64_MAX);
        pump(w);
        for (unsigned i = 0; i < 5; i++) {
                now_ns += LIMIT - 1;
                assert_int_equal(expire(w), 0);
                assert_int_equal(step(w, 0, 1), 1);
                assert_true(deadline(w) == now_ns + LIMIT);
                pump(w);
        }
        now_ns += LIMIT;
        assert_int_equal(expire(w), SP_E_LIMIT);
        pump(w);
        for (unsigned i = 6; i < 10; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), CL_OUT_OF_RESOURCES);
        assert_int_equal(status_of(w, 0, EVENT(5)), PENDING); /* it was good, and nobody asked */
        world_free(w);
}

/* Builds take as long as the test wants. */
static sem_t builds_begin, builds_may_end;

static cl_int slow_build(struct backend_program *p, const unsigned *devices, size_t count,
                         const char *options, struct buf *info)
{
        sem_post(&builds_begin);
        sem_wait(&builds_may_end);
        return backend_reference.program_build(p, devices, count, options, info);
}

static void build(struct world *w, unsigned i)
{
        struct buf parts = { 0 };
        assert_int_equal(info_put(&parts, INFO_PART, "spancl.noop", 11), 0);
        send(w, 0, program_create, .program = object_id(OBJECT_PROGRAM, i), .kind = 3,
             .devices = WAITS(0), .parts = bytes_of(parts.data, parts.size));
        send(w, 0, program_build, .request = i, .program = object_id(OBJECT_PROGRAM, i),
             .devices = WAITS(0));
        pump(w);
        buf_fini(&parts);
}

TEST(a_build_that_takes_too_long_has_failed)
{
        enum { LIMIT = 1000 };
        struct backend_ops ops = backend_reference;
        struct world *w = calloc(1, sizeof(*w));
        struct node *n = &w->nodes[0];
        struct bytes inner, log;
        ops.program_build = slow_build;
        sem_init(&builds_begin, 0, 0);
        sem_init(&builds_may_end, 0, 0);
        w->count = 1;
        limits.max[LIMIT_BUILD_NS] = LIMIT;
        assert_int_equal(node_init_on(n, &ops, false, NULL), 0);
        limits = (struct engine_limits){ 0 };

        build(w, 1);
        sem_wait(&builds_begin);
        now_ns += LIMIT - 1;
        assert_int_equal(expire(w), 0);
        pump(w);
        assert_int_equal(n->answers, 0);
        now_ns++;
        assert_true(deadline(w) == now_ns);
        assert_int_equal(expire(w), 0);
        pump(w);
        assert_int_equal(n->answers, 1);
        assert_int_equal(n->answer, CL_BUILD_PROGRAM_FAILURE);
        assert_true(info_find(bytes_of(n->info.data, n->info.size), INFO_BUILD, &inner));
        assert_true(info_find(inner, CL_PROGRAM_BUILD_LOG, &log));
        assert_non_null(memmem(log.data, log.size, "--session-build-time", 20));

        /* Its end is nobody's business, and the next one is as good as ever. */
        build(w, 2);
        sem_wait(&builds_begin);
        sem_post(&builds_may_end);
        sem_post(&builds_may_end);
        await(w, &n->answers, 2);
        assert_int_equal(n->answer, CL_SUCCESS);

        /* When there is no thread left, the others fail, too. */
        for (unsigned i = 3; i < 9; i++)
                build(w, i);
        for (unsigned i = 0; i < 4; i++)
                sem_wait(&builds_begin);
        now_ns += LIMIT;
        assert_int_equal(expire(w), 0);
        build(w, 9);
        pump(w);
        assert_int_equal(n->answers, 9);
        assert_int_equal(n->answer, CL_BUILD_PROGRAM_FAILURE);
        for (unsigned i = 0; i < 4; i++)
                sem_post(&builds_may_end);
        assert_false(n->died);
        world_free(w);
        sem_destroy(&builds_begin);
        sem_destroy(&builds_may_end);
}

/* ---- threads -------------------------------------------------------------------------------- */

TEST(completions_on_other_threads)
{
        struct world *w = calloc(1, sizeof(*w));
        struct node *n = &w->nodes[0];
        w->count = 1;
        backend_reference_manual = false;
        assert_int_equal(node_init(n, false, NULL), 0);
        make_objects(w, 0, 3 * MIB);
        struct data *sent = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(2), 3 * MIB, 1);
        fill_zero(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 64);
        await(w, &n->answers, 1); /* the kernels are built */
        uint64_t next = 10;
        for (int i = 0; i < 300; i++) {
                launch(w, 0, QUEUE(1), EVENT(next++), BUFFER(1), 1);
                if (i % 7 == 0) {
                        uint64_t marker = EVENT(next++);
                        send(w, 0, marker, .event = marker, .queue = QUEUE(3),
                             .waits = WAITS(marker - 1));
                }
                if (i % 3 == 0)
                        pump(w);
        }
        struct data *numbers = read_buffer(w, 0, QUEUE(1), EVENT(5), BUFFER(1), 64);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(6), BUFFER(2), 3 * MIB);
        await(w, &n->done_count, 303);
        for (int i = 0; i < 1000 && got->arrived < got->size; i++)
                pump(w);
        assert_int_equal(number(numbers, 7), 300);
        expect_same(sent, got);
        /* And in the middle of it: */
        for (int i = 0; i < 50; i++)
                launch(w, 0, QUEUE(1), EVENT(next++), BUFFER(1), 1);
        pump(w);
        world_free(w);
        backend_reference_manual = true;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(commands_run_in_order_and_are_reported),
                cmocka_unit_test(unnamed_launches_are_complete_when_a_later_one_is),
                cmocka_unit_test(an_unnamed_launch_can_be_waited_for_after_all),
                cmocka_unit_test(
                        an_unnamed_launch_that_fails_is_told_of_and_fails_what_waits_for_it),
                cmocka_unit_test(a_release_is_answered_when_unnamed_launches_are_over),
                cmocka_unit_test(a_queue_may_be_released_while_unnamed_launches_are_in_flight),
                cmocka_unit_test(a_chain_is_complete_when_its_last_command_is),
                cmocka_unit_test(a_failure_in_a_chain_is_told_before_what_comes_behind_it),
                cmocka_unit_test(a_strand_is_waited_for_by_all_that_comes_behind_it),
                cmocka_unit_test(a_queue_whose_commands_are_no_chain_has_no_strand_any_more),
                cmocka_unit_test(a_failure_in_a_strand_is_that_of_all_its_commands),
                cmocka_unit_test(a_read_may_be_complete_at_once),
                cmocka_unit_test(a_user_event_holds_what_waits_and_what_follows_in_order),
                cmocka_unit_test(
                        a_failed_dependency_fails_the_command_but_not_its_in_order_successor),
                cmocka_unit_test(a_failed_command_ends_after_those_before_it),
                cmocka_unit_test(native_failures_reach_the_client_and_dependents_in_every_domain),
                cmocka_unit_test(a_held_barrier_holds_what_follows_and_waits_for_what_is_before),
                cmocka_unit_test(without_a_barrier_an_out_of_order_queue_overtakes),
                cmocka_unit_test(arguments_set_once_serve_launches_in_every_domain),
                cmocka_unit_test(
                        shared_virtual_memory_is_one_for_pointers_and_buffers_of_every_domain),
                cmocka_unit_test(shared_virtual_memory_that_cannot_be_had_is_told_of),
                cmocka_unit_test(a_recording_runs_as_often_as_wanted_and_has_one_event),
                cmocka_unit_test(a_recording_may_be_held_and_changed_and_released_meanwhile),
                cmocka_unit_test(a_recording_fails_as_a_whole_and_is_told_of_once),
                cmocka_unit_test(a_recording_spans_queues_and_orders_them),
                cmocka_unit_test(a_recording_moves_data_between_domains),
                cmocka_unit_test(misuse_of_a_recording_ends_the_session),
                cmocka_unit_test(profiled_queues_tell_times_and_others_do_not),
                cmocka_unit_test(watching_answers_at_once_or_at_completion),
                cmocka_unit_test(a_failure_is_told_once),
                cmocka_unit_test(completion_reaches_the_other_server_before_or_after_its_import),
                cmocka_unit_test(failure_reaches_the_other_server),
                cmocka_unit_test(a_lost_peer_fails_what_waits_for_it),
                cmocka_unit_test(what_is_still_arriving_is_forwarded),
                cmocka_unit_test(only_bytes_that_mean_something_are_sent_whoever_is_first),
                cmocka_unit_test(between_domains_only_bytes_that_mean_something_are_moved),
                cmocka_unit_test(a_number_that_is_not_there_fails_its_command),
                cmocka_unit_test(what_does_not_arrive_fails_those_that_it_is_forwarded_to),
                cmocka_unit_test(what_is_written_is_read_whatever_its_size),
                cmocka_unit_test(a_write_starts_while_its_bytes_still_arrive),
                cmocka_unit_test(a_read_is_sent_while_its_rest_is_still_read),
                cmocka_unit_test(a_read_is_only_so_far_ahead_of_what_has_arrived),
                cmocka_unit_test(a_lane_that_is_late_to_hear_that_it_sent_does_not_stop_a_read),
                cmocka_unit_test(boxes_travel_without_gaps),
                cmocka_unit_test(a_failed_write_swallows_its_bytes),
                cmocka_unit_test(data_goes_from_domain_to_domain_in_either_order_of_commands),
                cmocka_unit_test(a_failed_local_read_fails_its_write),
                cmocka_unit_test(data_goes_from_server_to_server_whoever_is_first),
                cmocka_unit_test(a_failed_read_fails_the_write_on_the_other_server),
                cmocka_unit_test(
                        a_read_that_fails_in_the_middle_is_sent_to_its_end_and_then_reported),
                cmocka_unit_test(
                        an_end_is_told_after_those_it_came_after_whoever_is_heard_of_first),
                cmocka_unit_test(the_end_of_what_is_behind_all_is_not_that_of_what_comes_after_it),
                cmocka_unit_test(ends_in_any_order_are_told_in_order),
                cmocka_unit_test(what_fails_is_told_before_each_that_is_behind_all_after_it),
                cmocka_unit_test(what_is_in_flight_keeps_what_was_released),
                cmocka_unit_test(sub_buffers_are_parts_of_their_parent_and_may_be_misaligned),
                cmocka_unit_test(images_fail_where_there_are_none),
                cmocka_unit_test(storage_that_can_not_be_made_fails_its_commands),
                cmocka_unit_test(queries_are_answered),
                cmocka_unit_test(builds_of_several_domains_are_one_answer),
                cmocka_unit_test(a_build_that_fails_says_so),
                cmocka_unit_test(what_is_only_named_is_asked_for),
                cmocka_unit_test(contents_go_when_there_are_too_many),
                cmocka_unit_test(a_link_without_a_linker_says_so),
                cmocka_unit_test(headers_are_mirrored_and_folders_translated),
                cmocka_unit_test(a_client_that_breaks_the_protocol_loses_its_session_alone),
                cmocka_unit_test(an_engine_can_be_freed_at_any_time),
                cmocka_unit_test(lack_of_memory_is_survived),
                cmocka_unit_test(more_objects_than_allowed_can_be_made_but_not_used),
                cmocka_unit_test(more_programs_than_allowed_are_not_built),
                cmocka_unit_test(transfers_wait_for_each_other_within_their_limit),
                cmocka_unit_test(a_transfer_that_would_have_to_wait_for_commands_fails),
                cmocka_unit_test(
                        a_command_that_runs_too_long_ends_the_session_and_a_long_queue_does_not),
                cmocka_unit_test(a_build_that_takes_too_long_has_failed),
                cmocka_unit_test(completions_on_other_threads),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
