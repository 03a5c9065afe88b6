/* A connection whose large pieces go by a fabric. The two sides send records over the plain
 * connection: a header and, with some kinds, bytes behind it.
 *
 *      READY      the side that dialled: my endpoint's address and form; NOT_READY: no fabric
 *      DATA       so many bytes of the stream; at most CREDIT of them are not taken by the receiver
 *      TAKEN      so many of these were taken
 *      OFFER      so many bytes of the stream come next, by the fabric
 *      PLACE      the first so many of those go to this address, with this key
 *      PROBE      the first write, which tests the fabric, goes to this address, with this key
 *
 * So the receiver's memory is never overrun. Bytes go from the sender's memory straight to their
 * place at the receiver. Each write carries remote completion data: the number of its place, and
 * the number of writes to this place. So writes may arrive in any order.
 *
 * An error of the fabric loses the connection, as any error of a transport does. The session's next
 * connection continues from there, without a fabric. */
#include "transport/fabric.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/event_set.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/lock.h"
#include "os/net/socket.h"
#include "os/thread.h"
#include "os/wakeup.h"

#define LOG "fabric"

enum {
        RECORD = 24,
        DATA_MAX = 64 << 10, /* bytes in one record */
        CREDIT = 256 << 10,
        LARGE = 128 << 10, /* bytes from which on they go by the fabric */
        SMALL = 4 << 10,   /* a piece below it goes by itself: a frame's header */
        OFFER_MAX = 1 << 30,
        PIECES = 16,
        PATIENCE =
                64
                << 20, /* bytes that go through the connection before the other side has been reached */
        EVENTS = 16,
        IN_SIZE = 2 * (RECORD + DATA_MAX),
};

/* Remote completion data of the first write; a place has at most PIECES. */
#define PROBED UINT32_MAX

enum kind { READY = 1, NOT_READY, DATA, TAKEN, OFFER, PLACE, PROBE };

struct record {
        uint32_t kind, size;
        uint64_t address, key;
};

/* A place of the other side's. */
struct target {
        size_t size; /* 0: none */
        uint64_t address, key;
};

struct writing {
        struct bytes data;
        struct rma_region from;
        bool posted;
};

struct fabric {
        struct conn base;
        struct conn *inner;
        int events;       /* the set of connection, endpoint and `bell`; base.fd is the same */
        int bell;         /* wakes the thread that sleeps, when another thread has found an event */
        struct lock lock; /* all that follows: the directions share endpoint and connection */
        struct rma *rma;  /* NULL: bytes go through the connection as they are */
        bool ready;       /* both endpoints know each other */
        bool proven;      /* the other endpoint was reached: large pieces go there */
        uint64_t unproven; /* bytes sent before */
        bool failed;       /* the fabric has */
        int status;        /* 0, or SP_E_LINK */
        bool asleep;       /* the thread that polls is, or is about to */
        unsigned want;     /* the events that it waits for */

        /* The connection, which carries records. */
        struct {
                bool wants_room;
                struct buf out; /* to be sent */
                size_t out_head;
                uint8_t in[IN_SIZE]; /* received, up to the first that is not whole */
                size_t in_have;
                uint64_t counted_sent, counted_received;
        } records;

        /* The first write: its target and its bytes, and the memory for the other side's first
         * write. */
        struct {
                struct target to;
                struct writing write;
                uint8_t out[8], in[8];
                struct rma_region region;
        } probe;

        /* The stream to the other side. */
        struct {
                uint64_t on_way;  /* bytes of DATA that the other side has not taken */
                uint64_t offered; /* the first to.size of these have a place */
                struct iovec pieces
                        [PIECES]; /* what the caller has to send, while it waits; it keeps them */
                int piece_count;
                struct target to,
                        to_next; /* the next one: it may arrive before the acknowledgement of `to` */
                uint16_t place_number;
                struct writing writes[PIECES];
                unsigned write_count, posted, written; /* of the place */
        } sending;

        /* The stream from the other side. */
        struct {
                struct buf stream; /* of DATA, from stream_head on not taken */
                size_t stream_head;
                size_t untold; /* bytes taken that the other side was not notified of */
                /* Bytes of the stream that come by the fabric: behind those of `stream`, but once
                 * the last of them have their place in front; then `next` come behind. */
                uint64_t expected, next;
                struct iovec place;
                struct rma_region region; /* of it */
                bool placed;              /* the other side was notified of it */
                uint16_t number;          /* of the next place */
                unsigned arrived, coming; /* writes to it; coming 0: not known yet */
        } receiving;
};

static struct fabric_choice choice;

/* Better than TCP, the best first. */
static const char *const better[] = { "efa", "opx", "psm3", "verbs;ofi_rxm" };

/* ---- choosing ------------------------------------------------------------------------------- */

static void note_name(void *found, const char *name)
{
        *(bool *)found |= name[0] != '.';
}

/* The folder is there without a device, too, on kernels that have the code built in. */
static bool has_hardware(void)
{
        bool found = false;
        (void)folder_names("/sys/class/infiniband", note_name, &found);
        return found;
}

static void add_name(const char *name)
{
        size_t at = strlen(choice.names);
        snprintf(choice.names + at, sizeof(choice.names) - at, "%s%s", at ? "," : "", name);
}

bool fabric_needs_network(const char *setting)
{
        if (!strcmp(setting, "auto"))
                return has_hardware();
        return strcmp(setting, "off") && strcmp(setting, "shm");
}

void fabric_configure(const char *setting)
{
        choice.names[0] = '\0';
        choice.named = strcmp(setting, "auto") && strcmp(setting, "off");
        if (choice.named) {
                int r = strlen(setting) < RMA_NAME_MAX && !strchr(setting, ',') ? rma_find(setting)
                                                                                : SP_E_NOENT;
                if (!r)
                        add_name(setting);
                else if (r == SP_E_VERSION)
                        log_warn(
                                LOG,
                                "--fabric=%s: not used with a libfabric before 1.18, see docs/internals/fabric.md; data between servers goes over TCP",
                                setting);
                else if (r == SP_E_UNSUPP)
                        log_warn(
                                LOG,
                                "--fabric=%s: there is no libfabric here, or was none when this was built (on "
                                "Debian: apt install libfabric1); data between servers goes over TCP",
                                setting);
                else
                        log_warn(
                                LOG,
                                "--fabric=%s: libfabric has no such provider on this host, or it finds no device or not "
                                "the address of the host's name (fi_info -l lists those that there are, "
                                "FI_LOG_LEVEL=warn tells more); data between servers goes over TCP",
                                setting);
        } else if (!strcmp(setting, "auto") && has_hardware()) {
                /* Without such devices the library is not even loaded. */
                for (size_t i = 0; i < array_size(better); i++)
                        if (rma_find(better[i]) == 0)
                                add_name(better[i]);
        }
}

/* A fabric does not encrypt: if the connection is encrypted, the user must have said that this is fine. */
static bool may_use(const struct conn *c, bool named, const char *name)
{
        if (c->ops->caps & TRANSPORT_ENCRYPTED && !named)
                return false;
        return strcmp(name, "shm") != 0 || c->ops->caps & TRANSPORT_SAME_HOST ||
               socket_is_within_host(c->fd);
}

/* Call with each name of a list until one is taken. */
static const char *next_name(const char *list, char name[RMA_NAME_MAX])
{
        size_t n = strcspn(list, ",");
        snprintf(name, RMA_NAME_MAX, "%.*s", (int)(n < RMA_NAME_MAX ? n : 0), list);
        return list + n + (list[n] == ',');
}

const struct fabric_choice *fabric_chosen(void)
{
        return &choice;
}

void fabric_offer(const struct conn *c, const struct fabric_choice *of, char *ret)
{
        char name[RMA_NAME_MAX];
        ret[0] = '\0';
        for (const char *p = of->names; *p;) {
                size_t at = strlen(ret);
                p = next_name(p, name);
                if (may_use(c, of->named, name))
                        snprintf(ret + at, FABRIC_NAMES_MAX - at, "%s%s", at ? "," : "", name);
        }
}

struct rma *fabric_open(const struct conn *c, struct bytes offer)
{
        char theirs[FABRIC_NAMES_MAX], name[RMA_NAME_MAX], mine[RMA_NAME_MAX];
        snprintf(theirs, sizeof(theirs), "%.*s", (int)offer.size, (const char *)offer.data);
        for (const char *p = choice.names; *p;) {
                p = next_name(p, mine);
                if (!may_use(c, choice.named, mine))
                        continue;
                for (const char *q = theirs; *q;) {
                        q = next_name(q, name);
                        if (strcmp(name, mine) != 0)
                                continue;
                        struct socket_address near;
                        const char *why;
                        struct rma *r;
                        bool has = socket_own_address(c->fd, &near);
                        int s = rma_open(mine, has ? &near : NULL, &r, &why);
                        if (!s)
                                return r;
                        log_warn(
                                LOG,
                                "%s can't be used (%s: %s); data goes over TCP. FI_LOG_LEVEL=warn tells more",
                                mine, why, status_text(s));
                        return NULL;
                }
        }
        return NULL;
}

/* ---- the connection ------------------------------------------------------------------------- */

static int lost(struct fabric *f)
{
        f->status = SP_E_LINK;
        return SP_E_LINK;
}

static int broken(struct fabric *f)
{
        /* A server that has gone takes its endpoint along. */
        uint8_t byte;
        struct iovec iov = { &byte, 1 };
        if (!f->status && f->inner->ops->recvv(f->inner, &iov, 1) != SP_E_LINK) {
                log_warn(
                        LOG,
                        "%s: %s; data to and from that server goes over TCP from now on (--fabric=off: from the "
                        "beginning; FI_LOG_LEVEL=warn tells more)",
                        rma_provider(f->rma), *rma_error(f->rma) ? rma_error(f->rma) : "no answer");
                f->failed = true;
        }
        return lost(f);
}

static void watch(struct fabric *f, bool room)
{
        if (room == f->records.wants_room)
                return;
        if (event_set_change(f->events, f->inner->fd, EVENT_IN | (room ? EVENT_OUT : 0), NULL))
                f->records.wants_room = room;
}

static int flush(struct fabric *f)
{
        while (f->records.out_head < f->records.out.size) {
                struct iovec iov = { f->records.out.data + f->records.out_head,
                                     f->records.out.size - f->records.out_head };
                ssize_t n = f->inner->ops->sendv(f->inner, &iov, 1);
                if (n == SP_E_AGAIN) {
                        watch(f, true);
                        return 0;
                }
                if (n <= 0)
                        return lost(f);
                f->records.out_head += (size_t)n;
        }
        f->records.out.size = f->records.out_head = 0;
        watch(f, false);
        return 0;
}

/* Append a record and the bytes of `iov` to what the caller's flush sends. */
static int send_record(struct fabric *f, const struct record *m, const struct iovec *iov, int n)
{
        uint8_t header[RECORD];
        bytes_put_u32(header, m->kind);
        bytes_put_u32(header + 4, m->size);
        bytes_put_u64(header + 8, m->address);
        bytes_put_u64(header + 16, m->key);
        if (f->records.out_head == f->records.out.size)
                f->records.out.size = f->records.out_head = 0;
        int r = buf_put(&f->records.out, header, sizeof(header));
        size_t left = n ? m->size : 0;
        for (int i = 0; !r && left; i++) {
                size_t size = iov[i].iov_len < left ? iov[i].iov_len : left;
                r = buf_put(&f->records.out, iov[i].iov_base, size);
                left -= size;
        }
        return r < 0 ? lost(f) : 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void writes_end(struct fabric *f)
{
        for (unsigned i = 0; i < f->sending.write_count; i++)
                rma_release(f->rma, &f->sending.writes[i].from);
        f->sending.write_count = f->sending.posted = f->sending.written = 0;
}

/* The caller's pieces up to the end of the place. */
static int writes_begin(struct fabric *f)
{
        size_t left = f->sending.to.size;
        for (int i = 0; i < f->sending.piece_count && left; i++) {
                size_t size =
                        f->sending.pieces[i].iov_len < left ? f->sending.pieces[i].iov_len : left;
                if (!size)
                        continue;
                struct writing *w = &f->sending.writes[f->sending.write_count];
                *w = (struct writing){ .data = bytes_of(f->sending.pieces[i].iov_base, size) };
                if (rma_register(f->rma, w->data.data, size, false, &w->from) < 0)
                        return broken(f);
                f->sending.write_count++;
                left -= size;
        }
        return left ? lost(f) : 0; /* the caller does not offer what it did before */
}

/* Begin the writes that are possible now. */
static int write_on(struct fabric *f)
{
        if (!f->sending.to.size || !f->sending.piece_count)
                return 0;
        if (!f->sending.write_count && writes_begin(f) < 0)
                return SP_E_LINK;
        uint64_t at = f->sending.to.address;
        for (unsigned i = 0; i < f->sending.posted; i++)
                at += f->sending.writes[i].data.size;
        while (f->sending.posted < f->sending.write_count) {
                struct writing *w = &f->sending.writes[f->sending.posted];
                uint32_t tell = (uint32_t)f->sending.place_number << 16 | f->sending.write_count;
                int r = rma_write(f->rma, w->data, &w->from, at, f->sending.to.key, tell, w);
                if (r == SP_E_AGAIN)
                        return 0;
                if (r < 0)
                        return broken(f);
                f->sending.posted++;
                at += w->data.size;
        }
        return 0;
}

static bool is_written(const struct fabric *f)
{
        return f->sending.to.size && f->sending.write_count &&
               f->sending.written == f->sending.write_count;
}

static bool is_arrived(const struct fabric *f)
{
        return f->receiving.placed && f->receiving.coming &&
               f->receiving.arrived == f->receiving.coming;
}

/* Send the other side the place for its first write, a probe. */
static int probe_offer(struct fabric *f)
{
        if (rma_register(f->rma, f->probe.in, sizeof(f->probe.in), true, &f->probe.region) < 0)
                return broken(f);
        const struct record m = { PROBE, sizeof(f->probe.in), f->probe.region.address,
                                  f->probe.region.key };
        return send_record(f, &m, NULL, 0);
}

static int probe_on(struct fabric *f)
{
        struct writing *w = &f->probe.write;
        if (!f->probe.to.size || w->posted)
                return 0;
        w->data = bytes_of(f->probe.out, sizeof(f->probe.out));
        int r = w->from.handle
                        ? 0
                        : rma_register(f->rma, f->probe.out, sizeof(f->probe.out), false, &w->from);
        if (!r)
                r = rma_write(f->rma, w->data, &w->from, f->probe.to.address, f->probe.to.key,
                              PROBED, w);
        w->posted = !r;
        return !r || r == SP_E_AGAIN ? 0 : broken(f);
}

static int take_event(struct fabric *f, const struct rma_event *e)
{
        if (!e->arrived) {
                if (e->context == &f->probe.write)
                        f->proven = true;
                else
                        f->sending.written++;
                return 0;
        }
        if (e->data == PROBED)
                return 0;
        unsigned coming = e->data & 0xffff;
        if (!f->receiving.placed || e->data >> 16 != f->receiving.number || !coming ||
            (f->receiving.coming && coming != f->receiving.coming) ||
            f->receiving.arrived == coming)
                return lost(f);
        f->receiving.coming = coming;
        f->receiving.arrived++;
        return 0;
}

static int poll_fabric(struct fabric *f) REQUIRES(f->lock)
{
        struct rma_event events[EVENTS];
        int n;
        do {
                n = rma_poll(f->rma, events, EVENTS);
                for (int i = 0; i < n; i++)
                        if (take_event(f, &events[i]) < 0)
                                return SP_E_LINK;
        } while (n == EVENTS);
        return n < 0 ? broken(f) : 0;
}

/* ---- records -------------------------------------------------------------------------------- */

/* The bytes behind a record of this kind. */
static size_t payload(const struct record *m)
{
        return m->kind == DATA || m->kind == READY ? m->size : 0;
}

static int take_ready(struct fabric *f, const struct record *m, const uint8_t *bytes)
{
        if (f->ready || !f->rma)
                return lost(f);
        if (m->kind == NOT_READY) {
                f->rma = rma_free(f->rma);
                return 0;
        }
        if (rma_connect(f->rma, bytes_of(bytes, m->size), m->address) < 0)
                return broken(f);
        f->ready = true;
        return probe_offer(f);
}

/* True if the place takes all offered bytes. Then the other side may know that all is written
 * before this side does, and continue. */
static bool is_last_place(const struct fabric *f)
{
        return f->receiving.placed && f->receiving.place.iov_len == f->receiving.expected;
}

static int take_data(struct fabric *f, const struct record *m, const uint8_t *bytes)
{
        if ((f->receiving.expected && !is_last_place(f)) || f->receiving.next ||
            f->receiving.stream.size - f->receiving.stream_head + f->receiving.untold + m->size >
                    CREDIT)
                return lost(f);
        if (f->receiving.stream_head) {
                buf_consume(&f->receiving.stream, f->receiving.stream_head);
                f->receiving.stream_head = 0;
        }
        return buf_put(&f->receiving.stream, bytes, m->size) < 0 ? lost(f) : 0;
}

static int take(struct fabric *f, const struct record *m, const uint8_t *bytes)
{
        if (m->kind == READY || m->kind == NOT_READY)
                return take_ready(f, m, bytes);
        if (!f->ready)
                return lost(f);
        switch (m->kind) {
        case DATA:
                return take_data(f, m, bytes);
        case TAKEN:
                if (m->size > f->sending.on_way)
                        return lost(f);
                f->sending.on_way -= m->size;
                return 0;
        case OFFER:
                if ((f->receiving.expected && !is_last_place(f)) || f->receiving.next || !m->size ||
                    m->size > OFFER_MAX)
                        return lost(f);
                *(f->receiving.expected ? &f->receiving.next : &f->receiving.expected) = m->size;
                return 0;
        case PROBE:
                if (f->probe.to.size || m->size != sizeof(f->probe.out))
                        return lost(f);
                f->probe.to = (struct target){ m->size, m->address, m->key };
                return 0;
        case PLACE: {
                struct target *p = f->sending.to.size ? &f->sending.to_next : &f->sending.to;
                if (p->size || !m->size || m->size > f->sending.offered - f->sending.to.size)
                        return lost(f);
                *p = (struct target){ m->size, m->address, m->key };
                return 0;
        }
        default:
                return lost(f);
        }
}

/* Take the records that are whole. */
static int take_records(struct fabric *f) REQUIRES(f->lock)
{
        size_t at = 0;
        while (f->rma && f->records.in_have - at >= RECORD) {
                const uint8_t *p = f->records.in + at;
                struct record m = { bytes_get_u32(p), bytes_get_u32(p + 4), bytes_get_u64(p + 8),
                                    bytes_get_u64(p + 16) };
                size_t behind = payload(&m);
                if (behind > (m.kind == DATA ? DATA_MAX : RMA_ADDRESS_MAX))
                        return lost(f);
                if (f->records.in_have - at < RECORD + behind)
                        break;
                if (take(f, &m, p + RECORD) < 0)
                        return SP_E_LINK;
                at += RECORD + behind;
        }
        memmove(f->records.in, f->records.in + at, f->records.in_have - at);
        f->records.in_have -= at;
        return 0;
}

/* The number of bytes that may be received: only the first record, until the bytes behind it are
 * known to be records. */
static size_t receive_at_most(const struct fabric *f)
{
        if (f->ready)
                return sizeof(f->records.in) - f->records.in_have;
        size_t size = RECORD;
        if (f->records.in_have >= RECORD && bytes_get_u32(f->records.in) == READY)
                size += bytes_get_u32(f->records.in + 4);
        return size - f->records.in_have;
}

static int receive_records(struct fabric *f) REQUIRES(f->lock)
{
        while (f->rma) {
                struct iovec iov = { f->records.in + f->records.in_have, receive_at_most(f) };
                ssize_t n = f->inner->ops->recvv(f->inner, &iov, 1);
                if (n == SP_E_AGAIN)
                        return 0;
                if (n <= 0)
                        return lost(f);
                f->records.in_have += (size_t)n;
                if (take_records(f) < 0)
                        return SP_E_LINK;
        }
        return 0;
}

/* All that can be done now. */
static int go_on(struct fabric *f) REQUIRES(f->lock)
{
        if (f->status)
                return f->status;
        if (receive_records(f) < 0 || !f->rma)
                return f->status;
        /* A received place may be written to. Records that this makes possible go out with the next
         * event. */
        if ((f->ready && (probe_on(f) < 0 || poll_fabric(f) < 0)) || write_on(f) < 0)
                return f->status;
        return flush(f);
}

/* ---- as a conn ------------------------------------------------------------------------------ */

/* After NOT_READY: everything is as the connection has it. */
static void follow(struct fabric *f) REQUIRES(f->lock)
{
        f->base.fd = f->inner->fd;
        f->base.room_fd = f->inner->room_fd;
        f->base.room_events = f->inner->room_events;
}

static uint64_t size_of(const struct iovec *iov, int n)
{
        uint64_t all = 0;
        for (int i = 0; i < n; i++)
                all += iov[i].iov_len;
        return all;
}

/* Through the connection: a header alone, or a little. Returns how much. */
static ssize_t send_data(struct fabric *f, const struct iovec *iov, int n, bool all)
{
        uint64_t size = 0;
        for (int i = 0; i < n && (all || iov[i].iov_len < SMALL); i++)
                size += iov[i].iov_len;
        if (size > CREDIT - f->sending.on_way)
                size = CREDIT - f->sending.on_way;
        if (size > DATA_MAX)
                size = DATA_MAX;
        if (!size)
                return SP_E_AGAIN;
        f->sending.on_way += size;
        if (send_record(f, &(struct record){ .kind = DATA, .size = (uint32_t)size }, iov, n) < 0 ||
            flush(f) < 0)
                return SP_E_LINK;
        return (ssize_t)size;
}

static ssize_t send_some(struct fabric *f, const struct iovec *iov, int n) REQUIRES(f->lock)
{
        if (!f->ready)
                return SP_E_AGAIN;
        if (n > PIECES)
                n = PIECES;
        while (n && !iov->iov_len) {
                iov++;
                n--;
        }
        uint64_t all = size_of(iov, n);
        bool large = all >= LARGE && f->proven;
        if (!f->sending.offered && (!large || iov->iov_len < SMALL)) {
                ssize_t r = send_data(f, iov, n, !large);
                f->unproven += !f->proven && r > 0 ? (uint64_t)r : 0;
                return f->unproven > PATIENCE && !f->proven ? broken(f) : r;
        }
        if (is_written(f)) {
                size_t size = f->sending.to.size;
                writes_end(f);
                f->sending.offered -= size;
                f->sending.to = f->sending.to_next;
                f->sending.to_next.size = 0;
                f->sending.place_number++;
                f->sending.piece_count = 0;
                f->records.counted_sent += size;
                return (ssize_t)size;
        }
        if (!f->sending.write_count) {
                memcpy(f->sending.pieces, iov, (size_t)n * sizeof(*iov));
                f->sending.piece_count = n;
        }
        if (!f->sending.offered) {
                f->sending.offered = all < OFFER_MAX ? all : OFFER_MAX;
                if (send_record(
                            f,
                            &(struct record){ .kind = OFFER, .size = (uint32_t)f->sending.offered },
                            NULL, 0) < 0 ||
                    flush(f) < 0)
                        return SP_E_LINK;
        }
        return write_on(f) < 0 ? SP_E_LINK : SP_E_AGAIN;
}

static unsigned poll_once(const struct fabric *f, unsigned want) REQUIRES(f->lock)
{
        unsigned found = 0;
        if (f->status)
                found = CONN_IN | CONN_OUT;
        else if (f->ready) {
                if (f->receiving.placed ? is_arrived(f)
                                        : f->receiving.stream_head < f->receiving.stream.size ||
                                                  f->receiving.expected)
                        found |= CONN_IN;
                if (f->sending.offered
                            ? is_written(f) || (f->sending.to.size && !f->sending.piece_count)
                            : f->sending.on_way < CREDIT / 2)
                        found |= CONN_OUT;
        }
        return found & want;
}

/* Are operations in flight that no descriptor reports? */
static bool must_poll(const struct fabric *f) REQUIRES(f->lock)
{
        if (!f->ready || f->status)
                return false;
        bool some = f->receiving.placed || f->sending.write_count ||
                    (f->probe.write.posted && !f->proven);
        return f->sending.posted < f->sending.write_count || (some && rma_must_poll(f->rma));
}

/* Wake the polling thread if this one has seen or begun something that it has not. */
static void rouse(struct fabric *f) REQUIRES(f->lock)
{
        if (!f->asleep || !f->rma || (!poll_once(f, f->want) && !must_poll(f)))
                return;
        f->asleep = false;
        wakeup_set(f->bell);
}

static ssize_t fabric_sendv(struct conn *c, const struct iovec *iov, int n)
{
        struct fabric *f = container_of(c, struct fabric, base);
        lock_take(&f->lock);
        ssize_t r = go_on(f);
        if (r == 0)
                r = f->rma ? send_some(f, iov, n) : f->inner->ops->sendv(f->inner, iov, n);
        rouse(f);
        lock_release(&f->lock);
        return r;
}

/* Hand out bytes that came through the connection. */
static ssize_t receive_data(struct fabric *f, const struct iovec *iov, int n) REQUIRES(f->lock)
{
        size_t done = 0;
        for (int i = 0; i < n && f->receiving.stream_head < f->receiving.stream.size; i++) {
                size_t have = f->receiving.stream.size - f->receiving.stream_head;
                size_t size = iov[i].iov_len < have ? iov[i].iov_len : have;
                memcpy(iov[i].iov_base, f->receiving.stream.data + f->receiving.stream_head, size);
                f->receiving.stream_head += size;
                done += size;
        }
        f->receiving.untold += done;
        if (f->receiving.untold >= CREDIT / 4) {
                const struct record m = { .kind = TAKEN, .size = (uint32_t)f->receiving.untold };
                f->receiving.untold = 0;
                if (send_record(f, &m, NULL, 0) < 0 || flush(f) < 0)
                        return SP_E_LINK;
        }
        return (ssize_t)done;
}

static int give_place(struct fabric *f, const struct iovec *iov) REQUIRES(f->lock)
{
        f->receiving.place = *iov;
        if (f->receiving.place.iov_len > f->receiving.expected)
                f->receiving.place.iov_len = (size_t)f->receiving.expected;
        if (rma_register(f->rma, f->receiving.place.iov_base, f->receiving.place.iov_len, true,
                         &f->receiving.region) < 0)
                return broken(f);
        f->receiving.placed = true;
        const struct record m = { PLACE, (uint32_t)f->receiving.place.iov_len,
                                  f->receiving.region.address, f->receiving.region.key };
        return send_record(f, &m, NULL, 0) < 0 ? SP_E_LINK : flush(f);
}

static ssize_t receive_some(struct fabric *f, const struct iovec *iov, int n) REQUIRES(f->lock)
{
        while (n && !iov->iov_len) {
                iov++;
                n--;
        }
        if (!f->receiving.placed && f->receiving.stream_head < f->receiving.stream.size)
                return receive_data(f, iov, n);
        if (!f->receiving.expected)
                return SP_E_AGAIN;
        if (!f->receiving.placed && give_place(f, iov) < 0)
                return SP_E_LINK;
        if (iov->iov_base != f->receiving.place.iov_base ||
            iov->iov_len < f->receiving.place.iov_len)
                return lost(f); /* the caller has changed the place */
        if (!is_arrived(f))
                return SP_E_AGAIN;
        rma_release(f->rma, &f->receiving.region);
        f->receiving.placed = false;
        f->receiving.number++;
        f->receiving.arrived = f->receiving.coming = 0;
        f->receiving.expected -= f->receiving.place.iov_len;
        if (!f->receiving.expected) {
                f->receiving.expected = f->receiving.next;
                f->receiving.next = 0;
        }
        f->records.counted_received += f->receiving.place.iov_len;
        return (ssize_t)f->receiving.place.iov_len;
}

static ssize_t fabric_recvv(struct conn *c, const struct iovec *iov, int n)
{
        struct fabric *f = container_of(c, struct fabric, base);
        lock_take(&f->lock);
        ssize_t r = go_on(f);
        bool some = f->receiving.placed ? is_arrived(f)
                                        : f->receiving.stream_head < f->receiving.stream.size;
        if (!f->rma) {
                r = f->inner->ops->recvv(f->inner, iov, n);
                follow(f);
        } else if (!r || some) { /* what came before the end counts */
                r = f->ready ? receive_some(f, iov, n) : SP_E_AGAIN;
        }
        lock_release(&f->lock);
        return r;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static bool fabric_peek(struct conn *c, unsigned want, bool arm)
{
        struct fabric *f = container_of(c, struct fabric, base);
        bool found = false, yield = false;
        lock_take(&f->lock);
        if (f->rma) {
                if (f->ready && !f->status && (arm || rma_must_poll(f->rma)))
                        (void)!poll_fabric(f);
                found = poll_once(f, want) != 0;
                if (arm && !found)
                        found = yield = must_poll(f) ||
                                        (f->ready && rma_fd(f->rma) >= 0 && !rma_may_sleep(f->rma));
                f->asleep = arm && !found;
                f->want = want;
        }
        lock_release(&f->lock);
        if (yield)
                thread_yield(); /* the other side may need this core for it */
        return found;
}

static unsigned fabric_polled(struct conn *c, unsigned want, bool reported)
{
        struct fabric *f = container_of(c, struct fabric, base);
        unsigned found;
        lock_take(&f->lock);
        f->asleep = false;
        if (reported)
                wakeup_clear(f->bell);
        if (f->rma)
                (void)!go_on(f);
        if (f->rma)
                found = poll_once(f, want);
        else
                found = (reported ? CONN_IN : 0) | CONN_OUT;
        lock_release(&f->lock);
        return found;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static void fabric_close(struct conn *c)
{
        struct fabric *f = container_of(c, struct fabric, base);
        /* First the endpoint: then nothing is read from or written to the caller's memory. Regions belong to
         * its domain, and can only be closed before that. */
        if (f->rma) {
                rma_stop(f->rma);
                writes_end(f);
                rma_release(f->rma, &f->receiving.region);
                rma_release(f->rma, &f->probe.region);
                rma_release(f->rma, &f->probe.write.from);
                rma_free(f->rma);
        }
        if (f->events >= 0)
                (void)file_close(f->events);
        if (f->bell >= 0)
                (void)file_close(f->bell);
        conn_close(f->inner);
        buf_fini(&f->records.out);
        buf_fini(&f->receiving.stream);
        lock_fini(&f->lock);
        mem_free(f);
}

const struct transport_ops transport_fabric = {
        .name = "fabric",
        .caps = TRANSPORT_PLACED,
        .sendv = fabric_sendv,
        .recvv = fabric_recvv,
        .close = fabric_close,
        .peek = fabric_peek,
        .polled = fabric_polled,
};

static int set_up(struct fabric *f)
{
        f->events = event_set_new();
        f->bell = wakeup_new();
        if (f->events < 0 || f->bell < 0 || !event_set_add(f->events, f->bell, EVENT_IN, NULL) ||
            !event_set_add(f->events, f->inner->fd, EVENT_IN, NULL) ||
            (rma_fd(f->rma) >= 0 && !event_set_add(f->events, rma_fd(f->rma), EVENT_IN, NULL)))
                return SP_E_LIMIT;
        f->base.fd = f->base.room_fd = f->events;
        f->base.room_events = POLLIN;
        return 0;
}

/* One record before everything else. */
static int decline(struct conn *c)
{
        uint8_t header[RECORD] = { NOT_READY };
        struct iovec iov = { header, sizeof(header) };
        return c->ops->sendv(c, &iov, 1) == sizeof(header) ? 0 : SP_E_LINK;
}

int fabric_begin(struct conn **c, struct rma *r, struct bytes other, uint64_t form)
{
        int s = r && other.size ? rma_connect(r, other, form) : 0;
        if (s < 0) {
                log_warn(LOG, "%s: %s; data goes over TCP", rma_provider(r), rma_error(r));
                r = rma_free(r);
        }
        if (!r) {
                s = decline(*c);
                if (s < 0)
                        *c = conn_close(*c);
                return s;
        }
        struct fabric *f = mem_zalloc(sizeof(*f));
        if (!f) {
                rma_free(r);
                *c = conn_close(*c);
                return SP_E_NOMEM;
        }
        *f = (struct fabric){
                .base.ops = &transport_fabric, .inner = *c, .rma = r, .events = -1, .bell = -1
        };
        lock_init(&f->lock);
        s = set_up(f);
        if (!s && other.size) {
                uint64_t my_form;
                struct bytes mine = rma_address(r, &my_form);
                struct iovec iov = { (void *)(uintptr_t)mine.data, mine.size };
                f->ready = true;
                s = send_record(f, &(struct record){ READY, (uint32_t)mine.size, my_form, 0 }, &iov,
                                1);
                if (!s)
                        s = probe_offer(f);
                if (!s)
                        s = flush(f);
        }
        *c = &f->base;
        if (s < 0)
                *c = conn_close(*c);
        return s;
}

bool fabric_failed(const struct conn *c)
{
        return c && c->ops == &transport_fabric &&
               container_of(c, const struct fabric, base)->failed;
}

void fabric_count(struct conn *c, uint64_t *ret_sent, uint64_t *ret_received)
{
        struct fabric *f = container_of(c, struct fabric, base);
        *ret_sent = *ret_received = 0;
        if (c->ops != &transport_fabric)
                return;
        lock_take(&f->lock);
        *ret_sent = f->records.counted_sent;
        *ret_received = f->records.counted_received;
        f->records.counted_sent = f->records.counted_received = 0;
        lock_release(&f->lock);
}
