#include "daemon/supervisor/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/pace.h"
#include "daemon/control.h"
#include "daemon/supervisor/accounts.h"
#include "daemon/supervisor/advertising.h"
#include "daemon/supervisor/audit.h"
#include "daemon/supervisor/describing.h"
#include "daemon/supervisor/energy.h"
#include "daemon/supervisor/exporting.h"
#include "daemon/supervisor/health.h"
#include "daemon/supervisor/introduce.h"
#include "daemon/supervisor/metering.h"
#include "daemon/supervisor/pending.h"
#include "daemon/supervisor/reserving.h"
#include "daemon/supervisor/sensing.h"
#include "daemon/system/orphans.h"
#include "daemon/system/time_slice.h"
#include "daemon/system/usage.h"
#include "daemon/worker/worker.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/file_info.h"
#include "os/net/socket.h"
#include "os/passing.h"

enum {
        WARMING_MAX = 4,  /* workers that open their backends at a time */
        CRASHES_TOLD = 3, /* failed starts after which clients get an error */
        BACKOFF_MAX_MS = 10000,
        HEAR_RATE = 500,  /* packets of one worker in a second */
        HEAR_BURST_S = 4, /* seconds' worth at once; then there is a pause */
        HEAR_PAUSE_MS = 50,
        READ_BATCH = 64, /* packets of one worker before other sources get a turn */
        /* The same for ended processes: the supervisor adopts those that a session leaves. */
        REAP_BATCH = 64,
        SHUTDOWN_MS = 5000,
        KILL_MS = 2000, /* until a process is dead */
        /* A client that lost its patience may come back and find its worker ready. */
        UNCLAIMED_MS = 5000,
        TRIM_S = 60, /* between trims of running sessions' caches */
};

/* Return the rights of clients without any of their own. One worker with these is always warm. */
static const struct gate_grant *usual(const struct supervisor *s)
{
        static struct gate_grant grant;
        reserving_apply(s, &grant);
        return &grant;
}

bool grant_is_same(const struct gate_grant *a, const struct gate_grant *b)
{
        return !strcmp(a->devices, b->devices) && !strcmp(a->owner, b->owner) &&
               !strcmp(a->reserved, b->reserved);
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

/* Return the worker's name for the log. */
static const char *name_of(const struct worker *w)
{
        static char name[32];
        snprintf(name, sizeof(name), "worker %d", (int)w->pid);
        return name;
}

/* Return true if other sessions use the caches of this worker. */
static bool shares_caches(const struct supervisor *s, const struct worker *worker)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w != worker && w->state == WORKER_BUSY &&
                    !strcmp(w->grant.owner, worker->grant.owner))
                        return true;
        }
        return false;
}

/* Free a worker. Also ends all processes that it has started, and removes its files. */
static void worker_free(struct supervisor *s, struct worker *w)
{
        list_remove(&w->link);
        pending_worker_ended(s, w);
        accounts_end(s, w, 0);
        energy_drop(w);
        child_log_close(&w->log, name_of(w), clock_now_ns());
        if (w->control >= 0)
                (void)file_close(w->control);
        if (w->refusals.fd >= 0)
                (void)file_close(w->refusals.fd);
        cgroup_end(&s->cgroups, w->group);
        describing_drop_parts(w);
        janitor_add(&s->janitor, w->scratch, w->scratch_lock, w->grant.owner, shares_caches(s, w));
        mem_free(w);
}

/* Kill a worker. If its number is not known, it ends when it finds its socket closed. */
static void worker_kill(const struct worker *w)
{
        if (w->pid)
                process_kill(w->pid);
        else
                socket_shut(w->control);
}

/* Move a worker into its control group, once its number is known and before it has a client. */
static int worker_confine(struct supervisor *s, struct worker *w)
{
        int r = cgroup_add(&s->cgroups, w->group, w->pid);
        if (r == SP_E_LIMIT) {
                spare_give(&s->spare);
                r = cgroup_add(&s->cgroups, w->group, w->pid);
                (void)spare_fill(&s->spare); /* or with the next connection */
        }
        if (r < 0)
                worker_kill(w);
        return r;
}

/* Start a worker. `state`: WORKER_WARMING, or WORKER_CHECKING of the device `checks`. */
static int worker_start(struct supervisor *s, const struct gate_grant *grant,
                        enum worker_state state, unsigned checks)
{
        int pair[2] = { -1, -1 }, log = -1;
        struct file_info end;
        struct worker *w = mem_zalloc(sizeof(*w));
        if (!w)
                return SP_E_NOMEM;
        list_init(&w->link);
        w->source.kind = SOURCE_WORKER;
        w->log_source.kind = SOURCE_WORKER_LOG;
        w->calls_source.kind = SOURCE_CALLS;
        w->control = w->scratch_lock = w->log.fd = w->refusals.fd = -1;
        w->grant = *grant;
        w->state = state;
        w->devices.checks = checks;
        if (state == WORKER_CHECKING)
                snprintf(w->devices.filter, sizeof(w->devices.filter), "%u", checks);
        else
                health_filter(s, grant, w->devices.filter);
        int r = scratch_make(w->scratch, &w->scratch_lock);
        if (!r)
                r = cgroup_make(&s->cgroups, &w->group);
        if (!r && !socket_pair_packets(pair))
                r = SP_E_LIMIT;
        w->control = pair[0];
        w->control_inode = !r && file_info_of(pair[1], &end) ? end.number : 0;
        if (!r && state == WORKER_CHECKING)
                r = control_send(w->control, CONTROL_CHECK, bytes_str(""), -1);
        if (!r)
                r = child_log_open(&w->log, &s->spawner.log_budget, &log);
        if (!r) {
                r = spawn_worker(&s->spawner, w->scratch, w->devices.filter, grant->owner, w->group,
                                 pair[1], log, &w->pid);
                (void)file_close(log);
        }
        if (pair[1] >= 0)
                (void)file_close(pair[1]);
        if (!r && (supervisor_watch(s, w->control, w) < 0 ||
                   supervisor_watch(s, w->log.fd, &w->log_source) < 0)) {
                worker_kill(w);
                r = SP_E_LIMIT;
        }
        if (r < 0) {
                worker_free(s, w);
                return r;
        }
        w->ready_by_ns = clock_now_ns() + s->starts.limit_s * 1000ull * MS;
        list_append(&s->workers, &w->link);
        if (state != WORKER_CHECKING)
                introduce(s, w);
        return 0;
}

int worker_check(struct supervisor *s, unsigned device)
{
        return worker_start(s, usual(s), WORKER_CHECKING, device);
}

/* A start failed: try again later, with growing delays. */
static void back_off(struct supervisor *s, const char *why)
{
        uint64_t ms = 100ull << (s->starts.crashes < 7 ? s->starts.crashes : 7);
        s->starts.crashes++;
        s->starts.next_ns = clock_now_ns() + (ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS) * MS;
        if (s->starts.crashes >= CRASHES_TOLD)
                pending_refuse_waiting(s, NULL, SP_E_NODEV, why);
}

/* Start a worker. False: it failed, and is tried again later. */
static bool provide_one(struct supervisor *s, const struct gate_grant *grant)
{
        int r = worker_start(s, grant, WORKER_WARMING, 0);
        if (r == SP_E_LIMIT) {
                spare_give(&s->spare);
                r = worker_start(s, grant, WORKER_WARMING, 0);
                (void)spare_fill(&s->spare); /* or with the next connection */
        }
        if (!r)
                return true;
        log_error(
                LOG,
                "a worker can't be started: %s; spancld may have %llu descriptors (ulimit -n, LimitNOFILE=)",
                status_text(r), (unsigned long long)process_files_max());
        back_off(s, "this server can't start a process for the session; see its log");
        return false;
}

/* Count the warming workers for clients without any rights of their own. */
static size_t count_warming_usual(const struct supervisor *s)
{
        const struct gate_grant *grant = usual(s);
        size_t n = 0;
        list_each(w, &s->workers, struct worker, link)
        {
                n += w->state == WORKER_WARMING && !w->gone && grant_is_same(&w->grant, grant);
        }
        return n;
}

void workers_provide(struct supervisor *s)
{
        if (s->end.draining)
                s->starts.next_ns = UINT64_MAX;
        if (s->end.stopping || s->end.draining || s->spawner.loading ||
            clock_now_ns() < s->starts.next_ns)
                return;
        size_t warming = workers_count(s, WORKER_WARMING), waiting = 0;
        bool lists = false;
        s->starts.next_ns = UINT64_MAX;
        list_each(v, &s->arrivals.waiting.all, struct pending, link)
        {
                if (health_holds(s)) /* new sessions may not get a warm worker yet */
                        break;
                reserving_apply(s, &v->grant);
                if (grant_is_same(&v->grant, usual(s))) {
                        waiting += !v->lists;
                        lists |= v->lists;
                } else if (warming < WARMING_MAX &&
                           !workers_find_free(s, &v->grant, WORKER_WARMING) &&
                           !provide_one(s, &v->grant))
                        return;
        }
        waiting = waiting ? waiting : lists; /* one worker describes the devices for all */
        size_t wanted = waiting ? waiting : 1;
        if (!waiting && workers_find_free(s, usual(s), WORKER_WARM))
                wanted = 0;
        if (wanted > WARMING_MAX)
                wanted = WARMING_MAX;
        for (warming = count_warming_usual(s); warming < wanted; warming++)
                if (!provide_one(s, usual(s)))
                        return;
}

void workers_provide_at(struct supervisor *s, uint64_t ns)
{
        if (ns < s->starts.next_ns)
                s->starts.next_ns = ns;
        if (!s->starts.crashes && s->arrivals.waiting.count)
                s->starts.next_ns = 0;
}

void workers_announce_drain(struct supervisor *s)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == WORKER_BUSY && !w->gone &&
                    control_send(w->control, CONTROL_DRAIN, bytes_str(""), -1) < 0)
                        log_warn(LOG, "worker %d can't tell its client that spancld drains",
                                 (int)w->pid);
        }
}

/* ---- ends --------------------------------------------------------------------------------------- */

const char *workers_why_ended(const struct supervisor *s, uint64_t hi, uint64_t lo)
{
        for (size_t i = 0; i < array_size(s->ended.ring); i++)
                if (s->ended.ring[i].why && s->ended.ring[i].id[0] == hi &&
                    s->ended.ring[i].id[1] == lo)
                        return s->ended.ring[i].why;
        return NULL;
}

/* Record why a session ended, for a client that reconnects. */
static void note_end(struct supervisor *s, const struct worker *w, const char *why)
{
        s->ended.ring[s->ended.count++ % ENDED_MAX] = (struct ended){ { w->id[0], w->id[1] }, why };
}

/* Return true if the worker ended for lack of memory. The kernel then ends all of its processes. */
static bool ran_out(struct supervisor *s, const struct worker *w)
{
        static const char over[] = "it took more memory than this server permits "
                                   "(--session-memory), and was ended";
        static const char full[] = "this server's host has run out of memory, and ended it";
        enum cgroup_end end = cgroup_end_of(&s->cgroups, w->group);
        if (end == CGROUP_ALIVE || w->state != WORKER_BUSY)
                return false;
        const char *why = end == CGROUP_OVER_LIMIT ? over : full;
        note_end(s, w, why);
        log_error(LOG, "the session of worker %d is over: %s", (int)w->pid, why);
        return true;
}

/* End a worker that reports a driver's call that never returns. The session ends, even if the
 * report is false. */
static void worker_stuck(struct supervisor *s, struct worker *w)
{
        log_error(LOG,
                  "worker %d is ended: a call of a driver does not return (--session-run-time)",
                  (int)w->pid);
        note_end(s, w,
                 "a command of it ran for longer than this server allows, in a driver that hangs");
        w->stuck = true;
        worker_dismiss(s, w);
}

void worker_over(struct supervisor *s, struct worker *w, const char *why)
{
        log_error(LOG, "the session of worker %d is over: %s", (int)w->pid, why);
        note_end(s, w, why);
        w->over = true;
        worker_dismiss(s, w);
}

static void worker_ended(struct supervisor *s, struct worker *w, int status,
                         const struct process_usage *used)
{
        bool overdue = WIFEXITED(status) && WEXITSTATUS(status) == WORKER_OVERDUE;
        bool unclean =
                w->stuck || overdue || !WIFEXITED(status) || WEXITSTATUS(status) == WORKER_UNCLEAN;
        bool busy = w->state == WORKER_BUSY;
        bool crashed = !WIFEXITED(status) ||
                       (WEXITSTATUS(status) && !(busy && WEXITSTATUS(status) == WORKER_UNCLEAN));
        char how[64];
        child_log_close(&w->log, name_of(w),
                        clock_now_ns()); /* first, the log that it wrote before its end */
        if (WIFSIGNALED(status))
                snprintf(how, sizeof(how), "by signal %d", WTERMSIG(status));
        else
                snprintf(how, sizeof(how), "with status %d", WEXITSTATUS(status));
        if ((w->over && process_was_killed(status)) ||
            (!s->end.stopping && WIFSIGNALED(status) && ran_out(s, w))) {
                unclean = false; /* The log says so. */
        } else if (w->state == WORKER_CHECKING) {
                health_ended(s, w, how);
        } else if (s->end.stopping || w->reported || (!crashed && w->state == WORKER_BUSY)) {
                log_debug(LOG, "worker %d ended %s", (int)w->pid, how);
        } else if (w->state == WORKER_BUSY && overdue) {
                log_warn(LOG,
                         "worker %d is ended: a command of its session, which is over, goes on",
                         (int)w->pid);
        } else if (w->state == WORKER_BUSY) {
                log_error(LOG, "worker %d ended %s; its session is lost", (int)w->pid, how);
        } else {
                log_error(LOG, "worker %d ended %s before it had a session", (int)w->pid, how);
                back_off(s, "an OpenCL driver of this server fails while it is loaded; see "
                            "spancld's log");
                health_doubt(s);
        }
        if (busy)
                audit_end(s, w, used, workers_why_ended(s, w->id[0], w->id[1]), how);
        accounts_end(s, w, (uint64_t)(used->cpu_s * 1e9));
        /* A session was over before its worker became overdue, unless the supervisor ended it. */
        bool lost = w->over || w->stuck || (!overdue && (unclean || crashed));
        s->counts.lost += busy && !s->end.stopping && lost;
        worker_free(s, w);
        if (!busy)
                workers_provide_at(s, UINT64_MAX); /* some may wait because it was warming */
        if (busy && !s->end.stopping)
                health_session_ended(s);
        if (busy && unclean && !s->end.stopping)
                health_doubt(s);
        time_slices_share(s);
}

/* Take the number that a worker sends before it runs a client's code. */
static void is_born(struct supervisor *s, struct worker *w, const char *text)
{
        char *end;
        pid_t pid = (pid_t)strtol(text, &end, 10);
        /* A worker could otherwise have the supervisor kill any process. */
        if (!process_is_child(pid))
                return;
        w->pid = pid;
        log_debug(LOG, "worker %d was forked", (int)w->pid);
        int error = (int)strtol(end, NULL, 10);
        if (error && !s->namespaces_reported)
                log_warn(
                        LOG,
                        "sessions see this host's processes and network interfaces: they have no namespaces of their "
                        "own (%s); docs/SECURITY.md says what that takes",
                        strerror(error));
        s->namespaces_reported = error != 0;
        if (worker_confine(s, w) < 0)
                w->gone = true;
        time_slices_share(s);
}

/* Count a packet. False: the worker sends too many. */
static bool may_speak(struct worker *w, uint64_t now_ns)
{
        const uint64_t second = 1000 * MS;
        w->hearing.due_ns = pace_after(w->hearing.due_ns, second / HEAR_RATE, now_ns);
        return w->hearing.due_ns <= now_ns + HEAR_BURST_S * second;
}

/* Take the filter's descriptor. This is safe once, because the worker has not run a client's code
 * yet. */
static void shut_in(struct supervisor *s, struct worker *w, struct control *c)
{
        w->shut_in = true;
        passing_refuse(w->control);
        if (c->fd < 0 || supervisor_watch(s, c->fd, &w->calls_source) < 0)
                return;
        w->refusals.fd = c->fd;
        c->fd = -1;
}

/* Return true if the worker's descriptors can be inspected. */
static bool is_open(pid_t pid)
{
        int folder = usage_folder(pid);
        bool open = folder >= 0 && usage_can_inspect(folder);
        if (folder >= 0)
                (void)file_close(folder);
        return open;
}

void worker_read(struct supervisor *s, struct worker *w)
{
        static struct control c;
        int r = SP_E_AGAIN;
        uint64_t now = clock_now_ns();
        for (int i = 0;
             i < READ_BATCH && !w->hearing.again_ns && !(r = control_receive(w->control, &c));
             i++) {
                bool new = w->state == WORKER_WARMING || w->state == WORKER_CHECKING;
                if (c.kind == CONTROL_CALLS && new && !w->shut_in)
                        shut_in(s, w, &c);
                control_drop(&c);
                if (!may_speak(w, now)) {
                        w->hearing.again_ns = now + HEAR_PAUSE_MS * MS;
                        supervisor_unwatch(s, w->control);
                }
                if (c.kind == CONTROL_STATS)
                        pending_pass_on(s, w, &c);
                if (c.kind == CONTROL_PID && !w->pid)
                        is_born(s, w, (const char *)c.data);
                if (w->gone)
                        continue;
                if (w->state == WORKER_CHECKING)
                        health_receive(s, w, &c);
                if (w->state == WORKER_BUSY && c.kind == CONTROL_USE)
                        energy_receive(s, w, &c);
                if (w->state == WORKER_BUSY && c.kind == CONTROL_ENDED)
                        audit_receive(w, &c);
                if (w->state == WORKER_BUSY && c.kind == CONTROL_STUCK)
                        worker_stuck(s, w);
                if (w->state != WORKER_WARMING)
                        continue;
                if (c.kind == CONTROL_DEVICES)
                        describing_receive(w, &c);
                if (c.kind == CONTROL_READY) {
                        char *end;
                        unsigned long count = strtoul((const char *)c.data, &end, 10);
                        log_info(LOG, "worker %d is ready, %lu device(s)", (int)w->pid, count);
                        w->state = WORKER_WARM;
                        w->ready_by_ns = grant_is_same(&w->grant, usual(s))
                                                 ? UINT64_MAX
                                                 : now + UNCLAIMED_MS * MS;
                        w->open = is_open(w->pid); /* before it has a client */
                        health_learn(s, (const char *)c.data);
                        describing_learn(s, w, *end == ' ' ? strtoul(end, NULL, 10) : 0);
                        s->starts.crashes = 0;
                        pending_serve_waiting(s);
                        workers_provide_at(s, UINT64_MAX); /* at once, if some still wait */
                } else if (c.kind == CONTROL_FAILED) {
                        const char *excuse = health_excuse(s);
                        if (!excuse)
                                excuse = reserving_excuse(s, &w->grant);
                        if (*w->grant.reserved)
                                log_info(LOG, "worker %d: %s", (int)w->pid,
                                         excuse ? excuse : (const char *)c.data);
                        else
                                log_warn(LOG, "worker %d: %s", (int)w->pid, (const char *)c.data);
                        w->reported = w->gone = true;
                        s->starts.crashes = 0;
                        if (!excuse && *w->grant.devices)
                                excuse = "this server lets this client use none of its devices";
                        pending_refuse_waiting(s, &w->grant, SP_E_NODEV,
                                               excuse ? excuse : (const char *)c.data);
                }
        }
        if (r != SP_E_LINK)
                return;
        /* An honest worker is about to end. A dishonest one must not go on uncounted by
         * --sessions. */
        w->gone = true;
        supervisor_unwatch(s, w->control);
        worker_kill(w);
}

void worker_read_log(struct supervisor *s, struct worker *w)
{
        if (!w->pid)
                worker_read(s, w);
        bool more = child_log_read(&w->log, name_of(w), clock_now_ns());
        if (!more || w->log.resume_ns)
                supervisor_unwatch(s, w->log.fd);
}

void workers_retire(struct supervisor *s)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if ((w->state == WORKER_WARM || w->state == WORKER_WARMING) && !w->gone)
                        worker_dismiss(s, w);
        }
        s->starts.next_ns = 0;
}

void worker_dismiss(struct supervisor *s, struct worker *w)
{
        w->reported = w->gone = true; /* no signal may be able to end it */
        supervisor_unwatch(s, w->control);
        worker_kill(w);
}

/* End a worker that is not ready in time: a driver hangs, or the zygote. */
static void give_up(struct supervisor *s, struct worker *w)
{
        log_error(LOG, "%s did not open the devices in %u s (--start-time): a driver hangs",
                  name_of(w), s->starts.limit_s);
        if (!w->pid)
                spawner_give_up(&s->spawner);
        worker_dismiss(s, w);
        back_off(s, "an OpenCL driver of this server hangs while it is loaded; see spancld's log");
        health_doubt(s);
}

/* End a warm worker whose client went away before it was ready. Perhaps no other client ever has the
 * same rights, and the worker would stay for ever. */
static void dismiss_unclaimed(struct supervisor *s, struct worker *w, uint64_t now_ns)
{
        w->ready_by_ns = now_ns + UNCLAIMED_MS * MS;
        list_each(v, &s->arrivals.waiting.all, struct pending, link)
        {
                if (grant_is_same(&w->grant, &v->grant))
                        return;
        }
        log_info(LOG, "worker %d is ended: its client went away", (int)w->pid);
        worker_dismiss(s, w);
}

void workers_expire(struct supervisor *s, uint64_t now_ns)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->log.resume_ns && w->log.resume_ns <= now_ns) {
                        w->log.resume_ns = 0;
                        (void)supervisor_watch(s, w->log.fd, &w->log_source);
                }
                if (w->hearing.again_ns && w->hearing.again_ns <= now_ns) {
                        w->hearing.again_ns = 0;
                        if (!w->gone)
                                (void)supervisor_watch(s, w->control, w);
                }
                if (w->gone || w->ready_by_ns > now_ns)
                        continue;
                if (w->state == WORKER_WARMING)
                        give_up(s, w);
                else if (w->state == WORKER_CHECKING)
                        health_give_up(s, w);
                else if (w->state == WORKER_WARM)
                        dismiss_unclaimed(s, w, now_ns);
        }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
        return b && b < a ? b : a;
}

uint64_t workers_deadline(const struct supervisor *s)
{
        uint64_t d = UINT64_MAX;
        list_each(w, &s->workers, struct worker, link)
        {
                d = earlier(earlier(d, w->log.resume_ns), w->hearing.again_ns);
                if (w->state != WORKER_BUSY && !w->gone)
                        d = earlier(d, w->ready_by_ns);
        }
        return d;
}

void workers_forget_unborn(struct supervisor *s)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->gone && !w->pid)
                        worker_ended(s, w, W_EXITCODE(1, 0), &(struct process_usage){ 0 });
        }
}

bool workers_reap(struct supervisor *s)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (!w->pid)
                        worker_read(s, w); /* its number may be among the ended ones */
        }
        bool more = true;
        for (int i = 0; i < REAP_BATCH && more; i++) {
                int status;
                /* First read the worker's last messages, while its number can't be reused. */
                pid_t pid = process_ended();
                more = pid != 0;
                if (!more)
                        break;
                list_each(w, &s->workers, struct worker, link)
                {
                        if (w->pid == pid && !w->gone)
                                worker_read(s, w);
                }
                struct process_usage used;
                process_collect(pid, &status, &used);
                if (dialler_ended(s, pid, status) || streams_ended(s, pid, status) ||
                    allocator_ended(s, pid) || meter_ended(s, pid) || sensors_ended(s, pid) ||
                    exporter_ended(s, pid) || advertiser_ended(s, pid))
                        continue;
                if (pid == s->spawner.zygote_pid)
                        s->spawner.zygote_pid = 0;
                if (janitor_ended(&s->janitor, pid))
                        continue;
                list_each(w, &s->workers, struct worker, link)
                {
                        if (w->pid == pid)
                                worker_ended(s, w, status, &used);
                }
        }
        (void)orphans_end(s);
        cgroups_reap(&s->cgroups);
        return more;
}

void workers_trim(struct supervisor *s, uint64_t now_ns)
{
        if (!workers_count(s, WORKER_BUSY))
                s->trim_ns = UINT64_MAX;
        else if (s->trim_ns == UINT64_MAX)
                s->trim_ns = now_ns + TRIM_S * 1000 * MS;
        if (now_ns < s->trim_ns)
                return;
        s->trim_ns = now_ns + TRIM_S * 1000 * MS;
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == WORKER_BUSY)
                        janitor_add(&s->janitor, "", -1, w->grant.owner, true);
        }
}

void workers_stop(struct supervisor *s, void (*run)(struct supervisor *s, int timeout_ms))
{
        static const char text[] = "the server is being shut down";
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == WORKER_WARMING || w->state == WORKER_CHECKING ||
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
        }
        /* A process that hangs in a driver does not even end by SIGKILL. */
        deadline = clock_now_ns() + KILL_MS * MS;
        while (!list_empty(&s->workers) && clock_now_ns() < deadline)
                run(s, clock_poll_ms(deadline));
        list_each(w, &s->workers, struct worker, link)
        {
                log_error(LOG, "worker %d can't be killed: the kernel, or a driver of it, hangs",
                          (int)w->pid);
                worker_free(s, w);
        }
        while (orphans_end(s) && clock_now_ns() < deadline + SHUTDOWN_MS * MS)
                run(s, 1);
}
