/* The simulator: one client and its servers in one thread, in virtual time, over a network that
 * delays and cuts bytes as one seed says. The client core and the engines (with the reference
 * backend) are the real ones. Sockets, clocks and the duration of commands are simulated. The
 * same seed gives the same run.
 *
 * If the client waits and nothing is under way anywhere, that is a deadlock: the run fails. A
 * failure prints the seed and ends the process. */
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
        unsigned draining;   /* bit per server: sim_drain right before or behind its first hello */
        unsigned half_described; /* bit per server: nothing describes devices but the first */
        unsigned one_way;        /* bit per server: other servers can't reach it, only it them */
        /* Bit 8 i + k: server k does not answer server i, which the client does not know. */
        uint64_t blocked;
        uint64_t delay_ns;   /* longest of the network; 0: the seed chooses */
        size_t room;         /* bytes that one direction holds; 0: the seed chooses */
        uint64_t execute_ns; /* longest time until a command completes; 0: the seed chooses */
        bool verbose;
        /* struct client_params. */
        uint64_t reconnect_ns, wait_ns, idle_ns, answer_ns; /* servers have the last one, too */
        bool watchers_fail, finish_ahead, prefetch;
        unsigned svm_writes; /* enum svm_writes */
        const char *
                uploads; /* folder where the servers keep chunks of writes (engine/transfer/upload.h); NULL: none */
        /* In `cut_chance` of a thousand moments, and `cuts` times in all, the client's
         * connections with a server are cut. */
        unsigned cut_chance, cuts;
        /* Connections have checksums (transport/checked.h). In `alter_chance` of a thousand
         * portions, and `alterations` times in all, bytes are altered, lost or added, or are the
         * last that arrive. */
        unsigned alter_chance, alterations;
        /* Sessions may end with errors, and in a deadlock the servers die. */
        bool forgiving;
        /* Called for bytes from a server to the client before they go; `offset` counts the lane's
         * bytes. */
        void (*tamper)(void *user, unsigned lane, uint64_t offset, uint8_t *data, size_t size);
        void *tamper_user;
};

struct sim;

struct sim *sim_new(const struct sim_params *params);

/* End the client, let the servers finish, and check that they hold nothing any more. NULL is
 * allowed. */
struct sim *sim_free(struct sim *sim);

struct client *sim_client(struct sim *sim);
cl_platform_id sim_platform(struct sim *sim);
uint64_t sim_now(const struct sim *sim);
unsigned sim_servers(const struct sim *sim);

/* Let everything happen that can within `ns`; then the client's callbacks run. Does not wait. */
void sim_run(struct sim *sim, uint64_t ns);

/* Run until nothing is under way. */
void sim_run_until_idle(struct sim *sim);

/* Cut the client's connections with server `i`. Bytes that are under way arrive in part, and each
 * side notices sooner or later. With sim_params.reconnect_ns the link reconnects. */
void sim_cut_client(struct sim *sim, unsigned i);
/* Make the connections that other sides have with server `i` half-open, all or some of them.
 * Nothing arrives on them any more, and each side takes them for good for a while longer. */
void sim_half_open(struct sim *sim, unsigned i);
/* Set sim_params.cut_chance and .cuts from now on. */
void sim_cut_often(struct sim *sim, unsigned chance, unsigned cuts);
/* Forget the bytes that were kept for transfers and packed frames. Nothing may be under way. */
void sim_forget(struct sim *sim);

/* Kill server `i`. Its connections end after the bytes that are under way. */
void sim_kill_server(struct sim *sim, unsigned i);
/* Server `i` drains: it notifies its client, and refuses new sessions. */
void sim_drain(struct sim *sim, unsigned i);
/* Start server `i` anew with these devices; it knows of no session. If it is alive, it dies
 * first. */
void sim_restart_server(struct sim *sim, unsigned i, const char *devices);
/* Cut the link between two servers, as sim_cut_client does; they make it again. */
void sim_cut_peers(struct sim *sim, unsigned i, unsigned k);

/* Replace sim_params.blocked. Links that were relayed notice it; connections stay. */
void sim_set_ways(struct sim *sim, uint64_t blocked);

/* Hold back the bytes that server i sends (true), or let them go. */
void sim_freeze(struct sim *sim, unsigned i, bool frozen);

/* Hold back the bytes that the client sends to server i (true), or let them go. */
void sim_hold_client(struct sim *sim, unsigned i, bool held);
/* The number of times that a server's dial found that the other server did not know its token: the
 * client's announcement had not arrived there. */
unsigned sim_early_dials(const struct sim *sim);
/* The number of servers' dials that were refused for it in the end. */
unsigned sim_refused_dials(const struct sim *sim);

/* The i-th server's engine, and its session with the client. */
struct engine *sim_engine(struct sim *sim, unsigned i);

/* Free `memory` (of malloc) after the client has ended. */
void sim_keep(struct sim *sim, void *memory);

/* Return true if the session with server `i` is still there. */
bool sim_server_alive(const struct sim *sim, unsigned i);
/* Has a session begun on server `i` since its start? */
bool sim_server_has_session(const struct sim *sim, unsigned i);
/* The number of connections that described devices and began no session. */
unsigned sim_described(const struct sim *sim);

/* Return the bulk bytes that left server `from` for server `to`; `to` = SIM_SERVERS_MAX: for the
 * client. */
uint64_t sim_traffic(const struct sim *sim, unsigned from, unsigned to);

/* The text that the servers printed for the client. */
const char *sim_output(const struct sim *sim);

/* Print the seed and the failure, and end the process. */
void sim_fail(const struct sim *sim, const char *fmt, ...)
        __attribute__((format(printf, 2, 3), noreturn));

#endif
