#include "daemon/system/time_slice.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control.h"
#include "daemon/supervisor/workers.h"

enum {
        SHORT_NS = 100000, /* the shortest that Linux takes (sched(7)) */
        /* Threads of a worker that are set: it may make threads as fast as this loop visits them. */
        THREADS_MAX = 4096,
};

/* Call `set` for all threads of a worker. Later threads inherit from their makers. */
static void each_thread(pid_t worker, void (*set)(pid_t thread, const void *value),
                        const void *value)
{
        char path[64];
        const struct dirent *entry;
        snprintf(path, sizeof(path), "/proc/%d/task", (int)worker);
        DIR *threads = opendir(path);
        for (int i = 0; threads && i < THREADS_MAX && (entry = readdir(threads)); i++)
                if (entry->d_name[0] != '.')
                        set((pid_t)strtol(entry->d_name, NULL, 10), value);
        if (threads)
                closedir(threads);
}

/* Set the slice of a thread; 0: the kernel's default. A thread with another scheduler keeps it,
 * because somebody chose it on purpose. */
static void set_slice(pid_t thread, const void *ns)
{
        const struct {
                uint32_t size, policy;
                uint64_t flags;
                int32_t nice;
                uint32_t priority;
                uint64_t runtime, deadline, period;
        } attr = { .size = sizeof(attr),
                   .nice = getpriority(PRIO_PROCESS, (id_t)thread),
                   .runtime = *(const uint64_t *)ns };
        if (sched_getscheduler(thread) == SCHED_OTHER &&
            syscall(SYS_sched_setattr, thread, &attr, 0) < 0 && errno != ESRCH)
                log_debug(LOG, "no short time slices: %s", strerror(errno));
}

static void set_nice(pid_t thread, const void *nice)
{
        if (setpriority(PRIO_PROCESS, (id_t)thread, *(const int *)nice) < 0)
                log_debug(LOG, "thread %d keeps its priority: %s", (int)thread, strerror(errno));
}

void time_slices_share(struct supervisor *s)
{
        bool several = workers_count(s, WORKER_BUSY) > 1;
        const uint64_t ns = several ? SHORT_NS : 0;
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state != WORKER_BUSY || w->gone || !w->pid || w->short_slices == several)
                        continue;
                if (control_send(w->control, CONTROL_SHARED, bytes_str(several ? "1" : ""), -1) < 0)
                        continue; /* it is gone, or the next call notifies it */
                each_thread(w->pid, set_slice, &ns);
                w->short_slices = several;
        }
}

void time_slices_prioritize(const struct worker *w, int nice)
{
        each_thread(w->pid, set_nice, &nice);
}
