/* Records with checksums (transport/checked.h), as a receiver gets them. The first byte of the
 * input chooses their source:
 * - Even: a real sender made the records. Then bits flip; bytes and records are lost, repeated or
 *   exchanged; headers get false lengths. The receiver may hand out no byte of the first altered
 *   record, or behind it.
 * - Odd: a hostile side made them, with right checksums where it likes.
 *
 * In both cases a model in this file says which bytes may be handed out, and whether the
 * connection must end. With 2 in the byte the receiver gives places for records. With 4 the
 * connection below ends behind its last byte. With 0xF8 records may have more than some
 * kilobytes; few inputs do, because these take most of the time.
 *
 * The test plays the connection below: it takes and gives as many bytes at a time as the input
 * says. */
#include "fuzz/target.h"

#include <stdbool.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/mem.h"
#include "support/random.h"
#include "transport/checked.h"

enum {
        HOSTILE = 1,
        PLACES = 2,
        ENDS = 4,
        LARGE = 0xf8,      /* all of its bits */
        TOTAL = 300 << 10, /* bytes of a stream at most, without headers */
        USUAL = 16 << 10,  /* the same of most inputs */
        ROOM = 2 * TOTAL,
        RECORDS_MAX = 400,
        CHANGES_MAX = 8,
        FLIPS_MAX = 3, /* CRC-32C finds so many in a record for certain */
        PIECES = 4,
        GUARD = 16,
        DESCRIPTOR = 12345, /* nobody polls it */
};

struct input {
        const uint8_t *p;
        size_t left;
        bool large;
};

static uint32_t take(struct input *in, unsigned n)
{
        uint32_t v = 0;
        for (; n && in->left; n--, in->left--)
                v = v << 8 | *in->p++;
        return v;
}

/* From one byte: 1 to 128, or close to a power of two: with a header or without. */
static size_t take_size(struct input *in)
{
        static const size_t less[] = { 0, 1, CHECKED_HEADER - 1, CHECKED_HEADER };
        uint32_t v = take(in, 1);
        return v < 0x80 ? v + 1 : (16u << v % (in->large ? 14 : 9)) - less[v >> 5 & 3];
}

/* The bytes from one side to the other. */
struct wire {
        uint8_t data[ROOM];
        size_t size;
};

static void put(struct wire *w, const void *data, size_t size)
{
        size = size < ROOM - w->size ? size : ROOM - w->size;
        memcpy(w->data + w->size, data, size);
        w->size += size;
}

/* ---- the connection below ------------------------------------------------------------------- */

struct below {
        struct conn base;
        struct wire *wire;
        struct input *in; /* how much is taken at a time */
        size_t arrived, given;
        bool ends;
};

static ssize_t below_sendv(struct conn *c, const struct iovec *iov, int n)
{
        struct below *b = container_of(c, struct below, base);
        size_t room = b->in->left ? take_size(b->in) : ROOM, taken = 0;
        if (room == 1)
                return SP_E_AGAIN;
        for (int i = 0; i < n && taken < room; i++) {
                size_t part = iov[i].iov_len < room - taken ? iov[i].iov_len : room - taken;
                fuzz_check(b->wire->size + part <= ROOM);
                put(b->wire, iov[i].iov_base, part);
                taken += part;
        }
        return (ssize_t)taken;
}

static ssize_t below_recvv(struct conn *c, const struct iovec *iov, int n)
{
        struct below *b = container_of(c, struct below, base);
        size_t before = b->given;
        for (int i = 0; i < n && b->given < b->arrived; i++) {
                size_t part = b->arrived - b->given;
                part = part < iov[i].iov_len ? part : iov[i].iov_len;
                memcpy(iov[i].iov_base, b->wire->data + b->given, part);
                b->given += part;
        }
        if (b->given > before)
                return (ssize_t)(b->given - before);
        return b->ends && b->given == b->wire->size ? SP_E_LINK : SP_E_AGAIN;
}

static void below_close(struct conn *c)
{
}

static const struct transport_ops below_ops = {
        .name = "played", .sendv = below_sendv, .recvv = below_recvv, .close = below_close
};

static struct conn *begin(struct below *b, bool places)
{
        struct conn *c = &b->base;
        b->base = (struct conn){ .ops = &below_ops, .fd = DESCRIPTOR };
        fuzz_check(checked_begin(&c, places) == 0);
        return c;
}

/* ---- the model ------------------------------------------------------------------------------ */

/* Records of a stream up to the first that is wrong, and what they hold. */
struct plain {
        uint8_t data[ROOM];
        size_t size;
        bool wrong; /* there is one, and enough of it that it can be seen */
        unsigned count;
        size_t begin[RECORDS_MAX + 1],
                before[RECORDS_MAX + 1]; /* in the stream; contents before it */
};

static uint32_t header_sum(uint64_t number, uint32_t size, uint32_t payload)
{
        uint8_t b[16];
        bytes_put_u64(b, number);
        bytes_put_u32(b + 8, size);
        bytes_put_u32(b + 12, payload);
        return crc32c(0, b, sizeof(b));
}

static void understand(const struct wire *w, struct plain *p)
{
        size_t at = 0;
        p->size = 0;
        p->count = 0;
        p->wrong = false;
        for (uint64_t number = 0;; number++) {
                if (number <= RECORDS_MAX) {
                        p->count = (unsigned)number;
                        p->begin[number] = at;
                        p->before[number] = p->size;
                }
                if (w->size - at < CHECKED_HEADER)
                        return;
                const uint8_t *h = w->data + at;
                uint32_t size = bytes_get_u32(h), sum = bytes_get_u32(h + 4);
                at += CHECKED_HEADER;
                p->wrong = !size || size > CHECKED_RECORD_MAX ||
                           bytes_get_u32(h + 8) != header_sum(number, size, sum);
                if (p->wrong || w->size - at < size)
                        return;
                p->wrong = crc32c(0, w->data + at, size) != sum;
                if (p->wrong)
                        return;
                memcpy(p->data + p->size, w->data + at, size);
                p->size += size;
                at += size;
        }
}

/* ---- the two kinds of senders --------------------------------------------------------------- */

static uint8_t contents[TOTAL];

/* How many bytes at their beginnings are equal? */
static size_t common_start(const struct wire *a, const struct wire *b)
{
        enum { BLOCK = 1024 };
        size_t n = a->size < b->size ? a->size : b->size, same = 0;
        while (n - same >= BLOCK && !memcmp(a->data + same, b->data + same, BLOCK))
                same += BLOCK;
        while (same < n && a->data[same] == b->data[same])
                same++;
        return same;
}

/* Send the contents through a real sender. *ret_size is the number of bytes that it took. */
static void send_contents(struct input *in, bool places, struct wire *w, size_t *ret_size)
{
        struct below b = { .wire = w, .in = in };
        struct conn *c = begin(&b, places);
        size_t sent = 0, total = in->large ? TOTAL : USUAL;
        unsigned calls = 1 + take(in, 1) % 32;
        for (unsigned i = 0; i < calls; i++) {
                /* A header and what follows it, as sessions send them. */
                size_t head = take_size(in), rest = take_size(in);
                head = head < total - sent ? head : total - sent;
                rest = rest < total - sent - head ? rest : total - sent - head;
                for (size_t end = sent + head + rest; sent < end;) {
                        size_t first = end - sent > rest ? end - sent - rest : 0;
                        struct iovec iov[3] = { { contents + sent, first },
                                                { NULL, 0 },
                                                { contents + sent + first, end - sent - first } };
                        ssize_t n = c->ops->sendv(c, first ? iov : iov + 2, first ? 3 : 1);
                        fuzz_check(n == SP_E_AGAIN || (n > 0 && (size_t)n <= end - sent));
                        sent += n > 0 ? (size_t)n : 0;
                }
        }
        conn_close(c);
        *ret_size = sent;
}

static void lose(struct wire *w, size_t at, size_t size)
{
        size = size < w->size - at ? size : w->size - at;
        memmove(w->data + at, w->data + at + size, w->size - at - size);
        w->size -= size;
}

static void repeat(struct wire *w, size_t at, size_t size)
{
        size = size < w->size - at ? size : w->size - at;
        size = size < ROOM - w->size ? size : ROOM - w->size;
        memmove(w->data + at + size, w->data + at, w->size - at);
        w->size += size;
}

/* Exchange [at, middle) and [middle, end). */
static void exchange(struct wire *w, size_t at, size_t middle, size_t end)
{
        static uint8_t first[ROOM];
        memcpy(first, w->data + at, middle - at);
        memmove(w->data + at, w->data + middle, end - middle);
        memcpy(w->data + at + (end - middle), first, middle - at);
}

/* `p` has the places where records began before the first change. */
static void change(struct input *in, struct wire *w, const struct plain *p)
{
        unsigned flips = 0;
        for (unsigned i = 0; i < CHANGES_MAX && in->left && w->size; i++) {
                unsigned how = take(in, 1) % 10, record = take(in, 2);
                size_t at = take(in, 3) % w->size;
                record = p->count ? record % p->count : 0;
                size_t begin = p->begin[record], end = p->count ? p->begin[record + 1] : 0;
                bool whole = p->count && end <= w->size;
                if (how < 2 && flips < FLIPS_MAX) {
                        w->data[at] ^= (uint8_t)(1u << take(in, 1) % 8);
                        flips++;
                } else if (how == 2) {
                        lose(w, at, take_size(in));
                } else if (how == 3) {
                        repeat(w, at, take_size(in));
                } else if (how == 4) {
                        w->size = at;
                } else if (how == 5 && whole) {
                        lose(w, begin, end - begin);
                } else if (how == 6 && whole) {
                        repeat(w, begin, end - begin);
                } else if (how == 7 && record + 2 <= p->count && p->begin[record + 2] <= w->size) {
                        exchange(w, begin, end, p->begin[record + 2]);
                } else if (how == 8 && whole) {
                        bytes_put_u32(w->data + begin, take(in, 4));
                } else if (how == 9) {
                        return;
                }
        }
}

static void add_record(struct input *in, struct wire *w, uint64_t *number)
{
        uint8_t header[CHECKED_HEADER];
        unsigned how = take(in, 1);
        size_t size = take_size(in), n = in->left < 64 ? in->left : 64;
        if (how % 8 == 7) {
                put(w, in->p, size < n ? size : n);
                in->p += size < n ? size : n;
                in->left -= size < n ? size : n;
                return;
        }
        size = size < CHECKED_RECORD_MAX ? size : CHECKED_RECORD_MAX;
        const uint8_t *payload = contents + take(in, 1);
        uint32_t claim = how % 8 == 4 ? take(in, 4) : (uint32_t)size;
        uint32_t sum = crc32c(0, payload, size) ^ (how % 8 == 5 ? take(in, 4) : 0);
        bytes_put_u32(header, claim);
        bytes_put_u32(header + 4, sum);
        bytes_put_u32(header + 8,
                      header_sum(*number + (how % 8 == 6 ? take(in, 1) : 0), claim, sum));
        ++*number;
        put(w, header, sizeof(header));
        put(w, payload, size);
}

/* ---- the receiver --------------------------------------------------------------------------- */

static const uint8_t guard[GUARD + 1] = "not to be touched"; /* behind the last place */

struct receiver {
        struct conn *conn;
        struct below below;
        const struct plain *plain;
        struct rng rng; /* of the sizes of places */
        uint8_t *came;
        size_t got;
        size_t edges
                [PIECES]; /* the ends of the places from `got` on: they stay, as a session's do */
};

static size_t next_edge(struct receiver *r, size_t from)
{
        static const size_t most[] = { 1, 24, 24, 300, 300, 5000, 5000, CHECKED_RECORD_MAX + 10 };
        size_t n = rng_chance(&r->rng, 10)
                           ? 0
                           : 1 + rng_below(&r->rng, most[rng_below(&r->rng, array_size(most))]);
        /* Often the end of a record, or a byte more or less. */
        unsigned i = 0;
        while (i < r->plain->count && r->plain->before[i + 1] <= from)
                i++;
        if (i < r->plain->count && rng_chance(&r->rng, 30))
                n = r->plain->before[i + 1] - from + rng_below(&r->rng, 3) - 1;
        return from + n < ROOM ? from + n : ROOM;
}

/* Let `arrives` more bytes come, and offer places, `pieces` at most. Returns the result of
 * recvv. */
static ssize_t receive(struct receiver *r, size_t arrives, int pieces)
{
        struct below *b = &r->below;
        struct iovec iov[PIECES];
        bool rest = checked_has_rest(r->conn);
        size_t from = r->got, more = b->wire->size - b->arrived;
        b->arrived += arrives < more ? arrives : more;
        bool idle = b->given == b->arrived;
        for (int i = 0; i < pieces; i++) {
                iov[i] = (struct iovec){ r->came + from, r->edges[i] - from };
                from = r->edges[i];
        }
        memcpy(r->came + from, guard, GUARD);
        ssize_t n = r->conn->ops->recvv(r->conn, iov, pieces);
        fuzz_check(n == SP_E_AGAIN || n == SP_E_LINK || (n > 0 && (size_t)n <= from - r->got));
        /* The rest of a record is given without a read of the connection below. Without a rest
         * nothing is given. */
        if (rest)
                fuzz_check(n != SP_E_AGAIN);
        else if (idle)
                fuzz_check(n == (b->ends && !more ? SP_E_LINK : SP_E_AGAIN));
        fuzz_check(!memcmp(r->came + from, guard, GUARD));
        fuzz_check(r->conn->came == b->given);
        /* poll(2) reports the rest, and nothing else: a thread neither sleeps on bytes nor
         * spins. */
        rest = checked_has_rest(r->conn);
        fuzz_check((r->conn->fd != DESCRIPTOR) == rest);
        fuzz_check(n != SP_E_AGAIN || !rest);
        r->got += n > 0 ? (size_t)n : 0;
        return n;
}

static void move_edges(struct receiver *r)
{
        unsigned passed = 0;
        while (passed < PIECES && r->edges[passed] <= r->got)
                passed++;
        memmove(r->edges, r->edges + passed, (PIECES - passed) * sizeof(r->edges[0]));
        for (unsigned i = PIECES - passed; i < PIECES; i++)
                do
                        r->edges[i] = next_edge(r, i ? r->edges[i - 1] : r->got);
                while (!i && r->edges[i] <= r->got);
}

/* Receive the whole stream, in the portions that the input says. `limit`: no more may be handed
 * out. */
static void receive_all(struct input *in, unsigned how, struct wire *w, const struct plain *p,
                        size_t limit)
{
        static uint8_t came[ROOM + GUARD];
        struct receiver r = { .plain = p, .rng = { take(in, 1) }, .came = came };
        r.below = (struct below){ .wire = w, .ends = how & ENDS };
        r.conn = begin(&r.below, how & PLACES);
        ssize_t n = 0;
        while (n >= 0 || (n == SP_E_AGAIN && r.below.arrived < w->size)) {
                size_t arrives = in->left ? take_size(in) : ROOM;
                move_edges(&r);
                n = receive(&r, arrives == 1 ? 0 : arrives, 1 + (int)(arrives % PIECES));
                fuzz_check(r.got <= p->size && r.got <= limit);
        }
        fuzz_check(r.got == p->size && !memcmp(came, p->data, r.got));
        fuzz_check(n == (p->wrong || how & ENDS ? SP_E_LINK : SP_E_AGAIN));
        /* Once ended, it stays ended, whatever comes. */
        for (unsigned i = 0; i < 3 && n == SP_E_LINK; i++) {
                move_edges(&r);
                fuzz_check(receive(&r, 100, 1 + (int)i) == SP_E_LINK);
        }
        conn_close(r.conn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct wire wire, original;
        static struct plain plain;
        static bool prepared;
        struct input in = { data, size, false };
        for (size_t i = 0; i < TOTAL && !prepared; i++)
                contents[i] = (uint8_t)rng_mix(i);
        prepared = true;
        log_threshold = LOG_ERROR;
        wire.size = 0;
        unsigned how = take(&in, 1);
        in.large = (how & LARGE) == LARGE;
        size_t limit = ROOM;
        if (how & HOSTILE) {
                uint64_t number = 0;
                size_t most = in.large ? TOTAL : USUAL;
                for (unsigned left = take(&in, 1) % 32; left && in.left && wire.size < most; left--)
                        add_record(&in, &wire, &number);
                understand(&wire, &plain);
        } else {
                size_t sent;
                /* The first bytes are what the connection below takes at a time. */
                size_t n = take(&in, 1) % 32;
                n = n < in.left ? n : in.left;
                struct input sending = { in.p, n, in.large };
                in.p += n;
                in.left -= n;
                send_contents(&sending, how & PLACES, &wire, &sent);
                understand(&wire, &plain);
                fuzz_check(!plain.wrong && plain.size == sent &&
                           !memcmp(plain.data, contents, sent));
                memcpy(original.data, wire.data, wire.size);
                original.size = wire.size;
                change(&in, &wire, &plain);
                size_t same = common_start(&original, &wire);
                unsigned record = plain.count;
                while (record && plain.begin[record] > same)
                        record--;
                limit = same == original.size ? sent : plain.before[record];
                understand(&wire, &plain);
                fuzz_check(plain.size <= limit && !memcmp(plain.data, contents, plain.size));
        }
        receive_all(&in, how, &wire, &plain, limit);
        return 0;
}
