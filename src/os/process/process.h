/* Processes: this one, and its children by their numbers (pid_t). A status tells how one ended; WIFEXITED and the
 * other macros of POSIX read it. */
#ifndef SPANCL_OS_PROCESS_PROCESS_H
#define SPANCL_OS_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "base/status.h"

/* ---- this process --------------------------------------------------------------------------- */

pid_t process_self(void);
pid_t process_parent(void);

/* The number of the user whose rights it has; 0: root. */
unsigned process_user(void);

/* Name it for lists of processes, in at most 15 letters. The first thread calls it. */
void process_name(const char *name);

/* Have the system kill it when its parent ends. A change of user clears that. */
void process_end_with_parent(void);

/* Begin a group of processes: signals to a group reach no other one from here. */
void process_begin_group(void);

/* End at once, while other threads run. */
_Noreturn void process_exit(int status);

/* Set the priority of this thread, from -20, the highest, to 19. It may not be allowed. */
void process_priority(int nice);

/* Give each new file the bits of `mode` that are not in `mask`. Returns the old mask. */
unsigned process_file_mask(unsigned mask);

/* Return how many descriptors it may have. */
uint64_t process_files_max(void);

/* Raise that limit to `wanted`, as far as this user may. */
void process_files_raise(uint64_t wanted);

/* ---- children ------------------------------------------------------------------------------- */

struct process_usage {
        double cpu_s;
        uint64_t memory_peak_bytes;
};

/* Return true if this status is that of a process that process_kill, or somebody else, has killed (SIGKILL). */
bool process_was_killed(int status);

/* Return true if this child has ended, and was not collected. */
bool process_has_ended(pid_t pid);

/* Kill it (SIGKILL). Its number must be a child's that was not collected yet. */
void process_kill(pid_t pid);

bool process_is_child(pid_t pid);

/* Copy this process, which has one thread. Returns 0 in the copy, else its number; -1: errno gives the reason. */
SP_NODISCARD pid_t process_fork(void);

/* Return a child that has ended and was not collected; 0: there is none. */
pid_t process_ended(void);

/* Wait for a child's end and collect it: its number may be used again. `ret_status` and `ret_usage` may be NULL. */
void process_collect(pid_t pid, int *ret_status, struct process_usage *ret_usage);

#endif
