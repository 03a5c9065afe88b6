/* Commands that nobody can name are not kept: in an in-order queue, a launch without event object that depends
 * on nothing outside of its queue is submitted, and all that is remembered is its event's id. It is
 * complete when a later command of its queue is reported. Should somebody name it after all, a marker
 * behind it tells of it. */
#ifndef SPANCL_ENGINE_UNTRACKED_H
#define SPANCL_ENGINE_UNTRACKED_H

#include "engine/command/event.h"
#include "engine/object.h"

struct untracked_entry {
        uint64_t event;               /* id */
        struct backend_event *native; /* NULL: its failure would be everybody's */
        bool named;                   /* the table has its event */
};

/* May the queue's next command be submitted so? */
bool engine_untracked_allowed(const struct queue *q, uint64_t event);

/* Submit it; its dependencies are those that the queue's order does not say. False: it could not be, nothing
 * has changed. */
bool engine_untracked_submit(struct queue *q, uint64_t event, struct backend_command *n);

/* The event of an untracked command in flight, which is kept from now on. NULL: there is none of that id. */
struct event *engine_untracked_find(struct engine *e, uint64_t id);

/* See to it that the queue's untracked commands are noticed when they are complete. */
void engine_untracked_cover(struct queue *q);

/* Let all untracked commands in flight keep `b`. SP_E_NOMEM. */
SP_NODISCARD int engine_untracked_keep(struct buffer *b);

/* Those below number `end` are complete, since a command behind them is, with `status`. */
void engine_untracked_passed(struct queue *q, uint64_t end, cl_int status);

/* Forget all, telling nobody. */
void engine_untracked_abandon(struct engine *e);

#endif
