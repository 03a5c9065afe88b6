/* A link that writes by a fabric (transport/fabric.h) and has a hostile other side. That side
 * sends any records and reports writes to any of this side's places. It writes to all memory that
 * is registered for it. The test plays libfabric.
 *
 * Memory is registered only within the place that the receiver gave. Writes take only what the
 * sender offered. Nothing stays registered. Data that came in records is handed out as it was
 * sent. More than CREDIT bytes are never under way.
 *
 * The first byte of the input says whether this side dialled (1), whether a registration fails
 * (2), and whether events have to be polled for (4). The others are steps with their operands. */
#include "fuzz/target.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "transport/fabric.h"

enum {
        DIALLED = 1,
        FAILS = 2,
        MUST_POLL = 4,
        STEPS_MAX = 300,
        REGIONS = 40,
        ROOM = 1 << 20,
        MESSAGE_MAX = 300 << 10,
        RECORD = 24,
        DATA_MAX = 64 << 10,
        CREDIT = 256 << 10,
        DATA = 3,
        TAKEN = 4,
        OFFER = 5,
        TELL_MAX = 400,
        KINDS = 8,
};

struct input {
        const uint8_t *p;
        size_t left;
};

static uint64_t take(struct input *in, unsigned n)
{
        uint64_t v = 0;
        for (; n && in->left; n--, in->left--)
                v = v << 8 | *in->p++;
        return v;
}

/* From one byte: 0 to 127, or a power of two with a little more or less. */
static size_t take_size(struct input *in)
{
        size_t v = take(in, 1);
        return v < 0x80 ? v : ((size_t)16 << v % 15) + (v >> 5) % 4 * 8 - 8;
}

/* ---- libfabric, played ---------------------------------------------------------------------- */

struct region {
        const uint8_t *data;
        size_t size;
        bool used, remote;
};

struct rma {
        struct region regions[REGIONS];
        void *under_way[REGIONS];
        size_t write_count;
        struct rma_event events[REGIONS];
        size_t event_count;
        unsigned fails_in; /* registrations; 0: never */
        bool was_used;
        bool full, must_poll, stopped, freed;
};

static struct rma rma;
static uint8_t place[MESSAGE_MAX], contents[2 * MESSAGE_MAX];
static size_t place_size, sent, left; /* what was given to recvv, and what is offered to sendv */

int rma_find(const char *provider)
{
        return SP_E_UNSUPP;
}

int rma_open(const char *provider, const struct socket_address *local_path, struct rma **ret,
             const char **ret_why)
{
        *ret_why = "played";
        return SP_E_UNSUPP;
}

struct rma *rma_free(struct rma *r)
{
        if (r) {
                fuzz_check(!r->freed && (r->stopped || !r->was_used));
                for (size_t i = 0; i < REGIONS; i++)
                        fuzz_check(!r->regions[i].used);
                r->freed = true;
        }
        return NULL;
}

void rma_stop(struct rma *r)
{
        r->stopped = true;
}

const char *rma_provider(const struct rma *r)
{
        return "played";
}

struct bytes rma_address(const struct rma *r, uint64_t *ret_form)
{
        *ret_form = 1;
        return bytes_str("here");
}

int rma_connect(struct rma *r, struct bytes address, uint64_t form)
{
        fuzz_check(address.size <= RMA_ADDRESS_MAX);
        return form == 1 && address.size ? 0 : SP_E_PROTO;
}

int rma_fd(const struct rma *r)
{
        return -1;
}

bool rma_must_poll(const struct rma *r)
{
        return r->must_poll;
}

bool rma_may_sleep(struct rma *r)
{
        return !r->event_count;
}

static bool within(const uint8_t *data, size_t size, const uint8_t *whole, size_t whole_size)
{
        return data >= whole && size <= whole_size && (size_t)(data - whole) <= whole_size - size;
}

int rma_register(struct rma *r, const void *data, size_t size, bool remote, struct rma_region *ret)
{
        fuzz_check(!r->stopped && size);
        r->was_used = true;
        /* Otherwise it is what a first write is tried with. */
        fuzz_check(
                within(data, size, remote ? place : contents + sent, remote ? place_size : left) ||
                size == 8);
        if (r->fails_in && !--r->fails_in)
                return SP_E_LINK;
        for (size_t i = 0; i < REGIONS; i++) {
                if (r->regions[i].used)
                        continue;
                r->regions[i] = (struct region){ data, size, true, remote };
                *ret = (struct rma_region){ &r->regions[i], (uintptr_t)data, i + 1 };
                return 0;
        }
        fuzz_check(false); /* they are bounded */
        return SP_E_LINK;
}

void rma_release(struct rma *r, struct rma_region *region)
{
        struct region *g = region->handle;
        fuzz_check(!r->freed);
        if (g) {
                fuzz_check(g->used);
                g->used = false;
        }
        *region = (struct rma_region){ 0 };
}

int rma_write(struct rma *r, struct bytes data, const struct rma_region *from, uint64_t address,
              uint64_t key, uint32_t tell, void *context)
{
        const struct region *g = from->handle;
        fuzz_check(!r->stopped && g && g->used && !g->remote);
        fuzz_check(within(data.data, data.size, g->data, g->size));
        if (r->full || r->write_count == REGIONS)
                return SP_E_AGAIN;
        r->under_way[r->write_count++] = context;
        return 0;
}

int rma_poll(struct rma *r, struct rma_event *ret, int max)
{
        size_t n = r->event_count < (size_t)max ? r->event_count : (size_t)max;
        memcpy(ret, r->events, n * sizeof(*ret));
        r->event_count -= n;
        memmove(r->events, r->events + n, r->event_count * sizeof(*ret));
        return (int)n;
}

const char *rma_error(const struct rma *r)
{
        return "";
}

static void happens(struct rma_event e)
{
        if (rma.event_count < REGIONS)
                rma.events[rma.event_count++] = e;
}

/* A write of this side's is done, in any order. */
static void complete(size_t which)
{
        if (!rma.write_count || rma.event_count == REGIONS)
                return;
        which %= rma.write_count;
        happens((struct rma_event){ .context = rma.under_way[which] });
        rma.under_way[which] = rma.under_way[--rma.write_count];
}

/* The other side writes wherever it may. */
static void overwrite(uint8_t value)
{
        for (size_t i = 0; i < REGIONS; i++)
                if (rma.regions[i].used && rma.regions[i].remote)
                        memset((void *)(uintptr_t)rma.regions[i].data, value, rma.regions[i].size);
}

/* ---- the connection below ------------------------------------------------------------------- */

static struct below {
        struct conn base;
        uint8_t data[ROOM];
        size_t size, arrived, given;
        bool blocked, closed;
        bool honest; /* all was sent as records, with the data that is expected */
        bool counts; /* nothing that this side says was held back */
        /* This side's output: the rest of a record, and the data that its records announce as
         * under way. */
        uint8_t head[RECORD];
        size_t have, rest;
        uint64_t on_way, taken;
        struct {
                size_t end, size;
        } tell[TELL_MAX]; /* what the other side says to have taken: records that this side has not read yet */
        size_t told, tells;
        uint64_t offered, by_fabric; /* by its words, and what was handed out of that */
        uint64_t data_came, data_got;
} below;

static void listen_to(const uint8_t *p, size_t n)
{
        while (n && !rma.freed) { /* afterwards there are no records */
                size_t part = below.rest < n ? below.rest : n;
                below.rest -= part;
                p += part;
                n -= part;
                if (!n)
                        return;
                below.head[below.have++] = *p++;
                n--;
                if (below.have < RECORD)
                        continue;
                uint32_t kind = bytes_get_u32(below.head), size = bytes_get_u32(below.head + 4);
                below.have = 0;
                fuzz_check(kind && kind < KINDS);
                if (kind == DATA) {
                        fuzz_check(size && size <= DATA_MAX);
                        below.on_way += size;
                        fuzz_check(!below.counts || below.on_way <= below.taken + CREDIT);
                }
                if (kind == TAKEN)
                        fuzz_check(!below.honest || size <= below.data_came);
                below.rest = kind == DATA || kind == 1 ? size : 0;
        }
}

static ssize_t below_sendv(struct conn *c, const struct iovec *iov, int n)
{
        ssize_t all = 0;
        if (below.blocked)
                return SP_E_AGAIN;
        for (int i = 0; i < n; i++) {
                listen_to(iov[i].iov_base, iov[i].iov_len);
                all += (ssize_t)iov[i].iov_len;
        }
        return all;
}

static ssize_t below_recvv(struct conn *c, const struct iovec *iov, int n)
{
        size_t before = below.given;
        for (int i = 0; i < n && below.given < below.arrived; i++) {
                size_t part = below.arrived - below.given;
                part = part < iov[i].iov_len ? part : iov[i].iov_len;
                memcpy(iov[i].iov_base, below.data + below.given, part);
                below.given += part;
        }
        for (; below.told < below.tells && below.tell[below.told].end <= below.given;
             below.told++) {
                uint64_t under_way = below.on_way - below.taken,
                         taken = below.tell[below.told].size;
                below.taken += taken < under_way ? taken : under_way;
        }
        return below.given > before ? (ssize_t)(below.given - before) : SP_E_AGAIN;
}

static void below_close(struct conn *c)
{
        below.closed = true;
}

static const struct transport_ops below_ops = {
        .name = "played", .sendv = below_sendv, .recvv = below_recvv, .close = below_close
};

static void put(const void *data, size_t size)
{
        size = size < ROOM - below.size ? size : ROOM - below.size;
        memcpy(below.data + below.size, data, size);
        below.size += size;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Any record of the other side; behind data and an address are so many bytes. */
static void put_record(struct input *in)
{
        uint8_t head[RECORD];
        uint32_t kind = (uint32_t)take(in, 1) % (KINDS + 1), size = (uint32_t)take_size(in);
        bytes_put_u32(head, kind);
        bytes_put_u32(head + 4, size);
        bytes_put_u64(head + 8, take(in, 1));
        bytes_put_u64(head + 16, take(in, 1));
        if (below.size + RECORD + size > ROOM)
                return;
        put(head, sizeof(head));
        if (kind == TAKEN && below.tells < TELL_MAX) {
                below.tell[below.tells].end = below.size;
                below.tell[below.tells++].size = size;
        }
        if (kind == OFFER)
                below.offered += size;
        if (kind == DATA) {
                bool fits = below.data_came + size <= sizeof(contents);
                below.honest = below.honest && fits;
                put(contents + (fits ? below.data_came : 0), size);
                below.data_came += size;
        } else if (kind == 1) {
                put(contents, size);
        }
}

static bool send_some(struct input *in, struct conn *c)
{
        if (!left) {
                left = 1 + take_size(in);
                left = left < MESSAGE_MAX ? left : MESSAGE_MAX;
                sent = 0;
        }
        struct iovec iov[2] = { { contents + sent, left < 24 ? left : 24 }, { NULL, 0 } };
        if (sent) /* a frame's header went before */
                iov[0].iov_len = left;
        iov[1] = (struct iovec){ contents + sent + iov[0].iov_len, left - iov[0].iov_len };
        ssize_t n = c->ops->sendv(c, iov, iov[1].iov_len ? 2 : 1);
        fuzz_check(n == SP_E_AGAIN || n == SP_E_LINK || (n > 0 && (size_t)n <= left));
        if (n > 0) {
                sent += (size_t)n;
                left -= (size_t)n;
        }
        return n != SP_E_LINK;
}

static bool receive_some(struct input *in, struct conn *c)
{
        uint64_t by_fabric, unused;
        if (!place_size) {
                place_size = 1 + take_size(in);
                place_size = place_size < sizeof(place) ? place_size : sizeof(place);
        }
        struct iovec iov = { place, place_size };
        ssize_t n = c->ops->recvv(c, &iov, 1);
        fuzz_check(n == SP_E_AGAIN || n == SP_E_LINK || (n > 0 && (size_t)n <= place_size));
        if (n <= 0)
                return n != SP_E_LINK;
        place_size = 0;
        if (rma.freed)
                return true; /* the connection below has it as it is */
        fabric_count(c, &unused, &by_fabric);
        fuzz_check(!by_fabric || by_fabric == (uint64_t)n);
        below.by_fabric += by_fabric;
        fuzz_check(!below.honest || below.by_fabric <= below.offered);
        if (by_fabric || !below.honest)
                return true;
        fuzz_check(below.data_got + (size_t)n <= below.data_came);
        fuzz_check(!memcmp(place, contents + below.data_got, (size_t)n));
        below.data_got += (size_t)n;
        return true;
}

static bool step(struct input *in, struct conn *c)
{
        uint32_t number;
        struct pollfd none = { .fd = -1 };
        switch (take(in, 1) % 10) {
        case 0:
                return send_some(in, c);
        case 1:
                return receive_some(in, c);
        case 2:
                put_record(in);
                below.arrived = below.size;
                break;
        case 3: { /* a record comes in parts, or no record */
                size_t n = take(in, 1) % 64;
                n = n < in->left ? n : in->left;
                below.honest = below.honest && !n;
                below.counts = below.counts && !n;
                put(in->p, n);
                in->p += n;
                in->left -= n;
                below.arrived = below.size;
                break;
        }
        case 4:
                put_record(in);
                below.arrived += below.arrived < below.size;
                break;
        case 5:
                number = (uint32_t)take(in, 1) << 16;
                happens((struct rma_event){ .arrived = true,
                                            .data = number | (uint32_t)take(in, 1) });
                break;
        case 6:
                complete(take(in, 1));
                break;
        case 7:
                if (take(in, 1) & 1)
                        (void)conn_peek(c);
                else
                        (void)conn_arm(c);
                (void)conn_polled(c, &none, 1);
                break;
        case 8:
                number = (uint32_t)take(in, 1);
                below.blocked = number & 1;
                below.counts = below.counts && !below.blocked;
                rma.full = number & 2;
                break;
        default:
                overwrite((uint8_t)take(in, 1));
        }
        return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static int fd = -1;
        struct input in = { data, size };
        for (size_t i = 0; i < sizeof(contents) && fd < 0; i++)
                contents[i] = (uint8_t)(i * 2654435761u >> 13);
        if (fd < 0) {
                int pair[2];
                fuzz_check(pipe2(pair, O_CLOEXEC) == 0);
                fd = pair[0];
        }
        log_threshold = LOG_ERROR;
        memset(&rma, 0, sizeof(rma));
        unsigned how = (unsigned)take(&in, 1);
        rma.must_poll = how & MUST_POLL;
        rma.fails_in = how & FAILS ? 1 + (unsigned)take(&in, 1) % 8 : 0;
        below.base = (struct conn){ .ops = &below_ops, .fd = fd, .room_fd = fd };
        below.size = below.arrived = below.given = below.have = below.rest = 0;
        below.on_way = below.taken = below.data_came = below.data_got = 0;
        below.told = below.tells = 0;
        below.offered = below.by_fabric = 0;
        below.blocked = below.closed = false;
        below.honest = below.counts = true;
        place_size = sent = left = 0;

        struct conn *c = &below.base;
        if (fabric_begin(&c, &rma, how & DIALLED ? bytes_str("there") : bytes_of(NULL, 0), 1) ==
            0) {
                bool alive = true;
                for (unsigned i = 0; in.left && alive && i < STEPS_MAX; i++)
                        alive = step(&in, c);
                /* Bytes from before the end of the connection count. After it nothing more
                 * comes. */
                for (unsigned i = 0; !alive && receive_some(&in, c); i++)
                        fuzz_check(i < ROOM);
                if (!alive)
                        fuzz_check(!send_some(&in, c) && !receive_some(&in, c));
                conn_close(c);
        }
        fuzz_check(rma.freed && below.closed);
        return 0;
}
