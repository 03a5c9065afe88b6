/* The state that the simulator's parts share (tests include sim.h): links, servers, dials between
 * servers, the client's io, and in sim.c the schedule. One thread. `struct sim` holds and frees
 * all of them; they point at each other. Times are virtual, in ns. Every random choice asks
 * `rng`, so the order of the choices is a part of the trace. */
#ifndef SPANCL_TESTS_SIM_STATE_H
#define SPANCL_TESTS_SIM_STATE_H

#include "config/server_spec.h"
#include "support/packed_frames.h"
#include "support/sim.h"
#include "support/sim_client.h"
#include "support/sim_dial.h"
#include "support/sim_link.h"
#include "support/sim_server.h"

#define SIM_NEVER UINT64_MAX

enum {
        SIM_LINKS_MAX = 2 * SIM_SERVERS_MAX * SIM_SERVERS_MAX + 2 * SIM_SERVERS_MAX,
        SIM_DIALS_MAX = SIM_SERVERS_MAX * SIM_SERVERS_MAX,
        SIM_CLIENT_LINKS_MAX = 2 * SIM_SERVERS_MAX, /* a server's old and new session */
};

struct sim {
        struct sim_params params;
        struct rng rng;
        uint64_t now, delay_ns, execute_ns;
        size_t room;
        struct client *client;
        /* The client's links, with gaps; the client closes (frees) them. */
        struct io_link *client_links[SIM_CLIENT_LINKS_MAX];
        bool woken;
        bool broken; /* by sim_kill_server */
        bool gave_up;
        struct server_spec specs[SIM_SERVERS_MAX];
        struct sim_server servers[SIM_SERVERS_MAX];
        struct sim_link links[SIM_LINKS_MAX];
        unsigned link_count;
        struct dial dials[SIM_DIALS_MAX];
        /* From one to the other, that may yet fail. */
        unsigned relayed_tries[SIM_SERVERS_MAX][SIM_SERVERS_MAX];
        uint64_t dialled; /* tries that were accepted */
        unsigned early_dials, refused_dials;
        unsigned described; /* connections that got descriptions of devices, and no session */
        struct sim_quiet quiet;
        uint64_t waited_ns, altered; /* by the client; so often bytes were */
        struct packed_frames packed_frames;
        struct buf output;
        struct kept *kept;
};

/* Fails the run, with the place and the condition. */
#define must(sim, cond)                                                                \
        do {                                                                           \
                if (!(cond))                                                           \
                        sim_fail(sim, "%s:%d: not so: %s", __FILE__, __LINE__, #cond); \
        } while (0)

/* Append to `b`. The simulator's own memory never fails, whatever mem_fail_at says. */
void sim_append(struct buf *b, const void *data, size_t size);

/* Choose how many bytes are moved at once: few, some, or all. */
size_t sim_any_amount(struct rng *rng);

/* The time of the next event; SIM_NEVER: nothing is under way anywhere. */
uint64_t sim_next_event(const struct sim *sim);

/* Let the servers do what is due now. True: the client may have something to do. */
bool sim_happen(struct sim *sim);

#endif
