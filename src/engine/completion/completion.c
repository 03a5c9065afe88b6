#include "engine/completion/completion.h"

#include "engine/command/recording.h"
#include "engine/command/submission.h"
#include "engine/completion/coalesced.h"
#include "engine/completion/early_completion.h"
#include "engine/completion/untracked.h"
#include "trace/trace.h"

void engine_completion_publish(struct command *c)
{
        struct engine *e = c->queue->object.engine;
        if (c->submission.transfer && c->submission.transfer->writer == c)
                engine_transfer_taken(c->submission.transfer);
        if (c->desc.kernel)
                engine_command_output(e);
        bool run = c->batch;
        if (run)
                c = engine_batch_finish(c);
        if (!c)
                return;
        bool timed = c->queue->profiling ||
                     engine_transfer_times(c->submission.transfer, c, &c->outcome.times);
        engine_observed_complete(c, timed ? &c->outcome.times : NULL, run);
        engine_event_complete(steal(c->event), c->outcome.status, timed ? &c->outcome.times : NULL);
        engine_command_free(c);
}

static void done(struct command *c) REQUIRES(engine_held)
{
        engine_command_set_state(c, COMMAND_DONE);
        bool failed_read = c->outcome.status < 0 && c->submission.transfer &&
                           c->submission.transfer->reader == c;
        if (!failed_read || !engine_transfer_abort(c->submission.transfer, c->outcome.status))
                engine_completion_publish(c);
}

void engine_completion_end(struct command *c)
{
        if (!engine_early_completion_withhold(c))
                done(c);
}

void engine_completion_run(struct engine *e)
{
        struct command *c;
        while ((c = engine_early_completion_next(e)))
                done(c);
}

static void complete_untracked(const struct command *c, cl_int status) REQUIRES(engine_held)
{
        struct queue *q = c->queue->in_order ? c->queue : c->queue->chain_queue;
        if (c->outcome.untracked_before)
                engine_untracked_passed(q, c->outcome.untracked_before, status);
}

static void part_complete(struct command *c, cl_int status, const struct backend_times *t)
        REQUIRES(engine_held)
{
        complete_untracked(c, status);
        if (c->outcome.stands_in && status >= 0)
                status = c->queue->object.engine->be->event.status(c->event->native);
        engine_submission_part_complete(c, status, t);
        if (engine_command_in_queue(c))
                engine_command_poke(c); /* it still waits for bytes, or for room */
        else if (!c->submission.running)
                engine_completion_end(c);
}

/* The command is complete, so the commands coalesced with it are complete, too, and those coalesced
 * with these. Complete the oldest first. */
static void complete_coalesced(struct command *c) REQUIRES(engine_held)
{
        const struct backend_ops *be = c->queue->object.engine->be;
        struct list all;
        list_init(&all);
        engine_coalesced_take(c, &all);
        while (!list_empty(&all)) {
                struct command *before = list_entry(all.prev, struct command, outcome.unreported);
                list_remove(&before->outcome.unreported);
                /* If it had failed, `c` would have failed, too. */
                bool good = before->queue->failure_stays;
                part_complete(before, good ? CL_COMPLETE : be->event.status(before->event->native),
                              NULL);
        }
}

void engine_completion_report(void *user, void *cookie, cl_int status,
                              const struct backend_times *t)
{
        struct engine *e = user;
        struct command *c = cookie;
        struct trace_span span = trace_begin(TRACE_complete, 0);
        engine_lock(e);
        if (!e->closing) {
                span.value = c->event->id;
                if (status < 0)
                        engine_coalesced_uncertain(c);
                else
                        complete_coalesced(c);
                part_complete(c, status, t);
                engine_run(e);
                engine_settle(e);
        }
        /* End the span before a notified client can ask for the records. */
        trace_end(&span);
        engine_unlock(e);
}
