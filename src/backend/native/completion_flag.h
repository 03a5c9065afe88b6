/* The ends of commands, seen in bytes that the device writes into memory of the host. Objects and threads as in native.h. */
#ifndef SPANCL_BACKEND_NATIVE_COMPLETION_FLAG_H
#define SPANCL_BACKEND_NATIVE_COMPLETION_FLAG_H

#include "backend/native/native.h"

/* Bytes of a read that lands. */
enum { COMPLETION_FLAG_MAX = 16 << 10 };

/* The domain gets memory for it, if it is of use there; it may be without. Takes milliseconds. */
void completion_flags_begin(struct backend *b, struct native_domain *d);

/* The domain's queues are not used any more: its memory goes with the backend's. */
void completion_flags_end(struct native_domain *d);

/* Is the end of `c` to be seen in a completion flag? */
bool completion_flag_takes(const struct backend_queue *q, const struct backend_command *c);

/* Then `e` is its event. A read is to go to e->completion_flag.at, and behind a launch goes completion_flag_mark. */
void completion_flag_begin(struct backend_queue *q, const struct backend_command *c,
                           struct backend_event *e);
cl_int completion_flag_mark(struct backend_queue *q, struct backend_event *e);

enum completion_flag_state {
        COMPLETION_FLAG_WAITS,
        COMPLETION_FLAG_ASK, /* it may be over: the native event is to be asked */
        COMPLETION_FLAG_SEEN,
};

/* Of an event without a completion flag COMPLETION_FLAG_ASK. One thread at a time. */
enum completion_flag_state completion_flag_poll(struct backend_event *e);

/* e->status is known: what was read goes to its place, and the completion flag is free again. Of other events nothing. */
void completion_flag_end(struct backend_event *e);

#endif
