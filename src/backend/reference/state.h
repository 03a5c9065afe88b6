/* The state that the files of the reference backend share: reference (devices, memory, programs),
 * submit (check and append commands), executor (run commands).
 *
 * Commands wait in one list in the order of submission. Executors take commands that may run: the
 * backend's threads or backend_reference_step. The reference devices have one executor, so runs can
 * be repeated exactly.
 *
 * `lock` guards the list, the events' status and the flags; it is a leaf. Buffers' bytes belong to
 * the executors. `complete` is called without the lock. */
#ifndef SPANCL_BACKEND_REFERENCE_STATE_H
#define SPANCL_BACKEND_REFERENCE_STATE_H

#include <stdatomic.h>

#include "backend/backend.h"
#include "backend/builtin/program.h"
#include "backend/reference/reference.h"
#include "base/list.h"
#include "os/condition.h"
#include "os/lock.h"
#include "os/thread.h"

enum { DEVICES_MAX = 2, EXECUTORS_MAX = 16 };

struct backend {
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        void *user;
        struct reference_devices devices;
        unsigned
                numbers[DEVICES_MAX]; /* of those that passed the filter; index = device = domain */
        unsigned count;
        unsigned first_number; /* for the filter */

        struct lock lock;
        struct condition changed; /* a command can run, or stop */
        thread_id threads[EXECUTORS_MAX];
        unsigned thread_count;
        bool manual, stop;
        unsigned executing;  /* executors that work on a command, outside the lock */
        struct list pending; /* commands, oldest first; includes those that are executed */
        uint64_t random;     /* 0: oldest first */
        uint64_t ticks;      /* manual: the clock */
        bool failure_stays;
        size_t marker_max;
        bool bytes;               /* buffer.bytes gives buffers' bytes */
        bool failed[DEVICES_MAX]; /* domains in which a command has failed */

        struct list svms;          /* the engine's lock guards it */
        struct list host_memories; /* as well */
};

struct backend_buffer {
        atomic_uint refs;
        struct backend_buffer *parent; /* sub-buffer: held */
        unsigned domain;
        uint8_t *data;
        size_t size;
        bool mapped; /* `data` is mapped memory, not mem_alloc's */
        bool bytes;  /* buffer.bytes gives its bytes */
        struct registry_attachment attachment;
};

struct backend_queue {
        atomic_uint refs;
        struct backend *backend;
        unsigned domain;
        cl_command_queue_properties props;
};

struct backend_event {
        atomic_uint refs;
        struct backend *backend;
        unsigned domain;
        cl_int status; /* CL_SUBMITTED, CL_COMPLETE or negative; backend->lock */
};

struct ref_arg {
        bool set;
        struct backend_buffer *buffer; /* held */
        uint64_t value;                /* of a by-value argument, at most 8 bytes */
};

struct backend_kernel {
        struct backend *backend;
        const struct registry_kernel *kernel;
        unsigned domain;
        struct ref_arg args[REGISTRY_ARGS_MAX];
};

/* Its memory goes with its event. */
struct ref_command {
        struct backend_event event;
        struct list link;
        struct backend_queue *queue;
        struct backend_command c; /* its kernel and deps are not used any more */
        const struct registry_kernel *kernel;
        size_t offset[3], global[3];
        struct backend_event **deps; /* behind `args` */
        uint8_t pattern[128];
        uint64_t submit_ns;
        bool reports; /* a marker that reports the status of its only dependency */
        bool running; /* backend->lock */
        unsigned arg_count;
        struct ref_arg args[]; /* the arguments that the kernel has */
};

/* Change reference counts; NULL is allowed. */
struct backend_buffer *ref_buffer_hold(struct backend_buffer *m);
void ref_buffer_release(struct backend_buffer *m);
void ref_queue_release(struct backend_queue *q);
void ref_event_release(struct backend_event *e);

/* The first byte of a box's row in memory at `base`. */
static inline uint8_t *ref_box_row(const struct backend_box *x, uint8_t *base, size_t y, size_t z)
{
        return base + (x->origin[2] + z) * x->slice_pitch + (x->origin[1] + y) * x->row_pitch +
               x->origin[0];
}

#endif
