#include "daemon/linux/time_slice.h"

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

/* Set the slice of a thread; 0: the kernel's default. A thread with another scheduler keeps it,
 * because somebody chose it on purpose. */
static void set_slice(pid_t thread, uint64_t ns)
{
        const struct {
                uint32_t size, policy;
                uint64_t flags;
                int32_t nice;
                uint32_t priority;
                uint64_t runtime, deadline, period;
        } attr = { .size = sizeof(attr),
                   .nice = getpriority(PRIO_PROCESS, (id_t)thread),
                   .runtime = ns };
        if (sched_getscheduler(thread) == SCHED_OTHER &&
            syscall(SYS_sched_setattr, thread, &attr, 0) < 0 && errno != ESRCH)
                log_debug(LOG, "no short time slices: %s", strerror(errno));
}

/* Set the slices of all threads of a worker. Later threads inherit from their makers. */
static void set_time_slice(pid_t worker, uint64_t ns)
{
        char path[64];
        const struct dirent *entry;
        snprintf(path, sizeof(path), "/proc/%d/task", (int)worker);
        DIR *threads = opendir(path);
        for (int i = 0; threads && i < THREADS_MAX && (entry = readdir(threads)); i++)
                if (entry->d_name[0] != '.')
                        set_slice((pid_t)strtol(entry->d_name, NULL, 10), ns);
        if (threads)
                closedir(threads);
}

void time_slices_share(struct supervisor *s)
{
        bool several = workers_count(s, WORKER_BUSY) > 1;
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state != WORKER_BUSY || w->gone || !w->pid || w->short_slices == several)
                        continue;
                if (control_send(w->control, CONTROL_SHARED, bytes_str(several ? "1" : ""), -1) < 0)
                        continue; /* it is gone, or the next call notifies it */
                set_time_slice(w->pid, several ? SHORT_NS : 0);
                w->short_slices = several;
        }
}
