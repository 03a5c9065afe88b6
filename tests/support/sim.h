/* The simulator: one client and its servers in one thread, in virtual time, over a network that delays
 * and cuts bytes as one seed says. The client core and the engines (with the reference backend) are the
 * real ones; what is simulated is sockets, clocks and how long commands take. The same seed gives the
 * same run.
 *
 * When the client waits and nothing is on its way anywhere, that is a deadlock: it fails. A failure
 * prints the seed and ends the process. */
#ifndef SPANCL_TESTS_SIM_H
#define SPANCL_TESTS_SIM_H

#include <CL/cl.h>

#include "core/client.h"
#include "engine/engine.h"
#include "support/random.h"

enum { SIM_SERVERS_MAX = 8 };

struct sim_params {
        uint64_t seed;
        unsigned servers;
        const char *devices; /* filter of every server (backend.h); NULL: all */
        unsigned refusing;   /* bit per server: nobody listens there */
        unsigned one_way;    /* bit per server: other servers can't reach it, only it them */
        /* Bit 8 i + k: server k does not answer server i, which the client does not know. */
        uint64_t blocked;
        uint64_t delay_ns;   /* longest of the network; 0: of the seed's choosing */
        size_t room;         /* bytes that one direction holds; 0: of the seed's choosing */
        uint64_t execute_ns; /* longest time to a command's end; 0: of the seed's choosing */
        bool verbose;
        /* struct client_params. */
        uint64_t reconnect_ns, wait_ns, answer_ns; /* servers have the last one, too */
        /* In so many of a thousand moments the client's connections with a server are cut, so often in all. */
        unsigned cut_chance, cuts;
        /* Connections have checksums (transport/checked.h). In `alter_chance` of a thousand
         * portions, and `alterations` times in all, bytes are altered, lost or added, or are the
         * last that arrive. */
        unsigned alter_chance, alterations;
        /* Sessions may end with errors, and in a deadlock the servers die. */
        bool forgiving;
        /* Called for what servers send to the client, before it goes: `offset` counts the lane's bytes. */
        void (*tamper)(void *user, unsigned lane, uint64_t offset, uint8_t *data, size_t size);
        void *tamper_user;
};

struct sim;

struct sim *sim_new(const struct sim_params *params);

/* Ends the client, lets the servers finish, checks that they hold nothing any more. NULL is allowed. */
struct sim *sim_free(struct sim *sim);

struct client *sim_client(struct sim *sim);
cl_platform_id sim_platform(struct sim *sim);
uint64_t sim_now(const struct sim *sim);
unsigned sim_servers(const struct sim *sim);

/* Everything that can happen within `ns` happens; then the client's callbacks run. Does not wait. */
void sim_run(struct sim *sim, uint64_t ns);

/* Until nothing is on its way. */
void sim_run_until_idle(struct sim *sim);

/* The client's connections with server `i` are lost: what was on its way arrives in part, and each side
 * notices sooner or later. With sim_params.reconnect_ns it comes back. */
void sim_cut_client(struct sim *sim, unsigned i);
/* Nothing arrives on these any more, nor on those of other servers with it (on some of them, or all), and each side believes in them for a while longer. */
void sim_half_open(struct sim *sim, unsigned i);
/* From now on, as sim_params.cut_chance and .cuts say. */
void sim_cut_often(struct sim *sim, unsigned chance, unsigned cuts);
/* Nothing is under way: what was kept for it, and what packed frames stand for, is not needed any more. */
void sim_forget(struct sim *sim);

/* Server `i` dies: its connections end after what is on its way. */
void sim_kill_server(struct sim *sim, unsigned i);
/* It begins anew, with these devices, and knows of no session; dies before if it has not yet. */
void sim_restart_server(struct sim *sim, unsigned i, const char *devices);
/* The link between two servers is lost, as sim_cut_client says; it is made again. */
void sim_cut_peers(struct sim *sim, unsigned i, unsigned k);

/* From now on sim_params.blocked is this: those that were relayed find out. Connections stay. */
void sim_set_ways(struct sim *sim, uint64_t blocked);

/* Hold back everything that server i sends (true), or let it go. */
void sim_freeze(struct sim *sim, unsigned i, bool frozen);

/* The i-th server's engine, and its session with the client. */
struct engine *sim_engine(struct sim *sim, unsigned i);

/* Free `memory` (of malloc) after the client has ended. */
void sim_keep(struct sim *sim, void *memory);

/* Is the session with server `i` still there? */
bool sim_server_alive(const struct sim *sim, unsigned i);

/* Bytes of bulk that left server `from` for server `to`; `to` = SIM_SERVERS_MAX: for the client. */
uint64_t sim_traffic(const struct sim *sim, unsigned from, unsigned to);

/* The text that the servers printed for the client. */
const char *sim_output(const struct sim *sim);

/* Print the seed and what was wrong, and end the process. */
void sim_fail(const struct sim *sim, const char *fmt, ...)
        __attribute__((format(printf, 2, 3), noreturn));

#endif
