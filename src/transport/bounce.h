/* The bounce buffer: memory that both ends of shared memory (shm.c) have mapped, and one of them uses for its bulk data. What
 * is received into it is written there by the sender itself, and what is sent from it the receiver copies from there:
 * once, and not into a ring and out of it again.
 *
 * One flow is one direction of one connection. Who sends a large piece, while the other side receives into the bounce buffer,
 * asks where it belongs and waits, since what went into the ring meanwhile would be copied twice. The answer is a place
 * that it then fills, or the ring. A piece that lies on the bounce buffer itself is told of, and counts as sent when the
 * receiver has copied it. So bytes of the ring and of the bounce buffer keep their order.
 *
 * As in the rings, what the other side says is read once, checked and then used. */
#ifndef SPANCL_TRANSPORT_BOUNCE_H
#define SPANCL_TRANSPORT_BOUNCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* Bytes of a piece that is worth asking where it belongs. */
enum { BOUNCE_PIECE = 128 << 10 };

/* In the memory of the rings. Counts are of all bytes so far. */
struct bounce_flow {
        /* The sender's. */
        _Alignas(128) _Atomic uint64_t sent; /* bytes on the bounce buffer */
        _Atomic uint64_t from;     /* where the last piece lies; BOUNCE_PLACED: in its place */
        _Atomic uint64_t question; /* number of the last one */
        _Atomic uint64_t at;       /* it is about the bytes that follow this one of the ring */
        /* The receiver's. */
        _Alignas(128) _Atomic uint64_t taken; /* bytes on the bounce buffer */
        _Atomic uint64_t answer;              /* number of the last question that was answered */
        _Atomic uint64_t offset, size;        /* the place; of no size: the ring */
        _Atomic uint32_t mapped;              /* the receiver can copy from the bounce buffer */
        _Atomic uint32_t places;              /* it receives into the bounce buffer */
};

/* What the sender knows of one. Zeroed: no stage. */
struct bounce_out {
        struct bounce_flow *flow;
        uint8_t *base;
        uint64_t size;
        uint64_t sent;
        uint8_t *place;     /* that is not full; NULL: none */
        uint64_t left;      /* bytes that it lacks */
        uint64_t ring_left; /* bytes that go into the ring whatever their size */
        /* For who looks while another thread sends. */
        _Atomic uint64_t reported, question; /* bytes that sendv has said are sent */
        _Atomic int waits;                   /* enum bounce_wait */
};

enum bounce_wait { BOUNCE_NOTHING, BOUNCE_ANSWER, BOUNCE_TAKEN };

/* And the receiver. One thread uses it at a time. */
struct bounce_in {
        struct bounce_flow *flow;
        uint8_t *base;
        uint64_t size;
        uint64_t taken, answer;
        const uint8_t *place; /* that is not full; NULL: none */
        uint64_t left;        /* bytes that it lacks */
        uint64_t from;        /* of a piece to be copied */
        uint64_t piece_left;
        bool places;
};

/* `size` bytes at `base` are the bounce buffer. */
void bounce_begin(struct bounce_out *out, struct bounce_in *in, struct bounce_flow *sends,
                  struct bounce_flow *receives, void *base, uint64_t size);

/* As conn's sendv, of pieces that come next, at `tail` of the ring. 0: the first *ret_ring of them go into the ring.
 * *ret_told: there is something new for the receiver. `closed`: the other side is gone when it is not 0. */
ssize_t bounce_sendv(struct bounce_out *o, uint64_t tail, const struct iovec *iov, int n,
                     const _Atomic uint32_t *closed, int *ret_ring, bool *ret_told);

/* So many bytes went into the ring. */
void bounce_rang(struct bounce_out *o, uint64_t bytes);

/* As conn's recvv into one place; `head` and `have`: of the ring, looked at before this call. 0: the ring is to be looked
 * at. *ret_told: there is something new for the sender. */
ssize_t bounce_recv(struct bounce_in *in, uint64_t head, uint64_t have, const struct iovec *iov,
                    const _Atomic uint32_t *closed, bool *ret_told);

/* Has a call to receive a point? */
bool bounce_can_receive(const struct bounce_in *in, uint64_t head);

/* Is the other side at work for this one? */
bool bounce_is_engaged(const struct bounce_out *o, const struct bounce_in *in);

/* Does sendv wait for anything on the bounce buffer? Then *ret says whether it is there. */
bool bounce_waits(const struct bounce_out *o, bool *ret);

#endif
