#include "engine/transfer/transfer.h"

#include <assert.h>

#include "base/mem.h"
#include "engine/command/command.h"
#include "engine/completion/completion.h"
#include "engine/transfer/device_staging.h"
#include "engine/transfer/upload.h"

/* ---- memory --------------------------------------------------------------------------------- */

enum {
        /* A part is a quarter of the transfer, so that the device works on the bytes received while
         * the rest arrives. Smaller parts would cost more in commands than that saves. */
        PARTS = 4,
        PART_MIN = 512 << 10,
        PART_MAX = 1 << 20,
        /* Between two domains the bytes are not slower than the commands: use few commands, and one
         * if that is enough. */
        LOCAL_PART_MIN = 1 << 20,
        LOCAL_PART_MAX = STAGING_CHUNK,
        /* Bytes that a read may be ahead of those that the other end has received. */
        READ_AHEAD = 16 << 20,
        /* Chunks that a read may be ahead of the write on this server, so that they stay in the
         * processor's cache. */
        LOCAL_AHEAD = 4,
        /* Bytes allowed beyond the session's limit: inlined bytes are here already, and can't wait. */
        INLINE_BEYOND = SESSION_WINDOW_DEFAULT,
};
/* All bytes of one packed frame have one place (session_ops.bulk_place). */
static_assert(STAGING_CHUNK % FRAME_PLAIN_MAX == 0 && PART_MIN % FRAME_PLAIN_MAX == 0,
              "chunks and parts are whole packed frames");

static void *bounce_get(void *user) REQUIRES(engine_held)
{
        struct engine *e = user;
        uint64_t size = 0;
        uint8_t *base = e->params.ops->bounce ? e->params.ops->bounce(e->params.user, &size) : NULL;
        if (!base || size - e->transfers.bounced < STAGING_SLAB)
                return NULL;
        e->transfers.bounced += STAGING_SLAB;
        return base + e->transfers.bounced - STAGING_SLAB;
}

static void bounce_put(void *user, void *slab) REQUIRES(engine_held)
{
        struct engine *e = user;
        (void)slab; /* the last one */
        e->transfers.bounced -= STAGING_SLAB;
}

void engine_transfer_init_staging(struct engine *e)
{
        e->transfers.staging =
                (struct staging){ .bounce_get = bounce_get, .bounce_put = bounce_put, .user = e };
}

/* The staging memory of transfers with a domain. */
static struct staging *staging_of(struct engine *e, unsigned domain)
{
        struct staging *s = map_get(&e->transfers.stagings, domain + 1);
        if (!s) {
                s = mem_alloc(sizeof(*s));
                if (!s)
                        return &e->transfers.staging;
                *s = (struct staging){ .be = e->be,
                                       .backend = e->backend,
                                       .domain = domain,
                                       .bounce_get = bounce_get,
                                       .bounce_put = bounce_put,
                                       .user = e };
                if (map_put(&e->transfers.stagings, domain + 1, s) < 0) {
                        mem_free(s);
                        return &e->transfers.staging;
                }
        }
        return s->be || s->slab_count ? s : &e->transfers.staging;
}

static bool may_have_chunk(const struct transfer *t) REQUIRES(engine_held)
{
        uint64_t has = t->engine->transfers.bytes;
        if (t->in.early) /* these have a limit of their own */
                return true;
        if (t->total <= WIRE_INLINE_MAX)
                has -= has < INLINE_BEYOND ? has : INLINE_BEYOND;
        return !engine_limit_exceeded(t->engine, LIMIT_TRANSFERS, has, t->memory.chunk_size);
}

static uint8_t *chunk_get(struct transfer *t) REQUIRES(engine_held)
{
        struct engine *e = t->engine;
        t->memory.lack = CL_OUT_OF_RESOURCES;
        if (!may_have_chunk(t))
                return NULL;
        t->memory.lack = CL_OUT_OF_HOST_MEMORY;
        if (t->memory.chunk_size > SIZE_MAX / 2)
                return NULL;
        uint8_t *chunk = staging_get(t->memory.staging, (size_t)t->memory.chunk_size);
        if (!chunk)
                return NULL;
        e->transfers.bytes += t->memory.chunk_size;
        e->transfers.leaving_bytes += t->out.leaves ? t->memory.chunk_size : 0;
        return chunk;
}

static void chunk_put(struct transfer *t, uint8_t **chunk) REQUIRES(engine_held)
{
        struct engine *e = t->engine;
        if (!*chunk)
                return;
        staging_put(t->memory.staging, *chunk, (size_t)t->memory.chunk_size);
        *chunk = NULL;
        e->transfers.bytes -= t->memory.chunk_size;
        e->transfers.leaving_bytes -= t->out.leaves ? t->memory.chunk_size : 0;
        engine_transfer_uncrowd(e);
}

/* Is there no room for the bytes at `offset` now, but will there be? Room comes only from bytes on
 * their way to the client or the device. Transfers that wait for other commands do not count, since
 * those may wait for this one. */
static bool over_quota(const struct transfer *t, uint64_t offset) REQUIRES(engine_held)
{
        const struct engine *e = t->engine;
        uint64_t max = e->params.limits.max[LIMIT_TRANSFERS];
        return max && !t->memory.target && !t->staged.used &&
               !t->memory.chunks[offset / t->memory.chunk_size] &&
               e->transfers.bytes + t->memory.chunk_size > max &&
               (e->transfers.leaving_bytes || e->transfers.parts);
}

bool engine_transfer_lacks_room(const struct transfer *t, uint64_t offset)
{
        return over_quota(t, offset);
}

bool engine_transfer_over_quota(struct command *c)
{
        if (!over_quota(c->submission.transfer, c->submission.sent))
                return false;
        list_remove(&c->submission.over_quota);
        list_append(&c->submission.transfer->engine->transfers.over_quota,
                    &c->submission.over_quota);
        return true;
}

void engine_transfer_uncrowd(struct engine *e)
{
        if (e->closing)
                return;
        while (!list_empty(&e->transfers.over_quota)) {
                struct command *c = list_entry(e->transfers.over_quota.next, struct command,
                                               submission.over_quota);
                list_remove(&c->submission.over_quota);
                engine_command_poke(c);
        }
        if (e->transfers.lanes_over_quota) {
                e->transfers.lanes_over_quota = false;
                engine_peer_retry_all(e);
        }
        if (!list_empty(&e->uploads.waiting))
                engine_uploads_go_on(e);
}

uint8_t *engine_transfer_at(struct transfer *t, uint64_t offset, uint64_t *ret_len)
{
        uint64_t i = offset / t->memory.chunk_size, in = offset % t->memory.chunk_size;
        uint64_t left = t->total - offset, len = t->memory.chunk_size - in;
        if (t->memory.target) {
                *ret_len = left;
                return t->memory.target + offset;
        }
        if (!t->memory.chunks[i])
                t->memory.chunks[i] = chunk_get(t);
        *ret_len = len < left ? len : left;
        return t->memory.chunks[i] ? t->memory.chunks[i] + in : NULL;
}

uint8_t *engine_transfer_part(struct transfer *t, uint64_t offset, uint64_t *ret_len)
{
        uint8_t *at = engine_transfer_at(t, offset, ret_len);
        if (*ret_len > t->memory.part_size)
                *ret_len = t->memory.part_size;
        return at;
}

uint64_t engine_transfer_window(const struct transfer *t)
{
        /* Do not count from `freed`: a chunk is freed only when lanes report that they sent it, and
         * nothing polls the read after that. */
        uint64_t ahead = t->out.bulk.acked + READ_AHEAD;
        if (t->staged.used) {
                ahead = t->staged.taken + t->memory.part_size;
                return ahead < t->total ? ahead : t->total;
        }
        if (!t->peer)
                ahead = t->memory.chunks == &t->memory.only
                                ? t->total
                                : t->memory.freed + LOCAL_AHEAD * t->memory.chunk_size;
        return ahead > t->total || ahead < t->out.bulk.acked ? t->total : ahead;
}

void engine_transfer_pass(struct transfer *t, uint64_t offset)
{
        while (t->memory.freed < t->total &&
               (t->memory.freed + t->memory.chunk_size <= offset || offset == t->total)) {
                chunk_put(t, &t->memory.chunks[t->memory.freed / t->memory.chunk_size]);
                t->memory.freed += t->memory.chunk_size;
        }
        if (!t->peer && t->reader)
                engine_command_poke(t->reader); /* it may read on */
}

static uint64_t part_size(uint64_t total, uint64_t step, bool local)
{
        uint64_t size = local ? LOCAL_PART_MIN : PART_MIN;
        while (size < (local ? LOCAL_PART_MAX : PART_MAX) && size < total / PARTS)
                size *= 2;
        if (local && total <= LOCAL_PART_MAX)
                size = LOCAL_PART_MAX;
        if (!local && total < 2 * PART_MIN)
                size = PART_MAX;
        if (!step)
                return size;
        return size > step ? size / step * step : step;
}

/* Only local transfers of boxes may have memory in several pieces. */
static uint64_t chunk_size(uint64_t total, uint64_t step, bool local, uint64_t part)
{
        if (total < STAGING_CHUNK || (step && (!local || part > STAGING_CHUNK)))
                return total;
        return step ? STAGING_CHUNK / part * part : STAGING_CHUNK;
}

static int transfer_set_total(struct transfer *t, uint64_t total, uint64_t step)
{
        t->total = t->announced = total;
        t->step = step;
        t->memory.part_size = part_size(total, step, !t->peer);
        t->memory.chunk_size = chunk_size(total, step, !t->peer, t->memory.part_size);
        uint64_t count = total ? (total - 1) / t->memory.chunk_size + 1 : 1;
        t->memory.chunks = &t->memory.only;
        if (count > 1)
                t->memory.chunks = count > SIZE_MAX / 16
                                           ? NULL
                                           : mem_zalloc(count * sizeof(*t->memory.chunks));
        return t->memory.chunks ? 0 : SP_E_NOMEM;
}

void engine_transfer_unref(struct transfer *t)
{
        if (--t->refs)
                return;
        struct engine *e = t->engine;
        e->transfers.count--;
        engine_upload_free(t);
        arrivals_fini(&t->in.placed);
        arrivals_fini(&t->in.came);
        if (t->memory.chunks) {
                engine_transfer_pass(t, t->total);
                if (t->memory.chunks != &t->memory.only)
                        mem_free(t->memory.chunks);
        }
        pool_put(&e->transfers.pool, t);
}

/* Make a transfer. `user`: the command that uses its memory; NULL: not known yet. */
static int transfer_new(struct engine *e, const struct command *user, struct peer *peer,
                        uint64_t id, uint64_t total, uint64_t step, struct transfer **ret)
        REQUIRES(engine_held)
{
        if (e->transfers.count >= ENGINE_TRANSFERS_MAX)
                return SP_E_LIMIT;
        struct transfer *t = pool_get(&e->transfers.pool, sizeof(*t));
        if (!t)
                return SP_E_NOMEM;
        t->peer = peer;
        if (transfer_set_total(t, total, step) < 0) {
                pool_put(&e->transfers.pool, t);
                return SP_E_NOMEM;
        }
        t->out.good = UINT64_MAX;
        list_init(&t->reroute.orphaned);
        t->engine = e;
        t->memory.staging = user ? staging_of(e, user->queue->domain) : &e->transfers.staging;
        t->id = id;
        t->refs = 1;
        e->transfers.count++;
        *ret = t;
        return 0;
}

/* Make a transfer in the table, which takes over its reference. */
static int transfer_enter(struct engine *e, const struct command *user, struct peer *peer,
                          uint64_t id, uint64_t total, uint64_t step, struct transfer **ret)
        REQUIRES(engine_held)
{
        struct transfer *t;
        int r = transfer_new(e, user, peer, id, total, step, &t);
        if (r < 0)
                return r;
        r = map_put(&e->transfers.table, id, t);
        if (r < 0) {
                engine_transfer_unref(t);
                return r;
        }
        *ret = t;
        return 0;
}

static void let_go_of_target(struct transfer *t) REQUIRES(engine_held)
{
        if (t->memory.target_of)
                engine_object_unref(&steal(t->memory.target_of)->object);
}

void engine_transfer_forget(struct transfer *t)
{
        let_go_of_target(t);
        map_del(&t->engine->transfers.table, t->id);
        engine_transfer_unref(t);
}

/* The transfer failed: its writer fails, too, now or when it comes. */
static void transfer_fail(struct transfer *t, cl_int status)
{
        if (!t->status)
                t->status = status;
        if (t->writer)
                engine_command_poke(t->writer);
}

/* ---- commands ------------------------------------------------------------------------------- */

/* Take over a transfer that came before its command, as inlined data or a failure. */
static int adopt_early(struct transfer *t, struct peer *from, uint64_t total, uint64_t step)
        REQUIRES(engine_held)
{
        struct engine *e = t->engine;
        if (t->peer != from)
                return SP_E_PROTO;
        t->in.early = false;
        e->transfers.early_count--;
        e->transfers.early_bytes -= t->memory.only ? (size_t)t->total : 0;
        uint64_t cut = t->in.cut;
        if (t->in.swallow) {
                int r = transfer_set_total(t, total, step);
                if (r < 0)
                        return r;
                engine_peer_retry_all(e);
        }
        /* The sizes came from a server, so an error in them fails the transfer, not the client's
         * session. */
        if ((t->announced != total || cut > total) && !t->status)
                t->status = CL_INVALID_VALUE;
        else if (cut)
                t->total = cut;
        return 0;
}

int engine_transfer_expect(struct engine *e, struct peer *from, uint64_t id, uint64_t total,
                           uint64_t step, struct command *writer, struct transfer **ret)
{
        struct transfer *t = map_get(&e->transfers.table, id);
        bool all_there = false;
        int r;
        if (!t) {
                r = transfer_enter(e, writer, from, id, total, step, &t);
                if (r < 0)
                        return r;
                if (from)
                        engine_peer_retry_all(e);
        } else if (t->in.early && from) {
                r = adopt_early(t, from, total, step);
                if (r < 0)
                        return r;
                all_there = !t->in.swallow;
        } else {
                if (t->peer || from || t->writer || t->announced != total ||
                    t->memory.part_size != part_size(total, step, true))
                        return SP_E_PROTO;
                all_there = true; /* both ends are here */
        }
        if (from && from->lost && !all_there) {
                t->status = t->status ? t->status : CL_DEVICE_NOT_AVAILABLE;
                all_there = true;
        }
        t->writer = writer;
        t->refs++;
        if (all_there)
                engine_transfer_forget(t);
        if (from)
                engine_device_staging_expect(t);
        *ret = t;
        return 0;
}

int engine_transfer_offer(struct engine *e, struct peer *to, uint64_t id, uint64_t total,
                          uint64_t step, struct command *reader, struct transfer **ret)
{
        struct transfer *t;
        int r;
        if (to) {
                r = transfer_new(e, reader, to, id, total, step, &t);
                if (r < 0)
                        return r;
                t->reader = reader;
                t->out.leaves = !to->id;
                *ret = t;
                return 0;
        }
        t = map_get(&e->transfers.table, id);
        if (!t) {
                r = transfer_enter(e, reader, NULL, id, total, step, &t);
                if (r < 0)
                        return r;
                t->refs++;
        } else {
                if (t->peer || t->reader || t->in.early || t->announced != total ||
                    t->memory.part_size != part_size(total, step, true))
                        return SP_E_PROTO;
                t->refs++;
                engine_transfer_forget(t);
        }
        t->reader = reader;
        *ret = t;
        return 0;
}

int engine_transfer_local(struct engine *e, uint64_t total, uint64_t step, struct command *reader,
                          struct transfer **ret)
{
        struct transfer *t;
        int r = transfer_new(e, reader, NULL, 0, total, step, &t);
        if (r < 0)
                return r;
        t->refs++;
        t->reader = reader;
        reader->submission.transfer = t;
        *ret = t;
        return 0;
}

void engine_transfer_adopt(struct transfer *t, struct command *writer)
{
        t->writer = writer;
        writer->submission.transfer = t;
}

void engine_transfer_disown(struct transfer *t)
{
        t->unwanted = true;
        if (t->reader)
                engine_command_poke(t->reader);
        engine_transfer_unref(t);
}

void engine_transfer_aim(struct transfer *t, uint8_t *target, struct buffer *b)
{
        if (!t->peer || t->peer->id || t->status < 0 || t->in.placed.below ||
            t->in.placed.ahead.count)
                return;
        t->memory.target = target;
        t->memory.target_of = b;
        engine_object_ref(&b->object);
}

void engine_transfer_taken(struct transfer *t)
{
        t->unwanted = !t->peer;
        if (t->unwanted && t->reader)
                engine_command_poke(t->reader);
}

bool engine_transfer_times(const struct transfer *t, const struct command *writer,
                           struct backend_times *ret)
{
        if (!t || t->writer != writer || !t->in.last_ns || t->total != t->announced ||
            t->status < 0)
                return false;
        *ret = (struct backend_times){ t->in.first_ns, t->in.first_ns, t->in.last_ns };
        return true;
}

void engine_transfer_leave(struct transfer *t, struct command *c)
{
        engine_device_staging_leave(t, c);
        if (t->reader == c)
                t->reader = NULL;
        if (t->writer == c)
                t->writer = NULL;
        engine_transfer_unref(t);
}

/* ---- outgoing ------------------------------------------------------------------------------- */

static const void *bulk_at(struct session_bulk *b, uint64_t offset, size_t *ret_len)
        REQUIRES(engine_held)
{
        static const uint8_t zeros[4096];
        struct transfer *t = container_of(b, struct transfer, out.bulk);
        uint64_t len;
        if (offset >= t->out.good) {
                *ret_len = sizeof(zeros);
                return zeros;
        }
        const uint8_t *p = engine_transfer_at(t, offset, &len);
        *ret_len = (size_t)(len < t->out.good - offset ? len : t->out.good - offset);
        return p;
}

static void bulk_passed(struct session_bulk *b, uint64_t offset) REQUIRES(engine_held)
{
        struct transfer *t = container_of(b, struct transfer, out.bulk);
        if (offset < t->out.good)
                engine_transfer_pass(t, offset);
        if (t->reader)
                engine_command_poke(t->reader); /* it may read on */
}

static void bulk_done(struct session_bulk *b, int status) REQUIRES(engine_held)
{
        struct transfer *t = container_of(b, struct transfer, out.bulk);
        (void)status;
        t->out.sending = false;
        /* A reader that failed is done, and waits for the end of sending. */
        if (t->reader && t->status < 0 && !t->engine->closing)
                engine_completion_publish(t->reader);
        else if (t->reader)
                engine_command_poke(t->reader); /* the peer may be lost */
        engine_transfer_unref(t);
}

static cl_int bulk_start(struct transfer *t, uint64_t ready) REQUIRES(engine_held)
{
        t->out.bulk = (struct session_bulk){
                .transfer = t->id,
                .total = t->total,
                .at = bulk_at,
                .done = bulk_done,
                .passed = bulk_passed,
                .wide = t->reader && t->reader->desc.wide,
        };
        t->out.sending = true;
        t->refs++;
        int r = session_bulk_send(t->peer->session, &t->out.bulk, ready);
        t->peer->dirty = true;
        if (r < 0) {
                t->out.sending = false;
                engine_transfer_unref(t);
                return CL_OUT_OF_HOST_MEMORY;
        }
        return CL_SUCCESS;
}

cl_int engine_transfer_progress(struct transfer *t, uint64_t ready)
{
        if (!t->peer) {
                t->arrived = ready;
                if (t->writer)
                        engine_command_poke(t->writer);
                return CL_SUCCESS;
        }
        if (t->staged.used)
                return engine_device_staging_progress(t, ready);
        bool first = !t->arrived;
        t->arrived = ready;
        if (t->peer->lost)
                return CL_DEVICE_NOT_AVAILABLE;
        if (first)
                return bulk_start(t, ready);
        session_bulk_ready(t->peer->session, &t->out.bulk, ready);
        t->peer->dirty = true;
        return CL_SUCCESS;
}

bool engine_transfer_abort(struct transfer *t, cl_int status)
{
        if (!t->status)
                t->status = status;
        if (!t->peer) {
                transfer_fail(t, status);
                return false;
        }
        if (t->peer->lost)
                return false;
        engine_device_staging_abort(t);
        if (t->peer->id && t->arrived < t->total)
                peer_send(t->peer, transfer_failed, .transfer = t->id, .status = status,
                          .started = t->out.sending);
        if (t->out.sending && t->arrived < t->total) {
                /* A transfer can't be withdrawn: the rest goes out as zeros. */
                t->out.good = t->arrived;
                t->arrived = t->total;
                session_bulk_ready(t->peer->session, &t->out.bulk, t->total);
                t->peer->dirty = true;
        }
        /* The client must not be notified of the failure while bytes are still to come. */
        return t->out.sending && !t->peer->id;
}

/* ---- incoming ------------------------------------------------------------------------------- */

/* Place inlined data of a peer whose command has not come from the client yet: keep all of it. */
static int place_early(struct peer *p, uint64_t id, uint64_t offset, size_t len, void **ret)
        REQUIRES(engine_held)
{
        struct engine *e = p->engine;
        struct transfer *t;
        if (!p->id || offset)
                return SP_E_PROTO;
        if (e->transfers.early_count >= ENGINE_EARLY_TRANSFERS || len > ENGINE_EARLY_BYTES ||
            e->transfers.early_bytes > ENGINE_EARLY_BYTES - len)
                return SP_E_LIMIT;
        int r = transfer_enter(e, NULL, p, id, len, len, &t);
        if (r < 0)
                return r;
        t->in.early = true;
        e->transfers.early_count++;
        uint64_t all;
        *ret = engine_transfer_at(t, 0, &all);
        if (!*ret) {
                e->transfers.early_count--;
                engine_transfer_forget(t);
                return SP_E_NOMEM;
        }
        e->transfers.early_bytes += len;
        return 0;
}

/* Give a place for bytes whose command failed. */
static int place_sink(struct peer *p, bool inlined, size_t *len, void **ret)
{
        if (!p->sink)
                p->sink = mem_alloc(2 * (size_t)PEER_SINK_SIZE);
        if (!p->sink)
                return SP_E_NOMEM;
        if (*len > PEER_SINK_SIZE)
                *len = PEER_SINK_SIZE;
        *ret = p->sink + (inlined ? PEER_SINK_SIZE : 0);
        return 0;
}

int engine_transfer_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                          void **ret)
{
        struct peer *p = user;
        struct transfer *t = map_get(&p->engine->transfers.table, transfer);
        if (!t && inlined)
                return place_early(p, transfer, offset, *len, ret);
        if (!t) {
                p->waiting = true;
                return SP_E_AGAIN;
        }
        if (t->in.early && !inlined) {
                p->waiting = true;
                return SP_E_AGAIN; /* an early failure whose bytes still come */
        }
        /* Each byte comes once, from the peer that the command named. */
        if (t->peer != p || t->in.early || t->staged.used || offset >= t->total ||
            *len > t->total - offset || arrivals_meet(&t->in.placed, offset, offset + *len))
                return SP_E_PROTO;
        bool wanted = t->writer && t->writer->outcome.status >= 0 && !t->status;
        uint64_t fits;
        if (wanted && !inlined && over_quota(t, offset)) {
                p->waiting = t->engine->transfers.lanes_over_quota = true;
                return SP_E_AGAIN;
        }
        uint8_t *place = wanted ? engine_transfer_at(t, offset, &fits) : NULL;
        if (place) {
                /* Bytes received in their final place only have to be acknowledged, a part at a
                 * time. */
                if (t->memory.target && fits > PART_MAX - offset % PART_MAX)
                        fits = PART_MAX - offset % PART_MAX;
                if (*len > fits)
                        *len = (size_t)fits;
                *ret = place;
        } else {
                t->reroute.hopeless |= wanted;
                if (wanted)
                        transfer_fail(t, t->memory.lack);
                int r = place_sink(p, inlined, len, ret);
                if (r < 0)
                        return r;
        }
        t->in.placing += *len;
        if (!t->in.first_ns && p->id)
                t->in.first_ns = p->engine->params.ops->now_ns(p->engine->params.user);
        return arrivals_add(&t->in.placed, offset, offset + *len);
}

int engine_transfer_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                            uint64_t *ret_below)
{
        struct peer *p = user;
        struct engine *e = p->engine;
        struct transfer *t = map_get(&e->transfers.table, transfer);
        if (!t || t->peer != p)
                return SP_E_PROTO;
        t->in.placing -= t->in.placing < len ? t->in.placing : len;
        int r = arrivals_add(&t->in.came, offset, offset + len);
        if (r < 0)
                return r;
        *ret_below = t->arrived = t->in.came.below;
        bool last = t->arrived == t->total;
        if (last && p->id)
                t->in.last_ns = e->params.ops->now_ns(e->params.user);
        if (t->in.early)
                return last;
        engine_upload_arrived(t, offset, len);
        if (t->writer)
                engine_command_poke(t->writer);
        if (last)
                engine_transfer_forget(t);
        engine_run(e);
        return last;
}

int engine_transfer_restart(void *user)
{
        struct peer *p = user;
        struct transfer *t;
        int r = 0;
        for (size_t pos = 0; r == 0 && (t = map_next(&p->engine->transfers.table, &pos));) {
                if (t->peer != p || t->in.early)
                        continue;
                arrivals_fini(&t->in.came);
                arrivals_fini(&t->in.placed);
                t->in.placed.below = t->in.came.below;
                t->in.placing = 0;
                r = engine_upload_restart(t);
                if (r == 0)
                        r = session_ack(p->session, t->id, t->in.came.below);
        }
        return r;
}

void engine_transfer_cut(struct transfer *t, uint64_t size)
{
        t->total = size;
        if (t->peer && !t->peer->lost)
                peer_send(t->peer, transfer_cut, .transfer = t->id, .size = size);
        else if (t->writer)
                engine_command_poke(t->writer);
}

/* Cut a transfer whose command has not come yet. */
static int cut_early(struct peer *p, const struct wire_transfer_cut *m) REQUIRES(engine_held)
{
        struct engine *e = p->engine;
        struct transfer *t;
        if (e->transfers.early_count >= ENGINE_EARLY_TRANSFERS)
                return SP_E_LIMIT;
        int r = transfer_enter(e, NULL, p, m->transfer, 0, 0, &t);
        if (r < 0)
                return r;
        t->in.early = t->in.swallow = true;
        t->in.cut = m->size;
        e->transfers.early_count++;
        return 0;
}

int engine_handle_transfer_cut(void *user, const struct wire_transfer_cut *m)
{
        struct peer *p = user;
        struct engine *e = p->engine;
        struct transfer *t = map_get(&e->transfers.table, m->transfer);
        if (!t)
                return cut_early(p, m);
        if (t->peer != p || t->in.early || m->size > t->total || m->size < t->arrived ||
            arrivals_meet(&t->in.placed, m->size, t->total))
                return SP_E_PROTO;
        t->total = m->size;
        int r = 0;
        if (t->in.came.below == t->total) {
                r = session_ack(p->session, t->id, t->total);
                p->dirty = true;
                engine_transfer_forget(t);
        }
        if (t->writer)
                engine_command_poke(t->writer);
        return r;
}

int engine_handle_transfer_failed(void *user, const struct wire_transfer_failed *m)
{
        struct peer *p = user;
        struct engine *e = p->engine;
        cl_int status =
                m->status < 0 && m->status >= INT32_MIN ? (cl_int)m->status : CL_OUT_OF_RESOURCES;
        struct transfer *t = map_get(&e->transfers.table, m->transfer);
        if (!t) {
                if (e->transfers.early_count >= ENGINE_EARLY_TRANSFERS)
                        return SP_E_LIMIT;
                int r = transfer_enter(e, NULL, p, m->transfer, 0, 0, &t);
                if (r < 0)
                        return r;
                t->in.early = true;
                t->in.swallow = m->started;
                t->status = status;
                e->transfers.early_count++;
                return 0;
        }
        if (t->peer == p && t->in.early && t->in.cut && !t->status) {
                t->status = status;
                t->in.swallow = m->started;
                return 0;
        }
        if (t->peer != p || t->in.early ||
            (!m->started && (t->in.placed.below || t->in.placed.ahead.count)))
                return SP_E_PROTO;
        transfer_fail(t, status);
        if (!m->started)
                engine_transfer_forget(t);
        return 0;
}

/* May a lane be writing to places that it was given? If its connection is closed while another
 * thread uses it, the lane is down only when that thread is done. */
static bool may_write(const struct peer *p)
{
        bool up = false;
        for (unsigned lane = 1; lane < SESSION_LANES; lane++)
                up |= session_lane_is_up(p->session, lane);
        return up;
}

void engine_transfer_fail_peer(struct peer *p, cl_int status)
{
        struct engine *e = p->engine;
        /* Removing changes the table, so collect first. The client is not asked about a transfer
         * that has not failed yet. */
        struct list gone;
        list_init(&gone);
        size_t pos = 0;
        struct transfer *t;
        while ((t = map_next(&e->transfers.table, &pos))) {
                if (t->peer != p || t->in.early || t->status)
                        continue;
                transfer_fail(t, status);
                /* Otherwise its memory stays until the session's end. */
                if (!t->in.placing || !may_write(p))
                        list_append(&gone, &t->reroute.orphaned);
        }
        while (!list_empty(&gone)) {
                t = list_entry(gone.next, struct transfer, reroute.orphaned);
                list_remove(&t->reroute.orphaned);
                engine_transfer_forget(t);
        }
        list_each(c, &e->commands.all, struct command, link)
        {
                if (c->submission.transfer && c->submission.transfer->peer == p)
                        engine_command_poke(c); /* a read that waits for room */
        }
}

void engine_transfer_abandon_all(struct engine *e)
{
        size_t pos = 0;
        struct transfer *t;
        while ((t = map_next(&e->transfers.table, &pos)))
                let_go_of_target(t);
}

void engine_transfer_free_all(struct engine *e)
{
        size_t pos = 0;
        struct transfer *t;
        while ((t = map_next(&e->transfers.table, &pos)))
                engine_transfer_unref(t);
        map_fini(&e->transfers.table);
        list_each(s, &e->transfers.orphaned, struct transfer, reroute.orphaned)
        {
                list_remove(&s->reroute.orphaned);
                engine_transfer_unref(s);
        }
}

void engine_transfer_count_staging(struct engine *e, size_t *ret_all, size_t *ret_free)
{
        size_t pos = 0;
        const struct staging *s;
        *ret_all = *ret_free = 0;
        while ((s = map_next(&e->transfers.stagings, &pos))) {
                *ret_all += s->slab_count * STAGING_SLAB;
                *ret_free += s->count * STAGING_CHUNK;
        }
        s = &e->transfers.staging;
        *ret_all += s->slab_count ? s->slab_count * STAGING_SLAB : s->count * STAGING_CHUNK;
        *ret_free += e->transfers.staging.count * STAGING_CHUNK;
}

void engine_transfer_free_staging(struct engine *e)
{
        size_t pos = 0;
        struct staging *s;
        while ((s = map_next(&e->transfers.stagings, &pos))) {
                staging_fini(s);
                mem_free(s);
        }
        map_fini(&e->transfers.stagings);
        staging_fini(&e->transfers.staging);
}
