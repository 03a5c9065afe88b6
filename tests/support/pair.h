/* Two sessions joined in memory by pipes. The pipes deliver any number of bytes at any time,
 * driven by one seed. Every message and transfer is checked on arrival. A failure aborts with a
 * text. */
#ifndef SPANCL_TESTS_PAIR_H
#define SPANCL_TESTS_PAIR_H

#include "base/map.h"
#include "session/arrivals.h"
#include "session/session.h"
#include "support/packed_frames.h"
#include "support/random.h"

/* Bytes on their way in one direction of one lane. */
struct pipe {
        struct buf bytes;
        size_t room;      /* at most this many on the way */
        uint64_t passed;  /* taken out, since the lane came up */
        uint64_t stop_at; /* none are taken out beyond (the cut comes there) */
};

/* A transfer on its way to or from a side. */
struct pair_transfer {
        struct session_bulk bulk; /* sender */
        struct pair_side *side;
        uint64_t id, total;
        size_t piece;                 /* its memory lies in pieces of this size */
        uint8_t *data;                /* sender: what is sent; receiver: what has come */
        struct arrivals placed, came; /* receiver */
        uint64_t passed;              /* sender: will not be asked for again */
        int done;                     /* sender: how often done was called */
        int status;                   /* and with what */
};

struct pair_side {
        struct pair *pair;
        struct session *session;
        struct pipe out[SESSION_LANES];
        uint64_t sent, received; /* messages of ours; each carries its number */
        uint64_t began, ended;   /* transfers sent, and done */
        struct map outgoing, incoming;
        bool little;             /* it has little memory (session_params.in_bytes) */
        struct buf parts;        /* of the message that comes in parts */
        uint64_t places_refused; /* bulk_place said SP_E_AGAIN */
        unsigned hold_places;    /* percent of such answers though the transfer is known */
};

struct pair {
        struct rng rng;
        struct pair_side side[2];
        uint64_t next_transfer;
        bool check_data;
        unsigned packs; /* percent of the bulk lanes that do; 0: frames go as they are */
        struct packed_frames packed_frames;
};

struct pair_params {
        uint64_t seed;
        size_t window_bytes[2], inline_bytes, wide_bytes;
        size_t in_bytes[2]; /* session_params.in_bytes */
        size_t pipe_room;   /* 0: no limit */
        unsigned packs;     /* percent of bulk lanes with packed frames */
};

/* Bring both lanes of both sides up. -1: out of memory (when allocations are made to fail). */
int pair_init(struct pair *p, const struct pair_params *params);
void pair_fini(struct pair *p);

/* Side `i` sends its next message, with `size` bytes of padding. Returns session_send's result. */
int pair_send(struct pair *p, int i, size_t size);

/* Side `i` announces a transfer and starts it; only the first `ready` bytes may go (pair_ready). */
int pair_bulk(struct pair *p, int i, uint64_t total, uint64_t ready, size_t piece,
              struct pair_transfer **ret);
void pair_ready(struct pair_transfer *t, uint64_t ready);

/* Move some bytes of one lane in one direction: into the pipe, and out of it. Returns how many, or the
 * SP_E_* that ended a session. */
int pair_push(struct pair *p, int i, unsigned lane, size_t max);
int pair_pull(struct pair *p, int i, unsigned lane, size_t max);

/* Random steps until nothing moves any more. 0, or the SP_E_* that ended a session. */
int pair_settle(struct pair *p);

/* pair_cut cuts lane 0 both ways; bytes that are under way are lost. pair_reattach attaches it
 * again with fresh hellos. */
void pair_cut(struct pair *p);
int pair_reattach(struct pair *p);

/* Attach lane 0 again as pair_reattach does. Up to `max` bytes of side `i`'s session_early follow
 * its hello. Without `answered`, at most a part of them arrives, and the connection is lost
 * again. */
int pair_reattach_early(struct pair *p, int i, size_t max, bool answered);

/* Cut and attach all lanes. Some of the bulk data that is under way still arrives. */
void pair_cut_all(struct pair *p);
int pair_reattach_all(struct pair *p);

/* Check that everything sent has arrived exactly once, in order, and that every transfer is
 * complete. */
void pair_check_complete(const struct pair *p);

#endif
