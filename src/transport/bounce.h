/* The bounce buffer is memory that both ends of a shared-memory connection (shm.c) have mapped. One
 * of the two ends uses it for its own bulk data. The sender writes bulk data straight into it, and
 * the receiver copies data that is sent from it straight out of it. So each byte is copied once,
 * not into a ring and out of it again.
 *
 * A flow is one direction of one connection. Before it sends a large piece, the sender asks the
 * receiver where the piece belongs, if the receiver receives into the bounce buffer. The sender
 * waits for the answer, because bytes that went into the ring meanwhile would be copied twice. The
 * answer is a place in the bounce buffer, which the sender then fills, or the ring. If the piece
 * itself lies on the bounce buffer, the sender announces its offset. Such a piece counts as sent
 * when the receiver has copied it. So the bytes of the ring and of the bounce buffer keep their
 * order.
 *
 * As in the rings, each value that the other side wrote is read once, checked and then used. */
#ifndef SPANCL_TRANSPORT_BOUNCE_H
#define SPANCL_TRANSPORT_BOUNCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/iovec.h"

/* A sender asks for the place of a piece of at least so many bytes. */
enum { BOUNCE_PIECE = 128 << 10 };

/* State of a flow, in the memory of the rings. All counts are totals since the connection began. */
struct bounce_flow {
        /* The sender's. */
        _Alignas(128) _Atomic uint64_t sent; /* bytes passed by the bounce buffer */
        _Atomic uint64_t from; /* offset of the last piece; BOUNCE_PLACED: already in its place */
        _Atomic uint64_t question; /* number of the last question */
        _Atomic uint64_t at; /* the question is about the bytes behind this position of the ring */
        /* The receiver's. */
        _Alignas(128) _Atomic uint64_t taken; /* bytes taken from the bounce buffer */
        _Atomic uint64_t answer;              /* number of the last question that was answered */
        _Atomic uint64_t offset, size;        /* the place; size 0: the ring */
        _Atomic uint32_t mapped;              /* the receiver can copy from the bounce buffer */
        _Atomic uint32_t places;              /* the receiver receives into the bounce buffer */
};

/* The sender's own state of a flow. Zeroed: no bounce buffer. */
struct bounce_out {
        struct bounce_flow *flow;
        uint8_t *base;
        uint64_t size;
        uint64_t sent;
        uint8_t *place;     /* the place that is being filled; NULL: none */
        uint64_t left;      /* bytes that the place still lacks */
        uint64_t ring_left; /* bytes that go into the ring whatever their size */
        /* For a thread that polls while another one sends. */
        _Atomic uint64_t reported, question; /* bytes that sendv has said are sent */
        _Atomic int waits;                   /* enum bounce_wait */
};

enum bounce_wait { BOUNCE_NOTHING, BOUNCE_ANSWER, BOUNCE_TAKEN };

/* The receiver's own state of a flow. One thread uses it at a time. */
struct bounce_in {
        struct bounce_flow *flow;
        uint8_t *base;
        uint64_t size;
        uint64_t taken, answer;
        const uint8_t *place; /* the place that is being filled; NULL: none */
        uint64_t left;        /* bytes that the place still lacks */
        uint64_t from;        /* offset of the piece that is being copied */
        uint64_t piece_left;
        bool places;
};

/* Use the `size` bytes at `base` as the bounce buffer. */
void bounce_begin(struct bounce_out *out, struct bounce_in *in, struct bounce_flow *sends,
                  struct bounce_flow *receives, void *base, uint64_t size);

/* Send pieces as conn's sendv does, by way of the bounce buffer; `tail`: the ring's. Returns 0 if
 * the first *ret_ring pieces go into the ring. *ret_notify: the receiver has to be notified.
 * `closed`: not 0 once the other side is gone. */
ssize_t bounce_sendv(struct bounce_out *o, uint64_t tail, const struct iovec *iov, int n,
                     const _Atomic uint32_t *closed, int *ret_ring, bool *ret_notify);

/* So many bytes went into the ring. */
void bounce_rang(struct bounce_out *o, uint64_t bytes);

/* Receive into one place as conn's recvv does. `head` and `have` are the ring's, read before this
 * call. Returns 0 if the caller is to read the ring. *ret_notify: the sender has to be notified. */
ssize_t bounce_recv(struct bounce_in *in, uint64_t head, uint64_t have, const struct iovec *iov,
                    const _Atomic uint32_t *closed, bool *ret_notify);

/* Could bounce_recv do something now? */
bool bounce_can_receive(const struct bounce_in *in, uint64_t head);

/* Is the other side copying for this connection, or about to answer a question? */
bool bounce_is_engaged(const struct bounce_out *o, const struct bounce_in *in);

/* Does sendv wait for the other side, because of the bounce buffer? Then *ret says whether the wait
 * is over. */
bool bounce_waits(const struct bounce_out *o, bool *ret);

#endif
