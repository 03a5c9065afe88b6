/* Byte pipes within one process. A conn is one end of a pair of pipes; every pair has one lock.
 *
 * A buffered pipe copies into a ring and out of it. A rendezvous pipe has no memory: the sender leaves
 * the list of its pieces (an offer), the receiver copies from there into its own places.
 *
 * Each pipe has two wake-ups: `data` for the receiver, `room` for the sender. They are set only when that
 * side sleeps or is about to (conn_arm). While it spins it polls memory (conn_peek), without the lock and
 * without system calls. */
#include "transport/inproc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/wakeup.h"
#include "transport/transport.h"

enum {
        RING_SIZE = 256 << 10,
        OFFER_MAX = 64,
        COPY_MAX = 1 << 20, /* bytes copied under the lock in one call */
        BACKLOG_MAX = 128,
};

/* A side of a pipe that may sleep. */
struct sleeper {
        int fd;     /* a wake-up */
        bool armed; /* set the wake-up at the next event */
        bool rung;  /* the wake-up is set */
};

struct pipe {
        bool rendezvous;
        bool sender_closed, receiver_closed;
        struct sleeper receiver, sender;
        /* pipe_has_data and pipe_has_room, for threads without the lock */
        atomic_bool data, room;
        /* buffered */
        uint8_t *ring;
        size_t head, used;
        /* rendezvous */
        struct iovec offer[OFFER_MAX];
        int offered;      /* pieces */
        size_t left;      /* bytes of them not taken */
        size_t taken;     /* bytes taken that the sender was not notified of */
        int piece;        /* the next to take from */
        size_t piece_pos; /* and where in it */
};

struct pair {
        struct lock lock;
        unsigned ends; /* open */
        struct pipe pipes[2];
};

/* End i sends on pipes[i] and receives on pipes[1 - i]. */
struct end {
        struct conn base;
        struct pair *pair;
        unsigned side;
        struct list queued; /* listener's */
};

static bool pipe_has_data(const struct pipe *p)
{
        return p->sender_closed || (p->rendezvous ? p->left : p->used);
}

/* Less than half a ring is not worth a wake-up. */
static bool pipe_has_room(const struct pipe *p)
{
        return p->receiver_closed || (p->rendezvous ? !p->left : p->used <= RING_SIZE / 2);
}

static void ring(struct sleeper *s)
{
        if (!s->armed)
                return;
        s->armed = false;
        s->rung = true;
        wakeup_set(s->fd);
}

static void be_quiet(struct sleeper *s)
{
        s->armed = false;
        if (s->rung)
                wakeup_clear(s->fd);
        s->rung = false;
}

/* After every change, with the lock. */
static void pipe_changed(struct pipe *p)
{
        bool data = pipe_has_data(p), room = pipe_has_room(p);
        atomic_store_explicit(&p->data, data, memory_order_relaxed);
        atomic_store_explicit(&p->room, room, memory_order_relaxed);
        if (data)
                ring(&p->receiver);
        if (room)
                ring(&p->sender);
}

/* ---- buffered ------------------------------------------------------------------------------- */

static ssize_t ring_send(struct pipe *p, const struct iovec *iov, int n)
{
        size_t done = 0;
        if (p->receiver_closed)
                return SP_E_LINK;
        for (int i = 0; i < n && p->used < RING_SIZE; i++) {
                const uint8_t *from = iov[i].iov_base;
                size_t left = iov[i].iov_len;
                while (left && p->used < RING_SIZE) {
                        size_t at = (p->head + p->used) % RING_SIZE;
                        size_t len = (at < p->head ? p->head : RING_SIZE) - at;
                        if (len > RING_SIZE - p->used)
                                len = RING_SIZE - p->used;
                        if (len > left)
                                len = left;
                        memcpy(p->ring + at, from, len);
                        from += len;
                        left -= len;
                        p->used += len;
                        done += len;
                }
        }
        return done ? (ssize_t)done : SP_E_AGAIN;
}

static ssize_t ring_recv(struct pipe *p, const struct iovec *iov, int n)
{
        size_t done = 0;
        for (int i = 0; i < n && p->used; i++) {
                uint8_t *to = iov[i].iov_base;
                size_t left = iov[i].iov_len;
                while (left && p->used) {
                        size_t len = RING_SIZE - p->head;
                        if (len > p->used)
                                len = p->used;
                        if (len > left)
                                len = left;
                        memcpy(to, p->ring + p->head, len);
                        to += len;
                        left -= len;
                        p->used -= len;
                        p->head = (p->head + len) % RING_SIZE;
                        done += len;
                }
        }
        if (done)
                return (ssize_t)done;
        return p->sender_closed ? SP_E_LINK : SP_E_AGAIN;
}

/* ---- rendezvous ----------------------------------------------------------------------------- */

static ssize_t offer_send(struct pipe *p, const struct iovec *iov, int n)
{
        if (p->receiver_closed)
                return SP_E_LINK;
        size_t taken = p->taken;
        p->taken = p->left = 0;
        p->offered = p->piece = 0;
        p->piece_pos = 0;
        if (taken)
                return (ssize_t)taken;
        for (int i = 0; i < n && p->offered < OFFER_MAX; i++) {
                if (!iov[i].iov_len)
                        continue;
                p->offer[p->offered++] = iov[i];
                p->left += iov[i].iov_len;
        }
        return SP_E_AGAIN;
}

static ssize_t offer_recv(struct pipe *p, const struct iovec *iov, int n)
{
        size_t done = 0;
        bool full = false;
        for (int i = 0; i < n && p->left && !full; i++) {
                uint8_t *to = iov[i].iov_base;
                size_t left = iov[i].iov_len;
                while (left && p->left && !full) {
                        const struct iovec *from = &p->offer[p->piece];
                        size_t len = from->iov_len - p->piece_pos;
                        if (len > left)
                                len = left;
                        if (len > COPY_MAX - done)
                                len = COPY_MAX - done;
                        memcpy(to, (const uint8_t *)from->iov_base + p->piece_pos, len);
                        to += len;
                        left -= len;
                        done += len;
                        p->left -= len;
                        p->taken += len;
                        p->piece_pos += len;
                        if (p->piece_pos == from->iov_len) {
                                p->piece++;
                                p->piece_pos = 0;
                        }
                        full = done == COPY_MAX;
                }
        }
        if (done)
                return (ssize_t)done;
        return p->sender_closed ? SP_E_LINK : SP_E_AGAIN;
}

/* ---- conns ---------------------------------------------------------------------------------- */

static ssize_t inproc_sendv(struct conn *c, const struct iovec *iov, int n)
{
        struct end *e = container_of(c, struct end, base);
        struct pipe *p = &e->pair->pipes[e->side];
        lock_take(&e->pair->lock);
        ssize_t r = p->rendezvous ? offer_send(p, iov, n) : ring_send(p, iov, n);
        pipe_changed(p);
        lock_release(&e->pair->lock);
        return r;
}

static ssize_t inproc_recvv(struct conn *c, const struct iovec *iov, int n)
{
        struct end *e = container_of(c, struct end, base);
        struct pipe *p = &e->pair->pipes[1 - e->side];
        lock_take(&e->pair->lock);
        ssize_t r = p->rendezvous ? offer_recv(p, iov, n) : ring_recv(p, iov, n);
        pipe_changed(p);
        lock_release(&e->pair->lock);
        return r;
}

static bool is_there(const atomic_bool *event)
{
        return atomic_load_explicit(event, memory_order_relaxed);
}

static unsigned poll_once(const struct end *e, unsigned want)
{
        const struct pipe *in = &e->pair->pipes[1 - e->side], *out = &e->pair->pipes[e->side];
        return (want & CONN_IN && is_there(&in->data) ? CONN_IN : 0) |
               (want & CONN_OUT && is_there(&out->room) ? CONN_OUT : 0);
}

static bool inproc_peek(struct conn *c, unsigned want, bool arm)
{
        struct end *e = container_of(c, struct end, base);
        if (!arm)
                return poll_once(e, want) != 0;
        lock_take(&e->pair->lock);
        bool found = poll_once(e, want) != 0;
        if (!found && want & CONN_IN)
                e->pair->pipes[1 - e->side].receiver.armed = true;
        if (!found && want & CONN_OUT)
                e->pair->pipes[e->side].sender.armed = true;
        lock_release(&e->pair->lock);
        return found;
}

static unsigned inproc_polled(struct conn *c, unsigned want, bool reported)
{
        (void)reported;
        struct end *e = container_of(c, struct end, base);
        lock_take(&e->pair->lock);
        if (want & CONN_IN)
                be_quiet(&e->pair->pipes[1 - e->side].receiver);
        if (want & CONN_OUT)
                be_quiet(&e->pair->pipes[e->side].sender);
        lock_release(&e->pair->lock);
        return poll_once(e, want);
}

static void pair_free(struct pair *p)
{
        for (int i = 0; i < 2; i++) {
                mem_free(p->pipes[i].ring);
                if (p->pipes[i].receiver.fd >= 0)
                        file_close(p->pipes[i].receiver.fd);
                if (p->pipes[i].sender.fd >= 0)
                        file_close(p->pipes[i].sender.fd);
        }
        lock_fini(&p->lock);
        mem_free(p);
}

static void inproc_close(struct conn *c)
{
        struct end *e = container_of(c, struct end, base);
        struct pair *pair = e->pair;
        struct pipe *out = &pair->pipes[e->side], *in = &pair->pipes[1 - e->side];
        lock_take(&pair->lock);
        out->sender_closed = true;
        out->left = 0; /* the pieces offered are the sender's again */
        pipe_changed(out);
        in->receiver_closed = true;
        pipe_changed(in);
        bool last = !--pair->ends;
        lock_release(&pair->lock);
        if (last)
                pair_free(pair);
        mem_free(e);
}

static int pipe_init(struct pipe *p, bool rendezvous)
{
        p->rendezvous = rendezvous;
        atomic_init(&p->room, true);
        p->receiver.fd = wakeup_new();
        p->sender.fd = wakeup_new();
        if (p->receiver.fd < 0 || p->sender.fd < 0)
                return SP_E_LIMIT;
        if (rendezvous)
                return 0;
        p->ring = mem_alloc(RING_SIZE);
        return p->ring ? 0 : SP_E_NOMEM;
}

int inproc_pair(bool rendezvous, struct conn *ret[2])
{
        struct pair *pair = mem_zalloc(sizeof(*pair));
        if (!pair)
                return SP_E_NOMEM;
        lock_init(&pair->lock);
        for (int i = 0; i < 2; i++)
                pair->pipes[i].receiver.fd = pair->pipes[i].sender.fd = -1;
        struct end *ends[2] = { mem_zalloc(sizeof(*ends[0])), mem_zalloc(sizeof(*ends[1])) };
        int r = ends[0] && ends[1] ? 0 : SP_E_NOMEM;
        for (int i = 0; i < 2 && !r; i++)
                r = pipe_init(&pair->pipes[i], rendezvous);
        if (r < 0) {
                mem_free(ends[0]);
                mem_free(ends[1]);
                pair_free(pair);
                return r;
        }
        pair->ends = 2;
        for (unsigned i = 0; i < 2; i++) {
                *ends[i] = (struct end){
                        .base = { .ops = &transport_inproc,
                                  .fd = pair->pipes[1 - i].receiver.fd,
                                  .room_fd = pair->pipes[i].sender.fd,
                                  .room_events = POLLIN },
                        .pair = pair,
                        .side = i,
                };
                ret[i] = &ends[i]->base;
        }
        return 0;
}

/* ---- listeners ------------------------------------------------------------------------------ */

struct inproc_listener {
        struct listener base;
        struct list link;  /* in `listeners` */
        struct list queue; /* ends that wait to be accepted */
        unsigned queued;
};

/* Guards the list of listeners and their queues. */
static struct lock listeners_lock = LOCK_INIT;
static struct list listeners = { &listeners, &listeners };

/* "inproc:NAME" or "inproc:NAME/bulk": the first `*ret_len` bytes name the listener. */
static int parse(const char *address, size_t *ret_len, bool *ret_rendezvous)
{
        const char *slash = strchr(address, '/');
        *ret_len = slash ? (size_t)(slash - address) : strlen(address);
        *ret_rendezvous = slash != NULL;
        if (strncmp(address, "inproc:", 7) || *ret_len <= 7 || *ret_len >= 256 ||
            (slash && strcmp(slash, "/bulk")))
                return SP_E_INVAL;
        return 0;
}

static struct inproc_listener *find(const char *address, size_t len) REQUIRES(listeners_lock)
{
        list_each(l, &listeners, struct inproc_listener,
                  link) if (strlen(l->base.address) == len &&
                            !memcmp(l->base.address, address, len)) return l;
        return NULL;
}

static int inproc_connect(const char *address, int timeout_ms, struct conn **ret)
{
        (void)timeout_ms;
        size_t len;
        bool rendezvous;
        struct conn *pair[2];
        int r = parse(address, &len, &rendezvous);
        if (r < 0)
                return r;
        r = inproc_pair(rendezvous, pair);
        if (r < 0)
                return r;
        lock_take(&listeners_lock);
        struct inproc_listener *l = find(address, len);
        if (l && l->queued < BACKLOG_MAX) {
                list_append(&l->queue, &container_of(pair[1], struct end, base)->queued);
                l->queued++;
                wakeup_set(l->base.fd);
        } else {
                r = l ? SP_E_TIMEOUT : SP_E_REFUSED;
        }
        lock_release(&listeners_lock);
        if (r < 0) {
                conn_close(pair[0]);
                conn_close(pair[1]);
                return r;
        }
        *ret = pair[0];
        return 0;
}

static int inproc_listen(const char *address, struct listener **ret)
{
        size_t len;
        bool rendezvous;
        int r = parse(address, &len, &rendezvous);
        if (r < 0 || rendezvous)
                return SP_E_INVAL;
        struct inproc_listener *l = mem_zalloc(sizeof(*l));
        if (!l)
                return SP_E_NOMEM;
        list_init(&l->queue);
        l->base.ops = &transport_inproc;
        memcpy(l->base.address, address, len);
        l->base.fd = wakeup_new();
        if (l->base.fd < 0) {
                mem_free(l);
                return SP_E_LIMIT;
        }
        lock_take(&listeners_lock);
        if (find(address, len))
                r = SP_E_BUSY;
        else
                list_append(&listeners, &l->link);
        lock_release(&listeners_lock);
        if (r < 0) {
                file_close(l->base.fd);
                mem_free(l);
                return r;
        }
        *ret = &l->base;
        return 0;
}

static int inproc_accept(struct listener *base, struct conn **ret)
{
        struct inproc_listener *l = container_of(base, struct inproc_listener, base);
        int r = SP_E_AGAIN;
        lock_take(&listeners_lock);
        if (!list_empty(&l->queue)) {
                struct end *e = list_entry(l->queue.next, struct end, queued);
                list_remove(&e->queued);
                l->queued--;
                *ret = &e->base;
                r = 0;
        }
        if (list_empty(&l->queue))
                wakeup_clear(base->fd);
        lock_release(&listeners_lock);
        return r;
}

static void inproc_listener_close(struct listener *base)
{
        struct inproc_listener *l = container_of(base, struct inproc_listener, base);
        lock_take(&listeners_lock);
        list_remove(&l->link);
        lock_release(&listeners_lock);
        while (!list_empty(&l->queue)) {
                struct end *e = list_entry(l->queue.next, struct end, queued);
                list_remove(&e->queued);
                conn_close(&e->base);
        }
        file_close(base->fd);
        mem_free(l);
}

const struct transport_ops transport_inproc = {
        .name = "inproc",
        .caps = TRANSPORT_SAME_HOST | TRANSPORT_MEMORY,
        .connect = inproc_connect,
        .listen = inproc_listen,
        .accept = inproc_accept,
        .listener_close = inproc_listener_close,
        .sendv = inproc_sendv,
        .recvv = inproc_recvv,
        .close = inproc_close,
        .peek = inproc_peek,
        .polled = inproc_polled,
};
