/* Work that the first of several threads does, while the others wait for its end. */
#ifndef SPANCL_OS_ONCE_H
#define SPANCL_OS_ONCE_H

#include <pthread.h>

struct once {
        pthread_once_t state;
};

#define ONCE_INIT                 \
        {                         \
                PTHREAD_ONCE_INIT \
        }

/* Call `fn`, unless a thread has called it for `o`. It has returned when this does. */
static inline void once_run(struct once *o, void (*fn)(void))
{
        pthread_once(&o->state, fn);
}

#endif
