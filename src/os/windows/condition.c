#include "os/condition.h"

#include "os/clock.h"

void condition_init(struct condition *c)
{
        pthread_cond_init(&c->cond, NULL);
}

void condition_fini(struct condition *c)
{
        pthread_cond_destroy(&c->cond);
}

void condition_signal(struct condition *c)
{
        pthread_cond_signal(&c->cond);
}

void condition_broadcast(struct condition *c)
{
        pthread_cond_broadcast(&c->cond);
}

void condition_wait(struct condition *c, struct lock *l)
{
        pthread_cond_wait(&c->cond, &l->mutex);
}

/* Waits by the wall clock, because conditions of this library know no other. After a jump of that clock the caller
 * waits again. */
bool condition_wait_until(struct condition *c, struct lock *l, uint64_t until_ns)
{
        uint64_t now = clock_now_ns();
        if (now >= until_ns)
                return false;
        uint64_t end = until_ns - now > UINT64_MAX / 4 ? UINT64_MAX / 4
                                                       : clock_wall_ns() + (until_ns - now);
        struct timespec t = { (time_t)(end / 1000000000), (long)(end % 1000000000) };
        return pthread_cond_timedwait(&c->cond, &l->mutex, &t) == 0 || clock_now_ns() < until_ns;
}
