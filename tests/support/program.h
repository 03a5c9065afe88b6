/* Random OpenCL programs without races. An oracle executes their commands one after the other in
 * the order in which they were enqueued; the results have to be the same. Uses the client's own
 * entry points and only facts that the application may know. */
#ifndef SPANCL_TESTS_PROGRAM_H
#define SPANCL_TESTS_PROGRAM_H

#include "support/sim.h"

struct program_params {
        uint64_t seed;
        unsigned commands; /* about so many; 0: of the seed's choosing */
        bool verbose;      /* print each command */
        /* After this command a server dies or a link between servers breaks. From then on only
         * hangs, crashes and leaks are failures. 0: no. */
        unsigned break_after;
        bool restart; /* a server is started anew then, and all are at the end */
        bool broken;  /* from the start */
        /* No memory of the program's own that devices use, and many waits: they may be ahead (core/command/ahead.h). */
        bool ahead;
        bool steps; /* of the same launches and reads: they may be read ahead (core/command/prefetch.h) */
        bool no_memory; /* allocations fail now and then, in the client and in the servers */
        bool check_each; /* finish and compare after each: finds which one is wrong, if order is not */
};

/* Run a program on all devices of the simulation's platform; a difference is sim_fail. Afterwards
 * every object has been released. */
void program_run(struct sim *sim, const struct program_params *params);

#endif
