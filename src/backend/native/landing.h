/* The ends of commands, seen in bytes that the device writes into memory of the host. Objects and threads as in native.h. */
#ifndef SPANCL_BACKEND_NATIVE_LANDING_H
#define SPANCL_BACKEND_NATIVE_LANDING_H

#include "backend/native/native.h"

/* Bytes of a read that lands. */
enum { LANDING_MAX = 16 << 10 };

/* The domain gets memory for it, if it is of use there; it may be without. Takes milliseconds. */
void landings_begin(struct backend *b, struct native_domain *d);

/* The domain's queues are not used any more: its memory goes with the backend's. */
void landings_end(struct native_domain *d);

/* Is the end of `c` to be seen in a landing? */
bool landing_takes(const struct backend_queue *q, const struct backend_command *c);

/* Then `e` is its event. A read is to go to e->landed.at, and behind a launch goes landing_mark. */
void landing_begin(struct backend_queue *q, const struct backend_command *c,
                   struct backend_event *e);
cl_int landing_mark(struct backend_queue *q, struct backend_event *e);

enum landing {
        LANDING_WAITS,
        LANDING_ASK, /* it may be over: the native event is to be asked */
        LANDING_SEEN,
};

/* Of an event without a landing LANDING_ASK. One thread at a time. */
enum landing landing_look(struct backend_event *e);

/* e->status is known: what was read goes to its place, and the landing is free again. Of other events nothing. */
void landing_end(struct backend_event *e);

#endif
