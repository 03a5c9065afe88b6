/* A condition: threads that hold a lock wait for it until another thread signals it. */
#ifndef SPANCL_OS_CONDITION_H
#define SPANCL_OS_CONDITION_H

#include <stdint.h>

#include "os/lock.h"

struct condition {
        pthread_cond_t cond;
};

void condition_init(struct condition *c);
void condition_fini(struct condition *c);

/* Wake one waiting thread, or all. The lock need not be held. */
void condition_signal(struct condition *c);
void condition_broadcast(struct condition *c);

/* Wait; the lock is released meanwhile. Returns at times without a signal, too. */
void condition_wait(struct condition *c, struct lock *l) REQUIRES(*l);

/* The same until a time of clock_now_ns. False: it is over. */
bool condition_wait_until(struct condition *c, struct lock *l, uint64_t until_ns) REQUIRES(*l);

#endif
