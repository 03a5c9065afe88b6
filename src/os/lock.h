/* A lock: a mutex whose use clang checks (-Wthread-safety). gcc sees plain functions.
 *
 * A function that is called with a lock held says REQUIRES(x->lock) in its declaration, and one that
 * takes it itself EXCLUDES(x->lock). Where many kinds of objects share one lock, a global name stands
 * for it, as client_held does in core/object.h. In C, GUARDED_BY takes only such a name, not another
 * member of the structure: for other locks, comments say what a lock guards. */
#ifndef SPANCL_OS_LOCK_H
#define SPANCL_OS_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#ifdef __clang__
#define LOCK_ATTRIBUTE(x) __attribute__((x))
#else
#define LOCK_ATTRIBUTE(x)
#endif

#define GUARDED_BY(x)    LOCK_ATTRIBUTE(guarded_by(x))
#define REQUIRES(...)    LOCK_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...)    LOCK_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...)     LOCK_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) LOCK_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...)     LOCK_ATTRIBUTE(release_capability(__VA_ARGS__))
/* The function takes or releases a lock that only it knows to be held, or no other thread runs. */
#define LOCK_UNCHECKED LOCK_ATTRIBUTE(no_thread_safety_analysis)

struct LOCK_ATTRIBUTE(capability("lock")) lock {
        pthread_mutex_t mutex;
};

#define LOCK_INIT                         \
        {                                 \
                PTHREAD_MUTEX_INITIALIZER \
        }

static inline void lock_init(struct lock *l)
{
        pthread_mutex_init(&l->mutex, NULL);
}

static inline void lock_fini(struct lock *l)
{
        pthread_mutex_destroy(&l->mutex);
}

static inline void lock_take(struct lock *l) ACQUIRE(*l) LOCK_UNCHECKED
{
        pthread_mutex_lock(&l->mutex);
}

static inline void lock_release(struct lock *l) RELEASE(*l) LOCK_UNCHECKED
{
        pthread_mutex_unlock(&l->mutex);
}

/* Take the lock if it is free. */
static inline bool lock_try(struct lock *l) TRY_ACQUIRE(true, *l) LOCK_UNCHECKED
{
        return pthread_mutex_trylock(&l->mutex) == 0;
}

#endif
