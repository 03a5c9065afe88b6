/* Shared memory between two processes of one host, over a Unix socket that stays open.
 *
 * The side that offers makes the memory, seals its size and passes the descriptor. The other side
 * maps it if the seals are there, so that neither side can take pages away from the other. The
 * memory holds a ring for each direction. A side keeps its own write position privately and only
 * publishes it. It reads the other side's position once into a local variable, checks it, and only
 * then uses it. So no value that the other side writes there makes this side touch bytes beyond the
 * rings.
 *
 * A write to a word that the other side polls costs both sides a transfer between their cores. So a
 * side polls no more than it waits for, reports room in large parts only, and writes no value that
 * is there already.
 *
 * A byte on the socket wakes a side that sleeps in poll(2). It is sent only if that side has said
 * that it sleeps (`wants`), so there is no system call while both are awake. The end of the socket
 * shows that the other process is gone.
 *
 * One byte answers the offer: whether the other side has the memory. Until then nothing is sent,
 * because the descriptor may have been lost on the way, for instance by a forwarded socket. */
#include "transport/shm.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/passing.h"
#include "os/shared_memory.h"
#include "os/vm.h"
#include "transport/bounce.h"
#include "transport/stream.h"

enum {
        HEADER = 4096,
        RING_MIN = 4096,
        RING_MAX = 1 << 30,
        STEP = 64 << 10, /* bytes copied before the other side is notified */
        ROOM_PARTS =
                8, /* the sender is notified of room that is such a part of a ring, or a step */
        CALL_MAX = 1 << 20, /* bytes moved in one call */
};

/* Bytes on the socket; any other is a bell. */
enum { OFFERED = 'M', NOT_OFFERED = 'S', TAKEN = 'Y', NOT_TAKEN = 'N', BELL = 'B' };

enum { WANT_DATA = 1, WANT_ROOM = 2 };

/* Positions count all bytes ever sent and received. Each has one writer. */
struct flow {
        _Alignas(128) _Atomic uint64_t tail; /* its sender's */
        _Alignas(128) _Atomic uint64_t head; /* its receiver's */
};

/* The shared memory. Side i sends on flow i. */
struct shared {
        struct flow flows[2];
        struct {
                _Alignas(128) _Atomic uint32_t wants; /* what to be woken for */
                _Atomic uint32_t closed;
        } sides[2];
        struct bounce_flow bounces[2];
};
_Static_assert(sizeof(struct shared) <= HEADER, "");

enum state {
        ASKED,  /* offered; not known yet whether it was taken */
        SHARED, /* bytes go through the memory */
        PLAIN,  /* not taken: bytes go through the socket */
};

struct shm {
        struct conn base;
        struct shared *shared;
        uint8_t *out, *in; /* rings */
        size_t size;       /* of each */
        unsigned side;     /* 0: offered it */
        int arena;         /* descriptor; -1: none */
        uint64_t arena_size;
        /* conn_take_passed; the receiving thread's. */
        bool takes;
        int passed; /* a descriptor that nobody has taken; -1: none */
        _Atomic int state;
        _Atomic uint64_t tail, head; /* ours; one thread writes each */
        uint64_t notify;             /* of `head`: what the other side knows */
        atomic_bool gone;            /* the other side is, or broke the rules */
        struct bounce_out bounce_out;
        struct bounce_in bounce_in;
};

/* ---- rings ---------------------------------------------------------------------------------- */

/* SP_E_LINK: the other side claims an impossible position. */
static int room(struct shm *s, uint64_t tail, uint64_t *ret)
{
        uint64_t used = tail - atomic_load(&s->shared->flows[s->side].head);
        if (used > s->size)
                return SP_E_LINK;
        *ret = s->size - used;
        return 0;
}

static int there(struct shm *s, uint64_t head, uint64_t *ret)
{
        uint64_t used = atomic_load(&s->shared->flows[!s->side].tail) - head;
        if (used > s->size)
                return SP_E_LINK;
        *ret = used;
        return 0;
}

static const _Atomic uint32_t *other_closed(const struct shm *s)
{
        return &s->shared->sides[!s->side].closed;
}

static bool left(struct shm *s)
{
        return atomic_load(&s->gone) || atomic_load(other_closed(s));
}

/* The other side may sleep and wait for `want`. */
static void wake(struct shm *s, uint32_t want)
{
        _Atomic uint32_t *wants = &s->shared->sides[!s->side].wants;
        static const uint8_t bell = BELL;
        if (!(atomic_load(wants) & want) || !(atomic_fetch_and(wants, ~want) & want))
                return;
        /* A full socket holds bells enough. */
        if (socket_send(s->base.fd, &bell, 1) < 0 && !socket_would_wait(errno))
                atomic_store(&s->gone, true);
}

/* Was the offer taken? */
static int settle(struct shm *s)
{
        int state = atomic_load(&s->state);
        if (state != ASKED)
                return state;
        uint8_t answer;
        struct iovec iov = { &answer, 1 };
        ssize_t r = stream_recvv(&s->base, &iov, 1);
        if (r == SP_E_AGAIN)
                return state;
        if (r < 0)
                atomic_store(&s->gone, true);
        state = r > 0 && answer == NOT_TAKEN ? PLAIN : SHARED;
        if (state == PLAIN)
                s->base.room_events = POLLOUT;
        atomic_store(&s->state, state);
        return state;
}

static void copy_in(struct shm *s, uint64_t at, const uint8_t *from, size_t len)
{
        size_t pos = (size_t)at & (s->size - 1), first = s->size - pos;
        if (first > len)
                first = len;
        memcpy(s->out + pos, from, first);
        memcpy(s->out, from + first, len - first);
}

static void copy_out(struct shm *s, uint64_t at, uint8_t *to, size_t len)
{
        size_t pos = (size_t)at & (s->size - 1), first = s->size - pos;
        if (first > len)
                first = len;
        memcpy(to, s->in + pos, first);
        memcpy(to + first, s->in, len - first);
}

static size_t total(const struct iovec *iov, int n)
{
        size_t sum = 0;
        for (int i = 0; i < n && sum < CALL_MAX; i++)
                sum += iov[i].iov_len < CALL_MAX ? iov[i].iov_len : CALL_MAX;
        return sum < CALL_MAX ? sum : CALL_MAX;
}

static size_t least(size_t a, uint64_t b)
{
        return b < a ? (size_t)b : a;
}

static ssize_t shm_sendv(struct conn *c, const struct iovec *iov, int n)
{
        struct shm *s = container_of(c, struct shm, base);
        int state = atomic_load(&s->state);
        if (state == PLAIN)
                return stream_sendv(c, iov, n);
        if (left(s))
                return SP_E_LINK;
        if (state == ASKED)
                return SP_E_AGAIN;
        uint64_t tail = atomic_load(&s->tail), free;
        bool notify;
        ssize_t bounced = bounce_sendv(&s->bounce_out, tail, iov, n, other_closed(s), &n, &notify);
        if (notify)
                wake(s, WANT_DATA);
        if (bounced)
                return bounced;
        size_t want = total(iov, n), done = 0;
        if (room(s, tail, &free) < 0)
                return SP_E_LINK;
        /* A wake-up for a few bytes costs more than it gains: wait for half a ring. */
        if (free < want && free < s->size / 8)
                return SP_E_AGAIN;
        for (size_t pos = 0; done < want;) {
                if (pos == iov->iov_len) {
                        pos = 0;
                        iov++;
                        continue;
                }
                /* Copy as many pieces as a step takes. */
                size_t step = 0;
                while (step < STEP && step < free && done + step < want) {
                        size_t len = least(least(iov->iov_len - pos, STEP - step), free - step);
                        len = least(len, want - done - step);
                        copy_in(s, tail + step, (const uint8_t *)iov->iov_base + pos, len);
                        step += len;
                        pos += len;
                        if (pos == iov->iov_len && done + step < want) {
                                pos = 0;
                                iov++;
                        }
                }
                tail += step;
                done += step;
                atomic_store_explicit(&s->tail, tail, memory_order_relaxed);
                atomic_store(&s->shared->flows[s->side].tail, tail);
                wake(s, WANT_DATA);
                if (room(s, tail, &free) < 0)
                        return SP_E_LINK;
                if (!free)
                        break;
        }
        bounce_rang(&s->bounce_out, done);
        return (ssize_t)done;
}

/* Report room to the sender. A sender waits for half a ring of room, so smaller room need not be
 * reported. */
static void announce_room(struct shm *s, uint64_t head, uint64_t have)
{
        s->notify = head;
        atomic_store(&s->shared->flows[!s->side].head, head);
        if (have <= s->size / 2)
                wake(s, WANT_ROOM);
}

static ssize_t shm_recvv(struct conn *c, const struct iovec *iov, int n)
{
        struct shm *s = container_of(c, struct shm, base);
        switch (settle(s)) {
        case PLAIN:
                return stream_recvv(c, iov, n);
        case ASKED:
                return SP_E_AGAIN;
        }
        uint64_t head = atomic_load(&s->head), have;
        size_t want = total(iov, n), done = 0;
        bool last = left(s); /* before polling: data sent before is seen */
        if (there(s, head, &have) < 0)
                return SP_E_LINK;
        bool notify;
        ssize_t bounced = bounce_recv(&s->bounce_in, head, have, iov, other_closed(s), &notify);
        if (notify)
                wake(s, WANT_ROOM);
        if (bounced)
                return bounced;
        if (!have)
                return last ? SP_E_LINK : SP_E_AGAIN;
        for (size_t pos = 0; done < want && have;) {
                size_t step = least(least(iov->iov_len - pos, STEP), have);
                step = least(step, want - done);
                copy_out(s, head, (uint8_t *)iov->iov_base + pos, step);
                pos += step;
                head += step;
                done += step;
                if (pos == iov->iov_len && done < want) {
                        pos = 0;
                        iov++;
                }
                atomic_store_explicit(&s->head, head, memory_order_relaxed);
                if (there(s, head, &have) < 0)
                        return SP_E_LINK;
                if (head - s->notify >= least(s->size / ROOM_PARTS, STEP))
                        announce_room(s, head, have);
        }
        return (ssize_t)done;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static bool can_send(struct shm *s)
{
        uint64_t tail = atomic_load(&s->tail), free;
        bool can;
        if (bounce_waits(&s->bounce_out, &can))
                return can;
        return room(s, tail, &free) < 0 || free >= s->size / 2;
}

static unsigned poll_once(struct shm *s, unsigned want)
{
        uint64_t have;
        unsigned found = 0;
        if (atomic_load(&s->state) == ASKED)
                return 0;
        uint64_t head = atomic_load(&s->head);
        if (want & CONN_IN && (there(s, head, &have) < 0 || have || left(s) ||
                               bounce_can_receive(&s->bounce_in, head)))
                found |= CONN_IN;
        if (want & CONN_OUT && (can_send(s) || left(s)))
                found |= CONN_OUT;
        return found;
}

static bool shm_peek(struct conn *c, unsigned want, bool arm)
{
        struct shm *s = container_of(c, struct shm, base);
        if (atomic_load(&s->state) == PLAIN)
                return false;
        if (!arm)
                return poll_once(s, want) != 0;
        _Atomic uint32_t *wants = &s->shared->sides[s->side].wants;
        atomic_store(wants, (want & CONN_IN ? WANT_DATA : 0) | (want & CONN_OUT ? WANT_ROOM : 0));
        if (!poll_once(s, want))
                return false;
        atomic_store(wants, 0);
        return true;
}

/* Take the bells, so that poll(2) can sleep again, and at most one descriptor. Return true if there was anything. */
static bool drain(struct shm *s)
{
        uint8_t bells[64];
        int fd = -1;
        struct iovec iov = { bells, sizeof(bells) };
        ssize_t n = s->takes ? passing_receive(s->base.fd, &iov, 1, &fd, 1)
                             : stream_recvv(&s->base, &iov, 1);
        if (n == SP_E_LINK)
                atomic_store(&s->gone, true);
        if (n > 0 && s->passed < 0)
                s->passed = fd;
        else if (n > 0 && fd >= 0)
                (void)file_close(fd);
        return n > 0;
}

static unsigned shm_polled(struct conn *c, unsigned want, bool reported)
{
        struct shm *s = container_of(c, struct shm, base);
        int before = atomic_load(&s->state);
        int state = reported ? settle(s) : before;
        if (state == PLAIN)
                return (reported ? CONN_IN : 0) | CONN_OUT;
        _Atomic uint32_t *wants = &s->shared->sides[s->side].wants;
        if (atomic_load(wants))
                atomic_store(wants, 0);
        if (reported && before == SHARED)
                (void)drain(s);
        return poll_once(s, want);
}

/* ---- agreeing ------------------------------------------------------------------------------- */

static void shm_close(struct conn *c)
{
        struct shm *s = container_of(c, struct shm, base);
        atomic_store(&s->shared->sides[s->side].closed, 1);
        (void)file_close(c->fd);
        if (s->arena >= 0)
                (void)file_close(s->arena);
        if (s->passed >= 0)
                (void)file_close(s->passed);
        vm_unmap((uint64_t)(uintptr_t)s->shared, HEADER + 2 * s->size);
        mem_free(s);
}

const struct transport_ops transport_shm = {
        .name = "shm",
        .caps = TRANSPORT_SAME_HOST | TRANSPORT_WIDE | TRANSPORT_MEMORY,
        .sendv = shm_sendv,
        .recvv = shm_recvv,
        .close = shm_close,
        .peek = shm_peek,
        .polled = shm_polled,
};

/* A conn over `memory`, with the socket of `old`, which stays as it is when there is no memory. */
static int shm_new(struct conn *old, int memory, size_t size, unsigned side, struct shm **ret)
{
        uint64_t at;
        int r = vm_map_file(memory, 0, HEADER + 2 * size, &at);
        if (r < 0)
                return r;
        /* A child of this process has no part in it. */
        vm_keep_from_children(at, HEADER + 2 * size);
        struct shm *s = mem_zalloc(sizeof(*s));
        if (!s) {
                vm_unmap(at, HEADER + 2 * size);
                return SP_E_NOMEM;
        }
        void *map = (void *)(uintptr_t)at;
        uint8_t *rings = (uint8_t *)map + HEADER;
        *s = (struct shm){
                .base = { .ops = &transport_shm,
                          .fd = old->fd,
                          .room_fd = old->fd,
                          .room_events = POLLIN },
                .shared = map,
                .out = rings + (side ? size : 0),
                .in = rings + (side ? 0 : size),
                .size = size,
                .side = side,
                .arena = -1,
                .passed = -1,
        };
        *ret = s;
        return 0;
}

static int ring_size(int fd, size_t *ret)
{
        uint64_t all;
        int r = shared_memory_size(fd, &all);
        if (r < 0 || all < HEADER + 2 * RING_MIN || all > HEADER + 2ull * RING_MAX)
                return SP_E_PROTO;
        size_t size = (size_t)(all - HEADER) / 2;
        if (size & (size - 1) || all != HEADER + 2 * size)
                return SP_E_PROTO;
        *ret = size;
        return 0;
}

/* The descriptors of an offer. */
enum { RINGS, ARENA, FDS };

static int send_word(int socket, uint8_t what, const int *fds, size_t count)
{
        struct iovec iov = { &what, 1 };
        return passing_send(socket, &iov, 1, fds, count) == 1 ? 0 : SP_E_LINK;
}

int shm_offer(struct conn **c, size_t size, uint64_t arena)
{
        struct conn *old = *c;
        struct shm *s = NULL;
        int fds[FDS] = { -1, -1 };
        if (old->ops->caps & TRANSPORT_PASSES_FDS)
                fds[RINGS] = shared_memory_new(HEADER + 2 * size);
        if (fds[RINGS] >= 0)
                (void)!shm_new(old, fds[RINGS], size, 0, &s);
        if (s && arena) {
                s->arena = fds[ARENA] = shared_memory_new(arena);
                s->arena_size = arena;
        }
        size_t count = !s ? 0 : fds[ARENA] < 0 ? 1 : FDS;
        int r = send_word(old->fd, s ? OFFERED : NOT_OFFERED, fds, count);
        if (fds[RINGS] >= 0)
                (void)file_close(fds[RINGS]);
        if (s) {
                mem_free(old);
                *c = &s->base;
        }
        if (r < 0)
                *c = conn_close(*c);
        return r;
}

/* One byte and the descriptors that came with it, else -1. */
static int receive_word(int socket, uint8_t *ret, int ret_fds[FDS])
{
        struct iovec iov = { ret, 1 };
        ssize_t n = passing_receive(socket, &iov, 1, ret_fds, FDS);
        return n < 0 ? (int)n : 0;
}

/* Make a conn over the memory of these descriptors. It takes over those that it uses. */
static int take(struct conn *old, int fds[FDS], struct shm **ret)
{
        size_t size;
        int r = ring_size(fds[RINGS], &size);
        if (r < 0)
                return r;
        r = shm_new(old, fds[RINGS], size, 1, ret);
        if (r == 0 && fds[ARENA] >= 0 && shared_memory_size(fds[ARENA], &(*ret)->arena_size) == 0) {
                (*ret)->arena = fds[ARENA];
                fds[ARENA] = -1;
        }
        return r;
}

int shm_accept(struct conn **c)
{
        struct conn *old = *c;
        struct shm *s = NULL;
        uint8_t what;
        int fds[FDS] = { -1, -1 };
        int r = receive_word(old->fd, &what, fds);
        if (r == SP_E_AGAIN)
                return r;
        if (!r && what != OFFERED && what != NOT_OFFERED)
                r = SP_E_PROTO;
        if (!r && what == OFFERED) {
                if (fds[RINGS] >= 0)
                        (void)!take(old, fds, &s);
                r = send_word(old->fd, s ? TAKEN : NOT_TAKEN, NULL, 0);
        }
        for (size_t i = 0; i < FDS; i++)
                if (fds[i] >= 0)
                        (void)file_close(fds[i]);
        if (s) {
                atomic_store(&s->state, SHARED);
                mem_free(old);
                *c = &s->base;
        }
        if (r < 0)
                *c = conn_close(*c);
        return r;
}

int conn_arena(const struct conn *c, uint64_t *ret_size)
{
        if (c->ops != &transport_shm)
                return -1;
        const struct shm *s = container_of(c, const struct shm, base);
        *ret_size = s->arena_size;
        return s->arena;
}

int conn_pass(struct conn *c, int fd)
{
        if (c->ops != &transport_shm)
                return SP_E_UNSUPP;
        struct shm *s = container_of(c, struct shm, base);
        uint8_t bell = BELL;
        struct iovec iov = { &bell, 1 };
        if (atomic_load(&s->state) != SHARED)
                return SP_E_UNSUPP;
        ssize_t n = passing_send(c->fd, &iov, 1, &fd, 1);
        return n < 0 ? (int)n : 0;
}

void conn_take_passed(struct conn *c)
{
        if (c->ops == &transport_shm)
                container_of(c, struct shm, base)->takes = true;
}

int conn_take(struct conn *c)
{
        enum { TRIES = 64 }; /* a socket holds more bells only if the other side floods it */
        if (c->ops != &transport_shm)
                return SP_E_NOENT;
        struct shm *s = container_of(c, struct shm, base);
        unsigned tries = s->takes && atomic_load(&s->state) == SHARED ? TRIES : 0;
        while (tries-- && s->passed < 0 && drain(s))
                ;
        int fd = s->passed;
        s->passed = -1;
        return fd >= 0 ? fd : SP_E_NOENT;
}

void conn_bounce(struct conn *c, void *base, uint64_t size)
{
        if (c->ops != &transport_shm)
                return;
        struct shm *s = container_of(c, struct shm, base);
        bounce_begin(&s->bounce_out, &s->bounce_in, &s->shared->bounces[s->side],
                     &s->shared->bounces[!s->side], base, size);
}

bool conn_places(const struct conn *c)
{
        return c->ops->caps & TRANSPORT_PLACED ||
               (c->ops == &transport_shm &&
                container_of(c, const struct shm, base)->bounce_in.flow);
}

bool conn_is_engaged(const struct conn *c)
{
        if (c->ops != &transport_shm)
                return false;
        const struct shm *s = container_of(c, const struct shm, base);
        return bounce_is_engaged(&s->bounce_out, &s->bounce_in);
}
