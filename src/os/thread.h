/* Threads. */
#ifndef SPANCL_OS_THREAD_H
#define SPANCL_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef pthread_t thread_id;

enum { THREAD_NAME_MAX = 16 }; /* with the NUL */

/* Start a thread. It takes no signals, because signals are the program's business. `ret` may be NULL
 * for a detached one. SP_E_LIMIT: errno gives the reason. */
SP_NODISCARD int thread_start(thread_id *ret, bool detached, void *(*run)(void *arg), void *arg);

/* The same for a thread that runs the application's callbacks: it takes this thread's signals,
 * and those of faults in any case. */
SP_NODISCARD int thread_start_with_signals(thread_id *ret, void *(*run)(void *arg), void *arg);

void thread_join(thread_id t);
void thread_detach(thread_id t);

/* Name this thread, in at most 15 letters, for debuggers and lists of threads. */
void thread_name(const char *name);

/* Get this thread's name, and the number that the system has for it, as debuggers show it. */
void thread_get_name(char ret[THREAD_NAME_MAX]);
uint64_t thread_number(void);

thread_id thread_self(void);
bool thread_is_self(thread_id t);

/* Sleep. False: a signal ended it early. */
bool thread_sleep(uint64_t ns);

/* Let this thread's sleeps end at most 1 µs late, where the system can. */
void thread_sleep_precisely(void);

/* Let other threads have this core. */
void thread_yield(void);

/* The number of times that other threads took the core from this one; 0 if it is not known. */
long thread_preemptions(void);

/* The number of cores that threads of this process can use at the same time; 0: it is not known. */
unsigned thread_cores_at_once(void);
/* The same, or fewer if the control groups of this process have a quota of CPU time: as many as the quota's time needs.
 * The first call reads the quota. */
unsigned thread_cores(void);

/* Have the functions called in every fork() from now on: before it, then in the parent and in the
 * child. */
void thread_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

#endif
