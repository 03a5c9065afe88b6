#include "os/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static int start(thread_id *ret, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg)
{
        thread_id t;
        int r = pthread_create(&t, attr, run, arg);
        if (r) {
                errno = r;
                return SP_E_LIMIT;
        }
        if (ret)
                *ret = t;
        return 0;
}

int thread_start(thread_id *ret, bool detached, void *(*run)(void *arg), void *arg)
{
        pthread_attr_t attr;
        sigset_t all, old;
        pthread_attr_init(&attr);
        if (detached)
                pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        int r = start(ret, &attr, run, arg);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attr);
        return r;
}

int thread_start_with_signals(thread_id *ret, void *(*run)(void *arg), void *arg)
{
        static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
        sigset_t open, old;
        sigemptyset(&open);
        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
                sigaddset(&open, faults[i]);
        pthread_sigmask(SIG_UNBLOCK, &open, &old);
        int r = start(ret, NULL, run, arg);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        return r;
}

void thread_join(thread_id t)
{
        pthread_join(t, NULL);
}

void thread_detach(thread_id t)
{
        pthread_detach(t);
}

void thread_get_name(char ret[THREAD_NAME_MAX])
{
        pthread_getname_np(pthread_self(), ret, THREAD_NAME_MAX);
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

void thread_yield(void)
{
        sched_yield();
}

void thread_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
        pthread_atfork(prepare, parent, child);
}
