#include "engine/command/recording.h"

#include "base/mem.h"
#include "engine/command/submission.h"

static struct recording *recording_find(struct engine *e, uint64_t id)
{
        struct object *o = engine_object_find(e, id);
        return o ? container_of(o, struct recording, object) : NULL;
}

static void recording_free(struct object *o) REQUIRES(engine_held)
{
        struct recording *rec = container_of(o, struct recording, object);
        for (size_t i = 0; i < rec->count; i++)
                engine_command_free(rec->commands[i].what);
        o->engine->commands.recorded -= rec->count;
        for (size_t i = 0; i < rec->slot_count; i++) {
                /* A holder of this queue finds that it can't execute. */
                rec->slots[i]->recording = NULL;
                engine_object_unref(&rec->slots[i]->object);
        }
        mem_free(rec->slots);
        mem_free(rec->commands);
        mem_free(rec->after);
        map_fini(&rec->offers);
        mem_free(rec);
}

/* ---- recording ------------------------------------------------------------------------------ */

/* Make room for one more. */
static int grow(void **array, size_t *cap, size_t count, size_t size)
{
        if (count < *cap)
                return 0;
        size_t more = *cap ? *cap * 2 : 16;
        void *p = mem_realloc(*array, more * size);
        if (!p)
                return SP_E_NOMEM;
        *array = p;
        *cap = more;
        return 0;
}

/* The new command waits for command `number`. */
static int add_after(struct recording *rec, struct recorded *r, size_t number)
{
        void *after = rec->after;
        int e = grow(&after, &rec->after_cap, rec->after_count, sizeof(*rec->after));
        rec->after = after;
        if (e < 0)
                return e;
        rec->after[rec->after_count++] = (uint32_t)(number - 1);
        r->after_count++;
        rec->commands[number - 1].leaf = false;
        return 0;
}

static int add_waits(struct recording *rec, struct recorded *r, struct wire_u64s waits)
{
        int e = 0;
        for (size_t i = 0; i < waits.count && !e; i++) {
                uint64_t number = wire_u64s_at(waits, i) & ~object_id(OBJECT_EVENT, 0);
                e = number && number <= rec->count ? add_after(rec, r, (size_t)number) : SP_E_PROTO;
        }
        return e;
}

/* Make the barrier wait for everything before it: for each command on which no other waits yet. */
static int add_leaves(struct recording *rec, struct recorded *r)
{
        int e = 0;
        for (size_t i = rec->barrier; i < rec->count && !e; i++)
                if (rec->commands[i].leaf)
                        e = add_after(rec, r, i + 1);
        return e;
}

int engine_recording_add(struct command *c, const struct command_params *params)
{
        struct recording *rec = c->queue->recording;
        struct engine *e = rec->object.engine;
        bool is_barrier = params->marker && params->flags & COMMAND_BARRIER;
        if (params->event != object_id(OBJECT_EVENT, rec->count + 1))
                return SP_E_PROTO;
        if (e->commands.recorded >= ENGINE_RECORDED_MAX)
                return SP_E_LIMIT;
        void *commands = rec->commands;
        int r = grow(&commands, &rec->cap, rec->count, sizeof(*rec->commands));
        rec->commands = commands;
        if (r < 0)
                return r;
        struct recorded *n = &rec->commands[rec->count];
        *n = (struct recorded){
                .what = c, .slot = c->queue->slot, .after = rec->after_count, .leaf = true
        };
        r = add_waits(rec, n, params->waits);
        if (!r && rec->barrier)
                r = add_after(rec, n, rec->barrier);
        if (!r && is_barrier && !params->waits.count)
                r = add_leaves(rec, n);
        if (r < 0)
                return r;
        c->number = rec->count++;
        if (is_barrier)
                rec->barrier = rec->count;
        e->commands.recorded++;
        return 0;
}

int engine_recording_bulk(struct command *c, bool gives, uint64_t id, uint64_t total, uint64_t step)
{
        struct recording *rec = c->queue->recording;
        struct recorded *n = &rec->commands[c->number];
        n->bulk = total;
        n->step = step;
        rec->has_bulk = true;
        if (gives)
                return map_get(&rec->offers, id)
                               ? SP_E_PROTO
                               : map_put(&rec->offers, id, (void *)(uintptr_t)(c->number + 1));
        n->from = (size_t)(uintptr_t)map_del(&rec->offers, id);
        const struct recorded *from = n->from ? &rec->commands[n->from - 1] : NULL;
        return from && from->bulk == total && from->step == step ? 0 : SP_E_PROTO;
}

/* ---- a run ---------------------------------------------------------------------------------- */

void engine_batch_unref(struct batch *b)
{
        if (--b->refs)
                return;
        mem_free(b->events);
        mem_free(b);
}

struct command *engine_batch_finish(struct command *c)
{
        struct batch *b = c->batch;
        if (c->outcome.status < 0 && b->status >= 0)
                b->status = c->outcome.status;
        /* The marker that waits for the run's wait list is not part of its time. */
        if (c != b->first)
                engine_times_add(&b->times, &c->outcome.times);
        if (b->events)
                b->events[c->number] = NULL;
        b->left--;
        if (c == b->last)
                b->last_done = true;
        else {
                engine_event_complete(steal(c->event), c->outcome.status, NULL);
                engine_command_free(c);
        }
        if (b->left || !b->last_done)
                return NULL;
        c = b->last;
        c->outcome.status = b->status;
        c->outcome.times = b->times;
        return c;
}

struct run {
        struct engine *engine;
        struct recording *recording;
        const struct wire_recording_run *message;
        struct queue *queue; /* the only one, if it is in order; else NULL */
        struct batch *batch;
        /* Transfers of reads whose write has not come yet, by number; NULL: no bulk data. */
        struct transfer **open;
};

static struct queue *run_queue(const struct run *x, size_t slot)
{
        return engine_queue_find(x->engine, wire_u64s_at(x->message->queues, slot));
}

static void join(struct command *c, struct event *ev)
{
        struct dependency *d = &c->deps.list[c->deps.count++];
        list_init(&d->link);
        d->command = c;
        engine_event_join(ev, c->queue->domain, d);
        c->deps.blocking += d->blocking;
}

/* Give the command the run's event, or a nameless one. */
static int give_event(const struct run *x, struct command *c, bool last) REQUIRES(engine_held)
{
        if (!last)
                return engine_event_new_nameless(x->engine, &c->event);
        int r = engine_event_new(x->engine, x->message->event, &c->event);
        if (r < 0)
                return r;
        c->event->notify = x->message->flags & COMMAND_NOTIFY;
        c->event->queue = c->queue->object.id;
        x->batch->last = c;
        return 0;
}

static int run_command(const struct run *x, struct queue *q, const struct command *like,
                       size_t deps, bool last, struct command **ret) REQUIRES(engine_held)
{
        struct command *c;
        struct batch *b = x->batch;
        int r = engine_command_copy(q, like, deps + 1, 0, &c);
        if (!r)
                r = give_event(x, c, last);
        if (r < 0)
                return r;
        c->batch = b;
        b->refs++;
        c->number = like ? like->number : x->recording->count;
        if (b->first && b->events[x->recording->count + 1])
                join(c, b->events[x->recording->count + 1]);
        /* After a command that could not be started, none is started. */
        if (q->status < 0 || b->status < 0)
                engine_command_fail(c, q->status < 0 ? q->status : b->status);
        b->events[c->number] = c->event;
        *ret = c;
        return 0;
}

/* Make a marker that waits for the run's wait list. All its commands wait for that marker. */
static int run_first(const struct run *x) REQUIRES(engine_held)
{
        struct wire_u64s waits = x->message->waits;
        struct batch *b = x->batch;
        struct command *c;
        if (!waits.count)
                return 0;
        int r = engine_command_copy(run_queue(x, 0), NULL, waits.count, 0, &c);
        if (!r)
                r = engine_event_new_nameless(x->engine, &c->event);
        if (r < 0)
                return r;
        c->desc.native.op = BACKEND_MARKER;
        c->batch = b;
        b->refs++;
        b->left++;
        b->first = c;
        c->number = x->recording->count + 1;
        b->events[c->number] = c->event;
        engine_command_depend(c, waits);
        if (c->queue->status < 0)
                engine_command_fail(c, c->queue->status);
        engine_command_enqueue(c);
        return 0;
}

/* A launch of no work-items, as the application may ask for, does nothing. */
static void skip_empty(struct command *c)
{
        for (unsigned i = 0; c->desc.native.op == BACKEND_KERNEL && i < c->desc.native.dims; i++)
                if (!c->desc.global[i])
                        c->desc.native.op = BACKEND_MARKER;
}

static int run_bulk(const struct run *x, const struct recorded *n, size_t i, struct command *c)
        REQUIRES(engine_held)
{
        if (n->bulk && !n->from)
                return engine_transfer_local(x->engine, n->bulk, n->step, c, &x->open[i]);
        if (n->bulk)
                engine_transfer_adopt(steal(x->open[n->from - 1]), c);
        return 0;
}

static int run_recorded(const struct run *x, size_t i) REQUIRES(engine_held)
{
        struct recording *rec = x->recording;
        const struct recorded *n = &rec->commands[i];
        struct command *c;
        bool last = x->queue && i + 1 == rec->count;
        struct queue *q = run_queue(x, n->slot);
        int r = run_command(x, q, n->what, n->after_count, last, &c);
        if (r < 0)
                return r;
        skip_empty(c);
        r = run_bulk(x, n, i, c);
        if (r < 0)
                return r;
        for (size_t k = 0; k < n->after_count; k++) {
                size_t before = rec->after[n->after + k];
                struct event *ev = x->batch->events[before];
                /* The queue's own order replaces the dependency. */
                if (ev && !(q->in_order && rec->commands[before].slot == n->slot))
                        join(c, ev);
        }
        engine_command_enqueue(c);
        return 0;
}

/* Add a command that has the run's event, if no recorded command comes after all others. */
static int run_last(const struct run *x) REQUIRES(engine_held)
{
        struct recording *rec = x->recording;
        struct queue *q = run_queue(x, 0);
        struct command *c;
        if (x->queue && rec->count)
                return 0;
        int r = run_command(x, q, NULL, rec->count, true, &c);
        if (r < 0)
                return r;
        c->desc.native.op = BACKEND_MARKER;
        for (size_t i = 0; i < rec->count; i++) {
                struct event *ev = x->batch->events[i];
                if (ev && rec->commands[i].leaf && !(q->in_order && !rec->commands[i].slot))
                        join(c, ev);
        }
        engine_command_enqueue(c);
        return 0;
}

static int run_all(struct run *x) REQUIRES(engine_held)
{
        struct recording *rec = x->recording;
        struct batch *b = mem_zalloc(sizeof(*b));
        if (!b)
                return SP_E_NOMEM;
        x->batch = b;
        b->refs = 1;
        b->left = rec->count + (x->queue && rec->count ? 0 : 1);
        b->events = mem_zalloc((rec->count + 2) * sizeof(*b->events));
        if (rec->has_bulk)
                x->open = mem_zalloc(rec->count * sizeof(*x->open));
        int r = b->events && (x->open || !rec->has_bulk) ? run_first(x) : SP_E_NOMEM;
        for (size_t i = 0; i < rec->count && !r; i++)
                r = run_recorded(x, i);
        if (!r)
                r = run_last(x);
        for (size_t i = 0; x->open && i < rec->count; i++)
                if (x->open[i])
                        engine_transfer_disown(x->open[i]);
        mem_free(x->open);
        mem_free(steal(b->events));
        engine_batch_unref(b);
        return r;
}

/* ---- messages ------------------------------------------------------------------------------- */

int engine_handle_recording_run(void *user, const struct wire_recording_run *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct run x = { .engine = e, .recording = recording_find(e, m->recording), .message = m };
        if (!x.recording || m->queues.count != x.recording->slot_count ||
            engine_event_among(m->event, m->waits))
                return SP_E_PROTO;
        for (size_t i = 0; i < m->queues.count; i++) {
                struct queue *q = run_queue(&x, i);
                if (!q || q->recording || q->device != x.recording->slots[i]->device)
                        return SP_E_PROTO;
        }
        if (m->queues.count == 1 && run_queue(&x, 0)->in_order)
                x.queue = run_queue(&x, 0);
        return run_all(&x);
}

static int slot_new(struct recording *rec, uint64_t id, uint64_t device) REQUIRES(engine_held)
{
        struct engine *e = rec->object.engine;
        struct queue *q;
        int r = engine_queue_new(e, id, device, &q);
        if (r < 0)
                return r;
        /* For the case that it outlives the recording. */
        q->status = CL_INVALID_COMMAND_QUEUE;
        q->recording = rec;
        q->slot = rec->slot_count;
        engine_object_ref(&q->object);
        rec->slots[rec->slot_count++] = q;
        return 0;
}

int engine_handle_recording_create(void *user, const struct wire_recording_create *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        if (!m->slots.count || m->devices.count != m->slots.count)
                return SP_E_PROTO;
        struct recording *rec = mem_zalloc(sizeof(*rec));
        if (!rec)
                return SP_E_NOMEM;
        rec->object = (struct object){
                .engine = e, .id = m->recording, .refs = 1, .free = recording_free
        };
        rec->slots = mem_zalloc(m->slots.count * sizeof(*rec->slots));
        int r = rec->slots ? 0 : SP_E_NOMEM;
        for (size_t i = 0; i < m->slots.count && !r; i++)
                r = slot_new(rec, wire_u64s_at(m->slots, i), wire_u64s_at(m->devices, i));
        if (!r)
                r = engine_object_add(e, &rec->object);
        if (r < 0)
                engine_object_unref(&rec->object);
        return r;
}

/* Update sizes with as many values as the launch has dimensions; no values: not changed. */
static int update_sizes(size_t out[3], const size_t **where, unsigned dims, struct wire_u64s v)
{
        if (!v.count)
                return 0;
        if (v.count != dims)
                return SP_E_PROTO;
        for (size_t i = 0; i < dims; i++)
                out[i] = (size_t)wire_u64s_at(v, i);
        *where = out;
        return 0;
}

static int update_arg(struct command *c, const struct arg *a) REQUIRES(engine_held)
{
        struct value *v = engine_value_new(c->queue->object.engine, a);
        if (!v)
                return SP_E_NOMEM;
        engine_value_unref(c->desc.args[a->index]);
        engine_object_unref(c->desc.arg_objects[a->index]);
        c->desc.args[a->index] = v;
        c->desc.arg_objects[a->index] = NULL;
        if (!arg_is_object(a->kind) || !a->object)
                return 0;
        cl_int status =
                engine_arg_object(c->queue->object.engine, a, &c->desc.arg_objects[a->index]);
        if (status < 0)
                return SP_E_PROTO;
        engine_object_ref(c->desc.arg_objects[a->index]);
        return 0;
}

/* Replace the launch by one with room for all the arguments. */
static int make_room(struct recorded *n, struct bytes args) REQUIRES(engine_held)
{
        struct arg a;
        struct command *larger;
        size_t count = n->what->desc.arg_count;
        while (args_next(&args, &a))
                if (a.index >= count)
                        count = (size_t)a.index + 1;
        if (count == n->what->desc.arg_count)
                return 0;
        int r = engine_command_copy(n->what->queue, n->what, 0, count, &larger);
        if (r < 0)
                return r;
        larger->number = n->what->number;
        engine_command_free(n->what);
        n->what = larger;
        return 0;
}

int engine_handle_recording_update(void *user, const struct wire_recording_update *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct recording *rec = recording_find(e, m->recording);
        uint64_t number = m->command & ~object_id(OBJECT_EVENT, 0);
        if (!rec || !number || number > rec->count)
                return SP_E_PROTO;
        struct recorded *n = &rec->commands[number - 1];
        if (n->what->desc.native.op != BACKEND_KERNEL)
                return SP_E_PROTO;
        int r = make_room(n, m->args);
        if (r < 0)
                return r;
        struct command *c = n->what;
        struct arg a;
        struct bytes args = m->args;
        r = update_sizes(c->desc.offset, &c->desc.native.offset, c->desc.native.dims, m->offset);
        if (!r)
                r = update_sizes(c->desc.global, &c->desc.native.global, c->desc.native.dims,
                                 m->global);
        if (!r)
                r = update_sizes(c->desc.local, &c->desc.native.local, c->desc.native.dims,
                                 m->local);
        while (!r && args_next(&args, &a))
                r = update_arg(c, &a);
        return r;
}
