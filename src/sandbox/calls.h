/* The system calls that a worker can make (seccomp): those that calls.def allows, with the arguments that it names. Others fail
 * with EPERM or ENOSYS. Kernels of 5.11 and later decide about calls whose arguments do not matter by a bitmap, so these
 * cost nothing more. */
#ifndef SPANCL_SANDBOX_CALLS_H
#define SPANCL_SANDBOX_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct calls_params {
        const int *
                families; /* address families of sockets that it can make; socketpair is always there */
        size_t family_count; /* 0 .. CALLS_FAMILIES_MAX */
        bool own_pids; /* the process is in a PID namespace of its own: any process that it can name is its own */
        bool own_files; /* its mount namespace lets it write to its own folders only */
        const char
                *allowed; /* names of further calls, separated by commas (--sandbox-allow), or "" */
};

enum { CALLS_FAMILIES_MAX = 8, CALLS_TEXT_MAX = 64 };

struct seccomp_data;

/* Filter the system calls of this process, and of those that it will start, from now on. Without `own_pids` a call that names a process
 * may name only the calling process. False: it failed, and the log says why. A kernel without seccomp is said in the log.
 *
 * `ret_refusals` NULL: refused calls fail with EPERM, and nobody is notified. Else the kernel makes each of them a notification of
 * *ret_refusals (seccomp_unotify(2)), the caller's, and the call waits for the answer. The process must not keep it, since the answer may
 * allow the call. -1: this kernel has none. */
bool calls_restrict(const struct calls_params *p, int *ret_refusals);

/* Write the call's name, and the argument for which it may have been refused, as "ioctl(.., 0x5412)". *ret_key is a number that
 * equal texts have in common. Return true if common programs make this call and go on without it. */
bool calls_describe(const struct seccomp_data *call, char text[CALLS_TEXT_MAX], uint64_t *ret_key);

/* Return true if each name in `allowed` is a call. Otherwise write a sentence about the first that is none into `text`. */
bool calls_known(const char *allowed, char *text, size_t size);

#endif
