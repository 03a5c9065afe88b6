#include "daemon/upkeep/meter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/system/rights.h"
#include "daemon/system/scratch.h"
#include "daemon/system/tree.h"
#include "daemon/system/usage.h"
#include "daemon/upkeep/caches.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/host_user.h"
#include "os/lock.h"
#include "os/poll.h"
#include "os/process/process.h"
#include "os/thread.h"
#include "transport/keys.h"

#define LOG "meter"
#define MS  1000000ull /* ns */

enum {
        PERIOD_MS = 1000,  /* between measurements of a session, and at least ... */
        PERIOD_PARTS = 10, /* ... so many times as long as the last one took */
        PERIOD_MAX_MS = 5000,
        WALK_PARTS = 20, /* the same for walks of its folders */
        WALK_MAX_MS = 10000,
        MEASURE_MS = 2000, /* limit for one measurement */
        TRIES = 8,         /* when processes end during a measurement */
        MOVING_MAX = 30,   /* measurements in a row in which all tries failed */
        CLOSED_MAX = 3,    /* in which a process could not be inspected */
        IN_FLIGHT = 16,
        IN_FLIGHT_MANY = 5, /* in which sockets hold more than IN_FLIGHT descriptors */
        IN_FLIGHT_ANY = 30, /* in which sockets hold any */
        MEMORY_MAX = 2,     /* above the limit: a child of vfork(2) can count twice for a moment */
        TRIM_MS = 10000,    /* between requests to trim caches */
        PRIORITY = -10,
        FILE_LEAST = 16 << 10, /* bytes that any file counts at least, which bounds a walk */
        DISK_LEAST = 64 << 20, /* bytes that a session may have even on a nearly full disk */
};

struct metered {
        struct list link;
        uint64_t number; /* as the supervisor numbers it */
        pid_t pid;
        int folder;       /* /proc/PID */
        bool closed;      /* the meter could never inspect this process */
        uint64_t control; /* inode of its CONTROL_FD, where connections may wait */
        time_t since;
        char scratch[SCRATCH_PATH_MAX];
        char owner[KEYS_HEX + 1];
        uint64_t cache_max; /* bytes */
        uint64_t due_ns, trim_ns;
        unsigned moving, shut, flights, flights_of_many, over_memory; /* measurements in a row */
        /* The files with and without a name may together be too much: the number of walks begun
         * at that time; 0: no doubt. */
        uint64_t doubt;
        uint64_t doubted_bytes; /* the smallest size of files without a name since then */
        /* Written by the walking thread, under the lock: */
        uint64_t walk_ns;      /* when to walk again */
        uint64_t begun, ended; /* numbers of walks */
        uint64_t disk_max;     /* 0: not known yet */
        uint64_t named_bytes;  /* UINT64_MAX: more than disk_max */
        bool caches_full;
};

struct meter {
        const struct config_options *options;
        uint64_t memory_max, tasks_max, disk_max; /* 0: no limit */
        unsigned user, group;                     /* of --user, where spancld is root; 0: none */
        bool counts_tasks; /* a session's processes are limited, by the meter or by others */
        struct lock lock;  /* guards the list and its items */
        struct condition changed;
        struct list sessions;
        bool reported; /* the log says that processes can't be inspected */
};

/* ---- walking -------------------------------------------------------------------------------- */

static uint64_t pause_ns(uint64_t took_ns, unsigned parts, unsigned max_ms)
{
        uint64_t ns = took_ns * parts;
        return ns < PERIOD_MS * MS ? PERIOD_MS * MS : ns > max_ms * MS ? max_ms * MS : ns;
}

static struct metered *find(struct meter *m, uint64_t number)
{
        list_each(one, &m->sessions, struct metered, link)
        {
                if (one->number == number)
                        return one;
        }
        return NULL;
}

/* Find the session whose walk is due first, which may be in the future. */
static struct metered *next_walk(struct meter *m) REQUIRES(m->lock)
{
        struct metered *next = NULL;
        list_each(one, &m->sessions, struct metered, link)
        {
                if (!next || one->walk_ns < next->walk_ns)
                        next = one;
        }
        return next;
}

/* Return a session's limit: the option, or half of the disk that is free at its start if that is
 * less. */
static uint64_t disk_max_of(const struct meter *m, const char *scratch)
{
        uint64_t free_bytes;
        bool names;
        if (!folder_room(scratch, &free_bytes, &names))
                return m->disk_max;
        uint64_t half = free_bytes / 2;
        half = half < DISK_LEAST ? DISK_LEAST : half;
        return half < m->disk_max ? half : m->disk_max;
}

/* Walk the session's folders. `caches`: those of its client too. Lock not held. */
static void walk(struct meter *m, struct metered *copy, bool caches)
{
        uint64_t max = copy->disk_max ? copy->disk_max : m->disk_max;
        copy->named_bytes = tree_measure(copy->scratch, max, FILE_LEAST);
        if (!copy->disk_max) {
                /* This meter may have replaced one that ended: what the session has written was
                 * free at its start. */
                uint64_t written = copy->named_bytes > max ? 0 : copy->named_bytes;
                copy->disk_max = disk_max_of(m, copy->scratch) + written;
                if (copy->disk_max > m->disk_max)
                        copy->disk_max = m->disk_max;
        }
        if (caches)
                copy->caches_full =
                        caches_are_over(m->options, copy->owner, copy->cache_max + copy->disk_max);
}

/* Return true if no session before this one has the same caches, which are walked once for all
 * of them. */
static bool is_first_of_caches(struct meter *m, const struct metered *session) REQUIRES(m->lock)
{
        list_each(one, &m->sessions, struct metered, link)
        {
                if (one == session)
                        break;
                if (!strcmp(one->owner, session->owner))
                        return false;
        }
        return true;
}

/* Give the calling thread the rights of the user of --user, who can change every folder above the
 * caches. */
static bool become_user(const struct meter *m)
{
        return !m->user || rights_become_thread(m->user, m->group);
}

static void *walk_all(void *arg)
{
        struct meter *m = arg;
        /* Walks may take long, so they get no more of the cores than a session's thread. */
        process_priority(0);
        if (!become_user(m)) {
                log_error(LOG, "the rights of --user can't be taken; disk space is not limited");
                return NULL;
        }
        lock_take(&m->lock);
        for (;;) {
                struct metered *one = next_walk(m), copy;
                uint64_t now = clock_now_ns();
                if (!one) {
                        condition_wait(&m->changed, &m->lock);
                        continue;
                }
                if (one->walk_ns > now) {
                        condition_wait_until(&m->changed, &m->lock, one->walk_ns);
                        continue;
                }
                one->begun++;
                copy = *one;
                bool caches = is_first_of_caches(m, one);
                lock_release(&m->lock);
                walk(m, &copy, caches);
                lock_take(&m->lock);
                one = find(m, copy.number); /* the session may have ended */
                if (!one)
                        continue;
                one->ended++;
                one->disk_max = copy.disk_max;
                one->named_bytes = copy.named_bytes;
                one->caches_full |= copy.caches_full;
                one->walk_ns = clock_now_ns();
                one->walk_ns += pause_ns(one->walk_ns - now, WALK_PARTS, WALK_MAX_MS);
        }
        return NULL;
}

/* ---- judging -------------------------------------------------------------------------------- */

static void report(const struct metered *one, enum meter_verdict verdict)
{
        char text[32];
        int n = snprintf(text, sizeof(text), "%llu %c", (unsigned long long)one->number, verdict);
        /* If it is lost, the next measurement sends it again. */
        (void)!control_send(CONTROL_FD, CONTROL_OVER, bytes_of(text, (size_t)n), -1);
}

/* Return true if the session exceeds its limit of disk space. A file that loses its name between
 * a walk and a measurement counts in both. So if only the sum is too large, the next walk
 * decides. */
static bool is_over_disk(struct metered *one, uint64_t unnamed)
{
        if (!one->disk_max)
                return false;
        if (one->named_bytes > one->disk_max || unnamed > one->disk_max)
                return true;
        if (one->named_bytes + unnamed <= one->disk_max) {
                one->doubt = 0;
                return false;
        }
        if (!one->doubt) {
                one->doubt = one->begun;
                one->doubted_bytes = unnamed;
                one->walk_ns = 0;
        }
        if (unnamed < one->doubted_bytes)
                one->doubted_bytes = unnamed;
        return one->ended > one->doubt && one->named_bytes + one->doubted_bytes > one->disk_max;
}

/* Return true if a condition held in `max` measurements in a row. */
static bool counts(unsigned *count, bool is_so, unsigned max)
{
        *count = is_so ? *count + 1 : 0;
        return *count >= max;
}

/* Compare a measurement with the limits, and report the first that is exceeded. */
static void judge(struct meter *m, struct metered *one, const struct usage *u) REQUIRES(m->lock)
{
        bool moving = counts(&one->moving, u->moving, MOVING_MAX) && m->counts_tasks;
        bool shut = counts(&one->shut, u->closed && !one->closed, CLOSED_MAX);
        bool some = counts(&one->flights, u->in_flight, IN_FLIGHT_ANY);
        bool many = counts(&one->flights_of_many, u->in_flight > IN_FLIGHT, IN_FLIGHT_MANY);
        bool memory = counts(&one->over_memory, m->memory_max && u->memory_bytes > m->memory_max,
                             MEMORY_MAX);
        if (m->tasks_max && u->tasks > m->tasks_max)
                report(one, METER_TASKS);
        else if (memory)
                report(one, METER_MEMORY);
        else if (is_over_disk(one, u->unnamed_bytes))
                report(one, METER_DISK);
        else if (u->over_files)
                report(one, METER_FILES);
        else if (moving || shut || some || many)
                report(one, METER_HIDDEN);
        if (one->caches_full && one->trim_ns <= clock_now_ns()) {
                one->trim_ns = clock_now_ns() + TRIM_MS * MS;
                one->caches_full = false;
                report(one, METER_CACHE);
        }
}

/* ---- measuring ------------------------------------------------------------------------------ */

static int measure_once(const struct meter *m, const struct metered *one, bool shares,
                        uint64_t deadline_ns, struct usage *ret)
{
        const struct usage_params params = {
                .folder = one->folder,
                .pid = one->pid,
                .tasks_max = m->tasks_max,
                .deadline_ns = deadline_ns,
                .since = one->since,
                .trusted = one->control,
                .shares = shares,
        };
        return usage_measure(&params, ret);
}

/* Measure a session; if the quick count exceeds a limit, count shared pages exactly. */
static int measure(const struct meter *m, const struct metered *one, struct usage *ret)
{
        uint64_t deadline = clock_now_ns() + MEASURE_MS * MS;
        int r = measure_once(m, one, false, deadline, ret);
        /* A process that is ending can't be inspected either. */
        for (int i = 1; !r && (ret->moving || (ret->closed && !one->closed)) && i < TRIES &&
                        clock_now_ns() < deadline;
             i++)
                r = measure_once(m, one, false, deadline, ret);
        if (!r && (ret->over_tasks || (m->memory_max && ret->memory_bytes > m->memory_max)))
                r = measure_once(m, one, true, clock_now_ns() + MEASURE_MS * MS, ret);
        return r;
}

static void forget(struct meter *m, struct metered *one)
{
        lock_take(&m->lock);
        list_remove(&one->link);
        lock_release(&m->lock);
        (void)file_close(one->folder);
        mem_free(one);
}

/* Measure the sessions that are due. Returns the time of the next. */
static uint64_t measure_all(struct meter *m)
{
        uint64_t next = UINT64_MAX;
        list_each(one, &m->sessions, struct metered, link)
        {
                struct usage u;
                uint64_t now = clock_now_ns();
                if (one->due_ns <= now) {
                        int r = measure(m, one, &u);
                        if (r == SP_E_GONE) {
                                forget(m, one);
                                continue;
                        }
                        lock_take(&m->lock); /* the walking thread copies *one */
                        if (!r)
                                judge(m, one, &u);
                        one->due_ns = clock_now_ns();
                        one->due_ns += pause_ns(one->due_ns - now, PERIOD_PARTS, PERIOD_MAX_MS);
                        condition_signal(&m->changed);
                        lock_release(&m->lock);
                }
                next = one->due_ns < next ? one->due_ns : next;
        }
        return next;
}

/* ---- the supervisor's messages --------------------------------------------------------------- */

/* Add a session, as CONTROL_MEASURE describes it. */
static void add(struct meter *m, struct control *c)
{
        const char *scratch = (const char *)c->data + strlen((const char *)c->data) + 1;
        const char *owner = scratch + strlen(scratch) + 1;
        char *rest;
        struct metered *one = mem_zalloc(sizeof(*one));
        if (!one)
                return;
        list_init(&one->link);
        one->number = strtoull((const char *)c->data, &rest, 10);
        one->pid = (pid_t)strtol(rest, &rest, 10);
        one->closed = !strtol(rest, &rest, 10);
        one->control = strtoull(rest, &rest, 10);
        one->cache_max = strtoull(rest, NULL, 10);
        one->since = (time_t)(clock_wall_ns() / 1000000000) - 1;
        one->folder = c->fd;
        one->walk_ns = m->disk_max ? 0 : UINT64_MAX;
        strncat(one->scratch, scratch, sizeof(one->scratch) - 1);
        strncat(one->owner, owner, sizeof(one->owner) - 1);
        c->fd = -1;
        if (one->closed && !m->reported)
                log_warn(LOG,
                         "files without a name that sessions hold are not counted: spancld may "
                         "not look into their processes (CAP_SYS_PTRACE)");
        m->reported |= one->closed;
        lock_take(&m->lock);
        list_append(&m->sessions, &one->link);
        condition_signal(&m->changed);
        lock_release(&m->lock);
}

/* Receive the supervisor's message. False: the supervisor is gone, or needs no meter any more. */
static bool read_supervisor(struct meter *m)
{
        static struct control c; /* static because it is large */
        int r;
        while (!(r = control_receive(CONTROL_FD, &c))) {
                if (c.kind == CONTROL_MEASURE && c.fd >= 0)
                        add(m, &c);
                control_drop(&c);
        }
        return r != SP_E_LINK;
}

int meter_main(const struct config_options *o, const char *memory_bytes, const char *task_count)
{
        static struct meter m = { .lock = LOCK_INIT };
        thread_id thread;
        process_name("spancld-meter");
        process_end_with_parent();
        log_never_waits = true;
        /* Sessions may keep all cores busy. */
        process_priority(PRIORITY);
        m.options = o;
        m.memory_max = strtoull(memory_bytes, NULL, 10);
        m.tasks_max = strtoull(task_count, NULL, 10);
        m.disk_max = config_option_number(o, CONFIG_session_disk) << 20;
        m.counts_tasks = config_option_number(o, CONFIG_session_processes) != 0;
        const char *name = config_option_text(o, CONFIG_user);
        struct host_user user;
        if (*name && !process_user() && host_user_find(name, &user)) {
                /* The workers' caches are below this home folder, as for the janitor. */
                host_user_settle(&user);
                m.user = user.user;
                m.group = user.group;
        }
        list_init(&m.sessions);
        condition_init(&m.changed);
        if (m.disk_max && thread_start_with_signals(&thread, walk_all, &m) < 0) {
                log_error(LOG, "a thread can't be started");
                return 1;
        }
        for (uint64_t due = UINT64_MAX;; due = measure_all(&m)) {
                struct pollfd p = { .fd = CONTROL_FD, .events = POLLIN };
                if (poll(&p, 1, clock_poll_ms(due)) > 0 && !read_supervisor(&m))
                        process_exit(0); /* the other thread may wait for a disk */
        }
}
