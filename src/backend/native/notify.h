/* Notifier threads report completions that the native implementation's own callback can't report.
 * Either the callback came inside an operation, or a thread has to wait for the event. Events are
 * reported in the order in which they were handed over. */
#ifndef SPANCL_BACKEND_NATIVE_NOTIFY_H
#define SPANCL_BACKEND_NATIVE_NOTIFY_H

#include "backend/native/native.h"
#include "os/condition.h"
#include "os/lock.h"
#include "os/thread.h"

struct notifier {
        thread_id thread;
        struct lock lock; /* guards what follows; a leaf */
        struct condition changed;
        struct list events;
        bool stop;
        bool taken; /* by a queue; the engine's lock guards it */
};

/* Starts the thread. SP_E_NOMEM. */
SP_NODISCARD int notifier_new(struct notifier **ret);

/* Report the events that are left, then end the thread. NULL is allowed. */
void notifier_free(struct notifier *n);

/* Report `e` on the notifier's thread; if e->status > 0, when its event is complete. Takes over the
 * report's reference. */
void notifier_push(struct notifier *n, struct backend_event *e);

/* Arrange that `e` is reported once; takes over a reference. Inside an operation. */
void notify_when_complete(struct backend_event *e);

/* backend_ops.poll. Reported native events are released by the next call, so that the waiting side
 * is notified first. */
enum backend_polled notify_poll(struct backend *b, bool last);

/* Wait until everything was reported. Outside any operation. */
void notify_wait_idle(struct backend *b);

/* Drop a reference. */
void event_unref(struct backend_event *e);
void queue_unref(struct backend_queue *q);

/* Take a kept native queue with the same properties, which the caller then owns (QUEUES_STAY);
 * NULL: none. */
cl_command_queue queue_take_kept(const struct backend_queue *q);

#endif
