#include "engine/completion/coalesced.h"

bool engine_coalesced_allowed(const struct command *c)
{
        const struct queue *q = c->queue;
        return !engine_limit_times(q->object.engine) && !engine_has_observers(q->object.engine) &&
               q->object.engine->be->event.report && !q->in_order && !q->profiling &&
               !c->desc.after_all && !c->submission.transfer && !c->submission.asking &&
               !c->batch && !c->desc.is_barrier && c->event && c->outcome.status >= 0 &&
               !engine_event_is_observed(c->event, q->domain);
}

static void stand_for(struct command *c, struct command *before)
{
        list_remove(&before->outcome.unreported);
        list_append(c->outcome.coalesced.next, &before->outcome.unreported); /* in front */
}

static void stand_for_unreported(struct command *c, struct command *before)
{
        if (before->event && before->event->unreported)
                stand_for(c, before);
}

/* The command comes after all of its queue. It stands for the commands since the last such one, and
 * that one stands for the commands before it. */
static void stand_for_newest(struct command *c)
{
        const struct list *all = &c->queue->order;
        for (struct list *l = c->outcome.order.prev; l != all; l = l->prev) {
                struct command *before = list_entry(l, struct command, outcome.order);
                if (before->desc.after_all)
                        break;
                stand_for_unreported(c, before);
        }
}

/* The command came after all of its queue and is complete. The client takes its completion for that
 * of all before it, so their failures have to be sent first. The list ends up newest first, as if
 * each stood for the one before. Each leaves the queue's order: an earlier command that comes after
 * all has nothing left to stand for. */
static void stand_for_all(struct command *c)
{
        const struct list *all = &c->queue->order;
        while (!list_empty(&c->outcome.order)) {
                struct command *before = list_entry(all->next, struct command, outcome.order);
                list_remove(&before->outcome.order);
                stand_for_unreported(c, before);
        }
}

static void stand_for_dependencies(struct command *c)
{
        for (size_t i = 0; i < c->deps.count; i++) {
                const struct event *ev = c->deps.list[i].event;
                struct command *before = ev && ev->native ? ev->unreported : NULL;
                if (before && ev->domain == c->queue->domain)
                        stand_for(c, before);
        }
}

void engine_coalesced_submitted(struct command *c, bool unreported)
{
        if (unreported) {
                c->event->unreported = c;
                list_append(&c->queue->object.engine->completion.unreported,
                            &c->outcome.unreported);
        }
        if (c->desc.after_all)
                stand_for_newest(c);
        stand_for_dependencies(c);
}

/* The command is complete, so it stands again for all that it comes after. Other commands may have
 * taken these over meanwhile, and may not be complete. */
static void stand_again(struct command *c)
{
        if (c->desc.after_all)
                stand_for_all(c);
        stand_for_dependencies(c);
}

void engine_coalesced_report(struct command *c)
{
        struct engine *e = c->queue->object.engine;
        list_remove(&c->outcome.unreported);
        if (c->event->native &&
            e->be->event.report(c->queue->native, c->event->native, c) == CL_SUCCESS) {
                c->event->unreported = NULL;
                list_remove(&c->outcome.order);
        } else {
                list_append(&e->completion.unreported,
                            &c->outcome.unreported); /* try again later */
        }
}

void engine_coalesced_report_all(struct engine *e)
{
        struct list all;
        list_init(&all);
        list_each(c, &e->completion.unreported, struct command, outcome.unreported)
        {
                list_remove(&c->outcome.unreported);
                list_append(&all, &c->outcome.unreported);
        }
        while (!list_empty(&all))
                engine_coalesced_report(list_entry(all.next, struct command, outcome.unreported));
}

/* Move to `all` the commands that `c` itself stands for. */
static void take(struct command *c, struct list *all)
{
        stand_again(c);
        while (!list_empty(&c->outcome.coalesced)) {
                struct command *before =
                        list_entry(c->outcome.coalesced.next, struct command, outcome.unreported);
                list_remove(&before->outcome.unreported);
                list_append(all, &before->outcome.unreported);
                before->event->unreported = NULL;
        }
}

void engine_coalesced_take(struct command *c, struct list *all)
{
        take(c, all);
        for (const struct list *l = all->next; l != all; l = l->next)
                take(list_entry(l, struct command, outcome.unreported), all);
}

void engine_coalesced_uncertain(struct command *c)
{
        stand_again(c);
        while (!list_empty(&c->outcome.coalesced)) {
                struct list *first = c->outcome.coalesced.next;
                list_remove(first);
                list_append(&c->queue->object.engine->completion.unreported, first);
        }
}
