#include "os/condition.h"

#include "os/clock.h"

void condition_init(struct condition *c)
{
        pthread_cond_init(&c->cond, NULL);
}

/* Conditions have no clock to choose, so the wait is relative. */
bool condition_wait_until(struct condition *c, struct lock *l, uint64_t until_ns)
{
        uint64_t now = clock_now_ns(), ns = until_ns > now ? until_ns - now : 0;
        struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
        return pthread_cond_timedwait_relative_np(&c->cond, &l->mutex, &t) == 0;
}
