#include "engine/ahead.h"

static bool is_ahead(const struct command *c)
{
        const struct queue *q = c->queue;
        if (engine_command_waits(c))
                return true;
        if (q->in_order || c->after_all)
                return q->flight.next != &c->held;
        if (list_empty(&q->fences))
                return false;
        return list_entry(q->fences.next, struct command, barrier)->seq < c->seq;
}

void engine_ahead_end(struct command *c)
{
        c->is_ahead = is_ahead(c);
        if (c->is_ahead)
                list_append(&c->queue->object.engine->ahead, &c->ready);
        else
                engine_command_finish(c);
}

void engine_ahead_look(struct command *c)
{
        if (!c->is_ahead)
                return;
        struct engine *e = c->queue->object.engine;
        list_remove(&c->ready);
        list_append(&e->candidates, &c->ready);
}

void engine_ahead_left(struct command *c)
{
        struct queue *q = c->queue;
        bool first = !c->in_queue && q->flight.next == &c->held;
        list_remove(&c->held);
        if (first && !list_empty(&q->flight))
                engine_ahead_look(list_entry(q->flight.next, struct command, held));
        if (list_empty(&c->barrier))
                return;
        bool fence = !c->in_queue;
        list_remove(&c->barrier);
        if (!fence)
                return;
        list_each(a, &q->object.engine->ahead, struct command, ready)
        {
                if (a->queue == q)
                        engine_ahead_look(a);
        }
}

void engine_ahead_run(struct engine *e)
{
        while (!list_empty(&e->candidates)) {
                struct command *c = list_entry(e->candidates.next, struct command, ready);
                list_remove(&c->ready);
                engine_ahead_end(c);
        }
}
