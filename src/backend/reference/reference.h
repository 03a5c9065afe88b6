/* Settings of the reference backend for tests and the simulator. They are read when it is opened, and
 * no thread may open one meanwhile. */
#ifndef SPANCL_BACKEND_REFERENCE_REFERENCE_H
#define SPANCL_BACKEND_REFERENCE_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backend;

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
