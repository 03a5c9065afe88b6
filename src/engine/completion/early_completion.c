#include "engine/completion/early_completion.h"

static bool is_early(const struct command *c)
{
        const struct queue *q = c->queue;
        if (engine_command_waits(c))
                return true;
        if (q->in_order || c->desc.after_all)
                return q->in_flight.next != &c->held;
        if (list_empty(&q->fences))
                return false;
        return list_entry(q->fences.next, struct command, barrier)->seq < c->seq;
}

static void withhold(struct command *c)
{
        list_append(&c->queue->object.engine->completion.completed_early, &c->ready);
}

bool engine_early_completion_withhold(struct command *c)
{
        if (!is_early(c))
                return false;
        engine_command_set_state(c, COMMAND_COMPLETED_EARLY);
        withhold(c);
        return true;
}

void engine_early_completion_check(struct command *c)
{
        if (c->state != COMMAND_COMPLETED_EARLY)
                return;
        struct engine *e = c->queue->object.engine;
        list_remove(&c->ready);
        list_append(&e->completion.candidates, &c->ready);
}

void engine_early_completion_left(struct command *c)
{
        struct queue *q = c->queue;
        bool first = !engine_command_in_queue(c) && q->in_flight.next == &c->held;
        list_remove(&c->held);
        if (first && !list_empty(&q->in_flight))
                engine_early_completion_check(list_entry(q->in_flight.next, struct command, held));
        if (list_empty(&c->barrier))
                return;
        bool fence = !engine_command_in_queue(c);
        list_remove(&c->barrier);
        if (!fence)
                return;
        list_each(a, &q->object.engine->completion.completed_early, struct command, ready)
        {
                if (a->queue == q)
                        engine_early_completion_check(a);
        }
}

struct command *engine_early_completion_next(struct engine *e)
{
        while (!list_empty(&e->completion.candidates)) {
                struct command *c =
                        list_entry(e->completion.candidates.next, struct command, ready);
                list_remove(&c->ready);
                if (!is_early(c))
                        return c;
                withhold(c);
        }
        return NULL;
}
