#include "transport/checked.h"

#include <string.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/wakeup.h"

enum {
        AHEAD_MIN = 16 << 10,
        AHEAD_UNPLACED = 64 << 10, /* all bytes go through it: many records in one call */
        AHEAD_MAX = CHECKED_HEADER + CHECKED_RECORD_MAX,
        RECORDS = 16, /* in one call at most */
        SMALL = 256, /* a first piece of so few bytes is a header: the rest goes in records of its own */
        PIECES = 40,
};

struct checked_conn {
        struct conn base;
        struct conn *below;
        bool places, broken;
        int ready; /* a wake-up that is always ready; -1: was not needed yet */

        /* Sending: the record that was begun. */
        uint8_t header[CHECKED_HEADER];
        size_t header_left, left;
        uint64_t sent; /* records */

        /* Receiving: bytes [at, end) of `ahead` came; the first `plain` of them are checked. */
        uint8_t *ahead;
        size_t cap, at, end, plain;
        uint64_t received; /* records */
        /* A record that is received into its place. */
        uint8_t *place;
        size_t have, size; /* size 0: there is none */
        uint32_t sum;
};

static struct checked_conn *checked_of(const struct conn *c)
{
        return container_of(c, struct checked_conn, base);
}

static uint32_t sum_header(uint64_t number, uint32_t size, uint32_t payload)
{
        uint8_t b[16];
        bytes_put_u64(b, number);
        bytes_put_u32(b + 8, size);
        bytes_put_u32(b + 12, payload);
        return crc32c(0, b, sizeof(b));
}

/* ---- sending -------------------------------------------------------------------------------- */

/* A position in the pieces that the caller sends. */
struct cursor {
        const struct iovec *iov;
        int n;
        size_t at; /* in the first */
};

/* Move the cursor on by at most `size` bytes, and over empty pieces. Append the bytes that it
 * passed to `ret`, which has room for `room` entries. Returns the number of bytes passed. */
static size_t pass(struct cursor *c, size_t size, struct iovec *ret, int *count, int room)
{
        size_t passed = 0;
        while (c->n && *count < room && (passed < size || c->at == c->iov->iov_len)) {
                size_t len = c->iov->iov_len - c->at;
                len = len < size - passed ? len : size - passed;
                if (len)
                        ret[(*count)++] =
                                (struct iovec){ (uint8_t *)c->iov->iov_base + c->at, len };
                passed += len;
                c->at += len;
                if (c->at == c->iov->iov_len) {
                        c->iov++;
                        c->n--;
                        c->at = 0;
                }
        }
        return passed;
}

struct outgoing {
        uint8_t header[CHECKED_HEADER];
        size_t size;
};

/* Make a record of what is next. */
static void make_record(struct checked_conn *k, struct cursor *c, struct outgoing *o,
                        struct iovec *iov, int *count)
{
        struct iovec *header = &iov[(*count)++];
        int first = *count;
        bool small = c->n > 1 && c->iov->iov_len - c->at <= SMALL && k->places;
        size_t most = k->places ? CHECKED_RECORD_MAX : CHECKED_RECORD_SMALL;
        o->size = pass(c, small ? c->iov->iov_len - c->at : most, iov, count, PIECES);
        uint32_t sum = 0;
        for (int i = first; i < *count; i++)
                sum = crc32c(sum, iov[i].iov_base, iov[i].iov_len);
        bytes_put_u32(o->header, (uint32_t)o->size);
        bytes_put_u32(o->header + 4, sum);
        bytes_put_u32(o->header + 8, sum_header(k->sent, (uint32_t)o->size, sum));
        *header = (struct iovec){ o->header, CHECKED_HEADER };
        k->sent++;
}

/* `n` bytes were sent of the record begun and `count` more: which one is the one begun now? Returns how many bytes were
 * the caller's. */
static size_t account(struct checked_conn *k, size_t n, const struct outgoing *all, int count)
{
        size_t h = n < k->header_left ? n : k->header_left;
        k->header_left -= h;
        n -= h;
        size_t taken = n < k->left ? n : k->left;
        k->left -= taken;
        n -= taken;
        for (int i = 0; i < count; i++) {
                if (!n) {
                        k->sent -= (uint64_t)(count - i); /* not begun: made anew next time */
                        break;
                }
                memcpy(k->header, all[i].header, CHECKED_HEADER);
                h = n < CHECKED_HEADER ? n : CHECKED_HEADER;
                k->header_left = CHECKED_HEADER - h;
                n -= h;
                size_t part = n < all[i].size ? n : all[i].size;
                k->left = all[i].size - part;
                n -= part;
                taken += part;
        }
        return taken;
}

static ssize_t checked_sendv(struct conn *c, const struct iovec *pieces, int n)
{
        struct checked_conn *k = checked_of(c);
        for (;;) {
                struct cursor from = { pieces, n, 0 };
                struct outgoing all[RECORDS];
                struct iovec iov[PIECES + 1];
                int count = 0, records = 0;
                if (k->header_left)
                        iov[count++] = (struct iovec){ k->header + CHECKED_HEADER - k->header_left,
                                                       k->header_left };
                /* The caller offers the rest of a record that has begun again. */
                size_t rest = pass(&from, k->left, iov, &count, PIECES);
                while (from.n && rest == k->left && records < RECORDS && count < PIECES - 2) {
                        make_record(k, &from, &all[records], iov, &count);
                        records++;
                }
                ssize_t r = k->below->ops->sendv(k->below, iov, count);
                if (r <= 0) {
                        k->sent -= (uint64_t)records;
                        return r;
                }
                size_t taken = account(k, (size_t)r, all, records);
                if (taken)
                        return (ssize_t)taken;
        }
}

/* ---- receiving ------------------------------------------------------------------------------ */

static ssize_t altered(struct checked_conn *k)
{
        if (!k->broken)
                log_warn(
                        "link",
                        "bytes were altered on their way: the checksum of record %llu of a connection is wrong",
                        (unsigned long long)k->received);
        k->broken = true;
        return SP_E_LINK;
}

/* The next record's header is there, and is right: its size; 0: it is not there yet. SP_E_LINK. */
static int next_record(struct checked_conn *k, uint32_t *ret_sum)
{
        const uint8_t *h = k->ahead + k->at;
        if (k->end - k->at < CHECKED_HEADER)
                return 0;
        uint32_t size = bytes_get_u32(h);
        *ret_sum = bytes_get_u32(h + 4);
        if (!size || size > CHECKED_RECORD_MAX ||
            bytes_get_u32(h + 8) != sum_header(k->received, size, *ret_sum))
                return (int)altered(k);
        return (int)size;
}

/* Move checked bytes to their place. */
static size_t take(struct checked_conn *k, struct cursor *to)
{
        size_t taken = 0;
        while (to->n && k->plain) {
                size_t len = to->iov->iov_len - to->at;
                len = len < k->plain ? len : k->plain;
                memcpy((uint8_t *)to->iov->iov_base + to->at, k->ahead + k->at, len);
                k->at += len;
                k->plain -= len;
                taken += len;
                to->at += len;
                if (to->at == to->iov->iov_len) {
                        to->iov++;
                        to->n--;
                        to->at = 0;
                }
        }
        if (k->at == k->end)
                k->at = k->end = 0;
        return taken;
}

/* At least `size` bytes from k->at on. */
static int make_room(struct checked_conn *k, size_t size)
{
        if (k->cap - k->at >= size)
                return 0;
        memmove(k->ahead, k->ahead + k->at, k->end - k->at);
        k->end -= k->at;
        k->at = 0;
        if (k->cap >= size)
                return 0;
        uint8_t *more = mem_realloc(k->ahead, AHEAD_MAX);
        if (!more)
                return SP_E_LINK;
        k->ahead = more;
        k->cap = AHEAD_MAX;
        return 0;
}

static ssize_t fill(struct checked_conn *k)
{
        struct iovec iov[2];
        int n = 0;
        if (k->size)
                iov[n++] = (struct iovec){ k->place + k->have, k->size - k->have };
        if (k->cap > k->end)
                iov[n++] = (struct iovec){ k->ahead + k->end, k->cap - k->end };
        ssize_t r = k->below->ops->recvv(k->below, iov, n);
        if (r <= 0)
                return r ? r : SP_E_LINK;
        k->base.came += (uint64_t)r;
        size_t got = (size_t)r, placed = k->size ? k->size - k->have : 0;
        placed = placed < got ? placed : got;
        k->have += placed;
        k->end += got - placed;
        return r;
}

/* The record begins to go straight to its place. */
static void begin_placed(struct checked_conn *k, uint8_t *place, size_t size, uint32_t sum)
{
        size_t there = k->end - k->at - CHECKED_HEADER;
        k->place = place;
        k->size = size;
        k->sum = sum;
        k->have = there < size ? there : size;
        memcpy(place, k->ahead + k->at + CHECKED_HEADER, k->have);
        k->at += CHECKED_HEADER + k->have;
        if (k->at == k->end)
                k->at = k->end = 0;
}

/* Go on with what is there. 1: something has changed; 0: more has to come first; SP_E_LINK. */
static int advance(struct checked_conn *k, struct cursor *to, size_t *done)
{
        uint32_t sum;
        if (k->plain) {
                *done += take(k, to);
                return 1;
        }
        if (k->size) {
                if (k->place != (uint8_t *)to->iov->iov_base + to->at)
                        return SP_E_LINK; /* TRANSPORT_PLACED's rule is broken */
                if (k->have < k->size)
                        return 0;
                if (crc32c(0, k->place, k->size) != k->sum)
                        return (int)altered(k);
                k->received++;
                *done += k->size;
                to->at += k->size;
                k->size = 0;
                if (to->at == to->iov->iov_len)
                        *to = (struct cursor){ to->iov + 1, to->n - 1, 0 };
                return 1;
        }
        int r = next_record(k, &sum);
        if (r < 0)
                return r;
        if (!r)
                return make_room(k, CHECKED_HEADER);
        size_t size = (size_t)r;
        if (k->end - k->at >= CHECKED_HEADER + size) {
                if (crc32c(0, k->ahead + k->at + CHECKED_HEADER, size) != sum)
                        return (int)altered(k);
                k->at += CHECKED_HEADER;
                k->plain = size;
                k->received++;
                return 1;
        }
        if (k->places && to->iov->iov_len - to->at >= size) {
                begin_placed(k, (uint8_t *)to->iov->iov_base + to->at, size, sum);
                return 1;
        }
        if (k->places && *done)
                return SP_E_AGAIN; /* the next call may have a larger place */
        return make_room(k, CHECKED_HEADER + size);
}

bool checked_has_rest(const struct conn *c)
{
        struct checked_conn *k = checked_of(c);
        uint32_t sum;
        if (k->broken || k->plain)
                return true;
        if (k->size || k->end - k->at < CHECKED_HEADER)
                return false;
        int r = next_record(k, &sum);
        return r < 0 || k->end - k->at >= CHECKED_HEADER + (size_t)r;
}

/* Let poll(2) know whether something is left for the next recvv. */
static bool show_rest(struct checked_conn *k)
{
        bool rest = checked_has_rest(&k->base);
        if (rest && k->ready < 0) {
                k->ready = wakeup_new();
                if (k->ready < 0)
                        return false;
                wakeup_set(k->ready);
        }
        k->base.fd = rest ? k->ready : k->below->fd;
        return true;
}

static ssize_t checked_recvv(struct conn *c, const struct iovec *iov, int n)
{
        struct checked_conn *k = checked_of(c);
        struct cursor to = { iov, n, 0 };
        size_t done = 0;
        ssize_t r = 0;
        while (r >= 0 && to.n) {
                r = k->broken ? SP_E_LINK : advance(k, &to, &done);
                if (!r)
                        r = fill(k);
        }
        if (!show_rest(k))
                return SP_E_LINK;
        return done ? (ssize_t)done : r;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void checked_close(struct conn *c)
{
        struct checked_conn *k = checked_of(c);
        conn_close(k->below);
        if (k->ready >= 0)
                (void)file_close(k->ready);
        mem_free(k->ahead);
        mem_free(k);
}

int checked_begin(struct conn **c, bool places)
{
        struct conn *below = *c;
        struct checked_conn *k = mem_zalloc(sizeof(*k));
        if (k) {
                k->cap = places ? AHEAD_MIN : AHEAD_UNPLACED;
                k->ahead = mem_alloc(k->cap);
        }
        if (!k || !k->ahead) {
                mem_free(k);
                *c = conn_close(below);
                return SP_E_NOMEM;
        }
        k->base = (struct conn){ .ops = &transport_checked,
                                 .fd = below->fd,
                                 .room_fd = below->room_fd,
                                 .room_events = below->room_events };
        k->below = below;
        k->places = places;
        k->ready = -1;
        *c = &k->base;
        return 0;
}

const struct transport_ops transport_checked = {
        .name = "tcp",
        .caps = TRANSPORT_DIRECT | TRANSPORT_WIDE | TRANSPORT_ACKNOWLEDGES,
        .sendv = checked_sendv,
        .recvv = checked_recvv,
        .close = checked_close,
};
