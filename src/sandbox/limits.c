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
        FILES_MAX =
                8192, /* as many as the supervisor gives itself; a driver has some dozens for each GPU */
        SIGNALS_MAX = 1024,    /* queued; POSIX timers count, too */
        LOCKED_MAX = 64 << 20, /* bytes, where no device needs more */
        THREADS_PER_CORE = 2,  /* of drivers, beyond --session-processes */
        HEADROOM_MIB = 128,    /* of a session's memory, for what RLIMIT_DATA does not count ... */
        HEADROOM_PARTS = 4,    /* ... and this part of it more */
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

/* Never above what it is. */
static void limit(int resource, rlim_t value)
{
        struct rlimit r;
        if (getrlimit((__rlimit_resource_t)resource, &r) == 0 && r.rlim_max < value)
                value = r.rlim_max;
        r = (struct rlimit){ value, value };
        if (setrlimit((__rlimit_resource_t)resource, &r) < 0)
                log_warn(LOG, "a limit can't be set: %s", strerror(errno));
}

/* RDMA devices lock what they reach, and AMD's NPUs want to lock all of their buffers. Drivers of GPUs pin memory
 * without this limit. */
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
        limit(RLIMIT_CORE, 0); /* a session's data is not for files */
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
        /* This process adopts the orphans of the session's processes, and the supervisor adopts them when it ends. */
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                log_warn(LOG, "orphans of the session are not kept together: %s", strerror(errno));
}
