/* Parts of os/thread.h that POSIX lacks. */
#include "os/thread.h"

#include <unistd.h>

void thread_name(const char *name)
{
        pthread_setname_np(name);
}

uint64_t thread_number(void)
{
        uint64_t number = 0;
        (void)pthread_threadid_np(NULL, &number);
        return number;
}

void thread_sleep_precisely(void)
{
}

long thread_preemptions(void)
{
        return 0;
}

unsigned thread_cores_at_once(void)
{
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        return cores > 0 ? (unsigned)cores : 0;
}

/* No quota of CPU time is read. */
unsigned thread_cores(void)
{
        return thread_cores_at_once();
}
