/* Parts of os/thread.h that POSIX lacks. */
#include "os/thread.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/once.h"
#include "os/process/control_group.h"

void thread_name(const char *name)
{
        pthread_setname_np(pthread_self(), name);
}

uint64_t thread_number(void)
{
        return (uint64_t)gettid();
}

void thread_sleep_precisely(void)
{
        (void)prctl(PR_SET_TIMERSLACK, 1000ul);
}

long thread_preemptions(void)
{
        struct rusage u;
        return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nivcsw : 0;
}

/* A quota seldom changes, and a sandbox may hide it later. */
static unsigned quota;

static void read_quota(void)
{
        quota = control_group_cores("/proc/self");
}

unsigned thread_cores_at_once(void)
{
        cpu_set_t set;
        return sched_getaffinity(0, sizeof(set), &set) < 0 ? 0 : (unsigned)CPU_COUNT(&set);
}

unsigned thread_cores(void)
{
        static struct once once = ONCE_INIT;
        once_run(&once, read_quota);
        unsigned cores = thread_cores_at_once();
        return quota < cores ? quota : cores;
}
