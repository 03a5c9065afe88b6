/* The calls of clEnqueue* of a timeline: which command each one enqueued, and its name. They are collected from the
 * client's records while these are written. One owner. */
#ifndef SPANCL_CORE_PROFILE_CALLS_H
#define SPANCL_CORE_PROFILE_CALLS_H

#include "core/client.h"
#include "trace/trace.h"

struct calls {
        struct call *all;
        size_t count, room;
        bool incomplete; /* for want of memory */
};

void calls_fini(struct calls *c);

/* Add the call of a record, if it is one. Returns the name of its command; NULL: there is none. */
const char *calls_put(struct calls *c, const struct trace_record *r) REQUIRES(client_held);

/* When all were added, and before the functions below. */
void calls_sort(struct calls *c);

/* Return true if the event's command has a call. */
bool calls_have(const struct calls *c, uint64_t event);

/* The journal has the event's command. */
void calls_journaled(struct calls *c, uint64_t event);
/* How many commands the journal does not have. */
size_t calls_count_others(const struct calls *c);

/* Return the name of the command that an event completes; NULL: it is not known. */
const char *calls_name(const struct calls *c, uint64_t event) REQUIRES(client_held);

#endif
