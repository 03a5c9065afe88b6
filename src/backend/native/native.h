/* Inside of the native backend: what its files share. Objects are those of backend.h; each wraps the
 * native handle. Threads as in backend.h.
 *
 * Native implementations may call back on the very thread that is in one of their functions. So
 * operations that the engine calls under its lock stand between op_enter and op_leave, and a
 * completion that comes in between is handed to the backend's own thread (notify.h). */
#ifndef SPANCL_BACKEND_NATIVE_NATIVE_H
#define SPANCL_BACKEND_NATIVE_NATIVE_H

#include <CL/cl_ext.h>
#include <stdatomic.h>

#include "backend/backend.h"
#include "backend/emit.h"
#include "backend/native/icd.h"
#include "backend/native/quirks.h"
#include "base/list.h"
#include "base/monotone.h"
#include "os/condition.h"
#include "os/lock.h"

struct native_device {
        cl_device_id id;
        /* The device's handle in its context, also in programs. For a sub-device, PoCL 3.1 knows
         * only the root device. */
        cl_device_id context_id;
        const struct native_device *parent; /* NULL: it is no sub-device */
        unsigned number;                    /* for the filter; of a sub-device its parent's */
        unsigned domain;
        const struct icd_platform *platform;
        cl_device_type type;
        cl_command_queue_properties queue_props;
        /* CLOCK_MONOTONIC minus the device's clock in ns; INT64_MAX: not known. */
        _Atomic int64_t clock_offset;
        struct lock clock_lock; /* guards `clock` */
        struct monotone clock;
};

struct native_domain {
        const struct icd_platform *platform;
        const cl_icd_dispatch *api; /* the platform's */
        const struct quirks *quirks;
        cl_context context; /* NULL: its sub-devices were all released */
        unsigned device_count;
        bool apart;      /* some device does not work in the host's memory */
        uint64_t memory; /* bytes that its devices say they have */
        uint64_t
                taken; /* bytes of it in buffers over memory of ours; the engine's lock guards it */
        enum info_svm svm; /* of those of its devices that have any; svm.c */
        /* INFO_SVM_OWN_ADDRESSES: the present SVM allocations. The engine's lock guards the
         * list. */
        struct list svms;
        uint64_t svm_version; /* counts changes of the list */
        /* context.c; NULL: the context does not break. Immutable. */
        cl_command_queue probe_queue;
        cl_mem probe;
        atomic_bool broken;            /* the driver is not called any more */
        atomic_bool refuses_callbacks; /* as Wine does (8.0) */
        /* clear.c; NULL: none. The engine's lock guards them. */
        cl_command_queue clear_queue;
        cl_event clearing;
        /* completion_flag.c. The engine's lock guards them. */
        bool completion_flags_tried;
        uint8_t *completion_flags; /* NULL: there are none */
        uint32_t completion_flag_fill;
        cl_mem completion_flag_mark;
        _Atomic uint64_t completion_flags_free; /* one bit each; any thread frees them */
};

struct notifier; /* notify.h */

struct backend {
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        void (*broken)(void *user, const char *text);
        void *user;
        /* Immutable once open. */
        struct icd_platform *platforms;
        size_t platform_count;
        struct native_domain *domains;
        struct native_device *devices;
        /* These grow with sub-devices, under the engine's lock; entries stay where they are. */
        atomic_uint domain_count, device_count;
        size_t device_room;
        bool left_out; /* there are platforms that backend_params.calls left out */

        /* The engine's lock guards these. */
        struct notifier **
                notifiers; /* [0] delivers completions that came inside an operation; others wait for queues */
        size_t notifier_count;
        struct list dead_svms;     /* released, but a command in flight may use them */
        struct list host_memories; /* hostmem.c */
        bool in_process;
        enum backend_clear clear;

        struct lock lock; /* guards what follows; only notifiers' locks are taken under it */
        struct condition idle;
        size_t in_flight;        /* reports that are still due */
        atomic_bool polling;     /* a thread calls notify_poll */
        struct list polled;      /* queues with events that this thread polls */
        struct list spent;       /* events that the polling thread has reported; it owns the list */
        struct list kept_queues; /* QUEUES_STAY: unused queues whose native ones are used again */
};

struct backend_buffer {
        struct native_domain *domain;
        cl_mem mem;
        size_t size;
        uint8_t *bytes_at; /* address of its bytes, if it is made over memory of ours; else NULL */
        bool owns_bytes;   /* its bytes are counted in domain->taken */
        struct image_desc image; /* type 0: a buffer, or a pipe */
        cl_mem bytes; /* of a 1D image of a buffer: that buffer, if commands are to use it instead */
        bool pipe;
};

struct backend_sampler {
        struct native_domain *domain;
        cl_sampler sampler;
};

struct backend_queue {
        atomic_uint refs; /* the engine's and its events' */
        struct backend *backend;
        struct native_domain *domain;
        struct native_device *device;
        cl_command_queue queue;
        cl_context context; /* the context that it was made with */
        cl_command_queue_properties properties;
        bool stays; /* QUEUES_STAY */
        bool profiling;
        bool estimate_clock; /* the device has no timer query: estimate its clock by QUEUED times */
        struct notifier *notifier; /* COMPLETION_WAIT: the notifier that waits; else NULL */
        bool in_order;
        struct list link;   /* backend's lock, and list: polled, or kept_queues */
        struct list polled; /* backend's lock: events that notify_poll polls */
        struct backend_event
                *last; /* the last event: a thread that may release the queue gets it */
        /* The number of submitted commands, and of flushed ones. */
        uint64_t submitted, flushed;
};

/* Where a command's completion is seen (completion_flag.h). */
struct completion_flag {
        _Atomic uint32_t *at; /* the next word to poll */
        size_t left;          /* words that have not arrived */
        uint8_t *to;          /* the destination of the words; NULL: none */
        uint32_t fill;        /* value of the words before, if they are polled */
        bool polled;
        unsigned piece, looks;
};

struct backend_event {
        atomic_uint refs; /* the engine's and its report's */
        struct backend_queue *queue;
        cl_event event;
        uint64_t number;                        /* in its queue, from 1 */
        void *cookie;                           /* NULL: queue.release's own marker */
        uint64_t enter_ns, return_ns;           /* around its clEnqueue*, if profiling */
        cl_int status;                          /* > 0: a notifier is to wait for it */
        struct list link;                       /* notifier's, its queue's polled, or spent */
        struct completion_flag completion_flag; /* at NULL: elsewhere */
};

struct backend_program {
        struct backend *backend;
        struct native_domain *domain;
        cl_program program;
        unsigned kind; /* as in program_create */
        bool built;    /* built or compiled, or a build was tried */
        /* The last build or compilation failed, so the driver is not asked for binaries. PoCL 3.1
         * refuses the query, or aborts (pocl_cache_buildhash_is_valid). */
        bool failed;
        /* Held while the program's binaries are queried. PoCL (3.1 to 7.0) keeps them in one place
         * for each program. A second thread that queries meanwhile gets a size of 256 MiB, and then
         * memory that the first thread frees. */
        struct lock binaries_turn;
};

struct backend_kernel {
        struct backend *backend;
        struct native_domain *domain;
        cl_kernel kernel;
        uint64_t svm_version; /* the domain's svm_version when the kernel last got its memory */
};

/* native.c: is this thread inside an operation? */
extern _Thread_local unsigned op_depth;

static inline void op_enter(void)
{
        op_depth++;
}

static inline void op_leave(void)
{
        op_depth--;
}

/* Commit and clear the memory of a new buffer or image. Stores it in *ret on success, else releases
 * it. */
cl_int native_ready(struct backend *b, struct backend_buffer *m, struct backend_buffer **ret);

/* Make a buffer of `mem`. NULL: `err` says why there is none. */
cl_int native_wrap_buffer(struct native_domain *domain, cl_mem mem, size_t size, cl_int err,
                          struct backend_buffer **ret);

#endif
