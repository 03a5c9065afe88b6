/* The client's io in the simulator (core/link/io.h). Time passes in its `wait`. */
#ifndef SPANCL_TESTS_SIM_CLIENT_H
#define SPANCL_TESTS_SIM_CLIENT_H

#include "core/link/io.h"
#include "support/sim_deadline.h"

struct sim;
struct sim_server;

/* The client's handle for a server's connections. */
struct io_link {
        struct sim *sim;
        struct session *session;
        struct sim_server *server;
        uint64_t attach_at; /* lane 1 comes up; SIM_NEVER: not asked for */
        uint64_t redial_at; /* lane 0 comes up again; SIM_NEVER: it is up */
        uint64_t redial_until;
        uint64_t open_at; /* a later session begins; SIM_NEVER: no */
        bool describes;   /* descriptions of the devices will do */
        bool refused;     /* it was awaited, and the server was not there */
        struct io_connect opened;
        uint64_t id[2];
        uint64_t generation;    /* of the next try */
        bool redialled;         /* it came up since the last receive */
        struct buf early;       /* sent behind the next hello */
        bool was_short;         /* the last send was short of room */
        struct sim_quiet quiet; /* since something of these connections was altered */
};

/* `user` is the struct sim. */
extern const struct client_io sim_client_io;

/* The client's handle for a session's connections; NULL: none. */
struct io_link *sim_io_of(struct sim *sim, const struct session *session);

/* Return true if `receive` would find something or `send` could move something. */
bool sim_io_ready(struct sim *sim);

/* Do what is due: attach lane 1, dial a lost connection again, begin a later session. True: the
 * client may have something to do. */
bool sim_io_due(struct sim *sim, struct io_link *io);

#endif
