#include "os/condition.h"

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
