/* Untracked commands. In an in-order queue, a launch without event object that depends on nothing
 * outside its queue is submitted without a struct command. The engine keeps only its event's id. It
 * is complete when a later command of its queue is reported. If a later message names it after all,
 * a marker behind it reports its completion. */
#ifndef SPANCL_ENGINE_UNTRACKED_H
#define SPANCL_ENGINE_UNTRACKED_H

#include "engine/command/event.h"
#include "engine/object.h"

struct untracked_entry {
        uint64_t event;               /* id */
        struct backend_event *native; /* NULL: if it fails, all later ones fail */
        bool named;                   /* the table has its event */
};

/* May the queue's next command be untracked? */
bool engine_untracked_allowed(const struct queue *q, uint64_t event) REQUIRES(engine_held);

/* Submit the command. Its dependencies are those that the queue's order does not cover. False: it
 * could not be submitted, and nothing has changed. */
bool engine_untracked_submit(struct queue *q, uint64_t event, struct backend_command *n)
        REQUIRES(engine_held);

/* Give the event of an untracked command in flight, which is tracked from now on. NULL: there is
 * none of that id. */
struct event *engine_untracked_find(struct engine *e, uint64_t id) REQUIRES(engine_held);

/* Make sure that the completion of the queue's untracked commands is reported. */
void engine_untracked_cover(struct queue *q) REQUIRES(engine_held);

/* Hold `b` until all untracked commands in flight are complete. SP_E_NOMEM. */
SP_NODISCARD int engine_untracked_keep(struct buffer *b) REQUIRES(engine_held);

/* The commands below number `end` are complete, because a command behind them completed with
 * `status`. */
void engine_untracked_passed(struct queue *q, uint64_t end, cl_int status) REQUIRES(engine_held);

/* Forget all untracked commands, without notifications. */
void engine_untracked_abandon(struct engine *e) REQUIRES(engine_held);

#endif
