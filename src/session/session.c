#include "session/session.h"

#include <assert.h>

#include "base/mem.h"
#include "session/parcel.h"

enum {
        IN_CHUNK = 64 << 10,
        ACK_EVERY = 64 << 10,  /* received bytes after which an ACK frame is due */
        SHARE_MIN = 512 << 10, /* bytes of a frame when several lanes share a transfer */
        SHARE_MAX = 1 << 20,
        /* Bytes of a transfer that may lack acknowledgement: full frames then, far below ARRIVALS_MAX. */
        BULK_AHEAD = 64 << 20,
        BULK_ACK_EVERY = 1 << 20,
        BUFFER_KEPT = 1 << 20, /* a larger buffer is given back once it is empty */
};

/* The frame being sent on a lane. */
struct sending {
        uint8_t header[FRAME_HEADER_SIZE];
        size_t header_left;        /* bytes of the header not sent yet */
        uint64_t at;               /* lane 0: offset in the outbox; bulk: offset in the transfer */
        size_t left;               /* payload bytes not sent yet */
        size_t size;               /* bytes in all; packed: that it holds */
        const uint8_t *packed;     /* what is sent of it instead; `at` stays where it begins */
        uint64_t seq;              /* lane 0: of the first message */
        struct session_bulk *bulk; /* NULL between frames */
};

/* The bulk frame being received on a lane. */
struct receiving {
        uint8_t header[FRAME_HEADER_SIZE];
        size_t header_have;
        struct frame frame;
        uint64_t offset; /* of the next byte in the transfer */
        size_t left;     /* payload bytes to come */
        uint8_t *place;  /* of the next `placed` bytes */
        size_t placed;
        uint64_t run; /* offset where the bytes placed in one piece began */
        bool waiting;
};

/* What had arrived of a bulk frame when its connection was lost: bytes [run, end) are in their place, but
 * were not reported. */
struct remnant {
        uint64_t transfer, run, end; /* transfer 0: none */
};

struct lane {
        bool up;
        struct sending tx;
        struct receiving rx; /* lanes from 1 on */
        struct remnant remnant;
        struct parcel parcel;
        bool packs; /* FRAME_PACKED may be on it */
        bool small; /* session_lane_small */
};

struct session {
        struct session_params params;
        int status; /* 0, or why it ended */
        struct session_stats stats;

        /* Outgoing messages from seq out_base (at out_head) to out_next (at out.size). */
        struct buf out;
        size_t out_head;
        size_t out_end; /* end of what is committed */
        uint64_t out_base, out_next;
        size_t out_sent; /* offset of the first byte that no frame holds */
        uint64_t out_at; /* where in the stream of all messages offset 0 is */
        uint64_t framed; /* where the part of it begins that no frame ever held */
        uint64_t out_sent_seq;
        uint64_t early_at,
                early_seq; /* as out_at and out_next: the end of what session_early gave last */

        /* Incoming messages. */
        struct buf in;
        size_t in_head;
        uint64_t in_next;
        size_t in_unacked; /* bytes received since the last ack we sent */

        /* Every transfer going out is in one of these. */
        struct list bulks;   /* with bytes that may be framed now, in order of start */
        struct list stalled; /* all that is ready is framed, more will be ready later */
        struct list unacked; /* framed whole, not acknowledged */
        struct lane lanes[SESSION_LANES];
        uint64_t generation; /* of the connections */
        bool bulk_held;      /* until the other side has told what it has */
};

int session_new(const struct session_params *params, struct session **ret)
{
        struct session *s = mem_zalloc(sizeof(*s));
        if (!s)
                return SP_E_NOMEM;
        s->params = *params;
        if (!s->params.window_bytes)
                s->params.window_bytes = SESSION_WINDOW_DEFAULT;
        if (!s->params.inline_bytes)
                s->params.inline_bytes = SESSION_INLINE_DEFAULT;
        list_init(&s->bulks);
        list_init(&s->stalled);
        list_init(&s->unacked);
        *ret = s;
        return 0;
}

static void fail_bulks(struct list *bulks, int status)
{
        while (!list_empty(bulks)) {
                struct session_bulk *b = list_entry(bulks->next, struct session_bulk, link);
                list_remove(&b->link);
                b->done(b, status);
        }
}

struct session *session_free(struct session *s)
{
        if (!s)
                return NULL;
        if (!s->status)
                s->status = SP_E_GONE; /* what a done() starts now ends at once */
        fail_bulks(&s->unacked, s->status);
        fail_bulks(&s->bulks, s->status);
        fail_bulks(&s->stalled, s->status);
        for (unsigned i = 1; i < SESSION_LANES; i++)
                parcel_fini(&s->lanes[i].parcel);
        buf_fini(&s->out);
        buf_fini(&s->in);
        mem_free(s);
        return NULL;
}

const struct session_stats *session_get_stats(const struct session *s)
{
        return &s->stats;
}

void session_count_fabric(struct session *s, uint64_t sent, uint64_t received)
{
        s->stats.fabric_sent += sent;
        s->stats.fabric_received += received;
}

/* ---- outgoing messages ---------------------------------------------------------------------- */

static bool is_sending(const struct sending *tx)
{
        return tx->header_left || tx->left;
}

/* Give back the room of acknowledged messages once it is worth moving the rest. A frame in flight is
 * never acknowledged (out_acked), so it lies behind out_head. */
static void out_compact(struct session *s)
{
        size_t head = s->out_head;
        if (!head || (head != s->out.size && (head < IN_CHUNK || head < s->out.size / 2)))
                return;
        buf_consume(&s->out, head);
        s->out_head = 0;
        s->out_at += head;
        s->out_end -= head;
        s->out_sent -= head;
        if (s->lanes[0].tx.left)
                s->lanes[0].tx.at -= head;
        if (!s->out.size && s->out.cap > BUFFER_KEPT)
                buf_fini(&s->out);
}

struct buf *session_outbox(struct session *s)
{
        out_compact(s);
        return &s->out;
}

int session_commit(struct session *s, int put_result)
{
        if (!put_result)
                put_result = s->status;
        if (put_result < 0) {
                s->out.size = s->out_end;
                return put_result;
        }
        s->out_end = s->out.size;
        s->out_next++;
        return 0;
}

uint64_t session_position(const struct session *s)
{
        return s->out_at + s->out_end;
}

uint8_t *session_unsent_at(struct session *s, uint64_t position)
{
        bool there = position >= s->framed && position < session_position(s);
        return there ? s->out.data + (position - s->out_at) : NULL;
}

bool session_has_room(const struct session *s)
{
        return s->out.size - s->out_head < s->params.window_bytes;
}

size_t session_unsent(const struct session *s)
{
        return s->out.size - s->out_sent;
}

/* The other side has received everything below `ack`. What lies in a frame not sent whole it can't
 * have. */
static int out_acked(struct session *s, uint64_t ack)
{
        const struct sending *tx = &s->lanes[0].tx;
        uint64_t sent = is_sending(tx) ? tx->seq : s->out_sent_seq;
        if (ack > sent || ack < s->out_base)
                return SP_E_PROTO;
        while (s->out_base < ack) {
                s->out_head += wire_message_size(s->out.data + s->out_head);
                s->out_base++;
        }
        return 0;
}

/* Put unsent messages, up to the target size, into the frame to send. */
static void seal_data(struct session *s)
{
        size_t size = s->out.size - s->out_sent;
        uint64_t count = s->out_next - s->out_sent_seq;
        if (size > FRAME_DATA_TARGET || count > FRAME_COUNT_MAX) {
                size = 0;
                count = 0;
                while (s->out_sent + size < s->out.size && count < FRAME_COUNT_MAX) {
                        size_t m = wire_message_size(s->out.data + s->out_sent + size);
                        if (count && size + m > FRAME_DATA_TARGET)
                                break;
                        size += m;
                        count++;
                }
        }
        struct sending *tx = &s->lanes[0].tx;
        struct frame f = {
                .size = (uint32_t)size,
                .type = count ? FRAME_DATA : FRAME_ACK,
                .count = (uint16_t)count,
                .seq = count ? s->out_sent_seq : 0,
                .ack = s->in_next,
        };
        frame_put(tx->header, &f);
        tx->header_left = FRAME_HEADER_SIZE;
        tx->at = s->out_sent;
        tx->left = tx->size = size;
        tx->seq = s->out_sent_seq;
        s->out_sent += size;
        s->out_sent_seq += count;
        if (s->out_at + s->out_sent > s->framed)
                s->framed = s->out_at + s->out_sent;
        s->in_unacked = 0;
        s->stats.frames_sent++;
        s->stats.messages_sent += count;
}

/* For a frame that is yet to be made. */
static bool has_data(const struct session *s)
{
        return s->out_sent != s->out.size || s->in_unacked >= ACK_EVERY ||
               s->in_unacked > s->params.window_bytes / 4;
}

static int pending_data(struct session *s, struct iovec *ret)
{
        struct sending *tx = &s->lanes[0].tx;
        if (!is_sending(tx)) {
                if (!has_data(s))
                        return 0;
                seal_data(s);
        }
        int n = 0;
        if (tx->header_left)
                ret[n++] = (struct iovec){ tx->header + FRAME_HEADER_SIZE - tx->header_left,
                                           tx->header_left };
        if (tx->left)
                ret[n++] = (struct iovec){ s->out.data + tx->at, tx->left };
        return n;
}

/* ---- outgoing bulk -------------------------------------------------------------------------- */

/* The transfer's bytes from `offset` on, cut to `max`. */
static struct bytes bulk_piece(struct session_bulk *b, uint64_t offset, uint64_t max)
{
        size_t len = 0;
        const void *p = b->at(b, offset, &len);
        return bytes_of(p, len < max ? len : (size_t)max);
}

static int send_inline(struct session *s, struct session_bulk *b)
{
        size_t total = (size_t)b->total;
        struct bytes data = bulk_piece(b, 0, total);
        if (data.size == total)
                return session_send(s, transfer_data, .transfer = b->transfer, .data = data);

        uint8_t *whole = mem_alloc(total);
        if (!whole)
                return SP_E_NOMEM;
        for (size_t o = 0; o < total; o += data.size) {
                data = bulk_piece(b, o, total - o);
                memcpy(whole + o, data.data, data.size);
        }
        int r = session_send(s, transfer_data, .transfer = b->transfer,
                             .data = bytes_of(whole, total));
        mem_free(whole);
        return r;
}

int session_bulk_send(struct session *s, struct session_bulk *b, uint64_t ready)
{
        list_init(&b->link);
        b->ready = ready;
        b->framed = b->acked = 0;
        b->again_count = 0;
        if (s->status) {
                b->done(b, s->status);
                return 0;
        }
        if (ready == b->total && b->total <= s->params.inline_bytes &&
            b->total <= WIRE_INLINE_MAX) {
                int r = send_inline(s, b);
                if (r < 0)
                        return r;
                b->done(b, 0);
                return 0;
        }
        list_append(ready ? &s->bulks : &s->stalled, &b->link);
        return 0;
}

/* Bytes below it may be framed. */
static uint64_t sendable(const struct session_bulk *b)
{
        uint64_t most = b->acked + BULK_AHEAD;
        return most > b->acked && most < b->ready ? most : b->ready;
}

/* Is it in the list `stalled`? */
static bool is_stalled(const struct session_bulk *b)
{
        return b->framed == sendable(b) && b->framed < b->total && !b->again_count;
}

static void bulk_go_on(struct session *s, struct session_bulk *b)
{
        list_remove(&b->link);
        list_append(&s->bulks, &b->link);
}

void session_bulk_ready(struct session *s, struct session_bulk *b, uint64_t ready)
{
        bool stalled = is_stalled(b);
        b->ready = ready;
        if (stalled && !is_stalled(b))
                bulk_go_on(s, b);
}

bool session_bulk_pending(const struct session *s)
{
        if (s->bulk_held)
                return false;
        for (unsigned i = 1; i < SESSION_LANES; i++)
                if (is_sending(&s->lanes[i].tx))
                        return true;
        return !list_empty(&s->bulks);
}

/* How much of the transfer one frame takes: each lane gets its share. */
static uint64_t share(const struct session *s, const struct session_bulk *b)
{
        uint64_t lanes = 0;
        for (unsigned i = 1; i < SESSION_LANES; i++)
                lanes += s->lanes[i].up;
        if (lanes < 2)
                return FRAME_BULK_MAX;
        uint64_t size = (b->total / lanes + 4095) & ~4095ull;
        return size < SHARE_MIN ? SHARE_MIN : size > SHARE_MAX ? SHARE_MAX : size;
}

size_t session_bulk_frames(const struct session *s, size_t max)
{
        size_t n = 0;
        for (const struct list *l = s->bulks.next; l != &s->bulks && n < max; l = l->next) {
                const struct session_bulk *b = list_entry(l, const struct session_bulk, link);
                uint64_t most = share(s, b);
                n += b->again_count + (size_t)((sendable(b) - b->framed + most - 1) / most);
        }
        return n < max ? n : max;
}

/* Of [at, at + size): so much that a frame of it can be packed, or just the few bytes that can't. */
static uint64_t small_share(uint64_t at, uint64_t size)
{
        uint64_t most = FRAME_PLAIN_MAX - at % FRAME_PLAIN_MAX;
        size = size < most ? size : most;
        return size < 8 ? size : size & ~7ull;
}

static void seal_bulk(struct session *s, struct lane *lane, struct session_bulk *b)
{
        struct sending *tx = &lane->tx;
        uint64_t at = b->framed, size = sendable(b) - at, most = share(s, b);
        if (b->again_count) {
                at = b->again[--b->again_count].begin;
                size = b->again[b->again_count].end - at;
        } else {
                size = lane->small ? small_share(at, size) : size < most ? size : most;
                b->framed += size;
        }
        struct frame f = {
                .size = (uint32_t)size,
                .type = FRAME_BULK,
                .seq = b->transfer,
                .ack = at,
        };
        frame_put(tx->header, &f);
        tx->header_left = FRAME_HEADER_SIZE;
        tx->at = at;
        tx->left = tx->size = (size_t)size;
        tx->packed = NULL;
        tx->bulk = b;
        if (b->framed == sendable(b) && !b->again_count) {
                list_remove(&b->link);
                list_append(b->framed == b->total ? &s->unacked : &s->stalled, &b->link);
        }
        s->stats.frames_sent++;
}

static int pending_bulk(struct session *s, struct lane *lane, struct iovec *ret, int max)
{
        struct sending *tx = &lane->tx;
        if (s->bulk_held)
                return 0;
        if (!is_sending(tx)) {
                if (list_empty(&s->bulks))
                        return 0;
                seal_bulk(s, lane, list_entry(s->bulks.next, struct session_bulk, link));
        }
        int n = 0;
        if (tx->header_left)
                ret[n++] = (struct iovec){ tx->header + FRAME_HEADER_SIZE - tx->header_left,
                                           tx->header_left };
        if (tx->packed && tx->left)
                ret[n++] = (struct iovec){ (void *)(uintptr_t)tx->packed, tx->left };
        for (size_t o = 0; !tx->packed && o < tx->left && n < max;) {
                struct bytes piece = bulk_piece(tx->bulk, tx->at + o, tx->left - o);
                ret[n++] = (struct iovec){ (void *)(uintptr_t)piece.data, piece.size };
                o += piece.size;
        }
        return n;
}

/* The other side has it all and no lane reads from it any more. */
static void bulk_done(struct session_bulk *b)
{
        list_remove(&b->link);
        b->done(b, 0);
}

static bool bulk_on_lane(const struct session *s, const struct session_bulk *b)
{
        for (unsigned i = 1; i < SESSION_LANES; i++)
                if (s->lanes[i].tx.bulk == b)
                        return true;
        return false;
}

/* A receiver in this process may have bytes before session_lane_sent says that they were sent. */
static void bulk_passed(const struct session *s, struct session_bulk *b)
{
        uint64_t offset = b->acked;
        if (!b->passed)
                return;
        for (unsigned i = 1; i < SESSION_LANES; i++)
                if (s->lanes[i].tx.bulk == b && s->lanes[i].tx.at < offset)
                        offset = s->lanes[i].tx.at;
        for (unsigned i = 0; i < b->again_count; i++)
                if (b->again[i].begin < offset)
                        offset = b->again[i].begin;
        b->passed(b, offset);
}

static bool bulk_acked_in(struct session *s, struct list *bulks, uint64_t transfer,
                          uint64_t received)
{
        list_each(b, bulks, struct session_bulk, link)
        {
                if (b->transfer != transfer || received > b->framed)
                        continue;
                bool stalled = is_stalled(b);
                if (received > b->acked)
                        b->acked = received;
                if (stalled && !is_stalled(b))
                        bulk_go_on(s, b);
                /* While it is on a lane, session_lane_sent ends the transfer. */
                if (b->acked == b->total && !bulk_on_lane(s, b))
                        bulk_done(b);
                else
                        bulk_passed(s, b);
                return true;
        }
        return false;
}

/* Whole transfers are acknowledged in the order in which they were sent: the first is it. */
static void bulk_acked(struct session *s, uint64_t transfer, uint64_t received)
{
        if (!bulk_acked_in(s, &s->unacked, transfer, received) &&
            !bulk_acked_in(s, &s->bulks, transfer, received))
                bulk_acked_in(s, &s->stalled, transfer, received);
}

/* Send again what is not acknowledged, the oldest first. */
static void restart_bulks(struct session *s)
{
        struct list *from[] = { &s->unacked, &s->bulks, &s->stalled }, all = { &all, &all };
        for (size_t i = 0; i < array_size(from); i++)
                while (!list_empty(from[i])) {
                        struct list *first = from[i]->next;
                        list_remove(first);
                        list_append(&all, first);
                }
        while (!list_empty(&all)) {
                struct session_bulk *b = list_entry(all.next, struct session_bulk, link);
                list_remove(&b->link);
                b->framed = b->acked;
                b->again_count = 0;
                list_append(b->framed < sendable(b) ? &s->bulks : &s->stalled, &b->link);
        }
}

static int take_resume(struct session *s, uint64_t generation)
{
        if (generation > s->generation)
                return SP_E_PROTO;
        if (generation < s->generation || !s->bulk_held)
                return 0; /* of connections that were lost, too */
        s->bulk_held = false;
        restart_bulks(s);
        return 0;
}

/* ---- sending on lanes ----------------------------------------------------------------------- */

int session_lane_pending(struct session *s, unsigned lane, struct iovec *ret, int max)
{
        if (s->status || !s->lanes[lane].up)
                return 0;
        return lane ? pending_bulk(s, &s->lanes[lane], ret, max) : pending_data(s, ret);
}

bool session_lane_has_pending(const struct session *s, unsigned lane)
{
        const struct lane *l = &s->lanes[lane];
        if (s->status || !l->up || (lane && s->bulk_held))
                return false;
        return is_sending(&l->tx) || (lane ? !list_empty(&s->bulks) : has_data(s));
}

void session_lane_sent(struct session *s, unsigned lane, size_t size)
{
        struct sending *tx = &s->lanes[lane].tx;
        size_t h = size < tx->header_left ? size : tx->header_left;
        tx->header_left -= h;
        size -= h;
        if (tx->packed)
                tx->packed += size;
        else
                tx->at += size;
        tx->left -= size;
        if (!lane) {
                s->stats.bytes_sent += h + size;
                return;
        }
        s->stats.bulk_sent += h + size;
        struct session_bulk *b = tx->bulk;
        if (b && !is_sending(tx)) {
                tx->bulk = NULL;
                if (b->acked == b->total && !bulk_on_lane(s, b))
                        bulk_done(b);
        }
}

/* ---- packed frames -------------------------------------------------------------------------- */

void session_lane_packs(struct session *s, unsigned lane)
{
        s->lanes[lane].packs = s->lanes[lane].up;
}

void session_lane_small(struct session *s, unsigned lane, bool small)
{
        s->lanes[lane].small = small;
}

size_t session_lane_fresh(const struct session *s, unsigned lane)
{
        const struct lane *l = &s->lanes[lane];
        bool fresh = l->packs && l->tx.bulk && l->tx.header_left == FRAME_HEADER_SIZE;
        return fresh && !l->tx.packed ? l->tx.size : 0;
}

bool session_lane_packable(const struct session *s, unsigned lane)
{
        size_t size = session_lane_fresh(s, lane);
        return size && size == small_share(s->lanes[lane].tx.at, size) && size % 8 == 0;
}

void session_lane_copy(const struct session *s, unsigned lane, void *ret)
{
        const struct sending *tx = &s->lanes[lane].tx;
        uint8_t *p = ret;
        for (size_t o = 0; o < tx->size;) {
                struct bytes piece = bulk_piece(tx->bulk, tx->at + o, tx->size - o);
                memcpy(p + o, piece.data, piece.size);
                o += piece.size;
        }
}

void session_lane_pack(struct session *s, unsigned lane, struct bytes packed)
{
        struct sending *tx = &s->lanes[lane].tx;
        assert(session_lane_packable(s, lane) && packed.size && packed.size < tx->size);
        struct frame f = {
                .size = (uint32_t)packed.size,
                .type = FRAME_BULK,
                .flags = FRAME_PACKED,
                .count = (uint16_t)(tx->size / 8),
                .seq = tx->bulk->transfer,
                .ack = tx->at,
        };
        frame_put(tx->header, &f);
        tx->packed = packed.data;
        tx->left = packed.size;
}

/* ---- incoming ------------------------------------------------------------------------------- */

static int take_inline(struct session *s, struct bytes msg)
{
        struct wire_transfer_data m;
        int r = wire_get_transfer_data(msg, &m);
        if (r < 0)
                return r;
        const uint8_t *p = m.data.data;
        for (size_t o = 0; o < m.data.size;) {
                size_t len = m.data.size - o;
                uint64_t below;
                void *place;
                r = s->params.ops->bulk_place(s->params.user, m.transfer, m.offset + o, true, &len,
                                              &place);
                if (r < 0)
                        return r == SP_E_AGAIN ? SP_E_PROTO : r;
                assert(len > 0 && len <= m.data.size - o);
                memcpy(place, p + o, len);
                r = s->params.ops->bulk_arrived(s->params.user, m.transfer, m.offset + o, len,
                                                &below);
                if (r < 0)
                        return r;
                o += len;
        }
        return 0;
}

static int take_message(struct session *s, struct bytes msg)
{
        s->stats.messages_received++;
        switch (wire_message_id(msg.data)) {
        case WIRE_transfer_data:
                return take_inline(s, msg);
        case WIRE_transfer_ack: {
                struct wire_transfer_ack m;
                int r = wire_get_transfer_ack(msg, &m);
                if (!r)
                        bulk_acked(s, m.transfer, m.received);
                return r;
        }
        case WIRE_bulk_resume: {
                struct wire_bulk_resume m;
                int r = wire_get_bulk_resume(msg, &m);
                return r ? r : take_resume(s, m.generation);
        }
        default:
                return s->params.ops->message(s->params.user, msg);
        }
}

static int take_frame(struct session *s, const struct frame *f, const uint8_t *p)
{
        s->stats.frames_received++;
        int r = out_acked(s, f->ack);
        if (r < 0)
                return r;
        if (f->type == FRAME_ACK)
                return 0;
        if (f->seq > s->in_next)
                return SP_E_PROTO;
        size_t left = f->size;
        for (uint64_t seq = f->seq; seq < f->seq + f->count; seq++) {
                size_t size = left >= WIRE_HEADER_SIZE ? wire_message_size(p) : 0;
                if (size < WIRE_HEADER_SIZE || size > left || size % 8)
                        return SP_E_PROTO;
                if (seq == s->in_next) { /* else: a repetition of what we have */
                        s->in_next++;
                        s->in_unacked += size;
                        r = take_message(s, bytes_of(p, size));
                        if (r < 0)
                                return r;
                }
                p += size;
                left -= size;
        }
        return left ? SP_E_PROTO : 0;
}

static int received_data(struct session *s, size_t size)
{
        s->in.size += size;
        s->stats.bytes_received += size;
        for (;;) {
                size_t have = s->in.size - s->in_head;
                struct frame f;
                if (have < FRAME_HEADER_SIZE)
                        break;
                int r = frame_get(s->in.data + s->in_head, &f);
                if (r < 0)
                        return r;
                if (f.type != FRAME_DATA && f.type != FRAME_ACK)
                        return SP_E_PROTO;
                if (have - FRAME_HEADER_SIZE < f.size)
                        break;
                const uint8_t *payload = s->in.data + s->in_head + FRAME_HEADER_SIZE;
                s->in_head += FRAME_HEADER_SIZE + f.size;
                r = take_frame(s, &f, payload);
                if (r < 0)
                        return r;
        }
        if (s->in_head == s->in.size) {
                s->in_head = s->in.size = 0;
                if (s->in.cap > BUFFER_KEPT)
                        buf_fini(&s->in);
        }
        return 0;
}

static int want_data(struct session *s, struct iovec *ret)
{
        if (s->in_head && s->in.cap - s->in.size < IN_CHUNK / 2) {
                buf_consume(&s->in, s->in_head);
                s->in_head = 0;
        }
        if (s->in.cap - s->in.size < IN_CHUNK / 2) {
                int r = buf_reserve(&s->in, IN_CHUNK);
                if (r < 0)
                        return r;
        }
        ret[0] = (struct iovec){ s->in.data + s->in.size, s->in.cap - s->in.size };
        return 1;
}

static bool is_packed(const struct receiving *rx)
{
        return rx->header_have == FRAME_HEADER_SIZE && rx->frame.flags;
}

static int place_bulk(struct session *s, struct lane *l)
{
        struct receiving *rx = &l->rx;
        size_t asked = is_packed(rx) ? frame_plain(&rx->frame) : rx->left, len = asked;
        void *place;
        int r = s->params.ops->bulk_place(s->params.user, rx->frame.seq, rx->offset, false, &len,
                                          &place);
        if (r == SP_E_AGAIN) {
                rx->waiting = true;
                return r;
        }
        if (r < 0)
                return r;
        assert(len > 0 && len <= asked);
        rx->run = rx->offset;
        if (is_packed(rx)) {
                rx->placed = rx->left;
                return parcel_begin(&l->parcel, &rx->frame, place, len, &rx->place);
        }
        rx->place = place;
        rx->placed = len;
        return 0;
}

static int want_bulk(struct session *s, struct lane *l, struct iovec *ret)
{
        struct receiving *rx = &l->rx;
        int n = 0;
        if (rx->waiting || l->parcel.closed)
                return 0;
        if (rx->header_have == FRAME_HEADER_SIZE) {
                if (!rx->placed) {
                        int r = place_bulk(s, l);
                        if (r < 0)
                                return r == SP_E_AGAIN ? 0 : r;
                }
                ret[n++] = (struct iovec){ rx->place, rx->placed };
                if (rx->placed < rx->left)
                        return n;
                /* The next header in the same read. */
                ret[n++] = (struct iovec){ rx->header, FRAME_HEADER_SIZE };
                return n;
        }
        ret[n++] =
                (struct iovec){ rx->header + rx->header_have, FRAME_HEADER_SIZE - rx->header_have };
        return n;
}

/* Bytes from `run` on arrived, and now there are all `below`: is that worth an acknowledgement? When there are
 * more now, `run` is where those before them ended. */
static bool passes_step(uint64_t run, uint64_t below)
{
        return below > run && below / BULK_ACK_EVERY != run / BULK_ACK_EVERY;
}

/* Bytes from `run` on are in their place. */
static int report(struct session *s, uint64_t transfer, uint64_t run, size_t len)
{
        uint64_t below;
        int r = s->params.ops->bulk_arrived(s->params.user, transfer, run, len, &below);
        if (r > 0 || (!r && passes_step(run, below)))
                r = session_send(s, transfer_ack, .transfer = transfer, .received = below);
        return r;
}

bool session_lane_closed(const struct session *s, unsigned lane, struct session_parcel *ret)
{
        const struct parcel *p = &s->lanes[lane].parcel;
        if (s->status || !p->closed)
                return false;
        *ret = (struct session_parcel){ bytes_of(p->packed, p->size), parcel_target(p), p->plain };
        return true;
}

/* It is unpacked: the pieces of its place. */
static int deliver(struct session *s, const struct parcel *p)
{
        size_t len = p->placed;
        void *place = p->place;
        for (size_t at = 0;;) {
                if (p->placed < p->plain)
                        memcpy(place, p->loose + at, len);
                int r = report(s, p->transfer, p->offset + at, len);
                at += len;
                if (r < 0 || at == p->plain)
                        return r;
                len = p->plain - at;
                r = s->params.ops->bulk_place(s->params.user, p->transfer, p->offset + at, false,
                                              &len, &place);
                if (r < 0)
                        return r == SP_E_AGAIN ? SP_E_PROTO : r;
                assert(len > 0 && len <= p->plain - at);
        }
}

int session_lane_unpacked(struct session *s, unsigned lane, bool good)
{
        struct parcel *p = &s->lanes[lane].parcel;
        if (s->status)
                return s->status;
        p->closed = false;
        int r = good ? deliver(s, p) : SP_E_PROTO;
        if (r < 0)
                s->status = r;
        return r < 0 ? r : 0;
}

static int received_bulk(struct session *s, struct lane *l, size_t size)
{
        struct receiving *rx = &l->rx;
        s->stats.bulk_received += size;
        if (rx->header_have == FRAME_HEADER_SIZE) {
                size_t n = size < rx->placed ? size : rx->placed;
                rx->place += n;
                rx->placed -= n;
                rx->left -= n;
                rx->offset += is_packed(rx) ? 0 : n;
                size -= n;
                if (!rx->placed && is_packed(rx)) {
                        l->parcel.closed = true;
                } else if (!rx->placed) {
                        int r = report(s, rx->frame.seq, rx->run, (size_t)(rx->offset - rx->run));
                        if (r < 0)
                                return r;
                }
                if (rx->left)
                        return 0;
                rx->header_have = 0;
        }
        rx->header_have += size;
        if (rx->header_have < FRAME_HEADER_SIZE)
                return 0;
        s->stats.frames_received++;
        int r = frame_get(rx->header, &rx->frame);
        if (r < 0 || rx->frame.type != FRAME_BULK || (rx->frame.flags && !l->packs))
                return SP_E_PROTO;
        rx->offset = rx->frame.ack;
        rx->left = rx->frame.size;
        return 0;
}

int session_lane_want(struct session *s, unsigned lane, struct iovec ret[2])
{
        if (s->status)
                return s->status;
        if (!s->lanes[lane].up)
                return 0;
        int r = lane ? want_bulk(s, &s->lanes[lane], ret) : want_data(s, ret);
        if (r < 0)
                s->status = r;
        return r;
}

int session_lane_received(struct session *s, unsigned lane, size_t size)
{
        if (s->status)
                return s->status;
        int r = lane ? received_bulk(s, &s->lanes[lane], size) : received_data(s, size);
        if (r < 0)
                s->status = r;
        return r;
}

void session_bulk_retry(struct session *s)
{
        for (unsigned i = 1; i < SESSION_LANES; i++)
                s->lanes[i].rx.waiting = false;
}

/* ---- lanes up and down ---------------------------------------------------------------------- */

uint64_t session_next_seq(const struct session *s)
{
        return s->in_next;
}

int session_lane_up(struct session *s, unsigned lane, uint64_t peer_next_seq)
{
        struct lane *l = &s->lanes[lane];
        if (s->status)
                return s->status;
        session_lane_down(s, lane);
        if (!lane) {
                int r = out_acked(s, peer_next_seq);
                if (r < 0)
                        return r;
                s->out_sent = s->out_head;
                s->out_sent_seq = s->out_base;
                s->in_unacked = 0; /* our hello said what we have */
        }
        l->up = true;
        return 0;
}

static void early_frame(const struct session *s, struct frame *f, struct buf *ret, size_t at)
{
        f->type = FRAME_DATA;
        f->ack = s->in_next;
        frame_put(ret->data + at, f);
}

int session_early(struct session *s, size_t max, struct buf *ret)
{
        size_t offset = s->out_head, begin = ret->size, frame = 0;
        struct frame f = { 0 };
        uint64_t seq = s->out_base;
        for (; offset < s->out_end; seq++) {
                size_t size = wire_message_size(s->out.data + offset);
                bool more =
                        !f.count || f.count == FRAME_COUNT_MAX || f.size + size > FRAME_DATA_TARGET;
                if (ret->size - begin + (more ? FRAME_HEADER_SIZE : 0) + size > max)
                        break;
                int r = buf_reserve(ret, (more ? FRAME_HEADER_SIZE : 0) + size);
                if (r < 0) {
                        ret->size = begin;
                        return r;
                }
                if (more && f.count)
                        early_frame(s, &f, ret, frame);
                if (more) {
                        f = (struct frame){ .seq = seq };
                        frame = ret->size;
                        ret->size += FRAME_HEADER_SIZE;
                }
                memcpy(ret->data + ret->size, s->out.data + offset, size);
                ret->size += size;
                f.size += (uint32_t)size;
                f.count++;
                offset += size;
        }
        if (f.count)
                early_frame(s, &f, ret, frame);
        s->early_at = s->out_at + offset;
        s->early_seq = seq;
        /* They count as sent, whatever becomes of the connection: the other side may have them. */
        if (seq > s->out_sent_seq) {
                s->out_sent_seq = seq;
                s->out_sent = offset;
        }
        if (s->early_at > s->framed)
                s->framed = s->early_at;
        return 0;
}

void session_early_sent(struct session *s)
{
        if (s->early_seq <= s->out_sent_seq)
                return; /* the other side had them, and more */
        s->out_sent_seq = s->early_seq;
        s->out_sent = (size_t)(s->early_at - s->out_at);
}

/* What was not sent whole is framed again. */
static void unseal(struct session *s, unsigned lane)
{
        struct sending *tx = &s->lanes[lane].tx;
        struct session_bulk *b = tx->bulk;
        bool cut = is_sending(tx);
        tx->bulk = NULL;
        if (cut && !lane) {
                s->out_sent -= tx->size;
                s->out_sent_seq = tx->seq;
        } else if (b && b->acked == b->total) {
                if (!bulk_on_lane(s, b))
                        bulk_done(b);
        } else if (b && cut) {
                assert(b->again_count < array_size(b->again));
                b->again[b->again_count].begin = tx->at;
                b->again[b->again_count++].end = tx->at + (tx->packed ? tx->size : tx->left);
                list_remove(&b->link);
                list_append(s->bulks.next, &b->link); /* in front */
        }
}

/* Keep account of a frame's bytes that came before the cut. */
static void keep_remnant(struct lane *l)
{
        const struct receiving *rx = &l->rx;
        if (rx->header_have == FRAME_HEADER_SIZE && rx->offset > rx->frame.ack)
                l->remnant = (struct remnant){ rx->frame.seq, rx->placed ? rx->run : rx->offset,
                                               rx->offset };
}

static int report_remnant(struct session *s, struct lane *l)
{
        struct remnant m = l->remnant;
        l->remnant = (struct remnant){ 0 };
        if (!m.transfer)
                return 0;
        uint64_t below;
        int r = m.end > m.run ? s->params.ops->bulk_arrived(s->params.user, m.transfer, m.run,
                                                            (size_t)(m.end - m.run), &below)
                              : 0;
        return r < 0 ? r : 0;
}

int session_resume(struct session *s, uint64_t generation)
{
        int r = s->status;
        s->generation = generation;
        s->bulk_held = true;
        for (unsigned i = 1; i < SESSION_LANES && r == 0; i++) {
                session_lane_down(s, i);
                r = report_remnant(s, &s->lanes[i]);
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
        if (l->up && lane)
                keep_remnant(l);
        l->up = false;
        unseal(s, lane);
        memset(&l->tx, 0, sizeof(l->tx));
        memset(&l->rx, 0, sizeof(l->rx));
        l->packs = l->small = l->parcel.closed = false;
        if (!lane)
                s->in.size = s->in_head = 0;
}

bool session_lane_is_up(const struct session *s, unsigned lane)
{
        return s->lanes[lane].up;
}
