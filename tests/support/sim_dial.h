/* Dials between servers of the simulator. A try takes its time; it may fail, be refused, or be
 * relayed by the client. */
#ifndef SPANCL_TESTS_SIM_DIAL_H
#define SPANCL_TESTS_SIM_DIAL_H

#include <stdbool.h>
#include <stdint.h>

struct session;
struct sim;
struct sim_server;

/* The next step of a try. */
enum dial_step { DIAL_BEGINS, DIAL_ARRIVES, DIAL_ENDS };

struct dial {
        uint64_t at; /* of the next step; SIM_NEVER: it is connected, or given up */
        enum dial_step step;
        struct sim_server *from, *to;
        struct session *session; /* of `from`; NULL: free */
        bool relayed;            /* by the client, until it is connected */
        uint64_t token[2], id[2];
        unsigned tries;
        /* Of the hello, and of its answer. */
        uint64_t generation, next_seq, their_seq;
        uint64_t number; /* sim_link's: what the other side has for the connection */
};

/* struct engine_ops; `user` is the struct sim_server. */
void sim_dial_begin(void *user, struct session *s, uint64_t peer, const char *host, unsigned port,
                    const char *local_path, const uint64_t session_id[2], const uint64_t token[2]);
void sim_dial_hang_up(void *user, struct session *s);
void sim_dial_relayed(void *user, struct session *s); /* tried again now and then */

/* Return the dial that made this session; NULL: none. */
struct dial *sim_dial_of(struct sim *sim, const struct session *s);

/* Do the next step, which is due. */
void sim_dial_step(struct sim *sim, struct dial *d);

#endif
