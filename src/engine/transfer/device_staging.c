#include "engine/transfer/device_staging.h"

#include "base/log.h"
#include "engine/command/command.h"
#include "engine/command/submission.h"
#include "engine/transfer/transfer.h"
#include "os/file.h"

#define LOG "engine"

uint64_t engine_device_staging_above = 16 << 20;
uint64_t engine_device_staging_size = WIRE_STAGING_MAX;

/* ---- the memory that this side has made ------------------------------------------------------- */

/* Release it; no transfer uses it. */
static void out_release(struct peer *p, enum device_staging_state next) REQUIRES(engine_held)
{
        struct engine *e = p->engine;
        p->staging.out.state = next;
        if (!p->staging.out.buffer)
                return;
        e->be->buffer.release(steal(p->staging.out.buffer));
        engine_storage_give(e, p->staging.out.size);
        p->staging.out.size = 0;
}

/* The same, and have the peer release it, too. */
static void withdraw(struct peer *p, enum device_staging_state next) REQUIRES(engine_held)
{
        bool had = p->staging.out.buffer;
        out_release(p, next);
        if (had)
                peer_send(p, staging_offer, .number = ++p->staging.out.number,
                          .device = bytes_of("", 0));
}

static void out_leave(struct peer *p) REQUIRES(engine_held)
{
        p->staging.out.filled = 0;
        if (p->staging.out.user)
                engine_transfer_unref(steal(p->staging.out.user));
}

static cl_int make(struct peer *p, unsigned domain, int *ret_fd) REQUIRES(engine_held)
{
        struct engine *e = p->engine;
        uint64_t size = engine_device_staging_size;
        /* The memory would take a part of what the limits allow the program. */
        if (engine_limits_memory(e) || engine_limits_devices(e) || !engine_storage_take(e, size))
                return CL_OUT_OF_RESOURCES;
        cl_int status = e->be->shared.create(e->backend, domain, (size_t)size,
                                             &p->staging.out.buffer, ret_fd);
        if (status != CL_SUCCESS) {
                engine_storage_give(e, size);
                return status;
        }
        p->staging.out.size = size;
        p->staging.out.domain = domain;
        return CL_SUCCESS;
}

/* Make memory and offer it to the peer. */
static void offer(struct peer *p, unsigned domain) REQUIRES(engine_held)
{
        struct engine *e = p->engine;
        const struct engine_ops *ops = e->params.ops;
        uint8_t device[BACKEND_DEVICE_NAME];
        int fd = -1;
        if (p->staging.out.number >= DEVICE_STAGING_OFFERS)
                return;
        withdraw(p, DEVICE_STAGING_OFF);
        if (!ops->pass || !e->be->shared.device ||
            e->be->shared.device(e->backend, domain, device) < 0)
                return;
        if (make(p, domain, &fd) != CL_SUCCESS)
                return;
        p->staging.out.number++;
        int r = ops->pass(e->params.user, p->session, fd);
        (void)file_close(fd);
        if (r < 0) {
                log_info(LOG, "device memory can't be passed to a peer: %s", status_text(r));
                out_release(p, DEVICE_STAGING_NONE);
                return;
        }
        p->staging.out.state = DEVICE_STAGING_OFFERED;
        peer_send(p, staging_offer, .number = p->staging.out.number, .size = p->staging.out.size,
                  .device = bytes_of(device, sizeof(device)));
}

int engine_handle_staging_answer(void *user, const struct wire_staging_answer *m)
{
        struct peer *p = user;
        if (m->number != p->staging.out.number || p->staging.out.state != DEVICE_STAGING_OFFERED)
                return 0; /* it was given up meanwhile */
        if (m->status < 0) {
                /* The peer has no such device, or the descriptor was lost with the connection. */
                log_info(LOG, "a peer does not use device memory of this server: %lld",
                         (long long)m->status);
                out_release(p, m->status == SP_E_AGAIN ? DEVICE_STAGING_NONE : DEVICE_STAGING_OFF);
                return 0;
        }
        p->staging.out.state = DEVICE_STAGING_READY;
        return 0;
}

void engine_device_staging_trim(struct engine *e)
{
        for (size_t i = 1; i < e->peers.count; i++) {
                struct peer *p = e->peers.all[i];
                if (!p->staging.out.user && !p->lost)
                        withdraw(p, DEVICE_STAGING_OFF);
        }
}

/* ---- outgoing transfers ----------------------------------------------------------------------- */

void engine_device_staging_begin(struct command *c)
{
        struct transfer *t = c->submission.transfer;
        struct peer *p = t->peer;
        unsigned domain = c->queue->domain;
        if (t->staged.used || t->staged.refused || !p || !p->id || p->lost ||
            t->total <= engine_device_staging_above || c->desc.native.op != BACKEND_READ ||
            p->staging.out.user)
                return;
        enum device_staging_state state = p->staging.out.state;
        bool other = state == DEVICE_STAGING_READY && p->staging.out.domain != domain;
        if (p->staging.near && (state == DEVICE_STAGING_NONE || other))
                offer(p, domain); /* for later transfers */
        if (p->staging.out.state != DEVICE_STAGING_READY || p->staging.out.domain != domain)
                return;
        p->staging.out.user = t;
        t->refs++;
        t->staged.used = true;
        t->staged.plain_part = t->memory.part_size;
        t->memory.part_size = p->staging.out.size;
}

bool engine_device_staging_waits(const struct transfer *t)
{
        return t->staged.used && !t->staged.accepted && !t->staged.taken;
}

cl_int engine_device_staging_progress(struct transfer *t, uint64_t ready)
{
        struct peer *p = t->peer;
        if (p->lost || p->staging.out.user != t)
                return CL_DEVICE_NOT_AVAILABLE;
        uint64_t offset = t->arrived;
        t->arrived = p->staging.out.filled = ready;
        peer_send(p, staging_filled, .transfer = t->id, .offset = offset, .size = ready - offset);
        return CL_SUCCESS;
}

void engine_device_staging_abort(struct transfer *t)
{
        struct peer *p = t->peer;
        if (t->staged.used && p->staging.out.user == t && !p->staging.out.filled)
                out_leave(p);
}

/* The peer can't use the first piece: read the bytes again, into the host's memory. */
static void send_plainly(struct peer *p, struct transfer *t) REQUIRES(engine_held)
{
        struct command *c = t->reader;
        t->staged.used = false;
        t->staged.refused = true;
        t->memory.part_size = t->staged.plain_part;
        t->arrived = 0;
        if (c) {
                c->submission.sent = c->submission.parts = 0;
                engine_command_poke(c);
        }
        out_leave(p);
        if (++p->staging.out.refusals == DEVICE_STAGING_REFUSALS)
                withdraw(p, DEVICE_STAGING_OFF);
}

int engine_handle_staging_emptied(void *user, const struct wire_staging_emptied *m)
{
        struct peer *p = user;
        struct transfer *t = p->staging.out.user;
        if (!t || !p->staging.out.filled || m->transfer != t->id || m->end != p->staging.out.filled)
                return SP_E_PROTO;
        if (m->status && (t->staged.taken || t->staged.accepted || m->status > STAGING_ACCEPTED))
                return SP_E_PROTO;
        if (m->status > 0) {
                t->staged.accepted = true;
                if (t->reader)
                        engine_command_poke(t->reader);
                return 0;
        }
        p->staging.out.filled = 0;
        if (m->status < 0) {
                send_plainly(p, t);
                return 0;
        }
        t->staged.taken = m->end;
        p->staging.out.refusals = 0;
        if (t->reader)
                engine_command_poke(t->reader);
        if (m->end == t->total || !t->reader || t->reader->outcome.status < 0)
                out_leave(p);
        return 0;
}

/* ---- native commands -------------------------------------------------------------------------- */

cl_int engine_device_staging_submit(struct command *c)
{
        struct command_submission *s = &c->submission;
        struct transfer *t = s->transfer;
        struct peer *p = t->peer;
        bool reads = t->reader == c;
        struct backend_command n = c->desc.native;
        struct backend_buffer *memory = reads ? p->staging.out.buffer : p->staging.in.buffer;
        uint64_t left = t->total - s->sent;
        uint64_t len = left < t->memory.part_size ? left : t->memory.part_size;
        if (!memory)
                return CL_DEVICE_NOT_AVAILABLE;
        n.op = BACKEND_COPY;
        n.host = NULL;
        n.size = (size_t)len;
        if (reads) {
                n.source = n.buffer;
                n.source_offset = n.offset_bytes + (size_t)s->sent;
                n.buffer = memory;
                n.offset_bytes = 0;
        } else {
                n.source = memory;
                n.source_offset = 0;
                n.offset_bytes += (size_t)s->sent;
        }
        cl_int status = engine_submission_part(c, &n);
        if (status < 0)
                return status;
        s->sent += len;
        if (!reads)
                s->staged_from = p;
        return CL_SUCCESS;
}

/* ---- the memory that the peer has made -------------------------------------------------------- */

static void in_release(struct peer *p)
{
        if (p->staging.in.buffer)
                p->engine->be->buffer.release(steal(p->staging.in.buffer));
        p->staging.in.size = 0;
}

/* The domain whose memory has that name. False: there is none. */
static bool find_domain(struct engine *e, struct bytes device, unsigned *ret) REQUIRES(engine_held)
{
        uint8_t own[BACKEND_DEVICE_NAME];
        if (!e->be->shared.device || !e->be->shared.import || device.size != sizeof(own))
                return false;
        for (unsigned i = 0; i < e->be->domain_count(e->backend); i++) {
                *ret = i;
                if (e->be->shared.device(e->backend, i, own) == CL_SUCCESS &&
                    !memcmp(own, device.data, sizeof(own)))
                        return true;
        }
        return false;
}

/* Import the memory of a descriptor, which is closed. 0; SP_E_AGAIN: there is no descriptor. */
static int import(struct peer *p, const struct wire_staging_offer *m) REQUIRES(engine_held)
{
        struct engine *e = p->engine;
        const struct engine_ops *ops = e->params.ops;
        unsigned domain;
        int fd = ops->take ? ops->take(e->params.user, p->session) : SP_E_NOENT;
        if (fd < 0)
                return SP_E_AGAIN;
        int r = ++p->staging.in.offers > DEVICE_STAGING_OFFERS ? SP_E_LIMIT : 0;
        if (!r && (m->size % BACKEND_SHARED_UNIT || !find_domain(e, m->device, &domain)))
                r = SP_E_UNSUPP;
        if (!r && e->be->shared.import(e->backend, domain, fd, (size_t)m->size,
                                       &p->staging.in.buffer) < 0)
                r = SP_E_INVAL;
        (void)file_close(fd);
        if (r < 0)
                return r;
        p->staging.in.domain = domain;
        p->staging.in.size = m->size;
        return 0;
}

int engine_handle_staging_offer(void *user, const struct wire_staging_offer *m)
{
        struct peer *p = user;
        if (p->staging.in.piece.size_bytes)
                return SP_E_PROTO;
        in_release(p);
        if (!m->size)
                return 0;
        int r = import(p, m);
        if (r < 0)
                log_info(LOG, "device memory of a peer can't be used: %s", status_text(r));
        else
                log_info(LOG, "%llu MiB of device memory are shared with a peer",
                         (unsigned long long)(m->size >> 20));
        peer_send(p, staging_answer, .number = m->number, .status = r);
        return 0;
}

/* ---- incoming transfers ----------------------------------------------------------------------- */

static void notify(struct peer *p, int status) REQUIRES(engine_held)
{
        peer_send(p, staging_emptied, .transfer = p->staging.in.piece.transfer,
                  .end = p->staging.in.piece.offset + p->staging.in.piece.size_bytes,
                  .status = status);
}

static void answer(struct peer *p, int status) REQUIRES(engine_held)
{
        if (p->lost)
                in_release(p);
        else
                notify(p, status);
        p->staging.in.piece.size_bytes = 0;
}

/* Return true if the piece is the one that has to come next, and no other bytes have come. */
static bool piece_fits(const struct peer *p, const struct transfer *t)
{
        uint64_t offset = p->staging.in.piece.offset, size = p->staging.in.piece.size_bytes;
        uint64_t left = offset <= t->total ? t->total - offset : 0;
        return offset == t->arrived && size <= left &&
               size == (left < p->staging.in.size ? left : p->staging.in.size) &&
               !t->in.placed.below && !t->in.placed.ahead.count;
}

static bool can_use(const struct peer *p, const struct transfer *t)
{
        const struct command *w = t->writer;
        return w->desc.native.op == BACKEND_WRITE && !w->batch &&
               w->queue->domain == p->staging.in.domain && !t->memory.target;
}

/* Return true if the write waits for its device alone. The peer's read must not wait for a write that waits for other
 * commands, because those may come after the read. */
static bool is_under_way(const struct command *w)
{
        return w->state == COMMAND_SUBMITTING && !w->submission.roomless;
}

/* Does the write take other pieces from this memory? Others could be of another device, or smaller. */
static bool is_same_memory(const struct peer *p, const struct transfer *t)
{
        return t->writer->queue->domain == p->staging.in.domain &&
               t->memory.part_size == p->staging.in.size;
}

/* Give the piece to the command of its transfer. SP_E_PROTO: it is not the piece that the peer announced. */
static int take_piece(struct peer *p, struct transfer *t) REQUIRES(engine_held)
{
        uint64_t now = p->engine->params.ops->now_ns(p->engine->params.user);
        bool wanted = t->writer && t->writer->outcome.status >= 0 && t->status >= 0;
        if (!piece_fits(p, t) || (wanted && t->staged.used && !is_same_memory(p, t)))
                return SP_E_PROTO;
        bool first = wanted && !t->staged.used, later = first && !is_under_way(t->writer);
        bool all = p->staging.in.piece.size_bytes == t->total;
        if (first && (!can_use(p, t) || (later && !all))) {
                answer(p, SP_E_UNSUPP);
                return 0;
        }
        if (later)
                notify(p, STAGING_ACCEPTED);
        t->arrived += p->staging.in.piece.size_bytes;
        t->in.first_ns = t->in.first_ns ? t->in.first_ns : now;
        t->in.last_ns = t->arrived == t->total ? now : 0;
        t->staged.used = true;
        t->memory.part_size = p->staging.in.size;
        p->staging.in.piece.taken = wanted;
        if (wanted)
                engine_command_poke(t->writer);
        else
                answer(p, 0);
        if (t->arrived == t->total)
                engine_transfer_forget(t);
        return 0;
}

int engine_handle_staging_filled(void *user, const struct wire_staging_filled *m)
{
        struct peer *p = user;
        struct transfer *t = map_get(&p->engine->transfers.table, m->transfer);
        if (!p->staging.in.buffer || p->staging.in.piece.size_bytes ||
            m->size > p->staging.in.size || (t && t->peer != p))
                return SP_E_PROTO;
        p->staging.in.piece.transfer = m->transfer;
        p->staging.in.piece.offset = m->offset;
        p->staging.in.piece.size_bytes = m->size;
        p->staging.in.piece.taken = false;
        return t && !t->in.early ? take_piece(p, t) : 0;
}

void engine_device_staging_expect(struct transfer *t)
{
        struct peer *p = t->peer;
        if (!p->staging.in.piece.size_bytes || p->staging.in.piece.taken ||
            p->staging.in.piece.transfer != t->id)
                return;
        if (t->status >= 0 && take_piece(p, t) == 0)
                return;
        /* The sizes came from a server: an error in them fails the transfer, not the client's session. */
        t->status = t->status < 0 ? t->status : CL_INVALID_VALUE;
        answer(p, 0);
}

void engine_device_staging_taken(struct peer *p)
{
        if (p->staging.in.piece.size_bytes && p->staging.in.piece.taken)
                answer(p, 0);
}

void engine_device_staging_leave(struct transfer *t, const struct command *c)
{
        struct peer *p = t->peer;
        if (t->staged.used && t->reader != c && p->staging.in.piece.transfer == t->id)
                engine_device_staging_taken(p);
}

void engine_device_staging_end(struct peer *p)
{
        out_leave(p);
        out_release(p, DEVICE_STAGING_OFF);
        p->staging.near = false;
        /* All bytes of a piece are there, whatever happens to the peer: its write goes on. */
        if (p->staging.in.piece.size_bytes && p->staging.in.piece.taken && !p->engine->closing)
                return;
        in_release(p);
        p->staging.in.piece.size_bytes = 0;
}
