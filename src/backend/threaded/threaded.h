/* A backend behind a thread: native implementations whose calls block for as long as kernels run
 * (quirks.h, CALLS_BLOCK). The engine's operations only note what is to be done, and a thread of the
 * backend does it, in the same order. So the engine's lock and the loop's thread stay free.
 *
 * Errors of operations that only note come later. A buffer, queue, program or kernel that can't be
 * made fails each command that uses it, and each build, with its status. A command that can't be
 * started is reported by `complete`.
 *
 * These operations wait for the thread, and so for calls that block: all of `program` but create and
 * release, kernel.query, svm.create, device.partition and device.release.
 *
 * A second thread calls `complete`. The first one never waits for the engine's lock, because threads
 * that have it may wait for the first one. */
#ifndef SPANCL_BACKEND_THREADED_THREADED_H
#define SPANCL_BACKEND_THREADED_THREADED_H

#include "backend/backend.h"

extern const struct backend_ops backend_threaded;

#endif
