#include "backend/almaif/command.h"

#include "backend/almaif/launch.h"
#include "backend/almaif/memory.h"
#include "backend/almaif/transfer.h"
#include "base/mem.h"
#include "os/clock.h"

/* ---- references ----------------------------------------------------------------------------- */

static struct backend_event *event_ref(struct backend_event *e)
{
        atomic_fetch_add(&e->refs, 1);
        return e;
}

void almaif_event_unref(struct backend_event *e)
{
        if (e && atomic_fetch_sub(&e->refs, 1) == 1)
                mem_free(e);
}

void command_queue_unref(struct backend_queue *q)
{
        if (!q || atomic_fetch_sub(&q->refs, 1) != 1)
                return;
        almaif_event_unref(q->barrier);
        mem_free(q);
}

/* Free a command, also one that is half made. */
void command_free(struct command *k)
{
        for (size_t i = 0; k->deps && i < k->dep_count; i++)
                almaif_event_unref(k->deps[i].event);
        for (unsigned i = 0; i < REGISTRY_ARGS_MAX; i++)
                buffer_unref(k->buffers[i]);
        for (unsigned i = 0; i < k->held_count; i++)
                buffer_unref(k->held[i]);
        mem_free(k->held);
        riscv_program_unref(k->code);
        buffer_unref(k->c.buffer);
        buffer_unref(k->c.source);
        command_queue_unref(k->queue);
        almaif_event_unref(k->event);
        mem_free(k->barriers);
        mem_free(k->args);
        mem_free(k->deps);
        mem_free(k);
}

static void command_freep(struct command **k)
{
        if (*k)
                command_free(*k);
}

/* ---- what a command waits for --------------------------------------------------------------- */

bool dependency_done(const struct dependency *d)
{
        return d->event->status <= CL_COMPLETE;
}

static bool waits_for_all(const struct backend_command *c)
{
        return (c->op == BACKEND_MARKER || c->op == BACKEND_BARRIER) && !c->dep_count;
}

bool command_may_run(const struct command *k)
{
        for (size_t i = 0; i < k->dep_count; i++)
                if (!dependency_done(&k->deps[i]))
                        return false;
        return !k->running;
}

static void add_dependency(struct command *k, struct backend_event *e, bool order)
        REQUIRES(almaif_held)
{
        k->deps[k->dep_count++] = (struct dependency){ event_ref(e), order };
}

/* Collect the command's wait list, and the dependencies that the queue's order adds; there is room. */
static void find_dependencies(struct command *k, const struct backend_command *c)
        REQUIRES(almaif_held)
{
        struct backend_queue *q = k->queue;
        for (size_t i = 0; i < c->dep_count; i++)
                if (c->deps[i]->status != CL_COMPLETE)
                        add_dependency(k, c->deps[i], false);
        if (!(q->props & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)) {
                if (!list_empty(&q->commands))
                        add_dependency(
                                k, list_entry(q->commands.prev, struct command, in_queue)->event,
                                true);
                return;
        }
        if (waits_for_all(c)) {
                list_each(before, &q->commands, struct command, in_queue)
                        add_dependency(k, before->event, true);
        } else if (q->barrier && q->barrier->status > CL_COMPLETE) {
                add_dependency(k, q->barrier, true);
        }
}

static size_t most_dependencies(const struct backend_queue *q, const struct backend_command *c)
        REQUIRES(almaif_held)
{
        size_t n = c->dep_count + 1;
        if (waits_for_all(c))
                list_each(before, &q->commands, struct command, in_queue) n++;
        return n;
}

/* ---- submit --------------------------------------------------------------------------------- */

static cl_int check(const struct backend_queue *q, const struct backend_command *c)
{
        for (size_t i = 0; i < c->dep_count; i++) {
                if (!c->deps[i])
                        return CL_INVALID_EVENT_WAIT_LIST;
                if (c->deps[i]->domain != q->unit->domain)
                        return CL_INVALID_CONTEXT;
        }
        if (c->op == BACKEND_MARKER || c->op == BACKEND_BARRIER)
                return CL_SUCCESS;
        return c->op == BACKEND_KERNEL ? launch_check(q, c) : transfer_check(q->unit->domain, c);
}

/* Everything that it needs, taken from the caller. */
static cl_int take(struct command *k, const struct backend_command *c)
{
        bool transfer = c->op >= BACKEND_WRITE && c->op <= BACKEND_FILL;
        k->c = *c;
        k->c.buffer = transfer ? buffer_ref(c->buffer) : NULL;
        k->c.source =
                c->op == BACKEND_COPY || c->op == BACKEND_COPY_RECT ? buffer_ref(c->source) : NULL;
        if (c->op == BACKEND_FILL)
                memcpy(k->pattern, c->pattern, c->pattern_size);
        k->event = mem_zalloc(sizeof(*k->event));
        if (!k->event)
                return CL_OUT_OF_HOST_MEMORY;
        *k->event = (struct backend_event){
                .refs = 1, .domain = k->queue->unit->domain, .status = CL_SUBMITTED, .signal = -1
        };
        bool empty = false;
        for (unsigned i = 0; c->op == BACKEND_KERNEL && i < c->dims; i++)
                empty |= !c->global[i];
        if (c->op != BACKEND_KERNEL)
                return CL_SUCCESS;
        if (empty) {
                k->c.op = BACKEND_MARKER;
                return CL_SUCCESS;
        }
        k->event->unit = k->queue->unit;
        return launch_prepare(k, c->kernel);
}

cl_int command_submit(struct backend_queue *q, const struct backend_command *c,
                      struct backend_event **ret)
{
        struct unit *u = q->unit;
        struct backend *b = u->backend;
        cl_int r = check(q, c);
        if (r != CL_SUCCESS)
                return r;
        auto_clean(command_freep) struct command *k = mem_zalloc(sizeof(*k));
        if (!k)
                return CL_OUT_OF_HOST_MEMORY;
        list_init(&k->link);
        list_init(&k->in_queue);
        atomic_fetch_add(&q->refs, 1);
        k->queue = q;
        r = take(k, c);
        if (r != CL_SUCCESS)
                return r;

        almaif_lock(b);
        size_t most = most_dependencies(q, c);
        k->deps = mem_alloc(most * sizeof(*k->deps));
        k->barriers = mem_alloc(most * sizeof(*k->barriers));
        if (!k->deps || !k->barriers || u->dead) {
                almaif_unlock(b);
                return u->dead ? u->dead : CL_OUT_OF_HOST_MEMORY;
        }
        k->times.submit_ns = k->times.start_ns = clock_now_ns();
        find_dependencies(k, c);
        *ret = event_ref(k->event);
        if (c->op == BACKEND_BARRIER) {
                almaif_event_unref(q->barrier);
                q->barrier = event_ref(k->event);
        }
        struct command *made = steal(k);
        list_append(&q->commands, &made->in_queue);
        if (made->event->unit) {
                list_append(&u->backlog, &made->link);
                launch_pump(u->domain);
        } else {
                list_append(&b->host, &made->link);
                if (command_may_run(made))
                        condition_signal(&b->changed);
        }
        almaif_unlock(b);
        return CL_SUCCESS;
}
