#include "daemon/supervisor/metering.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/control.h"
#include "daemon/supervisor/accounts.h"
#include "daemon/supervisor/workers.h"
#include "daemon/system/usage.h"
#include "daemon/upkeep/meter.h"
#include "loop/arena.h"
#include "os/clock.h"
#include "os/file.h"

enum { AGAIN_MS = 1000, READ_BATCH = 64 };

static bool is_measured(const struct worker *w)
{
        return w->state == WORKER_BUSY && !w->gone;
}

/* Return true if clients may share memory with their workers. */
static bool shares_memory(const struct supervisor *s)
{
        return s->listeners.local && config_option_number(s->options, CONFIG_share);
}

/* Return a session's memory limit. The bounce buffer for data in transit comes on top. */
static uint64_t memory_max(const struct supervisor *s)
{
        uint64_t bytes = s->cgroups.memory ? 0 : s->cgroups.memory_bytes;
        return bytes && shares_memory(s) ? bytes + ARENA_BOUNCE : bytes;
}

static uint64_t tasks_max(const struct supervisor *s)
{
        return s->cgroups.pids ? 0 : s->cgroups.process_count;
}

/* Return true if there is a session, and a limit that only the meter can keep. */
static bool is_wanted(const struct supervisor *s)
{
        return !s->end.stopping && workers_count(s, WORKER_BUSY) &&
               (memory_max(s) || tasks_max(s) ||
                config_option_number(s->options, CONFIG_session_disk));
}

/* End the meter, if there is one. */
static void forget(struct supervisor *s, unsigned again_ms)
{
        helper_gone(s, &s->meter.process, again_ms);
        list_each(w, &s->workers, struct worker, link)
        {
                w->measured = 0;
        }
}

static int start(struct supervisor *s)
{
        static char word[] = "--meter";
        char memory[24], tasks[24];
        snprintf(memory, sizeof(memory), "%llu", (unsigned long long)memory_max(s));
        snprintf(tasks, sizeof(tasks), "%llu", (unsigned long long)tasks_max(s));
        return helper_start(s, &s->meter.process, (char *[]){ word, memory, tasks, NULL });
}

/* Send a session to the meter. False: try again later. */
static bool send_worker(struct supervisor *s, struct worker *w)
{
        char text[96 + SCRATCH_PATH_MAX + sizeof(w->grant.owner)];
        /* The process number stays the worker's until the supervisor has waited for it. */
        int folder = usage_folder(w->pid);
        if (folder < 0)
                return false;
        uint64_t number = ++s->meter.last;
        size_t n = (size_t)snprintf(text, sizeof(text), "%llu %d %d %llu %llu",
                                    (unsigned long long)number, (int)w->pid, w->open,
                                    (unsigned long long)w->control_inode,
                                    (unsigned long long)accounts_cache_bytes(s, &w->grant)) +
                   1;
        n = (size_t)(stpcpy(text + n, w->scratch) - text) + 1;
        n = (size_t)(stpcpy(text + n, w->grant.owner) - text) + 1;
        int r = control_send(s->meter.process.control, CONTROL_MEASURE, bytes_of(text, n), folder);
        (void)file_close(folder);
        if (!r)
                w->measured = number;
        return !r;
}

void meter_provide(struct supervisor *s)
{
        struct helper *meter = &s->meter.process;
        if (!is_wanted(s)) {
                forget(s, 0);
                return;
        }
        if (clock_now_ns() < meter->again_ns)
                return;
        meter->again_ns = 0;
        int r = meter->pid ? 0 : start(s);
        bool all = !r;
        list_each(w, &s->workers, struct worker, link)
        {
                if (all && is_measured(w) && !w->measured)
                        all = send_worker(s, w);
        }
        if (r < 0) {
                log_error(LOG, "the meter can't be started: %s", status_text(r));
                forget(s, 0);
        }
        if (!all)
                meter->again_ns = clock_now_ns() + AGAIN_MS * MS;
}

uint64_t meter_deadline(const struct supervisor *s)
{
        uint64_t again_ns = s->meter.process.again_ns;
        return again_ns && is_wanted(s) ? again_ns : UINT64_MAX;
}

static const char *why(enum meter_verdict verdict)
{
        switch (verdict) {
        case METER_MEMORY:
                return "it took more memory than this server permits (--session-memory), and was "
                       "ended";
        case METER_TASKS:
                return "it had more processes and threads than this server permits "
                       "(--session-processes), and was ended";
        case METER_DISK:
                return "its files took more of this server's disk than it may have "
                       "(--session-disk), and it was ended";
        case METER_FILES:
                return "it had more open files or mappings than this server permits, and was ended";
        case METER_HIDDEN:
                return "it kept this server from measuring what it holds, and was ended";
        case METER_CACHE:
                break;
        }
        return NULL;
}

void meter_read(struct supervisor *s)
{
        static struct control c; /* static because it is large */
        int r = SP_E_AGAIN;
        for (int i = 0; i < READ_BATCH && s->meter.process.control >= 0 &&
                        !(r = control_receive(s->meter.process.control, &c));
             i++) {
                char *rest;
                control_drop(&c);
                if (c.kind != CONTROL_OVER)
                        continue;
                uint64_t number = strtoull((const char *)c.data, &rest, 10);
                enum meter_verdict verdict = *rest == ' ' ? (enum meter_verdict)rest[1] : 0;
                list_each(w, &s->workers, struct worker, link)
                {
                        if (!number || w->measured != number || !is_measured(w))
                                continue;
                        /* Without grace for new files, though sessions that share the cache may
                         * lose what they build: with it a session could go on filling the disk. */
                        if (verdict == METER_CACHE)
                                janitor_add(&s->janitor, "", -1, w->grant.owner, false);
                        else if (why(verdict))
                                worker_over(s, w, why(verdict));
                }
        }
        if (r == SP_E_LINK) /* SIGCHLD will follow */
                supervisor_unwatch(s, s->meter.process.control);
}

bool meter_ended(struct supervisor *s, pid_t pid)
{
        if (!helper_ended(s, &s->meter.process, pid, AGAIN_MS))
                return false;
        forget(s, AGAIN_MS);
        if (!s->end.stopping)
                log_error(LOG, "the meter has ended; it is started again");
        return true;
}
