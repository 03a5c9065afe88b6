#include "support/pair.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define must(cond)                                                                         \
        do {                                                                               \
                if (!(cond)) {                                                             \
                        fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
                        abort();                                                           \
                }                                                                          \
        } while (0)

static uint8_t byte_at(uint64_t transfer, uint64_t offset)
{
        return (uint8_t)(transfer * 131 + offset * 7 + (offset >> 8) * 13 + (offset >> 16) * 31);
}

static struct pair_transfer *transfer_new(struct pair_side *side, uint64_t id, uint64_t total,
                                          size_t piece)
{
        struct pair_transfer *t = mem_zalloc(sizeof(*t));
        if (!t)
                return NULL;
        t->side = side;
        t->id = id;
        t->total = total;
        t->piece = piece;
        t->data = mem_zalloc(total);
        if (!t->data) {
                mem_free(t);
                return NULL;
        }
        return t;
}

static void transfer_free(struct pair_transfer *t)
{
        arrivals_fini(&t->placed);
        arrivals_fini(&t->came);
        mem_free(t->data);
        mem_free(t);
}

/* How many bytes from `offset` on lie in one piece. */
static size_t piece_left(const struct pair_transfer *t, uint64_t offset)
{
        size_t left = t->piece - (size_t)(offset % t->piece);
        return left < t->total - offset ? left : (size_t)(t->total - offset);
}

/* ---- what arrives --------------------------------------------------------------------------- */

static int on_message(void *user, struct bytes msg)
{
        struct pair_side *s = user;
        if (wire_message_id(msg.data) == WIRE_output) {
                struct wire_output m;
                if (wire_get_output(msg, &m) < 0)
                        return SP_E_PROTO;
                must(m.text.size >= 8);
                const uint8_t *p = m.text.data;
                must(bytes_get_u64(p) == s->received);
                if (s->pair->check_data)
                        for (size_t k = 8; k < m.text.size; k++)
                                must(p[k] == (uint8_t)(k + s->received));
                s->received++;
                return 0;
        }
        struct wire_buffer_write m;
        must(wire_get_buffer_write(msg, &m) == 0);
        must(!map_get(&s->incoming, m.transfer));
        struct pair_transfer *t = transfer_new(s, m.transfer, m.size, (size_t)m.offset);
        if (!t)
                return SP_E_NOMEM;
        if (map_put(&s->incoming, m.transfer, t) < 0) {
                transfer_free(t);
                return SP_E_NOMEM;
        }
        session_bulk_retry(s->session);
        return 0;
}

static int on_part(void *user, struct bytes part, bool first, size_t left)
{
        struct pair_side *s = user;
        must(s->little && part.size && part.size % 8 == 0 && (uintptr_t)part.data % 8 == 0);
        if (first)
                s->parts.size = 0;
        if (buf_put(&s->parts, part.data, part.size) < 0)
                return SP_E_NOMEM;
        must(s->parts.size + left == wire_message_size(s->parts.data));
        return left ? 0 : on_message(s, bytes_of(s->parts.data, s->parts.size));
}

/* Of bytes inline that come again, how many of [offset, offset + len) came before? */
static size_t come_again(const struct pair_side *s, const struct arrivals *a, uint64_t offset,
                         size_t len)
{
        if (!s->little || offset >= a->below)
                return 0;
        return a->below - offset < len ? (size_t)(a->below - offset) : len;
}

static int on_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                    void **ret)
{
        struct pair_side *s = user;
        struct pair_transfer *t = map_get(&s->incoming, transfer);
        bool begun = t && offset % FRAME_PLAIN_MAX && arrivals_meet(&t->placed, offset - 1, offset);
        if (!inlined && (!t || (!begun && rng_chance(&s->pair->rng, s->hold_places)))) {
                s->places_refused++;
                return SP_E_AGAIN;
        }
        must(t && offset + *len <= t->total && *len > 0);
        size_t left = piece_left(t, offset),
               again = inlined ? come_again(s, &t->placed, offset, *len) : 0;
        *len = again && again < *len ? again : *len;
        *len = *len < left ? *len : left;
        *ret = t->data + offset;
        if (again)
                return 0;
        must(!arrivals_meet(&t->placed, offset, offset + *len));
        return arrivals_add(&t->placed, offset, offset + *len);
}

static int on_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                      uint64_t *ret_below)
{
        struct pair_side *s = user;
        struct pair_transfer *t = map_get(&s->incoming, transfer);
        must(t && len > 0);
        if (s->pair->check_data)
                for (uint64_t k = offset; k < offset + len; k++)
                        must(t->data[k] == byte_at(transfer, k));
        if (!come_again(s, &t->came, offset, len))
                must(arrivals_add(&t->came, offset, offset + len) == 0);
        *ret_below = t->came.below;
        return t->came.below == t->total;
}

static int on_restart(void *user)
{
        struct pair_side *s = user;
        struct pair_transfer *t;
        int r = 0;
        for (size_t pos = 0; r == 0 && (t = map_next(&s->incoming, &pos));) {
                arrivals_fini(&t->came);
                arrivals_fini(&t->placed);
                t->placed.below = t->came.below;
                r = session_ack(s->session, t->id, t->came.below);
        }
        return r;
}

static const struct session_ops ops = { on_message, on_place, on_arrived, on_restart, on_part };

/* ---- what is sent --------------------------------------------------------------------------- */

static const void *bulk_at(struct session_bulk *b, uint64_t offset, size_t *ret_len)
{
        struct pair_transfer *t = container_of(b, struct pair_transfer, bulk);
        must(offset < t->total && offset >= t->passed && !t->done);
        *ret_len = piece_left(t, offset);
        return t->data + offset;
}

static void bulk_passed(struct session_bulk *b, uint64_t offset)
{
        struct pair_transfer *t = container_of(b, struct pair_transfer, bulk);
        must(!t->done && offset >= t->passed && offset <= t->total);
        memset(t->data + t->passed, 0xDD, offset - t->passed);
        t->passed = offset;
}

static void bulk_done(struct session_bulk *b, int status)
{
        struct pair_transfer *t = container_of(b, struct pair_transfer, bulk);
        must(!t->done);
        t->done++;
        t->status = status;
        t->side->ended++;
        /* The owner has the bytes back. They are freed, so that a later read is caught. */
        mem_free(t->data);
        t->data = NULL;
}

int pair_send(struct pair *p, int i, size_t size)
{
        struct pair_side *s = &p->side[i];
        uint8_t *text = mem_alloc(8 + size);
        if (!text)
                return SP_E_NOMEM;
        bytes_put_u64(text, s->sent);
        for (size_t k = 8; k < 8 + size; k++)
                text[k] = (uint8_t)(k + s->sent);
        int r = session_send(s->session, output, .text = bytes_of(text, 8 + size));
        mem_free(text);
        if (!r)
                s->sent++;
        return r;
}

int pair_bulk(struct pair *p, int i, uint64_t total, uint64_t ready, size_t piece,
              struct pair_transfer **ret)
{
        struct pair_side *s = &p->side[i];
        uint64_t id = p->next_transfer++;
        struct pair_transfer *t = transfer_new(s, id, total, piece);
        if (!t)
                return SP_E_NOMEM;
        for (uint64_t k = 0; k < total; k++)
                t->data[k] = byte_at(id, k);
        t->bulk = (struct session_bulk){
                .transfer = id,
                .total = total,
                .at = bulk_at,
                .done = bulk_done,
                .passed = bulk_passed,
        };
        int r = map_put(&s->outgoing, id, t);
        if (r < 0) {
                transfer_free(t);
                return r;
        }
        r = session_send(s->session, buffer_write, .event = object_id(OBJECT_EVENT, id),
                         .queue = object_id(OBJECT_QUEUE, 1), .buffer = object_id(OBJECT_BUFFER, 1),
                         .offset = piece, .size = total, .transfer = id);
        if (!r) {
                s->began++;
                r = session_bulk_send(s->session, &t->bulk, ready);
                if (r < 0)
                        s->began--;
        }
        if (r < 0) {
                must(!t->done);
                map_del(&s->outgoing, id);
                transfer_free(t);
                return r;
        }
        if (ret)
                *ret = t;
        return 0;
}

void pair_ready(struct pair_transfer *t, uint64_t ready)
{
        session_bulk_ready(t->side->session, &t->bulk, ready);
}

/* ---- moving bytes --------------------------------------------------------------------------- */

int pair_push(struct pair *p, int i, unsigned lane, size_t max)
{
        struct pair_side *s = &p->side[i];
        struct pipe *pipe = &s->out[lane];
        struct iovec iov[5];
        size_t taken = 0;
        int n = session_lane_pending(s->session, lane, iov, (int)rng_range(&p->rng, 2, 5));
        if (n > 0 && lane && packed_frames_pack(&p->packed_frames, &p->rng, s->session, lane))
                n = session_lane_pending(s->session, lane, iov, 2);
        if (n < 0)
                return n;
        if (pipe->room && pipe->bytes.size + max > pipe->room)
                max = pipe->room - pipe->bytes.size;
        for (int k = 0; k < n && taken < max; k++) {
                must(iov[k].iov_len > 0);
                size_t len = iov[k].iov_len < max - taken ? iov[k].iov_len : max - taken;
                if (buf_put(&pipe->bytes, iov[k].iov_base, len) < 0)
                        break; /* like a socket that takes no more */
                taken += len;
        }
        if (taken)
                session_lane_sent(s->session, lane, taken);
        return (int)taken;
}

int pair_pull(struct pair *p, int i, unsigned lane, size_t max)
{
        struct pair_side *s = &p->side[i];
        struct pipe *pipe = &p->side[!i].out[lane];
        struct iovec iov[2];
        size_t given = 0;
        if (pipe->stop_at && max > pipe->stop_at - pipe->passed)
                max = (size_t)(pipe->stop_at - pipe->passed);
        if (!pipe->bytes.size || !max)
                return 0;
        int n = session_lane_want(s->session, lane, iov);
        if (n < 0)
                return n;
        for (int k = 0; k < n && given < max && given < pipe->bytes.size; k++) {
                must(iov[k].iov_len > 0);
                size_t len = iov[k].iov_len;
                len = len < max - given ? len : max - given;
                len = len < pipe->bytes.size - given ? len : pipe->bytes.size - given;
                memcpy(iov[k].iov_base, pipe->bytes.data + given, len);
                given += len;
        }
        if (!given)
                return 0;
        buf_consume(&pipe->bytes, given);
        pipe->passed += given;
        int r = session_lane_received(s->session, lane, given);
        r = packed_frames_unpack(&p->packed_frames, s->session, lane, r);
        return r < 0 ? r : (int)given;
}

/* The lane is up on both sides. */
static void agree_to_pack(struct pair *p, unsigned lane)
{
        bool packs = rng_chance(&p->rng, p->packs);
        for (int i = 0; packs && i < 2; i++)
                session_lane_packs(p->side[i].session, lane);
}

static size_t any_amount(struct rng *rng)
{
        switch (rng_below(rng, 4)) {
        case 0:
                return rng_range(rng, 1, 30);
        case 1:
                return rng_range(rng, 1, 3000);
        case 2:
                return rng_range(rng, 1, 200000);
        default:
                return SIZE_MAX / 2;
        }
}

enum { STEPS = 4 * SESSION_LANES };

/* One step of these: push or pull, at a side, on a lane. */
static int step(struct pair *p, unsigned what, size_t max)
{
        return what & 2 ? pair_push(p, what & 1, what / 4, max)
                        : pair_pull(p, what & 1, what / 4, max);
}

int pair_settle(struct pair *p)
{
        for (;;) {
                for (unsigned idle = 0; idle < 2 * STEPS;) {
                        /* A place that was refused at random is worth another try. */
                        if (rng_chance(&p->rng, 20))
                                session_bulk_retry(p->side[rng_below(&p->rng, 2)].session);
                        int r = step(p, (unsigned)rng_below(&p->rng, STEPS), any_amount(&p->rng));
                        if (r < 0)
                                return r;
                        idle = r ? 0 : idle + 1;
                }
                int moved = 0;
                for (unsigned what = 0; what < STEPS; what++) {
                        struct pair_side *s = &p->side[what & 1];
                        s->hold_places = 0;
                        session_bulk_retry(s->session);
                        int r = step(p, what, SIZE_MAX / 2);
                        if (r < 0)
                                return r;
                        moved |= r;
                }
                if (!moved)
                        return 0;
        }
}

void pair_cut(struct pair *p)
{
        for (int i = 0; i < 2; i++) {
                session_lane_down(p->side[i].session, 0);
                p->side[i].out[0].bytes.size = 0;
        }
}

int pair_reattach(struct pair *p)
{
        uint64_t next[2];
        for (int i = 0; i < 2; i++) {
                p->side[i].out[0].passed = p->side[i].out[0].stop_at = 0;
                next[i] = session_next_seq(p->side[i].session);
        }
        for (int i = 0; i < 2; i++) {
                int r = session_lane_up(p->side[i].session, 0, next[!i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The first `size` bytes of what came right behind a hello. */
static int hear_early(struct pair *p, struct session *s, const struct buf *early, size_t size)
{
        for (size_t at = 0; at < size;) {
                struct iovec iov[2];
                int r = session_lane_want(s, 0, iov);
                if (r < 0)
                        return r;
                size_t len = rng_range(&p->rng, 1, size - at);
                len = iov[0].iov_len < len ? iov[0].iov_len : len;
                memcpy(iov[0].iov_base, early->data + at, len);
                at += len;
                r = session_lane_received(s, 0, len);
                if (r < 0)
                        return r;
        }
        return 0;
}

int pair_reattach_early(struct pair *p, int i, size_t max, bool answered)
{
        struct session *from = p->side[i].session, *to = p->side[!i].session;
        auto_clean(buf_fini) struct buf early = { 0 };
        for (int k = 0; k < 2; k++)
                p->side[k].out[0].passed = p->side[k].out[0].stop_at = 0;
        int r = session_early(from, max, &early);
        must(early.size <= max);
        uint64_t next = session_next_seq(to);
        if (!r)
                r = session_lane_up(to, 0, session_next_seq(from));
        if (!r)
                r = hear_early(p, to, &early,
                               answered ? early.size : rng_below(&p->rng, early.size + 1));
        if (!r && !answered)
                session_lane_down(to, 0);
        if (!r && answered)
                r = session_lane_up(from, 0, next);
        if (!r && answered)
                session_early_sent(from);
        return r;
}

void pair_cut_all(struct pair *p)
{
        for (int i = 0; i < 2; i++) {
                for (unsigned lane = 1; lane < SESSION_LANES; lane++) {
                        pair_pull(p, i, lane, any_amount(&p->rng));
                        session_lane_down(p->side[i].session, lane);
                }
        }
        for (int i = 0; i < 2; i++)
                for (unsigned lane = 1; lane < SESSION_LANES; lane++)
                        p->side[i].out[lane].bytes.size = 0;
        pair_cut(p);
}

int pair_reattach_all(struct pair *p)
{
        uint64_t generation = session_generation(p->side[0].session) + 1;
        int r = pair_reattach(p);
        for (int i = 0; i < 2 && r == 0; i++)
                r = session_resume(p->side[i].session, generation);
        for (int i = 0; i < 2 && r == 0; i++)
                for (unsigned lane = 1; lane < SESSION_LANES && r == 0; lane++)
                        r = session_lane_up(p->side[i].session, lane, 0);
        for (unsigned lane = 1; lane < SESSION_LANES && r == 0; lane++)
                agree_to_pack(p, lane);
        return r;
}

/* ---- all ------------------------------------------------------------------------------------ */

int pair_init(struct pair *p, const struct pair_params *params)
{
        *p = (struct pair){ .rng = { params->seed },
                            .next_transfer = 1,
                            .check_data = true,
                            .packs = params->packs };
        for (int i = 0; i < 2; i++) {
                struct pair_side *s = &p->side[i];
                s->pair = p;
                s->little = params->in_bytes[i];
                for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                        s->out[lane].room = params->pipe_room;
                if (session_new(&(struct session_params){ .ops = &ops,
                                                          .user = s,
                                                          .window_bytes = params->window_bytes[i],
                                                          .in_bytes = params->in_bytes[i],
                                                          .out_bytes = params->in_bytes[i],
                                                          .inline_bytes = params->inline_bytes,
                                                          .wide_bytes = params->wide_bytes },
                                &s->session) < 0)
                        return -1;
                for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                        must(session_lane_up(s->session, lane, 0) == 0);
        }
        for (unsigned lane = 1; lane < SESSION_LANES; lane++)
                agree_to_pack(p, lane);
        return 0;
}

static void free_transfers(struct map *m)
{
        struct pair_transfer *t;
        for (size_t pos = 0; (t = map_next(m, &pos));)
                transfer_free(t);
        map_fini(m);
}

void pair_fini(struct pair *p)
{
        for (int i = 0; i < 2; i++) {
                struct pair_side *s = &p->side[i];
                s->session = session_free(s->session);
                buf_fini(&s->parts);
                must(s->began == s->ended);
                for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                        buf_fini(&s->out[lane].bytes);
                free_transfers(&s->outgoing);
                free_transfers(&s->incoming);
        }
        packed_frames_fini(&p->packed_frames);
}

void pair_check_complete(const struct pair *p)
{
        for (int i = 0; i < 2; i++) {
                const struct pair_side *s = &p->side[i], *other = &p->side[!i];
                must(other->received == s->sent);
                must(s->began == s->ended);
                must(!session_unsent(s->session));
                must(!session_bulk_pending(s->session));
                must(other->incoming.count == s->outgoing.count);
                const struct pair_transfer *t;
                for (size_t pos = 0; (t = map_next(&s->outgoing, &pos));) {
                        const struct pair_transfer *in = map_get(&other->incoming, t->id);
                        must(t->done == 1 && t->status == 0);
                        must(in && in->came.below == in->total);
                }
        }
}
