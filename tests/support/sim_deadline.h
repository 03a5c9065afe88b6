/* The longest waits of the simulator's client where sessions have clocks (sim_params.answer_ns).
 * Virtual time makes them exact. Bytes that are altered, or never arrive, cost a wait one
 * deadline. Slow connections cost the time that the bytes take. */
#ifndef SPANCL_TESTS_SIM_DEADLINE_H
#define SPANCL_TESTS_SIM_DEADLINE_H

#include <stdint.h>

struct sim;

/* The time that a call has waited without receiving anything. */
struct sim_quiet {
        uint64_t progress; /* a count that changes when something comes */
        uint64_t call;     /* the same of calls */
        uint64_t ns;
};

/* The longest time that so many bytes take on a connection. */
uint64_t sim_lasts(const struct sim *sim, uint64_t bytes);

/* sim_params.answer_ns, but at least the time of the largest thing that comes as a whole on lane
 * 0, however slow the network is. A link has to carry that much within the limit. */
uint64_t sim_answer_ns(const struct sim *sim);

/* Account for a wait of the client: sim->now has grown by `ns`. The run fails when the wait is
 * too long:
 * - nothing comes on a connection that was altered, and the client still takes it for good;
 * - nothing happens anywhere;
 * - or the program lasts longer than all alterations explain. */
void sim_waited(struct sim *sim, uint64_t ns);

/* Print the waits, for the report of one that is too long. */
void sim_print_waits(struct sim *sim);

#endif
