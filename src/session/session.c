#include "session/session.h"

#include "base/mem.h"
#include "session/bulk.h"
#include "session/incoming.h"

enum { ACK_EVERY = 64 << 10 }; /* received bytes after which an ACK frame is due */

size_t session_size(void)
{
        return sizeof(struct session);
}

static int fixed_buffers(struct session *s)
{
        s->in.data = mem_alloc(s->params.in_bytes);
        s->out.buf.data = mem_alloc(s->params.out_bytes);
        if (!s->in.data || !s->out.buf.data)
                return SP_E_NOMEM;
        s->in.cap = s->params.in_bytes;
        s->out.buf.cap = s->params.out_bytes;
        s->out.fixed = true;
        return 0;
}

int session_new(const struct session_params *params, struct session **ret)
{
        struct session *s = mem_zalloc(sizeof(*s));
        if (!s)
                return SP_E_NOMEM;
        s->params = *params;
        bulk_init(s);
        if (!s->params.window_bytes)
                s->params.window_bytes = SESSION_WINDOW_DEFAULT;
        if (!s->params.inline_bytes)
                s->params.inline_bytes = SESSION_INLINE_DEFAULT;
        if (!s->params.wide_bytes)
                s->params.wide_bytes = SESSION_WIDE_DEFAULT;
        if (params->in_bytes && fixed_buffers(s) < 0) {
                (void)session_free(s);
                return SP_E_NOMEM;
        }
        owed_reset(&s->owed);
        *ret = s;
        return 0;
}

struct session *session_free(struct session *s)
{
        if (!s)
                return NULL;
        if (!s->status)
                s->status = SP_E_GONE; /* transfers that a done() starts end at once */
        bulk_fini(s);
        incoming_fini(s);
        outbox_fini(&s->out);
        mem_free(s);
        return NULL;
}

void session_end(struct session *s, int status)
{
        if (!s->status)
                s->status = status;
        s->given_up = true;
        bulk_give_up(s);
}

const struct session_stats *session_get_stats(const struct session *s)
{
        return &s->stats;
}

unsigned session_place(const struct session *s)
{
        return s->params.place;
}

void session_count_fabric(struct session *s, uint64_t sent, uint64_t received)
{
        s->stats.fabric_sent += sent;
        s->stats.fabric_received += received;
}

/* ---- messages ------------------------------------------------------------------------------- */

struct buf *session_outbox(struct session *s)
{
        return outbox_buf(&s->out);
}

int session_commit(struct session *s, int put_result)
{
        return outbox_commit(&s->out, put_result ? put_result : s->status);
}

int session_commit_lent(struct session *s, int put_result, size_t at, struct bytes lent)
{
        return outbox_commit_lent(&s->out, put_result ? put_result : s->status, at, lent);
}

size_t session_kept(const struct session *s)
{
        return outbox_kept(&s->out);
}

void session_ask(struct session *s)
{
        owed_notify(s, true);
}

uint64_t session_position(const struct session *s)
{
        return outbox_position(&s->out);
}

uint8_t *session_unsent_at(struct session *s, uint64_t position)
{
        return outbox_unsent_at(&s->out, position);
}

bool session_has_room(const struct session *s)
{
        return outbox_kept(&s->out) < s->params.window_bytes;
}

size_t session_unsent(const struct session *s)
{
        return outbox_unsent(&s->out);
}

void session_trim(struct session *s)
{
        if (!s->params.in_bytes && s->in_head == s->in.size) {
                buf_fini(&s->in);
                s->in_head = 0;
        }
}

/* ---- sending on lanes ----------------------------------------------------------------------- */

/* Is there data, or an acknowledgement, for a new frame? */
static bool has_data(const struct session *s)
{
        return outbox_unsent(&s->out) || s->in_unacked >= ACK_EVERY ||
               s->in_unacked > s->params.window_bytes / 4;
}

/* Make the next planned FRAME_PROBE. */
static void seal_probe(struct session *s)
{
        struct owed *o = &s->owed;
        unsigned lane = (unsigned)__builtin_ctz(o->notify);
        outbox_probe(&s->out, lane, lane ? s->lanes[lane].sent : s->out.sent_seq, !lane && o->ask,
                     s->in_next);
        o->notify &= ~(1u << lane);
        o->ask = o->ask && lane;
}

static int pending_data(struct session *s, struct iovec *ret, int max)
{
        struct sending *tx = &s->out.tx;
        if (!sending_any(tx)) {
                if (!has_data(s) && !s->owed.notify)
                        return 0;
                if (has_data(s))
                        s->stats.messages_sent += outbox_seal(&s->out, s->in_next);
                else
                        seal_probe(s);
                s->stats.frames_sent++;
                s->in_unacked = 0;
        }
        int n = sending_header(tx, ret);
        for (size_t o = 0; o < tx->left && n < max;) {
                struct bytes piece = outbox_piece(&s->out, (size_t)tx->at + o, tx->left - o);
                ret[n++] = (struct iovec){ (void *)(uintptr_t)piece.data, piece.size };
                o += piece.size;
        }
        return n;
}

int session_lane_pending(struct session *s, unsigned lane, struct iovec *ret, int max)
{
        if (s->status || !s->lanes[lane].up)
                return 0;
        return lane ? bulk_pending(s, &s->lanes[lane], ret, max) : pending_data(s, ret, max);
}

bool session_lane_has_pending(const struct session *s, unsigned lane)
{
        if (s->status || !s->lanes[lane].up)
                return false;
        if (!lane)
                return sending_any(&s->out.tx) || has_data(s) || s->owed.notify;
        return bulk_has_pending(s, lane);
}

void session_lane_sent(struct session *s, unsigned lane, size_t size)
{
        if (lane) {
                bulk_sent(s, &s->lanes[lane], size);
        } else {
                sending_advance(&s->out.tx, size);
                s->stats.bytes_sent += size;
        }
}

/* ---- lanes up and down ---------------------------------------------------------------------- */

uint64_t session_next_seq(const struct session *s)
{
        return s->in_next;
}

uint64_t session_acked_seq(const struct session *s)
{
        return s->out.base;
}

int session_lane_up(struct session *s, unsigned lane, uint64_t peer_next_seq)
{
        struct lane *l = &s->lanes[lane];
        if (s->status)
                return s->status;
        session_lane_down(s, lane);
        if (!lane) {
                int r = outbox_acked(&s->out, peer_next_seq);
                if (r < 0)
                        return r;
                outbox_rewind(&s->out);
                s->in_unacked = 0; /* our hello acknowledged all */
        }
        l->up = true;
        if (lane >= s->used)
                s->used = lane + 1;
        return 0;
}

int session_early(struct session *s, size_t max, struct buf *ret)
{
        return outbox_early(&s->out, s->in_next, max, ret);
}

void session_early_sent(struct session *s)
{
        outbox_early_sent(&s->out);
}

int session_resume(struct session *s, uint64_t generation)
{
        int r = s->status;
        s->generation = generation;
        s->bulk_held = true;
        for (unsigned i = 1; i < SESSION_LANES && r == 0; i++) {
                session_lane_down(s, i);
                r = incoming_report_cut(s, &s->lanes[i]);
        }
        if (r == 0 && s->params.ops->bulk_restart)
                r = s->params.ops->bulk_restart(s->params.user);
        if (r == 0)
                r = session_send(s, bulk_resume, .generation = generation);
        if (r < 0)
                s->status = r;
        return r;
}

int session_ack(struct session *s, uint64_t transfer, uint64_t below)
{
        return below ? session_send(s, transfer_ack, .transfer = transfer, .received = below) : 0;
}

uint64_t session_generation(const struct session *s)
{
        return s->generation;
}

void session_lane_down(struct session *s, unsigned lane)
{
        struct lane *l = &s->lanes[lane];
        incoming_cut(s, lane);
        l->up = l->packs = l->small = false;
        l->sent = l->received = l->claimed = l->alive = 0;
        if (lane)
                bulk_cut(s, l);
        else {
                outbox_unseal(&s->out);
                owed_reset(&s->owed);
        }
}

int session_tick(struct session *s, enum session_expects expects, uint64_t limit_ns,
                 uint64_t now_ns)
{
        s->owed.expects = (int)expects;
        s->owed.limit_ns = limit_ns;
        return s->status ? 0 : owed_tick(s, now_ns);
}

void session_lane_alive(struct session *s, unsigned lane, uint64_t count)
{
        s->lanes[lane].alive = count;
}

const char *session_overdue(const struct session *s)
{
        return s->owed.text ? s->owed.text : "";
}

uint64_t session_deadline(const struct session *s)
{
        return s->status ? UINT64_MAX : s->owed.next_ns;
}

unsigned session_lanes_used(const struct session *s)
{
        return s->used;
}

bool session_lane_is_up(const struct session *s, unsigned lane)
{
        return s->lanes[lane].up;
}
