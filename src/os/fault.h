/* Faults: accesses of this program to memory that it may not touch yet. A thread that touches
 * watched memory stops in the handler of SIGSEGV, until another thread has opened the memory.
 *
 * The handler writes the fault's address into a pipe and sleeps on a futex. So it works on every
 * thread, on an alternate stack, and while other threads hold locks. Faults elsewhere go to the
 * handler that the program had before. After fork() the child's accesses to memory that the parent
 * watches end the child, with a line on stderr. */
#ifndef SPANCL_OS_FAULT_H
#define SPANCL_OS_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum fault_access {
        FAULT_UNKNOWN, /* this machine does not say */
        FAULT_READ,
        FAULT_WRITE,
};

/* Notes of the serving thread about one that faults; zeros at first. */
struct fault_memory {
        uint64_t address, state;
};

/* A stopped thread. */
struct fault {
        uint64_t address;
        enum fault_access access;
        struct fault_memory *memory; /* the thread's */
        void *user;                  /* fault_watch's */
        atomic_uint done;            /* the handler's */
};

/* Start to take faults in these bytes. `user` lives at least until fault_forget. The caller makes
 * sure that only one thread watches and forgets at a time, and that faults are served. SP_E_NOMEM. */
SP_NODISCARD int fault_watch(uint64_t at, size_t size, void *user);

/* Are any of these bytes watched in this process? Any thread, without a lock. */
bool fault_is_watched(uint64_t at, size_t size);

/* Faults there are the program's again. */
void fault_forget(uint64_t at);

/* Install the handler, in front of one that the program has installed since. */
void fault_arm(void);

/* Wait for the next fault; one thread does. NULL: there can be none in this process any more. */
struct fault *fault_next(void);

/* The thread goes on. `opened`: it tries again; else the fault is the program's own. The structure
 * is gone afterwards. */
void fault_end(struct fault *f, bool opened);

/* Before any thread calls fault_next. 1 for the first caller in a process, which starts that thread;
 * 0 for the others. SP_E_LIMIT: errno gives the reason. */
SP_NODISCARD int fault_begin_serving(void);

/* The thread could not be started. */
void fault_not_served(void);

#endif
