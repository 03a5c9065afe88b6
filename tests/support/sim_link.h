/* Connections of the simulator: two pipes, whose bytes take their time, and the faults of such
 * connections. Sessions and servers are borrowed; the pipe owns the bytes. */
#ifndef SPANCL_TESTS_SIM_LINK_H
#define SPANCL_TESTS_SIM_LINK_H

#include "base/bytes.h"
#include "session/session.h"
#include "transport/transport.h"

struct sim;
struct sim_server;

/* Bytes on their way in one direction; those of a segment arrive together. */
struct segment {
        uint64_t at;
        size_t size;
};

struct pipe {
        struct buf bytes;
        struct segment *segments;
        size_t count, cap, arrived; /* bytes that have arrived */
        uint64_t last_at, passed, put;
        struct buf trace; /* verbose: of lane 0, what is not a whole frame yet */
};

/* One side of a connection. */
struct end {
        struct session *session;   /* NULL: the other side went away */
        struct sim_server *server; /* NULL: the client */
};

/* One lane's connection. */
struct sim_link {
        bool up;
        bool broken;    /* no more bytes go in; the ends notice after the last one */
        bool half_open; /* nothing arrives any more, and each end takes it for good until: */
        uint64_t notice_at[2];
        unsigned slowness; /* delays are so many times longer than others' */
        unsigned lane;
        uint64_t number; /* a dial's, whose server does not know of it yet; 0: none's */
        struct end end[2];
        struct pipe pipe[2];  /* by the end that sends */
        struct conn *conn[2]; /* with checksums; NULL: bytes go unchanged */
        bool mute[2];         /* nothing that this end sends from now on arrives */
        uint64_t altered;     /* so often something was done to bytes on it */
};

/* Make a connection that neither end knows of yet. A link that both ends have left is used
 * again. */
struct sim_link *sim_link_new(struct sim *sim, unsigned lane, struct end a, struct end b);

/* The same, and the lane is up at both. */
struct sim_link *sim_link_connect(struct sim *sim, unsigned lane, struct end a, struct end b);

/* Return true if end `i` has not yet taken all bytes that arrived. */
bool sim_link_has_arrived(const struct sim_link *l, int i);

/* The next time when servers check the clocks of their sessions. */
uint64_t sim_link_deadline(const struct sim *sim);

/* Check the clocks of end `i`, a server. Negative: the other side owes something for too long. */
int sim_link_owed(const struct sim *sim, struct sim_link *l, int i);

/* Frees the bytes; the link may be used again. */
void sim_link_fini(struct sim_link *l);

/* End `i` closes the connection; the other side notices after the last byte. */
void sim_link_close_end(struct sim_link *l, int i);

/* Close all ends of this session. */
void sim_link_close_session(struct sim *sim, const struct session *s);

/* Cut the connection: only a part of the bytes that are under way arrives. */
void sim_link_cut(struct sim *sim, struct sim_link *l);

/* Make it half-open: nothing arrives any more, and each end notices sooner or later. */
void sim_link_half_open(struct sim *sim, struct sim_link *l);

/* Move the output of end `i` of the link into its pipe. True: it had more than there was room
 * for. */
bool sim_link_push(struct sim *sim, struct sim_link *l, int i);

/* Hand some of the bytes that have arrived at end `i` to its session. 1: some; 0: nothing, or the
 * lane waits; negative: the session has ended. */
int sim_link_pull(struct sim *sim, struct sim_link *l, int i);

/* Let bytes that were sent to end `i` and are due arrive. */
void sim_link_tick(const struct sim *sim, struct sim_link *l, int i);

/* The time when a byte, or the end of the connection, arrives at end `i`; SIM_NEVER: none is
 * under way. */
uint64_t sim_link_arrival(const struct sim_link *l, int i);

/* Return true if the bytes that end `i` sends are held back (sim_freeze, sim_hold_client). */
bool sim_link_is_held_back(const struct sim_link *l, int i);

/* Return the open end of this server; -1: none. */
int sim_link_end_of(const struct sim_link *l, const struct sim_server *server);

const char *sim_link_end_name(const struct end *e);

#endif
