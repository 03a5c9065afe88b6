/* The objects that the client declared, by id, with buffers, samplers and queues among them.
 * References are held by the table until `release`, by objects made from it, and by commands in
 * flight. */
#ifndef SPANCL_ENGINE_OBJECT_H
#define SPANCL_ENGINE_OBJECT_H

#include "engine/transfer/peer.h"

struct object {
        struct engine *engine;
        uint64_t id;
        size_t refs;
        uint64_t request; /* the release to answer when it is freed; 0: none */
        void (*free)(struct object *o);
        bool excess; /* beyond the session's limit: nothing native is made of it */
};

/* Put a new object, with one reference, into the table, which takes that reference over. Beyond the
 * session's limits it is marked `excess`, and commands that use it fail. SP_E_PROTO: the id is
 * taken; SP_E_NOMEM, SP_E_LIMIT. On failure the caller still owns it. */
SP_NODISCARD int engine_object_add(struct engine *e, struct object *o) REQUIRES(engine_held);

/* NULL: unknown. The type is in the id. */
struct object *engine_object_find(struct engine *e, uint64_t id);

void engine_object_ref(struct object *o);
/* NULL is allowed. */
void engine_object_unref(struct object *o) REQUIRES(engine_held);

/* ---- buffers and images --------------------------------------------------------------------- */

/* Storage in one domain, made when a command first uses the buffer there. */
struct replica {
        /* NULL: no command has used it yet, or it could not be made. */
        struct backend_buffer *native;
        /* Devices whose commands have used it, of those with limits of their own; of a buffer inside another
         * object its parent has them. */
        device_set devices;
};

struct svm {
        struct object object;
        struct backend_svm *native; /* NULL: shared arena that could not be had */
        uint64_t size;
        uint64_t charged;   /* bytes of engine.objects.storage */
        device_set devices; /* on which it counts, too */
        bool counts;        /* it is memory of the server, not of the shared arena */
};

struct buffer {
        struct object object;
        struct buffer *parent; /* held; NULL: has storage of its own */
        struct svm *svm;       /* held: has the buffer's bytes, at origin; NULL: none */
        cl_mem_flags flags;
        uint64_t origin, size;        /* of a buffer */
        struct image_desc image;      /* type 0: a buffer, or a pipe */
        cl_uint packet_size, packets; /* of a pipe; else 0 */
        struct replica *replicas;     /* by domain, up to the last one that used it */
        size_t replica_count;
        uint64_t charged; /* bytes of engine.objects.storage */
};

struct buffer *engine_buffer_find(struct engine *e, uint64_t id);

/* Give the buffer's storage in a domain, made now if it is missing, for a command of device `root` of the backend.
 * Fails with the native error of its creation; the next call tries again. */
SP_NODISCARD cl_int engine_buffer_native(struct buffer *b, unsigned domain, unsigned root,
                                         struct backend_buffer **ret) REQUIRES(engine_held);

/* Count the buffer's storage in a domain on device `root`, whose commands use it. Where several devices share a native
 * context, the driver decides on which of them a buffer lies; so it counts on each device that uses it.
 * CL_MEM_OBJECT_ALLOCATION_FAILURE: this would exceed the device's limit; CL_OUT_OF_HOST_MEMORY. */
SP_NODISCARD cl_int engine_buffer_charge(struct buffer *b, unsigned domain, unsigned root)
        REQUIRES(engine_held);

static inline bool engine_buffer_is_pipe(const struct buffer *b)
{
        return b->packets != 0;
}

static inline bool engine_buffer_is_image(const struct buffer *b)
{
        return b->image.type != 0;
}

/* ---- samplers ------------------------------------------------------------------------------- */

struct sampler_replica {
        struct backend_sampler *native;
        cl_int status;
};

struct sampler {
        struct object object;
        struct sampler_desc desc;
        struct sampler_replica *replicas; /* as a buffer's */
        size_t replica_count;
};

/* NULL: there is none of that id. */
struct sampler *engine_sampler_find(struct engine *e, uint64_t id);

/* As engine_buffer_native. */
SP_NODISCARD cl_int engine_sampler_native(struct sampler *s, unsigned domain,
                                          struct backend_sampler **ret);

/* ---- queues --------------------------------------------------------------------------------- */

struct recording;

/* Untracked commands in flight (engine/completion/untracked.h), oldest first. Their numbers count
 * all that the queue ever had; number n is entries[n % cap]. */
struct untracked {
        struct list link; /* engine's untracked_queues, while it has any */
        struct untracked_entry *entries;
        size_t cap; /* a power of two, or 0 */
        uint64_t first, end;
        /* A command that will be reported completes all below this number. */
        uint64_t covered;
        uint64_t newest; /* event id */
};

struct queue {
        struct object object;
        /* The recording whose slot number `slot` this is; NULL: the queue executes. */
        struct recording *recording;
        size_t slot;
        unsigned device, domain;
        unsigned root;          /* the device itself, or that of which it is a part */
        struct sub_device *sub; /* held; NULL: no sub-device */
        bool in_order, profiling;
        bool on_device;    /* a device queue: no command may name it */
        size_t marker_max; /* the backend's limit */
        /* After one command of the domain fails, all later ones fail. */
        bool failure_stays;
        struct backend_queue *native;
        cl_int status; /* why there is no native one */
        uint64_t next_seq;
        /* Commands not wholly submitted, in order. */
        struct list held;
        /* Out-of-order: the barriers among `held`, in order. */
        struct list barriers;
        /* Commands wholly submitted, until their completion is reported. */
        struct list in_flight;
        /* Out-of-order: the barriers among `in_flight`. */
        struct list fences;
        /* Out-of-order, in order: commands that a later one may coalesce, because it waits for all
         * before it (after_all); and each such later one until it has reported them. */
        struct list order;
        size_t running;             /* native commands in flight */
        uint64_t observed_ns;       /* when its last command completed (observed.h) */
        struct untracked untracked; /* in-order: the untracked ones of them */
        struct list dirty;          /* engine's dirty_queues */

        /* Out-of-order: engine/completion/chain_queue.h. */
        struct queue *chain_queue; /* held; NULL: there is none, yet */
        uint64_t last_launch;      /* event id */
        size_t chain;              /* launches in a row that each waited for the one before */
        /* forked: its commands were waited for in another order. */
        bool is_chain, forked;
};

/* Find a queue that takes commands; or a device queue. NULL: there is none of that id. */
struct queue *engine_queue_find(struct engine *e, uint64_t id);
struct queue *engine_device_queue_find(struct engine *e, uint64_t id);

/* Make a queue in the table, without a native one. SP_E_PROTO, SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_queue_new(struct engine *e, uint64_t id, uint64_t device,
                                  struct queue **ret) REQUIRES(engine_held);

/* Make a queue beside `q`: for the same device and with the same id, but not in the table, and
 * without a native one. SP_E_NOMEM. */
SP_NODISCARD int engine_queue_like(struct queue *q, struct queue **ret);

/* Something was submitted to the queue: engine_settle will flush it. */
void engine_queue_dirty(struct queue *q);

int engine_handle_buffer_create(void *user, const struct wire_buffer_create *m)
        REQUIRES(engine_held);
int engine_handle_sub_buffer_create(void *user, const struct wire_sub_buffer_create *m)
        REQUIRES(engine_held);
int engine_handle_pipe_create(void *user, const struct wire_pipe_create *m) REQUIRES(engine_held);
int engine_handle_image_create(void *user, const struct wire_image_create *m) REQUIRES(engine_held);
int engine_handle_svm_create(void *user, const struct wire_svm_create *m) REQUIRES(engine_held);
int engine_handle_storage_create(void *user, const struct wire_storage_create *m)
        REQUIRES(engine_held);
int engine_handle_svm_buffer_create(void *user, const struct wire_svm_buffer_create *m)
        REQUIRES(engine_held);
int engine_handle_sampler_create(void *user, const struct wire_sampler_create *m)
        REQUIRES(engine_held);
int engine_handle_queue_create(void *user, const struct wire_queue_create *m) REQUIRES(engine_held);
int engine_handle_queue_set_default(void *user, const struct wire_queue_set_default *m);
int engine_handle_release(void *user, const struct wire_release *m) REQUIRES(engine_held);

#endif
