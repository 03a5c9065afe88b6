/* The state that the files of this backend share; see docs/internals/almaif.md.
 *
 * A unit is one accelerator, which is one device. A domain is the units that work on one shared
 * memory, or one unit with its own memory. Signals and buffers lie where all units of the domain
 * reach them. A kernel is pushed to its unit's ring as soon as all commands that it waits for were
 * given to a ring or to this host; the device waits for the rest itself. This host executes all
 * other commands, once all commands that they wait for are complete.
 *
 * `backend.lock` guards all of it, except bytes of buffers and fields that never change; it is a
 * leaf. `complete` is called without it. */
#ifndef SPANCL_BACKEND_ALMAIF_STATE_H
#define SPANCL_BACKEND_ALMAIF_STATE_H

#include <stdatomic.h>

#include "backend/almaif/accel.h"
#include "backend/almaif/heap.h"
#include "backend/backend.h"
#include "backend/builtin/program.h"
#include "backend/riscv/compile.h"
#include "base/list.h"
#include "os/condition.h"
#include "os/lock.h"
#include "os/thread.h"

enum {
        UNITS_MAX = 64,
        KERNELS_MAX = 256, /* of one domain */
        BUFFER_ALIGN = 128,
        CODE_ARGS_SIZE = 2176, /* struct riscv_arguments and RISCV_ARGS_SIZE, with gaps */
};

#define NO_HEAD UINT64_MAX

struct memory {
        struct window *window; /* borrowed */
        uint64_t at;           /* its first byte in the window */
        uint64_t address;      /* the devices' address of that byte */
        struct heap heap;
};

struct domain {
        struct backend *backend;
        struct unit *units[UNITS_MAX];
        unsigned unit_count;
        struct window *shared; /* owned; NULL: none */
        struct memory memories[2];
        unsigned memory_count; /* the first has the signals and arguments, too */
        const struct registry_kernel *kernels[KERNELS_MAX];
        size_t kernel_count;
        bool started;
        bool zero;           /* how signals fall */
        uint64_t signals_at; /* in memories[0] */
        unsigned signal_count;
        unsigned *signal_refs; /* 0: free */
        unsigned signal_next;  /* where to look for a free one */
};

struct unit {
        struct backend *backend;
        struct domain *domain;
        unsigned domain_index, number;
        struct accel accel;
        struct registry_rows *rows;
        const struct registry_kernel *kernels[SPEC_IDS_MAX];
        size_t kernel_count;
        char name[SPEC_ERROR_SIZE];

        struct list in_flight; /* commands in the ring, oldest first */
        struct list backlog;   /* not yet, in the order of submission */
        atomic_ullong
                head_at; /* signal of the first command in flight, or NO_HEAD; without the lock */
        cl_int dead;     /* CL_SUCCESS, or why it does nothing more */
        bool faulty;     /* the watcher is to reset it */
        bool recovering; /* nothing may be pushed */

        /* Blocks for the arguments of launches, in memories[0] of the domain (launch.c). */
        struct {
                uint64_t at, size, count;
                uint64_t taken, given; /* blocks; they only grow */
        } args;

        /* The thread that watches the ring (thread.c). */
        struct {
                thread_id thread;
                bool threaded;
                struct condition work;
                bool deaf;      /* the device does not wake a sleeping watcher */
                unsigned looks; /* polls by threads_poll */
        } watch;

        /* Compiled programs, with isa=rv32im (code.c). */
        struct {
                bool riscv;
                struct riscv_compiler *compiler; /* NULL: programs are binaries only */
                struct buf firmware;
                unsigned group_max;
                uint64_t at, output_at; /* in the configuration memory */
                struct heap heap;
                struct list programs;
                uint32_t output_read; /* of the ring of printed text */
                struct buf printed;
        } code;
};

struct backend {
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        void *user;
        const char *scratch_dir; /* borrowed; NULL: none */
        struct almaif_spec *specs;
        struct unit *units[UNITS_MAX];
        struct domain *domains[UNITS_MAX];
        unsigned unit_count, domain_count;

        struct lock lock;
        struct condition changed; /* the host has a command to execute, or `closing`, or stop */
        struct list host;         /* commands that the host executes, in the order of submission */
        bool stop, threaded;
        bool closing; /* the backend waits for all commands in flight */
        bool polling; /* a thread calls threads_poll; the watchers sleep */
        bool clear;   /* clear memory before it is given out */
        thread_id thread;
};

struct backend_buffer {
        atomic_uint refs;
        struct backend_buffer *parent; /* sub-buffer: held */
        struct domain *domain;
        struct memory *memory;
        uint64_t at; /* in the memory */
        size_t size;
};

struct backend_queue {
        atomic_uint refs;
        struct unit *unit;
        cl_command_queue_properties props;
        struct list commands;          /* that are not complete */
        struct backend_event *barrier; /* held: later commands wait for it; NULL: none */
};

struct backend_event {
        atomic_uint refs;
        struct domain *domain;
        struct unit *unit; /* of a kernel; NULL: the host executes the command */
        cl_int status;     /* CL_SUBMITTED, CL_COMPLETE or negative */
        bool pushed;       /* in the ring */
        int signal;        /* -1: none */
};

struct backend_program {
        struct domain *domain;
        unsigned domain_index;
        struct builtin_program p;
        /* compiled for the domain's unit */
        bool compiled, from_source, library;
        struct buf source, object;
        struct riscv_program *code; /* held; NULL: not built */
};

struct kernel_arg {
        bool set;
        struct backend_buffer *buffer; /* held */
        uint64_t value;
};

struct code_arg {
        bool set;
        struct backend_buffer *buffer; /* held */
        uint64_t local_size;
};

struct code_kernel {
        struct riscv_program *program; /* held */
        const struct riscv_kernel *kernel;
        struct code_arg *args;
        uint8_t *block; /* values, where they lie in the arguments */
};

struct backend_kernel {
        struct domain *domain;
        struct code_kernel *code; /* NULL: a built-in one */
        const struct registry_kernel *kernel;
        struct kernel_arg args[REGISTRY_ARGS_MAX];
};

struct dependency {
        struct backend_event *event; /* held */
        bool order;                  /* only after it, whether it failed or not */
};

struct command {
        struct list link;     /* in_flight, backlog, host or the list of commands to be reported */
        struct list in_queue; /* queue->commands */
        struct backend_queue *queue;
        struct backend_event *event;
        struct backend_command
                c; /* its kernel, its deps and its host's arrays are not used any more */
        struct dependency *deps;
        size_t dep_count;
        struct backend_times times;
        cl_int status; /* set: the command fails with it instead of running */
        bool running;  /* the host is executing it */
        uint8_t pattern[128];

        /* kernels */
        struct almaif_dispatch packet;
        uint8_t *args;
        size_t args_size;
        uint64_t args_block;
        struct backend_buffer *buffers[REGISTRY_ARGS_MAX]; /* held */
        struct backend_buffer **held;                      /* of a compiled kernel */
        unsigned held_count;
        struct riscv_program *code; /* held */
        int *barriers;              /* signals that its barriers wait for, held */
        size_t barrier_count;
        uint64_t
                head_since_ns; /* since when it is first in the ring, with all that it waits for complete; 0: it is not */
};

/* ---- the lock ------------------------------------------------------------------------------- */

/* The backend's lock as clang's analysis sees it: it does not know that units, domains and commands
 * lead to the same backend. There is no such object. */
extern struct lock almaif_held;

static inline void almaif_lock(struct backend *b) ACQUIRE(almaif_held) LOCK_UNCHECKED
{
        lock_take(&b->lock);
}

static inline void almaif_unlock(struct backend *b) RELEASE(almaif_held) LOCK_UNCHECKED
{
        lock_release(&b->lock);
}

static inline void almaif_wait(struct backend *b, struct condition *c)
        REQUIRES(almaif_held) LOCK_UNCHECKED
{
        condition_wait(c, &b->lock);
}

#endif
