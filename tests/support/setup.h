/* The usual objects of a simulated world (support/sim.h). They are a context over all devices of
 * all servers, one queue on each, a buffer, and a kernel that adds one to each of its numbers. */
#ifndef SPANCL_TESTS_SETUP_H
#define SPANCL_TESTS_SETUP_H

#include "support/check.h"
#include "support/sim.h"

struct setup {
        struct sim *sim;
        cl_device_id devices[16];
        cl_uint count;
        cl_context context;
        cl_command_queue queues[16];
        cl_program program;
        cl_kernel inc;
        cl_mem buffer;
};

enum { ITEMS = 25000 }; /* more than travels inline */

/* Calls of the context's callback since the context began. */
extern unsigned notices;

/* setup_begin makes a world, which setup_end frees. The other two work in an existing world, with
 * devices that are known. */
void setup_begin(struct setup *s, const struct sim_params *params);
void setup_end(struct setup *s);
void setup_begin_in(struct setup *s);
void setup_end_in(struct setup *s);

/* Launch the kernel on all numbers. */
cl_int setup_launch(struct setup *s, unsigned queue, cl_uint waits, const cl_event *list,
                    cl_event *ret);

/* Read the buffer and check that each number is `expected`. */
void setup_check(struct setup *s, unsigned queue, uint32_t expected);

cl_int command_status(cl_event e);

/* For sim_params.blocked. */
uint64_t blocked(unsigned from, unsigned to);

#endif
