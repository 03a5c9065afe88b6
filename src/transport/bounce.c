#include "transport/bounce.h"

#include <stddef.h>
#include <string.h>

#include "base/status.h"

/* In the place of a piece's offset: the bytes are in the receiver's place already. */
#define BOUNCE_PLACED UINT64_MAX

enum {
        COPY_MAX = 1 << 20, /* bytes of one call */
        STEP = 128
               << 10, /* bytes copied before this side checks that the other one is still there */
};

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* Does it lie on the bounce buffer, and where? */
static bool on_bounce(const uint8_t *base, uint64_t size, const struct iovec *v, uint64_t *ret)
{
        *ret = (uint64_t)((uintptr_t)v->iov_base - (uintptr_t)base);
        return *ret < size && v->iov_len <= size - *ret;
}

void bounce_begin(struct bounce_out *out, struct bounce_in *in, struct bounce_flow *sends,
                  struct bounce_flow *receives, void *base, uint64_t size)
{
        *out = (struct bounce_out){ .flow = sends, .base = base, .size = size };
        *in = (struct bounce_in){ .flow = receives, .base = base, .size = size };
        atomic_store(&receives->mapped, 1);
}

/* ---- sending -------------------------------------------------------------------------------- */

static uint64_t relaxed(const _Atomic uint64_t *p)
{
        return atomic_load_explicit(p, memory_order_relaxed);
}

static void wait_for(struct bounce_out *o, enum bounce_wait what)
{
        atomic_store_explicit(&o->waits, what, memory_order_relaxed);
}

static void publish(struct bounce_out *o, uint64_t bytes, uint64_t from)
{
        o->sent += bytes;
        atomic_store_explicit(&o->flow->from, from, memory_order_relaxed);
        atomic_store(&o->flow->sent, o->sent);
}

/* The receiver copies the announced pieces, part by part. */
static ssize_t parts_taken(struct bounce_out *o)
{
        uint64_t all = atomic_load(&o->flow->taken), n = all - relaxed(&o->reported);
        if (n > o->sent - relaxed(&o->reported))
                return SP_E_LINK;
        if (!n)
                return SP_E_AGAIN;
        atomic_store_explicit(&o->reported, all, memory_order_relaxed);
        if (all == o->sent)
                wait_for(o, BOUNCE_NOTHING);
        return (ssize_t)n;
}

/* Returns how many bytes there are now. */
static uint64_t fill_part(struct bounce_out *o, const uint8_t *from, uint64_t size)
{
        memmove(o->place, from, size);
        o->left -= size;
        o->place = o->left ? o->place + size : NULL;
        publish(o, size, BOUNCE_PLACED);
        return size;
}

static ssize_t fill(struct bounce_out *o, const struct iovec *iov, int n,
                    const _Atomic uint32_t *closed)
{
        uint64_t done = 0, most = least(o->left, COPY_MAX);
        for (int i = 0; i < n && done < most; i++) {
                const uint8_t *p = iov[i].iov_base;
                uint64_t len = least(iov[i].iov_len, most - done);
                for (uint64_t pos = 0; pos < len;) {
                        if (atomic_load(closed))
                                return SP_E_LINK; /* something else may be there by now */
                        pos += fill_part(o, p + pos, least(len - pos, STEP));
                }
                done += len;
        }
        atomic_store_explicit(&o->reported, o->sent, memory_order_relaxed);
        return (ssize_t)done;
}

static void ask(struct bounce_out *o, uint64_t tail)
{
        atomic_store_explicit(&o->flow->at, tail, memory_order_relaxed);
        uint64_t question = relaxed(&o->question) + 1;
        atomic_store_explicit(&o->question, question, memory_order_relaxed);
        atomic_store(&o->flow->question, question);
        wait_for(o, BOUNCE_ANSWER);
}

/* SP_E_AGAIN: not yet; 0: the ring; 1: o->place. */
static int answered(struct bounce_out *o)
{
        if (atomic_load(&o->flow->answer) != relaxed(&o->question))
                return SP_E_AGAIN;
        uint64_t offset = atomic_load(&o->flow->offset), size = atomic_load(&o->flow->size);
        wait_for(o, BOUNCE_NOTHING);
        if (!size)
                return 0;
        if (offset >= o->size || size > o->size - offset)
                return SP_E_LINK;
        o->place = o->base + offset;
        o->left = size;
        return 1;
}

ssize_t bounce_sendv(struct bounce_out *o, uint64_t tail, const struct iovec *iov, int n,
                     const _Atomic uint32_t *closed, int *ret_ring, bool *ret_notify)
{
        uint64_t offset;
        *ret_notify = false;
        *ret_ring = n;
        if (!o->flow)
                return 0;
        int waits = atomic_load_explicit(&o->waits, memory_order_relaxed);
        if (waits == BOUNCE_TAKEN)
                return parts_taken(o);
        if (waits == BOUNCE_ANSWER) {
                int r = answered(o);
                if (r < 0)
                        return r;
                if (r == 0)
                        o->ring_left = iov->iov_len;
        }
        if (o->place) {
                *ret_notify = true;
                return fill(o, iov, n, closed);
        }
        if (!o->ring_left && iov->iov_len >= BOUNCE_PIECE) {
                /* While the receiver has not seen all that is in places, that would be taken for this piece. */
                if (atomic_load(&o->flow->mapped) && on_bounce(o->base, o->size, iov, &offset) &&
                    atomic_load(&o->flow->taken) == o->sent) {
                        publish(o, iov->iov_len, offset);
                        wait_for(o, BOUNCE_TAKEN);
                        *ret_notify = true;
                        return SP_E_AGAIN;
                }
                if (atomic_load(&o->flow->places)) {
                        ask(o, tail);
                        *ret_notify = true;
                        return SP_E_AGAIN;
                }
                o->ring_left = iov->iov_len;
        }
        /* Up to the next large piece. */
        for (int i = 1; i < n; i++)
                if (iov[i].iov_len >= BOUNCE_PIECE) {
                        *ret_ring = i;
                        break;
                }
        return 0;
}

void bounce_rang(struct bounce_out *o, uint64_t bytes)
{
        o->ring_left -= least(o->ring_left, bytes);
}

bool bounce_waits(const struct bounce_out *o, bool *ret)
{
        switch (o->flow ? atomic_load_explicit(&o->waits, memory_order_relaxed) : BOUNCE_NOTHING) {
        case BOUNCE_ANSWER:
                *ret = atomic_load(&o->flow->answer) == relaxed(&o->question);
                return true;
        case BOUNCE_TAKEN:
                *ret = atomic_load(&o->flow->taken) != relaxed(&o->reported);
                return true;
        default:
                return false;
        }
}

/* ---- receiving ------------------------------------------------------------------------------ */

static bool is_asked(const struct bounce_in *in, uint64_t head)
{
        return atomic_load(&in->flow->question) != in->answer && atomic_load(&in->flow->at) == head;
}

static void answer(struct bounce_in *in, const struct iovec *iov)
{
        uint64_t offset;
        bool there = on_bounce(in->base, in->size, iov, &offset);
        in->place = there ? iov->iov_base : NULL;
        in->left = there ? iov->iov_len : 0;
        atomic_store_explicit(&in->flow->offset, offset, memory_order_relaxed);
        atomic_store_explicit(&in->flow->size, in->left, memory_order_relaxed);
        in->answer = atomic_load(&in->flow->question);
        atomic_store(&in->flow->answer, in->answer);
}

static ssize_t took(struct bounce_in *in, uint64_t bytes)
{
        in->taken += bytes;
        atomic_store(&in->flow->taken, in->taken);
        return (ssize_t)bytes;
}

/* The sender has written them where they belong. */
static ssize_t placed(struct bounce_in *in, uint64_t there, const struct iovec *iov)
{
        if (iov->iov_base != in->place || there > in->left)
                return SP_E_LINK;
        uint64_t n = least(there, iov->iov_len);
        in->left -= n;
        in->place = in->left ? in->place + n : NULL;
        return took(in, n);
}

/* They lie where the sender has said. */
static ssize_t copied(struct bounce_in *in, uint64_t there, const struct iovec *iov,
                      const _Atomic uint32_t *closed, bool *ret_notify)
{
        if (!in->piece_left) {
                uint64_t from = atomic_load_explicit(&in->flow->from, memory_order_relaxed);
                if (from >= in->size || there > in->size - from)
                        return SP_E_LINK;
                in->from = from;
                in->piece_left = there;
        }
        uint64_t n = least(least(in->piece_left, iov->iov_len), COPY_MAX);
        memmove(iov->iov_base, in->base + in->from, n); /* nobody promises that they are apart */
        if (atomic_load(closed))
                return SP_E_LINK; /* something else may have been there */
        in->from += n;
        in->piece_left -= n;
        *ret_notify = true;
        return took(in, n);
}

ssize_t bounce_recv(struct bounce_in *in, uint64_t head, uint64_t have, const struct iovec *iov,
                    const _Atomic uint32_t *closed, bool *ret_notify)
{
        uint64_t offset;
        *ret_notify = false;
        if (!in->flow)
                return 0;
        if (iov->iov_len >= BOUNCE_PIECE &&
            in->places != on_bounce(in->base, in->size, iov, &offset)) {
                in->places = !in->places;
                atomic_store_explicit(&in->flow->places, in->places, memory_order_relaxed);
        }
        uint64_t there = atomic_load(&in->flow->sent) - in->taken;
        if (in->place) /* it is filled before anything else comes */
                return there ? placed(in, there, iov) : have ? SP_E_LINK : 0;
        if (have)
                return 0; /* these bytes of the ring were sent before the piece */
        if (there)
                return copied(in, there, iov, closed, ret_notify);
        if (is_asked(in, head)) {
                answer(in, iov);
                *ret_notify = true;
        }
        return 0;
}

bool bounce_can_receive(const struct bounce_in *in, uint64_t head)
{
        return in->flow && (atomic_load(&in->flow->sent) != in->taken || is_asked(in, head));
}

bool bounce_is_engaged(const struct bounce_out *o, const struct bounce_in *in)
{
        return in->place || atomic_load_explicit(&o->waits, memory_order_relaxed) != BOUNCE_NOTHING;
}
