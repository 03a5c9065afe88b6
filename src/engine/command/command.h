/* Commands: held until everything they wait for is native or complete, then submitted. */
#ifndef SPANCL_ENGINE_COMMAND_H
#define SPANCL_ENGINE_COMMAND_H

#include "engine/command/event.h"
#include "engine/program/kernel.h"
#include "engine/transfer/transfer.h"

struct batch;

struct command {
        struct list link;    /* engine's commands */
        struct pool *pool;   /* NULL: it is too large for one */
        struct list ready;   /* engine's ready, completed_early or candidates */
        struct queue *queue; /* held */
        struct event *event; /* NULL: it is recorded, or complete */
        struct batch *batch; /* of a recording that runs; NULL: on its own */
        size_t number;       /* in the recording */
        uint64_t seq;        /* in the queue */

        /* Holding. */
        struct list held;    /* queue's held, then in_flight */
        struct list barrier; /* queue's barriers, or fences */
        bool in_queue;       /* not wholly submitted */
        bool is_barrier;     /* out-of-order queue: what follows it is held behind it */
        bool regardless;     /* dependencies that fail do not fail it */
        bool strict;         /* but the last one of the wait list does */
        bool wide;           /* COMMAND_WIDE */
        bool marks;          /* out-of-order queue: a marker or barrier with a wait list */
        bool after_all;      /* out-of-order queue: waits for all before it */
        bool started;
        bool completed_early; /* complete, but not what it came after */
        bool stands_in; /* a marker that tells when an untracked command is complete; its event is that one's */
        size_t blocking; /* dependencies that do */
        size_t dep_count;
        struct dependency *deps;

        /* What to submit. */
        struct backend_command native; /* without what is known at submission only */
        size_t offset[3], global[3], local[3];
        uint8_t pattern[128];
        struct buffer *buffer, *source; /* held */
        struct kernel *kernel;          /* held */
        size_t arg_count;
        struct value **args;         /* held */
        struct object **arg_objects; /* held; NULL: not an object */
        struct transfer *transfer;
        struct transfer *given_up; /* writes: those before it (engine/transfer/reroute.h); held */
        size_t stale;              /* parts in flight that are of those */
        struct list over_quota;    /* engine's */
        /* Reads and copies: where the number of bytes that mean something is; held. NULL: nowhere. It is asked for
         * first, as a part of its own, and comes to content_size. */
        struct buffer *content;
        uint64_t content_offset;
        uint8_t content_size[8];
        bool asking;
        /* Reads: the write that brings these bytes, and goes on; what it has submitted may be read.
         * It is the last dependency's. NULL: none, or it is complete. */
        struct command *follows;

        /* What became of it. */
        cl_int status;
        size_t running;             /* parts in flight */
        uint64_t sent;              /* read, write: bytes submitted, part by part */
        uint64_t parts;             /* read, write: complete ones */
        struct backend_event *last; /* the part submitted last */
        struct list unreported;     /* engine's unreported, or in `coalesced` of another */
        struct list coalesced;      /* unreported ones that are complete when it is */
        struct list order;          /* queue's order */
        uint64_t
                untracked_before; /* untracked launches of the queue, or its chain queue, that are complete when it is */
        struct backend_times times;
};

/* Size of blocks for commands with a few dependencies and arguments. */
extern const size_t engine_command_block;

struct command_params {
        uint64_t queue, event, flags;
        struct wire_u64s waits;
        size_t arg_count;
        bool marker; /* flags may make it a barrier */
};

/* A new command with its event, dependencies and queue. SP_E_PROTO, SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_command_new(struct engine *e, const struct command_params *params,
                                    struct command **ret);

/* It is described: submit or hold it. */
void engine_command_enqueue(struct command *c);

/* It will fail with `status` (the first one counts) instead of being executed, when all that it waits
 * for is complete. */
void engine_command_fail(struct command *c, cl_int status);

/* For a recording that runs: a new command of `q` that does what `like` does (NULL: yet to be said), with
 * room for the dependencies and arguments, and without an event. SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_command_copy(struct queue *q, const struct command *like, size_t deps,
                                     size_t args, struct command **ret);
void engine_command_free(struct command *c);

/* A marker in q, submitted at once: behind what is submitted, before what is held. It has no event yet. */
SP_NODISCARD cl_int engine_command_marker(struct queue *q, struct command **ret);

/* It reads what the last one of its wait list writes: where that goes on meanwhile, part by part. */
void engine_command_follow(struct command *c);

/* It waits for these, for which it has room. */
void engine_command_depend(struct command *c, struct wire_u64s waits);

/* Not natively, but until they are complete. */
bool engine_command_waits_here(const struct command *c);

/* Is anything of its wait list not over? */
bool engine_command_waits(const struct command *c);

/* The span of both. */
void engine_times_add(struct backend_times *sum, const struct backend_times *t);

/* A dependency is native or complete, with `status`. */
void engine_command_unblock(struct dependency *d, cl_int status);

/* Bytes of its transfer arrived, or it failed: goes on in engine_run. */
void engine_command_poke(struct command *c);

/* The same for the launches of a program's kernels, which has been loaded. */
void engine_command_poke_launches(const struct program *p);

/* It waited for its transfer before being reported as failed. */
void engine_command_finish(struct command *c);

/* What kernels printed goes to the client. */
void engine_command_output(struct engine *e);

/* struct backend_params.complete */
void engine_command_complete(void *user, void *cookie, cl_int status,
                             const struct backend_times *t);

/* Drop what the commands hold of the backend and other objects; parts in flight may still be reported.
 * Then, when they were, free them. */
void engine_command_abandon_all(struct engine *e);
void engine_command_free_all(struct engine *e);

int engine_handle_launch_query(void *user, const struct wire_launch_query *m);

/* ---- enqueue.c: the messages ---------------------------------------------------------------- */

int engine_handle_content_size(void *user, const struct wire_content_size *m);
int engine_handle_kernel_launch(void *user, const struct wire_kernel_launch *m);
int engine_handle_buffer_write(void *user, const struct wire_buffer_write *m);
int engine_handle_buffer_read(void *user, const struct wire_buffer_read *m);
int engine_handle_buffer_write_rect(void *user, const struct wire_buffer_write_rect *m);
int engine_handle_buffer_read_rect(void *user, const struct wire_buffer_read_rect *m);
int engine_handle_buffer_copy(void *user, const struct wire_buffer_copy *m);
int engine_handle_buffer_copy_rect(void *user, const struct wire_buffer_copy_rect *m);
int engine_handle_buffer_fill(void *user, const struct wire_buffer_fill *m);
int engine_handle_image_write(void *user, const struct wire_image_write *m);
int engine_handle_image_read(void *user, const struct wire_image_read *m);
int engine_handle_image_copy(void *user, const struct wire_image_copy *m);
int engine_handle_image_to_buffer(void *user, const struct wire_image_to_buffer *m);
int engine_handle_buffer_to_image(void *user, const struct wire_buffer_to_image *m);
int engine_handle_image_fill(void *user, const struct wire_image_fill *m);
int engine_handle_marker(void *user, const struct wire_marker *m);
int engine_handle_queue_flush(void *user, const struct wire_queue_flush *m);

#endif
