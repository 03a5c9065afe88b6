/* Commands: held until everything they wait for is native or complete, then submitted. */
#ifndef SPANCL_ENGINE_COMMAND_H
#define SPANCL_ENGINE_COMMAND_H

#include "engine/command/command_state.h"
#include "engine/command/event.h"
#include "engine/lock.h"
#include "engine/program/kernel.h"
#include "engine/transfer/transfer.h"

struct batch;

/* The operation, as its message described it. */
struct command_desc {
        struct backend_command native; /* without parts known only at submission */
        size_t offset[3], global[3], local[3];
        uint8_t pattern[128];
        struct buffer *buffer, *source; /* held */
        struct kernel *kernel;          /* held */
        size_t arg_count;
        struct value **args;         /* held */
        struct object **arg_objects; /* held; NULL: not an object */
        /* Reads and copies: the buffer with the number of meaningful bytes; held. NULL: there is
         * none. The command first reads it into content_size, in a part of its own. */
        struct buffer *content;
        uint64_t content_offset;
        bool wide; /* COMMAND_WIDE */
        /* Of markers in an out-of-order queue. */
        bool is_barrier; /* later commands are held behind it */
        bool marks;      /* it has a wait list */
        bool after_all;  /* it has none: it waits for all before it */
};

/* The wait list. */
struct command_deps {
        struct dependency *list;
        size_t count;
        size_t blocking; /* those that block */
        bool regardless; /* dependencies that fail do not fail the command */
        bool strict;     /* but the last one does */
        /* Reads: the write, still going on, that brings these bytes; the read may send the
         * parts that the write has submitted. It is the last dependency. NULL: none, or it is
         * complete. */
        struct command *follows;
};

/* How far the command's parts are. */
struct command_submission {
        struct transfer *transfer; /* its bulk data; NULL: none */
        /* Writes: transfers given up before this one (engine/transfer/reroute.h); held. */
        struct transfer *given_up;
        size_t stale; /* parts in flight that use those transfers */
        /* The part in flight reads from this peer's device staging memory; NULL: none does. */
        struct peer *staged_from;
        struct list over_quota; /* engine's */
        struct list room;       /* engine's roomless, until it is to try again */
        bool roomless; /* its buffers have no storage yet, or its client has no device time */
        uint64_t room_until_ns; /* when it no longer waits for it; 0: it has not waited */
        bool asking;            /* the part in flight reads content_size */
        uint8_t content_size[8];
        size_t running;             /* parts in flight */
        uint64_t sent;              /* read, write: bytes submitted, part by part */
        uint64_t parts;             /* read, write: complete ones */
        struct backend_event *last; /* of the part submitted last */
        uint64_t observed_ns; /* of the first part (engine/observed.h); 0: none was submitted */
};

/* Its result, and the commands whose completion is noticed with it. */
struct command_outcome {
        cl_int status; /* negative: it fails, or has failed */
        struct backend_times times;
        struct list unreported; /* engine's unreported, or in `coalesced` of another */
        struct list coalesced;  /* unreported ones that complete with it */
        struct list order;      /* queue's order */
        /* Its completion completes the untracked launches below this number, in its queue or its
         * chain queue. */
        uint64_t untracked_before;
        /* A marker that reports an untracked command, whose event it has. */
        bool stands_in;
};

struct command {
        struct list link;    /* engine's commands */
        struct pool *pool;   /* NULL: it is too large for one */
        struct queue *queue; /* held */
        struct event *event; /* NULL: recorded, or complete */
        struct batch *batch; /* run of a recording; NULL: none */
        size_t number;       /* in the recording */
        uint64_t seq;        /* in the queue */
        enum command_state state;
        struct list ready;   /* engine's ready, completed_early or candidates */
        struct list held;    /* queue's held, then in_flight */
        struct list barrier; /* queue's barriers, or fences */

        struct command_desc desc;
        struct command_deps deps;
        struct command_submission submission;
        struct command_outcome outcome;
};

/* Is it in its queue's `held`? */
static inline bool engine_command_in_queue(const struct command *c)
{
        return c->state >= COMMAND_HELD && c->state <= COMMAND_SUBMITTING;
}

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
                                    struct command **ret) REQUIRES(engine_held);

/* The command's fields are filled in: submit or hold it. */
void engine_command_enqueue(struct command *c) REQUIRES(engine_held);

/* Make the command fail with `status` instead of being executed, once all that it waits for is
 * complete. The first status counts. */
void engine_command_fail(struct command *c, cl_int status);

/* For the run of a recording: make a new command of `q` that does what `like` does (NULL: the
 * caller fills it in). It has room for the dependencies and arguments, and no event. SP_E_NOMEM,
 * SP_E_LIMIT. */
SP_NODISCARD int engine_command_copy(struct queue *q, const struct command *like, size_t deps,
                                     size_t args, struct command **ret) REQUIRES(engine_held);
void engine_command_free(struct command *c) REQUIRES(engine_held);

/* Submit a marker to q at once: behind submitted commands, before held ones. It has no event yet. */
SP_NODISCARD cl_int engine_command_marker(struct queue *q, struct command **ret)
        REQUIRES(engine_held);

/* If the last command of its wait list is a write of the bytes that it reads, let the read follow
 * that write part by part. */
void engine_command_follow(struct command *c);

/* Add these events as dependencies; the command has room for them. */
void engine_command_depend(struct command *c, struct wire_u64s waits) REQUIRES(engine_held);

/* Does the command wait here until its dependencies complete, and not natively? */
bool engine_command_waits_here(const struct command *c);

/* Is any event of its wait list not complete? */
bool engine_command_waits(const struct command *c);

/* A dependency has become native, or completed with `status`. */
void engine_command_unblock(struct dependency *d, cl_int status);

/* Bytes of its transfer arrived, or it failed: the command goes on in engine_run. */
void engine_command_poke(struct command *c);

/* The same for the launches of a program that has been loaded. */
void engine_command_poke_launches(const struct program *p) REQUIRES(engine_held);

/* It is wholly submitted, or never will be: it leaves its queue, and the commands behind it go on.
 * If no part of it is in flight, it completes. */
void engine_command_submitted(struct command *c) REQUIRES(engine_held);

/* Fewer commands of the queue are in flight: let a command go that waited for that. */
void engine_command_drained(struct queue *q);

/* Send the client the output of its kernels' printf. */
void engine_command_output(struct engine *e) REQUIRES(engine_held);

/* Release the commands' native objects and references; parts in flight may still be reported. After
 * these reports, free the commands. */
void engine_command_abandon_all(struct engine *e) REQUIRES(engine_held);
void engine_command_free_all(struct engine *e) REQUIRES(engine_held);

int engine_handle_launch_query(void *user, const struct wire_launch_query *m) REQUIRES(engine_held);

#endif
