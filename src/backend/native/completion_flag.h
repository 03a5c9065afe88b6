/* Completion flags: bytes in the host's memory that the device writes, and that show the completion
 * of commands. Objects and threads as in native.h. */
#ifndef SPANCL_BACKEND_NATIVE_COMPLETION_FLAG_H
#define SPANCL_BACKEND_NATIVE_COMPLETION_FLAG_H

#include "backend/native/native.h"

/* The largest read that goes to a completion flag, in bytes. */
enum { COMPLETION_FLAG_MAX = 16 << 10 };

/* Allocate memory for the domain's flags, if they are of use on this implementation. It may fail
 * silently. Takes milliseconds the first time; only that one tries. */
void completion_flags_begin(struct backend *b, struct native_domain *d);

/* Stop using the domain's flags; its queues are not used any more. The memory goes with the
 * backend's. */
void completion_flags_end(struct native_domain *d);

/* Can a completion flag show the completion of `c`? */
bool completion_flag_takes(const struct backend_queue *q, const struct backend_command *c);

/* Begin to use a flag for `c`, whose event is `e`. A read then goes to e->completion_flag.at, and
 * completion_flag_mark has to follow a launch. */
void completion_flag_begin(struct backend_queue *q, const struct backend_command *c,
                           struct backend_event *e);
cl_int completion_flag_mark(struct backend_queue *q, struct backend_event *e);

enum completion_flag_state {
        COMPLETION_FLAG_WAITS,
        COMPLETION_FLAG_ASK, /* it may be complete: query the native event */
        COMPLETION_FLAG_SEEN,
};

/* Poll the flag of an event; COMPLETION_FLAG_ASK if it has none. One thread at a time. */
enum completion_flag_state completion_flag_poll(struct backend_event *e);

/* Copy the read bytes to their place and free the flag; e->status is known. Does nothing for an
 * event without a flag. */
void completion_flag_end(struct backend_event *e);

#endif
