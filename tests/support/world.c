#include "support/world.h"

#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "os/file.h"

/* ---- the client --------------------------------------------------------------------------------- */

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

static int on_kernel_answer(void *user, const struct wire_kernel_answer *m)
{
        return answer(user, m->status, m->value);
}

static int on_launch_answer(void *user, const struct wire_launch_answer *m)
{
        const uint8_t submitted = (uint8_t)m->submitted;
        return answer(user, m->status, bytes_of(&submitted, 1));
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

static int on_orphaned(void *user, const struct wire_transfer_orphaned *m)
{
        struct node *n = user;
        uint64_t peer = n->lost_peer;
        n->lost_peer = 0;
        return session_send(n->client, transfer_reroute, .event = m->event, .peer = peer,
                            .transfer = n->instead + (peer != 0),
                            .status = n->instead ? 0 : CL_DEVICE_NOT_AVAILABLE) < 0
                       ? SP_E_NOMEM
                       : (n->orphaned++, 0);
}

static int on_released(void *user, const struct wire_released *m)
{
        ((struct node *)user)->released = m->request;
        return 0;
}

static int on_upload_answer(void *user, const struct wire_upload_answer *m)
{
        struct node *n = user;
        assert_int_equal(m->first, n->uploads);
        n->uploads_held |= m->first < 64 ? m->has << m->first : 0;
        n->uploads += m->count;
        uint64_t ready = n->uploads * WIRE_UPLOAD_CHUNK;
        if (n->uploading)
                session_bulk_ready(n->client, n->uploading,
                                   ready < n->uploading->total ? ready : n->uploading->total);
        return 0;
}

static const struct wire_handlers client_handlers = {
        .upload_answer = on_upload_answer,
        .event_done = on_event_done,
        .released = on_released,
        .server_info = on_server_info,
        .program_built = on_program_built,
        .program_binaries = on_program_binaries,
        .kernel_answer = on_kernel_answer,
        .launch_answer = on_launch_answer,
        .stats = on_stats,
        .svm_created = on_svm_created,
        .clock_reply = on_clock_reply,
        .peer_lost = on_peer_lost,
        .transfer_orphaned = on_orphaned,
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

/* ---- what the loop does ------------------------------------------------------------------------- */

static void on_flush(void *user, struct session *s)
{
        (void)user, (void)s;
}

static void on_dial(void *user, struct session *s, uint64_t peer, const char *host, unsigned port,
                    const char *local_path, const uint64_t session_id[2], const uint64_t token[2])
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

uint64_t now_ns = 12345;

static uint64_t on_now(void *user)
{
        (void)user;
        return now_ns;
}

static int on_pass(void *user, struct session *s, int fd)
{
        struct node *n = user, *other = n->world ? &n->world->nodes[n == n->world->nodes] : NULL;
        (void)s;
        if (n->far || !other || other->passed >= 0)
                return SP_E_AGAIN;
        other->passed = file_duplicate(fd);
        return other->passed < 0 ? SP_E_AGAIN : 0;
}

static int on_take(void *user, struct session *s)
{
        struct node *n = user;
        int fd = n->passed;
        (void)s;
        n->passed = -1;
        return fd < 0 ? SP_E_NOENT : fd;
}

static const struct engine_ops engine_ops = {
        .pass = on_pass,
        .take = on_take,
        .flush = on_flush,
        .dial = on_dial,
        .hang_up = on_hang_up,
        .relayed = on_hang_up,
        .now_ns = on_now,
};

size_t move_lane(struct session *from, struct session *to, unsigned lane, size_t budget,
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

enum { LANES = 2 }; /* that there are */

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
static size_t pump_peers(struct world *w) LOCK_UNCHECKED /* two engines */
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
                for (unsigned lane = 0; lane < LANES; lane++) {
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

void pump(struct world *w)
{
        for (size_t moved = 1; moved;) {
                moved = pump_peers(w);
                for (unsigned i = 0; i < w->count; i++)
                        moved += pump_node(&w->nodes[i]);
        }
}

size_t step(struct world *w, unsigned i, size_t max)
{
        return backend_reference_step(engine_backend(w->nodes[i].engine), max);
}

void world_run(struct world *w)
{
        for (size_t ran = 1; ran;) {
                pump(w);
                ran = 0;
                for (unsigned i = 0; i < w->count; i++)
                        ran += step(w, i, SIZE_MAX);
        }
}

void await(struct world *w, unsigned *counter, unsigned value)
{
        for (int i = 0; i < 20000 && *counter < value; i++) {
                pump(w);
                nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
        }
        assert_true(*counter >= value);
}

/* ---- worlds ------------------------------------------------------------------------------------- */

struct engine_limits limits;
const char *cache_dir, *upload_dir;

int node_init_on(struct node *n, const struct backend_ops *backend, bool single_threaded,
                 const char *scratch)
{
        static const struct config_options options = { .values = { [CONFIG_cache_size] = "1" } };
        const struct engine_params params = {
                .options = &options,
                .backend = backend,
                .scratch_dir = scratch,
                .ops = &engine_ops,
                .user = n,
                .single_threaded = single_threaded,
                .limits = limits,
                .cache_dir = cache_dir,
                .upload_dir = upload_dir,
        };
        n->passed = -1;
        int r = engine_new(&params, &n->engine);
        if (r < 0)
                return r;
        r = session_new(&(struct session_params){ .ops = &client_ops, .user = n }, &n->client);
        if (r < 0)
                return r;
        engine_lock(n->engine);
        for (unsigned lane = 0; lane < LANES && !r; lane++) {
                r = session_lane_up(n->client, lane, 0);
                if (!r)
                        r = session_lane_up(engine_session(n->engine), lane, 0);
        }
        engine_unlock(n->engine);
        return r;
}

int node_init(struct node *n, bool single_threaded, const char *scratch)
{
        return node_init_on(n, &backend_reference, single_threaded, scratch);
}

struct world *world_new(unsigned count)
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

struct engine_counts counts(struct world *w, unsigned i)
{
        struct engine_counts c;
        engine_lock(w->nodes[i].engine);
        engine_get_counts(w->nodes[i].engine, &c);
        engine_unlock(w->nodes[i].engine);
        return c;
}

void world_free(struct world *w)
{
        for (unsigned i = 0; i < w->count; i++) {
                struct node *n = &w->nodes[i];
                engine_free(n->engine);
                session_free(n->client);
                if (n->passed >= 0)
                        (void)file_close(n->passed);
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

struct world *two_servers(size_t size)
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

void expect_idle(struct world *w)
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

struct data *data_new(struct world *w, size_t size, uint8_t seed)
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

struct data *send_data(struct world *w, unsigned i, uint64_t id, struct data *d, size_t ready)
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

struct data *write_buffer(struct world *w, unsigned i, uint64_t queue, uint64_t event,
                          uint64_t buffer, size_t size, uint8_t seed)
{
        send(w, i, buffer_write, .event = event, .queue = queue, .flags = COMMAND_NOTIFY,
             .buffer = buffer, .size = size, .transfer = event);
        return send_data(w, i, event, data_new(w, size, seed), size);
}

struct data *expect_data(struct world *w, unsigned i, uint64_t transfer, size_t size)
{
        struct data *d = data_new(w, size, 0);
        memset(d->bytes, 0xee, size);
        assert_int_equal(map_put(&w->nodes[i].reads, transfer, d), 0);
        return d;
}

struct data *read_buffer(struct world *w, unsigned i, uint64_t queue, uint64_t event,
                         uint64_t buffer, size_t size)
{
        struct data *d = expect_data(w, i, event, size);
        send(w, i, buffer_read, .event = event, .queue = queue, .flags = COMMAND_NOTIFY,
             .buffer = buffer, .size = size, .transfer = event);
        return d;
}

void expect_same(const struct data *a, const struct data *b)
{
        assert_int_equal(a->size, b->size);
        assert_int_equal(b->arrived, b->size);
        assert_memory_equal(a->bytes, b->bytes, a->size);
}

int status_of(struct world *w, unsigned i, uint64_t event)
{
        void *v = map_get(&w->nodes[i].done, event);
        return v ? (int)(intptr_t)v - 1000 : PENDING;
}

/* ---- kernels ------------------------------------------------------------------------------------ */

void make_program(struct world *w, unsigned i)
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

void make_objects(struct world *w, unsigned i, size_t size)
{
        make_program(w, i);
        send(w, i, queue_create, .queue = QUEUE(1), .device = 0);
        send(w, i, queue_create, .queue = QUEUE(2), .device = 0,
             .properties = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        send(w, i, queue_create, .queue = QUEUE(3), .device = 1);
        send(w, i, buffer_create, .buffer = BUFFER(1), .flags = CL_MEM_READ_WRITE, .size = size);
        send(w, i, buffer_create, .buffer = BUFFER(2), .flags = CL_MEM_READ_WRITE, .size = size);
}

void make_image(struct world *w, uint64_t image, uint64_t parent)
{
        send(w, 0, image_create, .image = image, .type = CL_MEM_OBJECT_IMAGE2D, .order = CL_RGBA,
             .data_type = CL_UNSIGNED_INT8, .width = 3, .height = 2, .parent = parent);
}

void release_objects(struct world *w, unsigned i)
{
        const uint64_t ids[] = { QUEUE(1),  QUEUE(2),  QUEUE(3),  BUFFER(1),
                                 BUFFER(2), KERNEL(1), KERNEL(2), PROGRAM };
        for (size_t k = 0; k < array_size(ids); k++)
                send(w, i, release, .object = ids[k]);
        world_run(w);
        expect_idle(w);
        assert_int_equal(counts(w, i).objects, 0);
}

void put_args(struct buf *b, uint64_t buffer, int32_t by)
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

void launch_after(struct world *w, unsigned i, uint64_t queue, uint64_t event, uint64_t buffer,
                  int32_t by, struct wire_u64s waits)
{
        struct buf args = { 0 };
        put_args(&args, buffer, by);
        send(w, i, kernel_launch, .event = event, .queue = queue, .flags = COMMAND_NOTIFY,
             .kernel = KERNEL(1), .global = WAITS(16), .args = bytes_of(args.data, args.size),
             .waits = waits);
        buf_fini(&args);
}

void launch(struct world *w, unsigned i, uint64_t queue, uint64_t event, uint64_t buffer,
            int32_t by)
{
        launch_after(w, i, queue, event, buffer, by, (struct wire_u64s){ NULL, 0 });
}

void launch_unnoticed(struct world *w, uint64_t queue, uint64_t event, uint64_t buffer)
{
        struct buf args = { 0 };
        put_args(&args, buffer, 1);
        send(w, 0, kernel_launch, .event = event, .queue = queue, .flags = COMMAND_NAMED,
             .kernel = KERNEL(1), .global = WAITS(16), .args = bytes_of(args.data, args.size));
        buf_fini(&args);
}

void launch_unnamed(struct world *w, uint64_t event, uint64_t buffer, int32_t by)
{
        struct buf args = { 0 };
        put_args(&args, buffer, by);
        send(w, 0, kernel_launch, .event = event, .queue = QUEUE(1), .kernel = KERNEL(1),
             .global = WAITS(16), .args = bytes_of(args.data, args.size));
        buf_fini(&args);
}

int32_t number(const struct data *d, size_t index)
{
        int32_t v;
        memcpy(&v, d->bytes + 4 * index, 4);
        return v;
}

void fill_zero(struct world *w, unsigned i, uint64_t queue, uint64_t event, uint64_t buffer,
               size_t size)
{
        send(w, i, buffer_fill, .event = event, .queue = queue, .buffer = buffer, .size = size,
             .pattern = bytes_of("", 1));
}

/* ---- recordings --------------------------------------------------------------------------------- */

void record(struct world *w, unsigned i)
{
        send(w, i, recording_create, .recording = RECORDING, .slots = WAITS(QUEUE(SLOT)),
             .devices = WAITS(0));
        fill_zero(w, i, QUEUE(SLOT), EVENT(1), BUFFER(1), 64);
        launch_after(w, i, QUEUE(SLOT), EVENT(2), BUFFER(1), 5, (struct wire_u64s)WAITS(EVENT(1)));
        launch_after(w, i, QUEUE(SLOT), EVENT(3), 0, 7, (struct wire_u64s)WAITS(EVENT(2)));
        send(w, i, release, .object = QUEUE(SLOT));
}

void run_recording(struct world *w, unsigned i, uint64_t queue, uint64_t event,
                   struct wire_u64s waits)
{
        send(w, i, recording_run, .event = event, .flags = COMMAND_NOTIFY, .recording = RECORDING,
             .queues = { &queue, 1 }, .waits = waits);
}
