/* The state that the parts of random programs share (tests include program.h). `struct program`
 * holds all of it. One thread. Every random choice asks `rng`, so the order of the choices is a
 * part of the program. */
#ifndef SPANCL_TESTS_PROGRAM_STATE_H
#define SPANCL_TESTS_PROGRAM_STATE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/builtin/registry.h"
#include "base/mem.h"
#include "support/program.h"

enum {
        ROOTS = 5,
        SUBS = 4,
        QUEUES = 8,
        KERNELS = 8,
        DEVICES = 32,
        WAITS = 1000,
        RECENT = 8,
        SIZE_MAX_LOG2 = 17,
};

/* A command's use of bytes [begin, end) of a root buffer. */
struct access {
        struct access *next;
        size_t begin, end;
        bool write;
        struct queue *queue;
        unsigned number; /* of the command in its queue */
        cl_event event;  /* held; NULL: none was asked for (in-order queues) */
        bool waited;     /* the program has waited for it: later commands need no event */
};

struct root {
        cl_mem mem;
        size_t size;
        uint8_t *truth;
        uint8_t *host; /* USE_HOST_PTR */
        uint8_t *svm;  /* shared virtual memory, over which `mem` lies; NULL: none */
        struct access *accesses;
};

/* A buffer object: a root, or a part of one. */
struct view {
        cl_mem mem;
        struct root *root;
        size_t origin, size;
};

struct queue {
        cl_command_queue q;
        bool in_order;
        unsigned number;  /* of commands enqueued */
        unsigned barrier; /* commands up to it are before all that follow */
};

struct kernel {
        cl_kernel k;
        const struct registry_kernel *r;
        struct view args[REGISTRY_ARGS_MAX]; /* as last set; root NULL: not yet */
        bool pointers[REGISTRY_ARGS_MAX];    /* set as pointers into shared virtual memory */
        uint32_t values[REGISTRY_ARGS_MAX];
        bool set;
};

/* A read that has not been compared yet. */
struct pending {
        struct pending *next;
        uint8_t *got, *expected;
        size_t size;
        unsigned command;
};

/* Memory that a command reads until it is complete. */
struct source {
        struct source *next;
        uint8_t *data;
};

/* A user event that is set; the wait list of the command being made may still name it. */
struct opened {
        struct opened *next;
        cl_event event;
};

struct program {
        struct sim *sim;
        struct rng rng;
        const struct program_params *params;
        unsigned command; /* number of the command, for messages */
        bool broken;      /* something was broken: calls may fail, contents are unknown */
        cl_device_id devices[DEVICES];
        cl_uint device_count;
        cl_context context;
        cl_program program;
        struct root roots[ROOTS];
        struct view views[ROOTS + SUBS];
        unsigned view_count, root_count;
        struct queue queues[QUEUES];
        unsigned queue_count;
        struct kernel kernels[KERNELS];
        unsigned kernel_count;
        cl_event gates[4]; /* user events not yet set */
        unsigned gate_count;
        struct opened *opened;
        cl_event recent[RECENT];
        struct pending *pending;
        struct source *sources;
        unsigned callbacks_asked, callbacks_called, destroyed;
        /* The wait list of the command being made. */
        cl_event waits[WAITS];
        cl_uint wait_count;
};

/* A command's use of a buffer, until the command is enqueued. */
struct use {
        struct root *root;
        size_t begin, end;
        bool write;
};

/* ---- program.c ------------------------------------------------------------------------------ */

/* The run fails, at this command. */
void program_fail(const struct program *p, const char *what, long value);

#define ok(p, call)                                    \
        do {                                           \
                cl_int ok_ = (call);                   \
                if (ok_ != CL_SUCCESS && !(p)->broken) \
                        program_fail(p, #call, ok_);   \
        } while (0)

#define say(p, ...)                                   \
        do {                                          \
                if ((p)->params->verbose)             \
                        fprintf(stderr, __VA_ARGS__); \
        } while (0)

/* Return `memory`; the run fails if it is NULL. */
void *program_need(struct program *p, void *memory);

/* Of malloc: free it, or let the program keep it. */
void *program_copy_of(struct program *p, const void *data, size_t size);
uint8_t *program_random_bytes(struct program *p, size_t size);

/* Free `data` (of malloc) when all that is enqueued now is complete. */
void program_keep(struct program *p, uint8_t *data);

/* Choices. A part is in bytes of its root, and a multiple of `unit` long. */
struct queue *program_any_queue(struct program *p);
struct view *program_any_view(struct program *p);
size_t program_any_length(struct program *p, size_t max);
struct use program_any_part(struct program *p, const struct view *v, bool write, size_t unit);
struct use program_whole(const struct view *v, bool write);

/* Choose whether the command on this view is one on shared virtual memory. */
bool program_as_svm(struct program *p, const struct view *v);

/* ---- program_order.c ------------------------------------------------------------------------ */

/* To enqueue a command, call program_prepare for the bytes that it uses, the OpenCL call with
 * program_waits and program_event_for, then program_enqueued. The wait list belongs to the
 * program until the next command. */
void program_prepare(struct program *p, struct queue *q, const struct use *uses, unsigned count);
void program_wait_for(struct program *p, cl_event e);
cl_event *program_waits(struct program *p);

/* The place for the command's event. Sometimes NULL, if its completion follows from order alone. */
cl_event *program_event_for(struct program *p, struct queue *q, cl_event *e);

/* Remember the command's uses. The program now owns the event `e` (NULL: none). */
void program_enqueued(struct program *p, struct queue *q, cl_event e, const struct use *uses,
                      unsigned count);

/* Set all user events. */
void program_open_gates(struct program *p);

/* Before a call that blocks: let everything go that it could wait for. */
void program_release_all(struct program *p);

/* Fail the run if these bytes are not the oracle's, except after something was broken. */
void program_compare(struct program *p, const uint8_t *got, const uint8_t *expected, size_t size,
                     unsigned command, const char *what);

/* Compare the reads that are complete, and free the memory that was kept. */
void program_compare_pending(struct program *p);

/* Wait for the queue, or for these events. */
void program_finish(struct program *p, struct queue *q);
void program_wait(struct program *p, cl_uint count, const cl_event *events);

/* Query the status of an event. Commands may still wait for user events: a query never does. */
void program_query(struct program *p);

/* Finish all commands and check every read. */
void program_finish_all(struct program *p);

/* ---- program_commands.c, program_kernels.c: one command each, and the same by the oracle ------ */

void program_do_write(struct program *p);
void program_do_read(struct program *p);
void program_do_fill(struct program *p);
void program_do_copy(struct program *p);
void program_do_rect(struct program *p);
void program_do_copy_rect(struct program *p);
void program_do_migrate(struct program *p);
void program_do_marker(struct program *p);
void program_do_map(struct program *p);
void program_do_wait(struct program *p);

/* The program object and its kernels. */
void program_kernels_new(struct program *p);
void program_do_kernel(struct program *p);

/* Launch k with the arguments that are set. */
void program_launch(struct program *p, struct queue *q, struct kernel *k);
/* Choose a kernel and its arguments. Returns a view that it writes; NULL: it can't be launched or writes none. */
const struct view *program_choose_kernel(struct program *p, struct kernel **ret);

/* Steps of the same launches, after which the same bytes are read. Now and then something comes between. */
void program_do_steps(struct program *p);

#endif
