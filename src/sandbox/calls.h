/* The filter of a worker's system calls (seccomp). It allows the calls that calls.def allows,
 * with the arguments that it names. Others fail with EPERM or ENOSYS. For calls whose arguments
 * do not matter, kernels of 5.11 and later decide by a bitmap, so these cost nothing more. */
#ifndef SPANCL_SANDBOX_CALLS_H
#define SPANCL_SANDBOX_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct calls_params {
        /* The address families of allowed sockets; socketpair is always allowed. */
        const int *families;
        size_t family_count; /* 0 .. CALLS_FAMILIES_MAX */
        bool unconnected;    /* connect(2) and datagram sockets of these families are refused */
        /* The process is in its own PID namespace, so it can only name processes of its session. */
        bool own_pids;
        bool own_files; /* its mount namespace makes only its own folders writable */
        /* Names of further calls, separated by commas (--sandbox-allow), or "". */
        const char *allowed;
};

enum { CALLS_FAMILIES_MAX = 8, CALLS_TEXT_MAX = 64 };

struct seccomp_data;

/* Filter the system calls of this process, and of its later children, from now on. Without
 * `own_pids`, a call that names a process may name only its caller. False: it failed, and the log
 * says why. If the kernel has no seccomp, the log says so.
 *
 * `ret_refusals` NULL: refused calls fail with EPERM, without a notification. Else the kernel
 * sends a notification of each refused call to *ret_refusals (seccomp_unotify(2)), and the call
 * waits for the answer. The caller owns *ret_refusals. The filtered process must not keep it,
 * because an answer can allow the call. -1: this kernel has none. */
bool calls_restrict(const struct calls_params *p, int *ret_refusals);

/* Describe a refused call: its name, and the argument that may be the reason, as "ioctl(..,
 * 0x5412)". Equal texts have equal numbers in *ret_key. Returns true if common programs make this
 * call and go on without it. */
bool calls_describe(const struct seccomp_data *call, char text[CALLS_TEXT_MAX], uint64_t *ret_key);

/* Return true if each name in `allowed` is a call. Otherwise write a sentence about the first
 * unknown name into `text`. */
bool calls_known(const char *allowed, char *text, size_t size);

#endif
