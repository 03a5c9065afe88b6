#include "backend/almaif/thread.h"

#include "backend/almaif/code.h"
#include "backend/almaif/command.h"
#include "backend/almaif/launch.h"
#include "backend/almaif/memory.h"
#include "backend/almaif/transfer.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/clock.h"

#define LOG "almaif"

enum { SLICE_NS = 10000000, SPIN_ROUND = 64, NAP_MIN_NS = 20000, NAP_MAX_NS = 2000000 };

/* ---- endings -------------------------------------------------------------------------------- */

/* Complete a command and move it to `done`, to be reported without the lock. */
static void end_command(struct command *k, cl_int status, struct list *done) REQUIRES(almaif_held)
{
        struct backend_event *e = k->event;
        struct domain *d = e->domain;
        e->status = status;
        /* Set its signal, for which devices may be waiting, if this host executed the command or
         * the device did not complete it. */
        if (e->signal >= 0) {
                uint64_t at = signal_at(d, e->signal);
                struct window *w = d->memories[0].window;
                if (!e->unit || signal_state(w, at, d->zero) == SIGNAL_PENDING)
                        signal_set(w, at, d->zero, status >= 0);
                signal_unref(d, e->signal);
                e->signal = -1;
        }
        launch_release(k);
        k->times.end_ns = clock_now_ns();
        list_remove(&k->in_queue);
        list_remove(&k->link);
        list_append(done, &k->link);
        if (e->pushed)
                launch_head(e->unit);
}

static struct command *first_ready(struct backend *b) REQUIRES(almaif_held)
{
        list_each(k, &b->host, struct command, link)
        {
                if (command_may_run(k))
                        return k;
        }
        return NULL;
}

/* Follow up the completion of commands: push kernels that waited for them, and report them. The
 * lock is released while they are reported. */
static void report(struct backend *b, struct domain *d, struct list *done) REQUIRES(almaif_held)
{
        launch_pump(d);
        if (b->closing || first_ready(b))
                condition_broadcast(&b->changed);
        struct buf printed = { 0 };
        if (d->unit_count == 1) {
                printed = d->units[0]->code.printed;
                d->units[0]->code.printed = (struct buf){ 0 };
        }
        almaif_unlock(b);
        code_print(&printed);
        list_each(k, done, struct command, link)
        {
                struct backend_times none = { 0 }, times = k->times;
                bool wanted = k->queue->props & CL_QUEUE_PROFILING_ENABLE;
                void *cookie = k->c.cookie;
                cl_int status = k->event->status;
                list_remove(&k->link);
                command_free(k);
                if (cookie)
                        b->complete(b->user, cookie, status, wanted ? &times : &none);
        }
        almaif_lock(b);
}

/* ---- the host's commands -------------------------------------------------------------------- */

static void *run_host(void *arg)
{
        struct backend *b = arg;
        almaif_lock(b);
        while (!b->stop) {
                struct command *k = first_ready(b);
                if (!k) {
                        almaif_wait(b, &b->changed);
                        continue;
                }
                struct list done;
                struct domain *d = k->event->domain;
                cl_int status = k->status ? k->status : launch_dependencies(k);
                list_init(&done);
                k->running = true;
                k->times.start_ns = clock_now_ns();
                almaif_unlock(b);
                if (status == CL_SUCCESS)
                        transfer_run(k);
                almaif_lock(b);
                end_command(k, status, &done);
                report(b, d, &done);
        }
        almaif_unlock(b);
        return NULL;
}

/* ---- a unit's ring -------------------------------------------------------------------------- */

/* Poll the signal, with pauses that grow. */
static void nap(struct unit *u, struct window *signals, uint64_t at) EXCLUDES(almaif_held)
{
        for (uint64_t pause = NAP_MIN_NS; pause <= NAP_MAX_NS; pause *= 2) {
                (void)thread_sleep(pause);
                if (signal_state(signals, at, u->domain->zero) != SIGNAL_PENDING)
                        return;
        }
}

/* Wait until the signal at `at` is not pending, or until it is time to check other work. */
static void wait_signal(struct unit *u, uint64_t at) EXCLUDES(almaif_held)
{
        struct domain *d = u->domain;
        struct window *w = u->accel.window, *signals = d->memories[0].window;
        uint64_t end = clock_now_ns() + u->accel.spec->spin_us * 1000;
        do {
                for (int i = 0; i < SPIN_ROUND; i++)
                        if (signal_state(signals, at, d->zero) != SIGNAL_PENDING)
                                return;
        } while (clock_now_ns() < end);
        if (u->watch.deaf) {
                nap(u, signals, at);
                return;
        }
        uint32_t seen = window_load32(w, u->accel.read_at);
        window_exchange32(w, ALMAIF_HOST_SLEEPS, 1);
        uint64_t begin = clock_now_ns();
        if (signal_state(signals, at, d->zero) != SIGNAL_PENDING)
                return;
        w->ops->wait(w, u->accel.read_at, seen, SLICE_NS);
        /* It was done, and nobody woke us. */
        u->watch.deaf = w->futex && clock_now_ns() - begin >= SLICE_NS &&
                        window_load32(w, ALMAIF_HOST_SLEEPS) == 1 &&
                        signal_state(signals, at, d->zero) != SIGNAL_PENDING;
}

/* Collect the commands that the device has completed. */
static void collect(struct unit *u, struct list *done) REQUIRES(almaif_held)
{
        struct domain *d = u->domain;
        uint64_t room;
        bool any = false;
        while (!list_empty(&u->in_flight)) {
                struct command *k = list_entry(u->in_flight.next, struct command, link);
                enum signal_state s = signal_state(d->memories[0].window,
                                                   signal_at(d, k->event->signal), d->zero);
                if (s == SIGNAL_PENDING)
                        break;
                if (!any)
                        code_take_output(u);
                any = true;
                end_command(k, s == SIGNAL_SUCCESS ? launch_dependencies(k) : CL_OUT_OF_RESOURCES,
                            done);
        }
        if (!any)
                code_take_output(u);
        u->faulty |= accel_room(&u->accel, &room) < 0;
}

/* Has the first command run for too long? Time in which it waits for others does not count. */
static bool timed_out(struct unit *u) REQUIRES(almaif_held)
{
        uint64_t limit = u->accel.spec->timeout_ms * 1000000u;
        if (!limit || list_empty(&u->in_flight))
                return false;
        struct command *k = list_entry(u->in_flight.next, struct command, link);
        if (!k->head_since_ns) {
                for (size_t i = 0; i < k->dep_count; i++)
                        if (!dependency_done(&k->deps[i]))
                                return false;
                k->head_since_ns = clock_now_ns();
                return false;
        }
        return clock_now_ns() - k->head_since_ns > limit;
}

/* Reset the device. The command that it was executing fails; if the reset fails, all commands do.
 * The lock is released during the reset. */
static void recover(struct unit *u, const char *why, struct list *done) REQUIRES(almaif_held)
{
        char error[SPEC_ERROR_SIZE];
        log_warn(LOG, "%s: %s; it is reset", u->accel.spec->text, why);
        u->recovering = true;
        launch_head(u);
        almaif_unlock(u->backend);
        int r = accel_start(&u->accel, error);
        almaif_lock(u->backend);
        u->recovering = u->faulty = false;
        launch_head(u);
        if (!r)
                r = code_again(u);
        if (r < 0) {
                log_error(LOG, "%s; it is not used any more", error);
                u->dead = CL_DEVICE_NOT_AVAILABLE;
        }
        bool first = true;
        list_each(k, &u->in_flight, struct command, link)
        {
                if (u->dead)
                        end_command(k, u->dead, done);
                else if (first)
                        end_command(k, CL_OUT_OF_RESOURCES, done);
                first = false;
        }
        if (!u->dead)
                launch_again(u);
}

/* True if the watcher has nothing to do. It has nothing to do while another thread polls, which
 * wakes it when the device fails. */
static bool is_idle(struct unit *u) REQUIRES(almaif_held)
{
        if (u->faulty)
                return false;
        return list_empty(&u->in_flight) || (u->backend->polling && !timed_out(u));
}

static void *watch_unit(void *arg)
{
        struct unit *u = arg;
        struct backend *b = u->backend;
        almaif_lock(b);
        while (!b->stop) {
                struct list done;
                list_init(&done);
                if (is_idle(u)) {
                        almaif_wait(b, &u->watch.work);
                        continue;
                }
                if (!list_empty(&u->in_flight)) {
                        struct command *k = list_entry(u->in_flight.next, struct command, link);
                        uint64_t at = signal_at(u->domain, k->event->signal);
                        almaif_unlock(b);
                        wait_signal(u, at);
                        almaif_lock(b);
                        collect(u, &done);
                }
                if (u->faulty)
                        recover(u, "its READ_INDEX is one that can't be", &done);
                else if (timed_out(u))
                        recover(u, "it does not answer", &done);
                if (!list_empty(&done) || !list_empty(&u->backlog) || u->code.printed.size)
                        report(b, u->domain, &done);
        }
        almaif_unlock(b);
        return NULL;
}

/* ---- polling -------------------------------------------------------------------------------- */

/* Collect completions as a watcher does, without waiting; the watcher does the slow work. True:
 * something was complete. The lock is released while completions are reported. */
static bool poll_unit(struct unit *u) REQUIRES(almaif_held)
{
        struct domain *d = u->domain;
        struct list done;
        list_init(&done);
        collect(u, &done);
        if (u->faulty || timed_out(u))
                condition_signal(&u->watch.work);
        bool any = !list_empty(&done);
        if (any || !list_empty(&u->backlog) || u->code.printed.size)
                report(u->backend, d, &done);
        return any;
}

/* Does poll_unit have something to do? Polls without the lock, so that other threads get it; a
 * result that is a moment old does no harm. Mostly it polls signals only, because each poll across
 * a bus takes long. */
static enum backend_polled glance(struct backend *b)
{
        enum backend_polled most = BACKEND_IDLE;
        for (unsigned i = 0; i < b->unit_count; i++) {
                struct unit *u = b->units[i];
                uint64_t at = atomic_load(&u->head_at);
                if (at == NO_HEAD)
                        continue;
                struct domain *d = u->domain;
                if (++u->watch.looks % SPIN_ROUND == 0 ||
                    signal_state(d->memories[0].window, at, d->zero) != SIGNAL_PENDING)
                        return BACKEND_REPORTED;
                most = BACKEND_WAITING;
        }
        return most;
}

enum backend_polled threads_poll(struct backend *b, bool last)
{
        enum backend_polled most = BACKEND_IDLE;
        if (b->polling && !last) { /* only the polling thread changes it */
                most = glance(b);
                if (most != BACKEND_REPORTED)
                        return most;
                most = BACKEND_IDLE;
        }
        almaif_lock(b);
        b->polling = !last;
        for (unsigned i = 0; i < b->unit_count; i++) {
                struct unit *u = b->units[i];
                if (list_empty(&u->in_flight) || u->recovering)
                        continue;
                if (last)
                        condition_signal(&u->watch.work);
                else if (poll_unit(u))
                        most = BACKEND_REPORTED;
                else if (most == BACKEND_IDLE)
                        most = BACKEND_WAITING;
        }
        almaif_unlock(b);
        return most;
}

/* ---- starting ------------------------------------------------------------------------------- */

int threads_start(struct domain *d)
{
        struct backend *b = d->backend;
        if (!b->threaded && thread_start_with_signals(&b->thread, run_host, b) < 0)
                return SP_E_NOMEM;
        b->threaded = true;
        for (unsigned i = 0; i < d->unit_count; i++) {
                struct unit *u = d->units[i];
                if (!u->watch.threaded &&
                    thread_start_with_signals(&u->watch.thread, watch_unit, u) < 0)
                        return SP_E_NOMEM;
                u->watch.threaded = true;
        }
        return 0;
}
