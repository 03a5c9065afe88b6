/* Recordings: commands that are recorded once and run as often as wanted (cl_khr_command_buffer).
 * Each slot is a queue that records: a command message for it becomes a template here. A run makes
 * a command of each template, on the queue given for its slot. These commands are one batch, whose
 * event is the last one's. */
#ifndef SPANCL_ENGINE_RECORDING_H
#define SPANCL_ENGINE_RECORDING_H

#include "engine/command/command.h"

struct recorded {
        struct command *what; /* owned; in the engine's commands, but never submitted */
        size_t slot;
        /* The commands it waits for, in recording->after. */
        size_t after, after_count;
        bool leaf; /* no later command waits for it */
        /* Bulk data from a read to a write. */
        uint64_t bulk; /* bytes; 0: none */
        uint64_t step; /* as in engine_transfer_expect */
        size_t from;   /* of a write: number of its read */
};

struct recording {
        struct object object;
        size_t slot_count;
        struct queue **slots; /* held */
        struct recorded *commands;
        size_t count, cap;
        uint32_t *after;
        size_t after_count, after_cap;
        size_t barrier; /* number of the last barrier, 0: none */
        /* Numbers of reads whose bytes no write has taken, by transfer id. */
        struct map offers;
        bool has_bulk;
};

/* The commands of one run. */
struct batch {
        size_t refs, left; /* commands that exist; those not complete */
        cl_int status;     /* of the first that failed */
        struct backend_times times;
        /* A marker that waits for the run's wait list; NULL: it has none. */
        struct command *first;
        struct command *last; /* its event is the run's */
        bool last_done;
        uint64_t observed_ns; /* as of a command: of the first one after the wait list */
        /* While the commands are made: events of those not complete, by number. */
        struct event **events;
};

/* Add `c`, new, as the next command of the recording whose slot its queue is. SP_E_PROTO,
 * SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_recording_add(struct command *c, const struct command_params *params)
        REQUIRES(engine_held);

/* The command `c`, just recorded, gives (or takes) the bytes of transfer `id`. SP_E_PROTO,
 * SP_E_NOMEM. */
SP_NODISCARD int engine_recording_bulk(struct command *c, bool gives, uint64_t id, uint64_t total,
                                       uint64_t step);

/* The command `c` is complete. Return the command whose event completes now, and which is freed
 * then. That is c; or the batch's last command instead of c; or NULL, if the last one waits for
 * others. */
struct command *engine_batch_finish(struct command *c) REQUIRES(engine_held);
void engine_batch_unref(struct batch *b);

int engine_handle_recording_create(void *user, const struct wire_recording_create *m)
        REQUIRES(engine_held);
int engine_handle_recording_run(void *user, const struct wire_recording_run *m)
        REQUIRES(engine_held);
int engine_handle_recording_update(void *user, const struct wire_recording_update *m)
        REQUIRES(engine_held);

#endif
