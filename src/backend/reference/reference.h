/* Devices in software whose built-in kernels are C functions. The backend `reference` has two with the
 * kernels of registry.def; other backends (media) open devices of their own here, and share all other
 * operations.
 *
 * The variables are settings for tests and the simulator. They are read when a backend is opened, and
 * no thread may open one meanwhile. */
#ifndef SPANCL_BACKEND_REFERENCE_REFERENCE_H
#define SPANCL_BACKEND_REFERENCE_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "backend/builtin/registry.h"

struct reference_devices {
        const char *name; /* with a number behind it if there are several */
        unsigned count;
        const struct registry_kernel *const *kernels;
        size_t kernel_count;
        /* Commands that run at a time, at most 16. With several, kernels run at the same time as
         * others. */
        unsigned executors;
        bool svm;
        bool bytes; /* buffer.bytes gives buffers' bytes */
        /* Given to kernels. `close` ends it after the last command; NULL: nothing to end. */
        void *user;
        void (*close)(void *user);
        /* Called before the backend waits for its last commands, while they run: those that wait for others should
         * fail now, and later ones at once. NULL: none waits. */
        void (*stop)(void *user);
};

/* Open a backend with these devices; kernels and name stay until it is closed. On errors `user` is
 * still the caller's. SP_E_NODEV: none passes the filter. SP_E_NOMEM. */
SP_NODISCARD int reference_open(const struct backend_params *params,
                                const struct reference_devices *devices, struct backend **ret);

/* Commands run only in backend_reference_step, instead of on a thread of the backend. */
extern bool backend_reference_manual;
/* 0: run commands in the order of submission. Else this seed chooses among the commands that may
 * run, so that a missing dependency shows. */
extern uint64_t backend_reference_seed;
/* Failures of a domain stay. */
extern bool backend_reference_failure_stays;
/* queue.marker_max. */
extern size_t backend_reference_marker_max;
/* buffer.bytes gives buffers' bytes. */
extern bool backend_reference_bytes;

/* Run up to `max` pending commands now, on the calling thread, of a backend in manual mode. Returns
 * how many ran. */
size_t backend_reference_step(struct backend *b, size_t max);

#endif
