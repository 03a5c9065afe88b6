#include "session/bulk.h"

#include <assert.h>

#include "base/mem.h"

enum {
        SHARE_MIN = 256 << 10,  /* smallest frame when several lanes share a transfer */
        SHARE_LANE = 512 << 10, /* bytes for which one more lane pays */
        SHARE_MAX = 1 << 20,
        /* The most unacknowledged bytes of a transfer. In full frames these are far below
         * ARRIVALS_MAX pieces. */
        BULK_AHEAD = 64 << 20,
};

void bulk_init(struct session *s)
{
        list_init(&s->bulks);
        list_init(&s->stalled);
        list_init(&s->unacked);
}

static void fail(struct list *bulks, int status)
{
        while (!list_empty(bulks)) {
                struct session_bulk *b = list_entry(bulks->next, struct session_bulk, link);
                list_remove(&b->link);
                b->done(b, status);
        }
}

void bulk_fini(struct session *s)
{
        fail(&s->unacked, s->status);
        fail(&s->bulks, s->status);
        fail(&s->stalled, s->status);
}

static bool on_lane(const struct session *s, const struct session_bulk *b)
{
        for (unsigned i = 1; i < s->used; i++)
                if (s->lanes[i].tx.bulk == b)
                        return true;
        return false;
}

void bulk_give_up(struct session *s)
{
        struct list *all[] = { &s->unacked, &s->bulks, &s->stalled }, gone = { &gone, &gone };
        for (size_t i = 0; i < array_size(all); i++)
                list_each(b, all[i], struct session_bulk, link)
                {
                        if (on_lane(s, b)) /* bulk_sent or bulk_cut ends it */
                                continue;
                        list_remove(&b->link);
                        list_append(&gone, &b->link);
                }
        fail(&gone, s->status);
}

/* ---- transfers ------------------------------------------------------------------------------ */

/* The transfer's bytes from `offset` on, cut to `max`. */
static struct bytes piece_of(struct session_bulk *b, uint64_t offset, uint64_t max)
{
        size_t len = 0;
        const void *p = b->at(b, offset, &len);
        return bytes_of(p, len < max ? len : (size_t)max);
}

static int send_inline(struct session *s, struct session_bulk *b)
{
        size_t total = (size_t)b->total;
        struct bytes data = piece_of(b, 0, total);
        if (data.size == total)
                return session_send(s, transfer_data, .transfer = b->transfer, .data = data);

        uint8_t *whole = mem_alloc(total);
        if (!whole)
                return SP_E_NOMEM;
        for (size_t o = 0; o < total; o += data.size) {
                data = piece_of(b, o, total - o);
                memcpy(whole + o, data.data, data.size);
        }
        int r = session_send(s, transfer_data, .transfer = b->transfer,
                             .data = bytes_of(whole, total));
        mem_free(whole);
        return r;
}

/* Should the transfer use lanes from 2 on? Yes if it is large, or if lane 1 would have too much to
 * carry with it. */
static bool is_wide(const struct session *s, uint64_t size)
{
        const struct list *all[] = { &s->bulks, &s->stalled, &s->unacked };
        const uint64_t wide = s->params.wide_bytes;
        for (size_t i = 0; i < array_size(all) && size >= SHARE_MIN && size < wide; i++)
                for (const struct list *l = all[i]->next; l != all[i] && size < wide; l = l->next) {
                        const struct session_bulk *b =
                                list_entry(l, const struct session_bulk, link);
                        if (!b->wide)
                                size += b->total - b->acked;
                }
        return size >= wide;
}

/* The offset below which bytes may be framed. */
static uint64_t sendable(const struct session_bulk *b)
{
        uint64_t most = b->acked + BULK_AHEAD;
        uint64_t end = most > b->acked && most < b->ready ? most : b->ready;
        return end < b->framed ? b->framed : end; /* skip_held may be ahead of it */
}

/* Leave out the bytes that the other side has. They count as framed, because it may acknowledge them
 * at any time. */
static void skip_held(struct session_bulk *b)
{
        uint64_t end;
        if (b->lacks && b->framed < b->ready)
                b->framed = b->lacks(b, b->framed, &end);
}

/* Return the end of the bytes from `at` on that the other side lacks. */
static uint64_t lacking_until(const struct session_bulk *b, uint64_t at)
{
        uint64_t end = UINT64_MAX;
        if (b->lacks)
                (void)b->lacks(b, at, &end);
        return end;
}

/* The list that the transfer belongs to. */
static struct list *list_of(struct session *s, const struct session_bulk *b)
{
        if (b->framed < sendable(b) || b->again_count)
                return &s->bulks;
        return b->framed == b->total ? &s->unacked : &s->stalled;
}

int session_bulk_send(struct session *s, struct session_bulk *b, uint64_t ready)
{
        list_init(&b->link);
        b->wide |= is_wide(s, b->total);
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
        skip_held(b);
        list_append(list_of(s, b), &b->link);
        return 0;
}

/* Is it in the list `stalled`? */
static bool is_stalled(const struct session_bulk *b)
{
        return b->framed == sendable(b) && b->framed < b->total && !b->again_count;
}

static void go_on(struct session *s, struct session_bulk *b)
{
        list_remove(&b->link);
        list_append(list_of(s, b), &b->link);
}

void session_bulk_ready(struct session *s, struct session_bulk *b, uint64_t ready)
{
        bool stalled = is_stalled(b);
        b->ready = ready;
        skip_held(b);
        if (stalled && !is_stalled(b))
                go_on(s, b);
}

bool session_bulk_pending(const struct session *s)
{
        if (s->bulk_held)
                return false;
        for (unsigned i = 1; i < s->used; i++)
                if (sending_any(&s->lanes[i].tx))
                        return true;
        return !list_empty(&s->bulks);
}

bool session_bulk_moves(const struct session *s)
{
        bool moves = session_bulk_pending(s);
        for (unsigned i = 1; i < SESSION_LANES && !moves; i++)
                moves = s->lanes[i].rx.header_have;
        return moves;
}

void session_share_lanes(struct session *s, unsigned lanes)
{
        s->shared = lanes;
}

static bool is_shared(const struct session *s, unsigned lane)
{
        return lane > 1 && (!s->shared || lane < 2 + s->shared);
}

/* The number of lanes that share large transfers. Lane 1 is not one of them, and then carries all
 * others. */
static unsigned sharing(const struct session *s)
{
        unsigned lanes = 0;
        for (unsigned i = 2; i < s->used; i++)
                lanes += s->lanes[i].up && is_shared(s, i);
        return lanes;
}

bool session_has_wide_lanes(const struct session *s)
{
        return s->lanes[1].up && sharing(s);
}

static bool is_of_lane(const struct session *s, unsigned lane, const struct session_bulk *b)
{
        if (!session_has_wide_lanes(s))
                return true;
        return b->wide ? is_shared(s, lane) : lane == 1;
}

/* The next transfer that the lane has to send; NULL: there is none. */
static struct session_bulk *next_of(const struct session *s, unsigned lane)
{
        for (const struct list *l = s->bulks.next; l != &s->bulks; l = l->next) {
                struct session_bulk *b = list_entry(l, struct session_bulk, link);
                if (is_of_lane(s, lane, b))
                        return b;
        }
        return NULL;
}

bool bulk_has_pending(const struct session *s, unsigned lane)
{
        return !s->bulk_held && (sending_any(&s->lanes[lane].tx) || next_of(s, lane));
}

/* The size of one frame of the transfer, so that each lane gets its share. */
static uint64_t share(const struct session *s, const struct session_bulk *b)
{
        unsigned lanes = sharing(s);
        if (lanes < 2 || is_of_lane(s, 1, b))
                return FRAME_BULK_MAX;
        uint64_t size = (b->total / lanes + 4095) & ~4095ull;
        return size < SHARE_MIN ? SHARE_MIN : size > SHARE_MAX ? SHARE_MAX : size;
}

size_t session_bulk_lanes(const struct session *s, size_t max)
{
        size_t n = 0;
        for (const struct list *l = s->bulks.next; l != &s->bulks && n < max; l = l->next) {
                const struct session_bulk *b = list_entry(l, const struct session_bulk, link);
                uint64_t most = share(s, b);
                if (!is_of_lane(s, 2, b))
                        continue;
                most = most < SHARE_LANE ? SHARE_LANE : most;
                n += b->again_count + (size_t)((sendable(b) - b->framed + most - 1) / most);
        }
        return n < max ? n : max;
}

/* ---- frames of them ------------------------------------------------------------------------- */

/* Cut [at, at + size) to bytes that one packed frame can hold, or to the few last bytes, which
 * can't be packed. */
static uint64_t small_share(uint64_t at, uint64_t size)
{
        uint64_t most = FRAME_PLAIN_MAX - at % FRAME_PLAIN_MAX;
        size = size < most ? size : most;
        return size < 8 ? size : size & ~7ull;
}

static void seal(struct session *s, struct lane *l, struct session_bulk *b)
{
        struct sending *tx = &l->tx;
        uint64_t at = b->framed, size = sendable(b) - at, most = share(s, b);
        if (b->again_count) {
                at = b->again[--b->again_count].begin;
                size = b->again[b->again_count].end - at;
        } else {
                uint64_t lacking = lacking_until(b, at) - at;
                size = lacking < size ? lacking : size;
                size = l->small ? small_share(at, size) : size < most ? size : most;
                b->framed += size;
                skip_held(b);
        }
        struct frame f = {
                .size = (uint32_t)size,
                .type = FRAME_BULK,
                .seq = b->transfer,
                .ack = at,
        };
        sending_begin(tx, &f, at);
        tx->bulk = b;
        if (list_of(s, b) != &s->bulks)
                go_on(s, b);
        s->stats.frames_sent++;
}

int bulk_pending(struct session *s, struct lane *l, struct iovec *ret, int max)
{
        struct sending *tx = &l->tx;
        if (s->bulk_held)
                return 0;
        if (!sending_any(tx)) {
                struct session_bulk *b = next_of(s, (unsigned)(l - s->lanes));
                if (!b)
                        return 0;
                seal(s, l, b);
        }
        int n = sending_header(tx, ret);
        if (tx->packed && tx->left)
                ret[n++] = (struct iovec){ (void *)(uintptr_t)tx->packed, tx->left };
        for (size_t o = 0; !tx->packed && o < tx->left && n < max;) {
                struct bytes piece = piece_of(tx->bulk, tx->at + o, tx->left - o);
                ret[n++] = (struct iovec){ (void *)(uintptr_t)piece.data, piece.size };
                o += piece.size;
        }
        return n;
}

/* Is the transfer over? The other side has all of it, or the session has ended; and no lane reads
 * from it. */
static bool is_over(const struct session *s, const struct session_bulk *b)
{
        return (b->acked == b->total || s->given_up) && !on_lane(s, b);
}

static void finish(const struct session *s, struct session_bulk *b)
{
        list_remove(&b->link);
        b->done(b, b->acked == b->total ? 0 : s->status);
}

void bulk_sent(struct session *s, struct lane *l, size_t size)
{
        struct session_bulk *b = l->tx.bulk;
        sending_advance(&l->tx, size);
        s->stats.bulk_sent += size;
        l->sent += size;
        if (b && !sending_any(&l->tx)) {
                l->tx.bulk = NULL;
                if (is_over(s, b))
                        finish(s, b);
        }
}

void bulk_cut(struct session *s, struct lane *l)
{
        struct sending tx = l->tx;
        struct session_bulk *b = tx.bulk;
        l->tx = (struct sending){ 0 };
        if (b && (b->acked == b->total || s->given_up)) {
                if (is_over(s, b))
                        finish(s, b);
        } else if (b && sending_any(&tx)) {
                assert(b->again_count < array_size(b->again));
                b->again[b->again_count].begin = tx.at;
                b->again[b->again_count++].end = tx.at + (tx.packed ? tx.size : tx.left);
                list_remove(&b->link);
                list_append(s->bulks.next, &b->link); /* in front */
        }
}

/* ---- acknowledged or sent again ------------------------------------------------------------- */

/* Report acknowledged bytes that no lane reads any more. A receiver in this process may acknowledge
 * bytes before session_lane_sent reports them. */
static void tell_passed(const struct session *s, struct session_bulk *b)
{
        uint64_t offset = b->acked;
        if (!b->passed)
                return;
        for (unsigned i = 1; i < s->used; i++)
                if (s->lanes[i].tx.bulk == b && s->lanes[i].tx.at < offset)
                        offset = s->lanes[i].tx.at;
        for (unsigned i = 0; i < b->again_count; i++)
                if (b->again[i].begin < offset)
                        offset = b->again[i].begin;
        b->passed(b, offset);
}

static bool acked_in(struct session *s, struct list *bulks, uint64_t transfer, uint64_t received)
{
        list_each(b, bulks, struct session_bulk, link)
        {
                if (b->transfer != transfer || received > b->framed)
                        continue;
                bool stalled = is_stalled(b);
                if (received > b->acked)
                        b->acked = received;
                if (stalled && !is_stalled(b))
                        go_on(s, b);
                /* While it is on a lane, session_lane_sent ends the transfer. */
                if (is_over(s, b))
                        finish(s, b);
                else
                        tell_passed(s, b);
                return true;
        }
        return false;
}

/* Search the whole transfers first. They are acknowledged in the order of sending, so the first one
 * matches. */
void bulk_acked(struct session *s, uint64_t transfer, uint64_t received)
{
        if (!acked_in(s, &s->unacked, transfer, received) &&
            !acked_in(s, &s->bulks, transfer, received))
                acked_in(s, &s->stalled, transfer, received);
}

void bulk_restart(struct session *s)
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
                skip_held(b);
                list_append(list_of(s, b), &b->link);
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
                struct bytes piece = piece_of(tx->bulk, tx->at + o, tx->size - o);
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
