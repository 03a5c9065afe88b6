/* Servers of the simulator: real engines over the reference backend, whose commands complete when
 * the schedule says. The server owns its engine. A server that has died keeps it until it is
 * started anew, or the simulation ends. */
#ifndef SPANCL_TESTS_SIM_SERVER_H
#define SPANCL_TESTS_SIM_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct session;
struct sim;

struct sim_server {
        struct sim *sim;
        unsigned index;
        char name[16], address[32];
        struct engine *engine;
        bool dead, frozen;
        bool held; /* nothing of the client's arrives (sim_hold_client) */
        bool over; /* the client closed the session */
        bool away; /* the client's connections are lost */
        bool drains;
        bool stuck; /* the backend had nothing to run though commands are said to run */
        uint64_t id[2], key[2];
        uint64_t clock_offset;
        uint64_t execute_at;
};

/* Start server `i` as sim_params says. */
void sim_server_start(struct sim *sim, unsigned i);

/* Check that after the goodbye the session has nothing left to do or to hold; otherwise the run
 * fails. */
void sim_server_check_empty(struct sim *sim, struct sim_server *s);

/* Take in and send all that can move now. True: something was taken in, and its sender may have
 * room again. */
bool sim_server_serve(struct sim_server *s);
void sim_server_serve_all(struct sim *sim);

/* Some commands complete. */
void sim_server_execute(struct sim_server *s);

/* Note that the client's connections are lost, or that others take their place. */
void sim_server_client_gone(struct sim_server *s);

/* The server's clock (a struct sim_server). */
uint64_t sim_server_now(void *user);

/* For the report of a deadlock. */
void sim_server_print(const struct sim_server *s);

#endif
