#include "backend/native/notify.h"

#include "backend/native/context.h"

#include "backend/native/clock.h"
#include "backend/native/completion_flag.h"
#include "base/log.h"
#include "os/clock.h"

enum { POLLS = 8 }; /* at events of a queue without order, each time */

cl_command_queue queue_take_kept(const struct backend_queue *q)
{
        struct backend *b = q->backend;
        struct backend_queue *found = NULL;
        lock_take(&b->lock);
        list_each(k, &b->kept_queues, struct backend_queue, link)
        {
                if (!found && k->context == q->context && k->device->id == q->device->id &&
                    k->properties == q->properties)
                        found = k;
        }
        if (found)
                list_remove(&found->link);
        lock_release(&b->lock);
        cl_command_queue queue = found ? found->queue : NULL;
        mem_free(found);
        return queue;
}

/* The last event of a queue is mostly released in a callback, on a thread of the driver's. If
 * Intel's driver releases the queue there, that thread waits for itself for ever. So a thread of
 * ours releases it, after clFinish. */
void queue_unref(struct backend_queue *q)
{
        if (!q || atomic_fetch_sub(&q->refs, 1) != 1)
                return;
        struct backend *b = q->backend;
        if (q->queue && q->last) {
                struct backend_event *last = steal(q->last);
                *last = (struct backend_event){ .refs = 1, .queue = q, .status = CL_COMPLETE };
                list_init(&last->link);
                atomic_store(&q->refs, 1);
                lock_take(&b->lock);
                b->in_flight++;
                lock_release(&b->lock);
                notifier_push(b->notifiers[0], last);
                return;
        }
        mem_free(q->last);
        if (q->queue && q->submitted)
                q->domain->api->clFinish(q->queue);
        if (q->queue && q->submitted && q->stays) {
                lock_take(&b->lock);
                list_append(&b->kept_queues, &q->link);
                lock_release(&b->lock);
                return;
        }
        if (q->queue)
                q->domain->api->clReleaseCommandQueue(q->queue);
        mem_free(q);
}

void event_unref(struct backend_event *e)
{
        if (!e || atomic_fetch_sub(&e->refs, 1) != 1)
                return;
        if (e->event)
                e->queue->domain->api->clReleaseEvent(e->event);
        queue_unref(e->queue);
        mem_free(e);
}

/* Outside any operation. */
static void notify(struct backend_event *e)
{
        struct backend *b = e->queue->backend;
        struct native_domain *d = e->queue->domain;
        if (e->status < 0)
                native_probe(b, d, e->status);
        completion_flag_end(e);
        /* Do not report: when the session ends, the client fails all commands. If one were reported
         * earlier, the program could make its new context in the session that ends. */
        if (e->cookie && !atomic_load(&d->broken)) {
                struct backend_times times = { 0 };
                if (e->queue->profiling && e->status == CL_COMPLETE)
                        times = clock_times(e);
                b->complete(b->user, e->cookie, e->status, &times);
        }
}

/* Drops the reference. */
static void drop(struct backend_event *e)
{
        struct backend *b = e->queue->backend;
        event_unref(e);
        lock_take(&b->lock);
        if (!--b->in_flight)
                condition_broadcast(&b->idle);
        lock_release(&b->lock);
}

/* Outside any operation. Drops the reference. */
static void report(struct backend_event *e)
{
        notify(e);
        drop(e);
}

/* Return true if the native event has completed. */
static bool ask(struct backend_event *e)
{
        cl_int status = CL_SUBMITTED;
        cl_int r = e->queue->domain->api->clGetEventInfo(
                e->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
        e->status = r == CL_SUCCESS ? status : r;
        return e->status <= CL_COMPLETE;
}

static bool is_over(struct backend_event *e)
{
        enum completion_flag_state completion_flag = completion_flag_poll(e);
        if (completion_flag == COMPLETION_FLAG_SEEN)
                e->status = CL_COMPLETE;
        return completion_flag == COMPLETION_FLAG_ASK ? ask(e)
                                                      : completion_flag == COMPLETION_FLAG_SEEN;
}

static void wait_for(struct backend_event *e)
{
        const cl_icd_dispatch *api = e->queue->domain->api;
        cl_int r = api->clWaitForEvents(1, &e->event);
        if (!ask(e))
                e->status = r < 0 ? r : CL_OUT_OF_RESOURCES;
}

static void move(struct backend_event *e, struct list *to)
{
        list_remove(&e->link);
        list_append(to, &e->link);
}

/* Move events of `from` that are complete to `to`. In an in-order queue wait for the first event.
 * In an out-of-order queue that would delay others, so poll them. */
static void take_over(struct list *from, struct list *to)
{
        unsigned polls = POLLS;
        list_each(e, from, struct backend_event, link)
        {
                if (e->status > CL_COMPLETE && e->queue->in_order) {
                        if (list_empty(to)) {
                                wait_for(e);
                                move(e, to);
                        }
                        break;
                }
                if (e->status <= CL_COMPLETE || is_over(e))
                        move(e, to);
                else if (!--polls)
                        break;
        }
}

/* Pause between two polls: a sixteenth of the time since then, which costs little compared to
 * it. */
static void pause_after(uint64_t since_ns)
{
        enum { SPIN_NS = 100000, NAP_MIN_NS = 10000, NAP_MAX_NS = 1000000 };
        uint64_t waited = clock_now_ns() - since_ns, nap = waited / 16;
        if (waited < SPIN_NS) {
                thread_yield();
                return;
        }
        nap = nap < NAP_MIN_NS ? NAP_MIN_NS : nap > NAP_MAX_NS ? NAP_MAX_NS : nap;
        (void)thread_sleep(nap);
}

static void *notifier_main(void *arg)
{
        struct notifier *n = arg;
        struct list waiting, over;
        uint64_t since_ns = 0;
        thread_sleep_precisely(); /* naps would be 50 µs longer */
        list_init(&waiting);
        list_init(&over);
        lock_take(&n->lock);
        for (;;) {
                if (list_empty(&waiting)) {
                        if (list_empty(&n->events)) {
                                if (n->stop)
                                        break;
                                condition_wait(&n->changed, &n->lock);
                                continue;
                        }
                        since_ns = clock_now_ns();
                }
                while (!list_empty(&n->events)) {
                        struct list *first = n->events.next;
                        list_remove(first);
                        list_append(&waiting, first);
                }
                lock_release(&n->lock);
                take_over(&waiting, &over);
                if (list_empty(&over))
                        pause_after(since_ns);
                else
                        since_ns = clock_now_ns();
                while (!list_empty(&over)) {
                        struct backend_event *e = list_entry(over.next, struct backend_event, link);
                        list_remove(&e->link);
                        report(e);
                }
                lock_take(&n->lock);
        }
        lock_release(&n->lock);
        return NULL;
}

int notifier_new(struct notifier **ret)
{
        struct notifier *n = mem_zalloc(sizeof(*n));
        if (!n)
                return SP_E_NOMEM;
        list_init(&n->events);
        lock_init(&n->lock);
        condition_init(&n->changed);
        if (thread_start_with_signals(&n->thread, notifier_main, n) < 0) {
                condition_fini(&n->changed);
                lock_fini(&n->lock);
                mem_free(n);
                return SP_E_NOMEM;
        }
        *ret = n;
        return 0;
}

void notifier_free(struct notifier *n)
{
        if (!n)
                return;
        lock_take(&n->lock);
        n->stop = true;
        condition_signal(&n->changed);
        lock_release(&n->lock);
        thread_join(n->thread);
        condition_fini(&n->changed);
        lock_fini(&n->lock);
        mem_free(n);
}

void notifier_push(struct notifier *n, struct backend_event *e)
{
        lock_take(&n->lock);
        list_append(&n->events, &e->link);
        condition_signal(&n->changed);
        lock_release(&n->lock);
}

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *user)
{
        struct backend_event *e = user;
        e->status = status < 0 ? status : CL_COMPLETE;
        if (op_depth)
                notifier_push(e->queue->backend->notifiers[0], e);
        else
                report(e);
}

/* Have another thread wait for the event: a notifier's or the driver's. */
static void wait_elsewhere(struct backend_event *e)
{
        struct backend_queue *q = e->queue;
        if (q->notifier) {
                notifier_push(q->notifier, e);
                return;
        }
        __typeof__(clSetEventCallback) *set = q->domain->api->clSetEventCallback;
        cl_int r = set ? set(e->event, CL_COMPLETE, on_complete, e) : CL_INVALID_OPERATION;
        if (r != CL_SUCCESS) {
                if (!atomic_exchange(&q->domain->refuses_callbacks, true))
                        log_info("native", "no completion callback (%d), waiting instead", r);
                notifier_push(q->backend->notifiers[0], e);
        }
}

void notify_when_complete(struct backend_event *e)
{
        struct backend_queue *q = e->queue;
        struct backend *b = q->backend;
        e->status = CL_SUBMITTED;
        lock_take(&b->lock);
        b->in_flight++;
        bool polled = b->polling && q->domain->quirks->completion == COMPLETION_WAIT;
        if (polled) {
                if (list_empty(&q->polled))
                        list_append(&b->polled, &q->link);
                list_append(&q->polled, &e->link);
        }
        lock_release(&b->lock);
        if (!polled)
                wait_elsewhere(e);
}

/* ---- polling -------------------------------------------------------------------------------- */

/* Move the queue's events that are complete, or else with `all` every one, to `to`. */
static void take_polled(struct backend_queue *q, bool all, struct list *to)
{
        unsigned polls = q->in_order ? 1 : POLLS;
        list_each(e, &q->polled, struct backend_event, link)
        {
                if (!all && !is_over(e)) {
                        if (!--polls)
                                break;
                        continue;
                }
                move(e, to);
        }
        if (list_empty(&q->polled))
                list_remove(&q->link);
}

static void drop_spent(struct backend *b)
{
        while (!list_empty(&b->spent)) {
                struct backend_event *e = list_entry(b->spent.next, struct backend_event, link);
                list_remove(&e->link);
                drop(e);
        }
}

enum backend_polled notify_poll(struct backend *b, bool last)
{
        struct list taken;
        list_init(&taken);
        drop_spent(b);
        op_enter();
        lock_take(&b->lock);
        b->polling = !last;
        bool waiting = !last && !list_empty(&b->polled);
        list_each(q, &b->polled, struct backend_queue, link) take_polled(q, last, &taken);
        /* Under the lock: a command that is submitted now comes behind them. */
        while (last && !list_empty(&taken)) {
                struct backend_event *e = list_entry(taken.next, struct backend_event, link);
                list_remove(&e->link);
                wait_elsewhere(e);
        }
        lock_release(&b->lock);
        op_leave();
        while (!list_empty(&taken)) {
                struct backend_event *e = list_entry(taken.next, struct backend_event, link);
                list_remove(&e->link);
                notify(e);
                list_append(&b->spent, &e->link);
        }
        if (!list_empty(&b->spent))
                return BACKEND_REPORTED;
        return waiting ? BACKEND_WAITING : BACKEND_IDLE;
}

void notify_wait_idle(struct backend *b)
{
        lock_take(&b->lock);
        while (b->in_flight)
                condition_wait(&b->idle, &b->lock);
        lock_release(&b->lock);
}
