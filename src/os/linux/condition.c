#include "os/condition.h"

void condition_init(struct condition *c)
{
        pthread_condattr_t attr;
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&c->cond, &attr);
        pthread_condattr_destroy(&attr);
}

bool condition_wait_until(struct condition *c, struct lock *l, uint64_t until_ns)
{
        struct timespec t = { (time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000) };
        return pthread_cond_timedwait(&c->cond, &l->mutex, &t) == 0;
}
