#include "loop/thread.h"

#include <signal.h>

int thread_start(pthread_t *ret, bool detached, void *(*fn)(void *arg), void *arg)
{
        pthread_attr_t attr;
        sigset_t all, old;
        pthread_t thread;
        pthread_attr_init(&attr);
        if (detached)
                pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        int r = pthread_create(&thread, &attr, fn, arg);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attr);
        if (r)
                return SP_E_LIMIT;
        if (ret)
                *ret = thread;
        return 0;
}
