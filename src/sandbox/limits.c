#include "sandbox/limits.h"

#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define LOG "sandbox"

enum {
        /* As many as the supervisor's own limit; a driver has some dozens for each GPU. */
        FILES_MAX = 8192,
        SIGNALS_MAX = 1024,    /* queued signals; POSIX timers count, too */
        LOCKED_MAX = 64 << 20, /* bytes, if no device needs more */
        THREADS_PER_CORE = 2,  /* drivers' threads, beyond --session-processes */
        HEADROOM_MIB = 128,    /* memory that RLIMIT_DATA does not count: this, ... */
        HEADROOM_PARTS = 4,    /* ... and this part of the session's memory */
};

uint64_t limits_memory_bytes(const struct config_options *o)
{
        uint64_t mib = config_option_number(o, CONFIG_session_memory);
        return mib ? (mib + mib / HEADROOM_PARTS + HEADROOM_MIB) << 20 : 0;
}

uint64_t limits_task_count(const struct config_options *o)
{
        uint64_t count = config_option_number(o, CONFIG_session_processes);
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        return count ? count + THREADS_PER_CORE * (uint64_t)(cores > 0 ? cores : 1) : 0;
}

/* Set a limit, never above its present value. */
static void limit(int resource, rlim_t value)
{
        struct rlimit r;
        if (getrlimit((__rlimit_resource_t)resource, &r) == 0 && r.rlim_max < value)
                value = r.rlim_max;
        r = (struct rlimit){ value, value };
        if (setrlimit((__rlimit_resource_t)resource, &r) < 0)
                log_warn(LOG, "a limit can't be set: %s", strerror(errno));
}

/* Return true if a device locks much memory. RDMA devices lock the memory that they reach, and
 * AMD's NPUs lock all of their buffers. Drivers of GPUs pin memory outside this limit. */
static bool locks_much(void)
{
        static const char *const devices[] = { "/dev/infiniband/*", "/dev/hfi1*", "/dev/accel/*" };
        bool found = false;
        for (size_t i = 0; i < array_size(devices); i++) {
                glob_t g;
                found |= glob(devices[i], GLOB_NOSORT, NULL, &g) == 0;
                globfree(&g);
        }
        return found;
}

void limits_set(const struct config_options *o, bool own_user)
{
        uint64_t memory = config_option_number(o, CONFIG_session_memory);
        uint64_t tasks = limits_task_count(o);
        limit(RLIMIT_CORE, 0); /* no file may contain a session's data */
        if (memory)
                limit(RLIMIT_DATA, (rlim_t)memory << 20);
        if (tasks && own_user)
                limit(RLIMIT_NPROC, (rlim_t)tasks);
        limit(RLIMIT_NOFILE, FILES_MAX);
        limit(RLIMIT_MSGQUEUE, 0);
        limit(RLIMIT_SIGPENDING, SIGNALS_MAX);
        limit(RLIMIT_NICE, 0);
        limit(RLIMIT_RTPRIO, 0);
        if (!locks_much())
                limit(RLIMIT_MEMLOCK, LOCKED_MAX);
        /* This process adopts the orphans of the session. When it ends, the supervisor adopts
         * them. */
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                log_warn(LOG, "orphans of the session are not kept together: %s", strerror(errno));
}
