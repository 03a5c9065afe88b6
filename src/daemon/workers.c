#include "daemon/workers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/near.h"
#include "daemon/turns.h"
#include "daemon/visitors.h"

enum {
        WARMING_MAX = 4,  /* workers that open their backends at a time */
        CRASHES_TOLD = 3, /* failed starts after which clients are told */
        BACKOFF_MAX_MS = 10000,
        HEAR_BATCH = 64, /* packets of one worker before it is somebody else's turn */
        SHUTDOWN_MS = 5000,
};

static const struct gate_grant grant_usual; /* what one worker is always warm for */

bool grant_is_same(const struct gate_grant *a, const struct gate_grant *b)
{
        return !strcmp(a->devices, b->devices) && !strcmp(a->owner, b->owner);
}

size_t workers_count(const struct supervisor *s, enum worker_state state)
{
        size_t n = 0;
        list_each(w, &s->workers, struct worker, link)
        {
                n += w->state == state && !w->gone;
        }
        return n;
}

struct worker *workers_find(struct supervisor *s, uint64_t hi, uint64_t lo)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == WORKER_BUSY && !w->gone && w->id[0] == hi && w->id[1] == lo)
                        return w;
        }
        return NULL;
}

struct worker *workers_find_free(struct supervisor *s, const struct gate_grant *grant,
                                 enum worker_state state)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == state && !w->gone && grant_is_same(&w->grant, grant))
                        return w;
        }
        return NULL;
}

/* ---- starting ----------------------------------------------------------------------------------- */

static void worker_free(struct worker *w)
{
        list_remove(&w->link);
        if (w->control >= 0)
                close(w->control);
        scratch_remove(w->scratch);
        if (w->scratch_lock >= 0)
                close(w->scratch_lock);
        mem_free(w);
}

/* One whose number is not known sees that nobody waits for it. */
static void worker_kill(const struct worker *w)
{
        if (w->pid)
                kill(w->pid, SIGKILL);
        else
                (void)shutdown(w->control, SHUT_RDWR);
}

/* Nothing that a worker could hand us is wanted, and closing it may take as long as its socket lingers. Kernels before
 * 6.16 let it; then each is closed where it comes in (control.c). */
static void refuse_descriptors(int socket)
{
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
        static const int none = 0;
        (void)setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
}

static int worker_start(struct supervisor *s, const struct gate_grant *grant)
{
        int pair[2];
        struct worker *w = mem_zalloc(sizeof(*w));
        if (!w)
                return SP_E_NOMEM;
        list_init(&w->link);
        w->source.kind = SOURCE_WORKER;
        w->control = w->scratch_lock = -1;
        w->grant = *grant;
        int r = scratch_make(w->scratch, &w->scratch_lock);
        if (!r && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                r = SP_E_LIMIT;
        if (r < 0) {
                worker_free(w);
                return r;
        }
        w->control = pair[0];
        refuse_descriptors(w->control);
        r = spawn_worker(&s->spawner, w->scratch, grant, pair[1], &w->pid);
        close(pair[1]);
        if (!r && supervisor_watch(s, w->control, w) < 0) {
                worker_kill(w);
                r = SP_E_LIMIT;
        }
        if (r < 0) {
                worker_free(w);
                return r;
        }
        list_append(&s->workers, &w->link);
        if (w->pid)
                log_debug(LOG, "worker %d started", (int)w->pid);
        return 0;
}

/* A start failed: try again later, more and more rarely. */
static void back_off(struct supervisor *s, const char *why)
{
        uint64_t ms = 100ull << (s->crashes < 7 ? s->crashes : 7);
        s->crashes++;
        s->spawn_ns = clock_now_ns() + (ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS) * MS;
        if (s->crashes >= CRASHES_TOLD)
                visitors_refuse_waiting(s, NULL, SP_E_NODEV, why);
}

/* Start a worker. False: it failed, and is tried again later. */
static bool provide_one(struct supervisor *s, const struct gate_grant *grant)
{
        int r = worker_start(s, grant);
        if (!r)
                return true;
        log_error(LOG, "a worker can't be started: %s", status_text(r));
        back_off(s, "this server can't start a process for the session; see its log");
        return false;
}

void workers_provide(struct supervisor *s)
{
        if (s->stopping || s->spawner.loading || clock_now_ns() < s->spawn_ns)
                return;
        size_t warming = workers_count(s, WORKER_WARMING), waiting = 0;
        s->spawn_ns = UINT64_MAX;
        list_each(v, &s->waiting, struct visitor, link)
        {
                if (grant_is_same(&v->grant, &grant_usual))
                        waiting++;
                else if (warming < WARMING_MAX &&
                         !workers_find_free(s, &v->grant, WORKER_WARMING) &&
                         !provide_one(s, &v->grant))
                        return;
        }
        size_t wanted = waiting ? waiting : 1;
        if (!waiting && workers_find_free(s, &grant_usual, WORKER_WARM))
                wanted = 0;
        if (wanted > WARMING_MAX)
                wanted = WARMING_MAX;
        for (warming = workers_count(s, WORKER_WARMING); warming < wanted; warming++)
                if (!provide_one(s, &grant_usual))
                        return;
}

void workers_provide_at(struct supervisor *s, uint64_t ns)
{
        if (ns < s->spawn_ns)
                s->spawn_ns = ns;
        if (!s->crashes && s->waiting_count)
                s->spawn_ns = 0;
}

/* ---- ends --------------------------------------------------------------------------------------- */

static void worker_ended(struct supervisor *s, struct worker *w, int status)
{
        bool crashed = !WIFEXITED(status) || WEXITSTATUS(status);
        char how[64];
        if (WIFSIGNALED(status))
                snprintf(how, sizeof(how), "by signal %d", WTERMSIG(status));
        else
                snprintf(how, sizeof(how), "with status %d", WEXITSTATUS(status));
        if (s->stopping || w->told || (!crashed && w->state == WORKER_BUSY)) {
                log_debug(LOG, "worker %d ended %s", (int)w->pid, how);
        } else if (w->state == WORKER_BUSY && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
                /* By its own alarm, when the session had ended. */
                log_warn(LOG,
                         "worker %d is ended: a command of its session, which is over, goes on",
                         (int)w->pid);
        } else if (w->state == WORKER_BUSY) {
                log_error(LOG, "worker %d ended %s; its session is lost", (int)w->pid, how);
        } else {
                log_error(LOG, "worker %d ended %s before it had a session", (int)w->pid, how);
                back_off(s, "an OpenCL driver of this server fails while it is loaded; see "
                            "spancld's log");
        }
        worker_free(w);
        turns_share(s);
}

void worker_hear(struct supervisor *s, struct worker *w)
{
        static struct control c;
        int r = SP_E_AGAIN;
        for (int i = 0; i < HEAR_BATCH && !(r = control_receive(w->control, &c)); i++) {
                if (c.fd >= 0)
                        close(c.fd);
                if (c.kind == CONTROL_STATS)
                        visitors_pass_on(s, w, &c);
                if (c.kind == CONTROL_NEAR)
                        near_answer(w->control, &c);
                if (c.kind == CONTROL_PID && !w->pid) {
                        w->pid = (pid_t)strtol((const char *)c.data, NULL, 10);
                        log_debug(LOG, "worker %d was forked", (int)w->pid);
                        turns_share(s);
                }
                if (w->state != WORKER_WARMING)
                        continue;
                if (c.kind == CONTROL_READY) {
                        log_info(LOG, "worker %d is ready, %s device(s)", (int)w->pid,
                                 (const char *)c.data);
                        w->state = WORKER_WARM;
                        s->crashes = 0;
                        visitors_serve_waiting(s);
                } else if (c.kind == CONTROL_FAILED) {
                        log_warn(LOG, "%s", (const char *)c.data);
                        w->told = w->gone = true;
                        s->crashes = 0;
                        visitors_refuse_waiting(s, &w->grant, SP_E_NODEV, (const char *)c.data);
                }
        }
        if (r != SP_E_LINK)
                return;
        w->gone = true;
        supervisor_unwatch(s, w->control);
}

void workers_forget_unborn(struct supervisor *s)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->gone && !w->pid)
                        worker_ended(s, w, W_EXITCODE(1, 0));
        }
}

void workers_reap(struct supervisor *s)
{
        int status;
        pid_t pid;
        list_each(w, &s->workers, struct worker, link)
        {
                if (!w->pid)
                        worker_hear(s, w); /* its number: it may be among those */
        }
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                if (pid == s->spawner.zygote_pid)
                        s->spawner.zygote_pid = 0;
                list_each(w, &s->workers, struct worker, link)
                {
                        if (w->pid == pid)
                                worker_ended(s, w, status);
                }
        }
}

void workers_stop(struct supervisor *s, void (*run)(struct supervisor *s, int timeout_ms))
{
        static const char text[] = "the server is being shut down";
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == WORKER_WARMING ||
                    control_send(w->control, CONTROL_STOP, bytes_str(text), -1) < 0)
                        worker_kill(w);
        }
        uint64_t deadline = clock_now_ns() + SHUTDOWN_MS * MS;
        while (!list_empty(&s->workers) && clock_now_ns() < deadline)
                run(s, clock_poll_ms(deadline));
        list_each(w, &s->workers, struct worker, link)
        {
                log_warn(LOG, "worker %d did not end in time", (int)w->pid);
                worker_kill(w);
                if (w->pid)
                        waitpid(w->pid, NULL, 0);
                worker_free(w);
        }
}
