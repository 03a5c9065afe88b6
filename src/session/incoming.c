#include "session/incoming.h"

#include <assert.h>

#include "base/mem.h"
#include "session/bulk.h"

enum {
        IN_CHUNK = 64 << 10,
        BULK_ACK_EVERY = 1 << 20,
        REPORT_EVERY = 256 << 10, /* bytes after which a place is reported, for use (first lane) */
};

void incoming_fini(struct session *s)
{
        for (unsigned i = 1; i < SESSION_LANES; i++)
                packed_frame_fini(&s->lanes[i].packed_frame);
        buf_fini(&s->in);
}

/* ---- messages ------------------------------------------------------------------------------- */

int incoming_inline(struct session *s, uint64_t transfer, uint64_t offset, struct bytes data)
{
        const uint8_t *p = data.data;
        for (size_t o = 0; o < data.size;) {
                size_t len = data.size - o;
                uint64_t below;
                void *place;
                int r = s->params.ops->bulk_place(s->params.user, transfer, offset + o, true, &len,
                                                  &place);
                if (r < 0)
                        return r == SP_E_AGAIN ? SP_E_PROTO : r;
                assert(len > 0 && len <= data.size - o);
                memcpy(place, p + o, len);
                r = s->params.ops->bulk_arrived(s->params.user, transfer, offset + o, len, &below);
                if (r < 0)
                        return r;
                o += len;
        }
        return 0;
}

static int take_inline(struct session *s, struct bytes msg)
{
        struct wire_transfer_data m;
        int r = wire_get_transfer_data(msg, &m);
        return r < 0 ? r : incoming_inline(s, m.transfer, m.offset, m.data);
}

static int take_resume(struct session *s, uint64_t generation)
{
        if (generation > s->generation)
                return SP_E_PROTO;
        if (generation < s->generation || !s->bulk_held)
                return 0; /* sent on lost connections, too */
        s->bulk_held = false;
        bulk_restart(s);
        return 0;
}

int incoming_message(struct session *s, struct bytes msg)
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

/* The probe says how many bytes of a lane were sent. The other side may ask for the same. */
static int take_probe(struct session *s, const struct frame *f)
{
        if (f->count >= SESSION_LANES || (!f->count && f->seq > s->in_next))
                return SP_E_PROTO;
        if (f->count)
                s->lanes[f->count].claimed = f->seq;
        if (f->flags)
                owed_notify(s, false);
        return 0;
}

int incoming_frame(struct session *s, const struct frame *f)
{
        s->stats.frames_received++;
        int r = outbox_acked(&s->out, f->ack);
        if (r < 0)
                return r;
        if (f->type == FRAME_PROBE)
                return take_probe(s, f);
        return f->type == FRAME_DATA && f->seq > s->in_next ? SP_E_PROTO : 0;
}

static int take_frame(struct session *s, const struct frame *f, const uint8_t *p)
{
        int r = incoming_frame(s, f);
        if (r < 0 || f->type != FRAME_DATA)
                return r;
        size_t left = f->size;
        for (uint64_t seq = f->seq; seq < f->seq + f->count; seq++) {
                size_t size = left >= WIRE_HEADER_SIZE ? wire_message_size(p) : 0;
                if (size < WIRE_HEADER_SIZE || size > left || size % 8)
                        return SP_E_PROTO;
                if (seq == s->in_next) { /* else: a repeated message */
                        s->in_next++;
                        s->in_unacked += size;
                        r = incoming_message(s, bytes_of(p, size));
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
        s->lanes[0].received += size;
        if (s->params.in_bytes)
                return pieces_received(s);
        for (;;) {
                size_t have = s->in.size - s->in_head;
                struct frame f;
                if (have < FRAME_HEADER_SIZE)
                        break;
                int r = frame_get(s->in.data + s->in_head, &f);
                if (r < 0)
                        return r;
                if (f.type != FRAME_DATA && f.type != FRAME_ACK && f.type != FRAME_PROBE)
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
                if (s->in.cap > SESSION_BUFFER_KEPT)
                        buf_fini(&s->in);
        }
        return 0;
}

static int want_data(struct session *s, struct iovec *ret)
{
        if (!s->params.in_bytes && s->in_head && s->in.cap - s->in.size < IN_CHUNK / 2) {
                buf_consume(&s->in, s->in_head);
                s->in_head = 0;
        }
        if (!s->params.in_bytes && s->in.cap - s->in.size < IN_CHUNK / 2) {
                int r = buf_reserve(&s->in, IN_CHUNK);
                if (r < 0)
                        return r;
        }
        ret[0] = (struct iovec){ s->in.data + s->in.size, s->in.cap - s->in.size };
        return 1;
}

/* ---- bulk ----------------------------------------------------------------------------------- */

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
                return packed_frame_begin(&l->packed_frame, &rx->frame, place, len, &rx->place);
        }
        rx->place = place;
        rx->placed = len;
        return 0;
}

static int want_bulk(struct session *s, struct lane *l, struct iovec *ret)
{
        struct receiving *rx = &l->rx;
        int n = 0;
        if (rx->waiting || l->packed_frame.closed)
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
                /* Read the next header at once, too. */
                ret[n++] = (struct iovec){ rx->header, FRAME_HEADER_SIZE };
                return n;
        }
        ret[n++] =
                (struct iovec){ rx->header + rx->header_have, FRAME_HEADER_SIZE - rx->header_have };
        return n;
}

/* Bytes from `run` on arrived, and now all bytes below `below` have. Should they be acknowledged?
 * If `below` has grown, `run` is its old value. */
static bool passes_step(uint64_t run, uint64_t below)
{
        return below > run && below / BULK_ACK_EVERY != run / BULK_ACK_EVERY;
}

/* Report bytes from `run` on, which are in their place. */
static int report(struct session *s, uint64_t transfer, uint64_t run, size_t len)
{
        uint64_t below;
        int r = s->params.ops->bulk_arrived(s->params.user, transfer, run, len, &below);
        if (r > 0 || (!r && passes_step(run, below)))
                r = session_send(s, transfer_ack, .transfer = transfer, .received = below);
        return r;
}

bool session_lane_closed(const struct session *s, unsigned lane, struct session_packed_frame *ret)
{
        const struct packed_frame *p = &s->lanes[lane].packed_frame;
        if (s->status || !p->closed)
                return false;
        *ret = (struct session_packed_frame){ bytes_of(p->packed, p->size), packed_frame_target(p),
                                              p->plain };
        return true;
}

/* The frame is unpacked: copy it to the pieces of its place, and report them. */
static int deliver(struct session *s, const struct packed_frame *p)
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
        struct packed_frame *p = &s->lanes[lane].packed_frame;
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
        l->received += size;
        if (rx->header_have == FRAME_HEADER_SIZE) {
                size_t n = size < rx->placed ? size : rx->placed;
                rx->place += n;
                rx->placed -= n;
                rx->left -= n;
                rx->offset += is_packed(rx) ? 0 : n;
                size -= n;
                if (!rx->placed && is_packed(rx)) {
                        l->packed_frame.closed = true;
                } else if (!rx->placed ||
                           (l == &s->lanes[1] && rx->offset - rx->run >= REPORT_EVERY)) {
                        uint64_t run = rx->run;
                        rx->run = rx->offset;
                        int r = report(s, rx->frame.seq, run, (size_t)(rx->offset - run));
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

/* ---- lanes ---------------------------------------------------------------------------------- */

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

void incoming_cut(struct session *s, unsigned lane)
{
        struct lane *l = &s->lanes[lane];
        const struct receiving *rx = &l->rx;
        if (!lane) {
                s->in.size = s->in_head = 0;
                s->pieces = (struct pieces){ .taken = s->pieces.taken };
        } else if (l->up && rx->header_have == FRAME_HEADER_SIZE && rx->offset > rx->frame.ack) {
                l->remnant = (struct remnant){ rx->frame.seq, rx->placed ? rx->run : rx->offset,
                                               rx->offset };
        }
        l->rx = (struct receiving){ 0 };
        l->packed_frame.closed = false;
}

int incoming_report_cut(struct session *s, struct lane *l)
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
