/* The longest waits of the simulator's client where sessions have clocks (sim_params.answer_ns).
 * Virtual time makes them exact. Bytes that are altered, or never arrive, cost a wait one
 * deadline. Slow connections cost the time that the bytes take. */
#ifndef SPANCL_TESTS_SIM_DEADLINE_H
#define SPANCL_TESTS_SIM_DEADLINE_H

#include <stdint.h>

struct sim;

/* How long a call waits and nothing comes. */
struct sim_quiet {
        uint64_t progress; /* a count that changes when something comes */
        uint64_t call;     /* the same of calls */
        uint64_t ns;
};

/* So many bytes take at most so long on a connection. */
uint64_t sim_lasts(const struct sim *sim, uint64_t bytes);

/* sim_params.answer_ns, but at least the time of the largest thing that comes as a whole on lane
 * 0, however slow the network is. A link has to carry that much within the limit. */
uint64_t sim_answer_ns(const struct sim *sim);

/* The client waits, and sim->now has grown by `ns`. Fails the run when that is too long:
 * - nothing comes on a connection that was altered, and the client still believes in it;
 * - nothing happens anywhere;
 * - or the program lasts longer than all that was altered explains. */
void sim_waited(struct sim *sim, uint64_t ns);

/* For the report of a wait that is too long. */
void sim_print_waits(struct sim *sim);

#endif
