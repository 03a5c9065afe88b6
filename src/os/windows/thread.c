#include "os/thread.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <windows.h>

static _Thread_local char own_name[THREAD_NAME_MAX];

int thread_start(thread_id *ret, bool detached, void *(*run)(void *arg), void *arg)
{
        thread_id t;
        int r = pthread_create(&t, NULL, run, arg);
        if (r) {
                errno = r;
                return SP_E_LIMIT;
        }
        if (detached)
                pthread_detach(t);
        if (ret)
                *ret = t;
        return 0;
}

int thread_start_with_signals(thread_id *ret, void *(*run)(void *arg), void *arg)
{
        return thread_start(ret, false, run, arg);
}

void thread_join(thread_id t)
{
        pthread_join(t, NULL);
}

void thread_detach(thread_id t)
{
        pthread_detach(t);
}

void thread_name(const char *name)
{
        snprintf(own_name, sizeof(own_name), "%s", name);
}

void thread_get_name(char ret[THREAD_NAME_MAX])
{
        snprintf(ret, THREAD_NAME_MAX, "%s", own_name);
}

uint64_t thread_number(void)
{
        return GetCurrentThreadId();
}

thread_id thread_self(void)
{
        return pthread_self();
}

bool thread_is_self(thread_id t)
{
        return pthread_equal(t, pthread_self());
}

bool thread_sleep(uint64_t ns)
{
        struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
        return nanosleep(&t, NULL) == 0;
}

void thread_sleep_precisely(void)
{
}

void thread_yield(void)
{
        (void)SwitchToThread();
}

long thread_preemptions(void)
{
        return 0;
}

unsigned thread_cores_at_once(void)
{
        DWORD_PTR own, all;
        return GetProcessAffinityMask(GetCurrentProcess(), &own, &all)
                       ? (unsigned)__builtin_popcountll(own)
                       : 0;
}

/* No quota of CPU time is read. */
unsigned thread_cores(void)
{
        return thread_cores_at_once();
}

/* Windows has no fork(). */
void thread_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
        (void)prepare, (void)parent, (void)child;
}
