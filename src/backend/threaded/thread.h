/* A thread that runs tasks in order, and threads that wait for one of them. */
#ifndef SPANCL_BACKEND_THREADED_THREAD_H
#define SPANCL_BACKEND_THREADED_THREAD_H

#include "backend/backend.h"
#include "base/list.h"
#include "os/condition.h"
#include "os/lock.h"
#include "os/thread.h"

struct task {
        struct list link;
        void (*run)(struct backend *b,
                    struct task *t); /* frees the task, unless it is a part of another object */
};

struct runner {
        struct backend *backend;
        thread_id thread;
        bool started;
        struct lock lock; /* guards what follows, and `done` of calls; a leaf */
        struct condition changed, done;
        struct list tasks;
        bool stop;
};

void runner_init(struct runner *r, struct backend *b);

/* Start the thread. A negative SP_E_*. */
SP_NODISCARD int runner_start(struct runner *r);

/* Run the tasks that are left, and end the thread. */
void runner_stop(struct runner *r);
void runner_fini(struct runner *r);

/* Append a task. Any thread. */
void runner_post(struct runner *r, struct task *t);

/* Append a call of `body`, and wait until it has returned. Any thread but the runner's own. */
void runner_call(struct runner *r, void (*body)(struct backend *b, void *user), void *user);

#endif
