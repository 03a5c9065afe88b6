#include "backend/threaded/thread.h"

#include "base/mem.h"

static void *runner_main(void *arg)
{
        struct runner *r = arg;
        lock_take(&r->lock);
        while (!r->stop || !list_empty(&r->tasks)) {
                if (list_empty(&r->tasks)) {
                        condition_wait(&r->changed, &r->lock);
                        continue;
                }
                struct task *t = list_entry(r->tasks.next, struct task, link);
                list_remove(&t->link);
                lock_release(&r->lock);
                t->run(r->backend, t);
                lock_take(&r->lock);
        }
        lock_release(&r->lock);
        return NULL;
}

void runner_init(struct runner *r, struct backend *b)
{
        r->backend = b;
        lock_init(&r->lock);
        condition_init(&r->changed);
        condition_init(&r->done);
        list_init(&r->tasks);
}

int runner_start(struct runner *r)
{
        int e = thread_start_with_signals(&r->thread, runner_main, r);
        r->started = e == 0;
        return e;
}

void runner_stop(struct runner *r)
{
        if (!r->started)
                return;
        lock_take(&r->lock);
        r->stop = true;
        condition_signal(&r->changed);
        lock_release(&r->lock);
        thread_join(r->thread);
        r->started = false;
}

void runner_fini(struct runner *r)
{
        condition_fini(&r->done);
        condition_fini(&r->changed);
        lock_fini(&r->lock);
}

void runner_post(struct runner *r, struct task *t)
{
        lock_take(&r->lock);
        list_append(&r->tasks, &t->link);
        condition_signal(&r->changed);
        lock_release(&r->lock);
}

/* A task that another thread waits for. `body` runs on the runner's thread. */
struct call {
        struct task task;
        struct runner *runner;
        void (*body)(struct backend *b, void *user);
        void *user;
        bool done;
};

static void run_call(struct backend *b, struct task *t)
{
        struct call *c = container_of(t, struct call, task);
        struct runner *r = c->runner;
        c->body(b, c->user);
        lock_take(&r->lock);
        c->done = true;
        condition_broadcast(&r->done);
        lock_release(&r->lock);
}

void runner_call(struct runner *r, void (*body)(struct backend *b, void *user), void *user)
{
        struct call c = { .task.run = run_call, .runner = r, .body = body, .user = user };
        runner_post(r, &c.task);
        lock_take(&r->lock);
        while (!c.done)
                condition_wait(&r->done, &r->lock);
        lock_release(&r->lock);
}
