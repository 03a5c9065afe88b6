/* The server-side event graph. An event is the completion of one command of this server, or of
 * something elsewhere (imported). The table has the events that are not complete, and the newest
 * failed ones. An event that it does not have completed successfully. */
#ifndef SPANCL_ENGINE_EVENT_H
#define SPANCL_ENGINE_EVENT_H

#include "engine/lock.h"
#include "engine/transfer/peer.h"

enum event_state {
        EVENT_HELD,      /* it has no native event (yet) */
        EVENT_SUBMITTED, /* it has the native event `native`, in `domain` */
        EVENT_DONE,      /* remembered: failed, or not imported yet */
};

struct subscriber;

struct event {
        struct engine *engine;
        uint64_t id; /* 0: of a command in a running recording: no name, not in the table */
        enum event_state state;
        cl_int status; /* DONE */
        bool imported;
        bool notify; /* notify the client when it completes */
        /* Imported, or complete before its import: the peer it comes from; 0: the client. */
        uint64_t origin;
        uint64_t queue; /* id; 0: imported */
        unsigned domain;
        struct backend_event *native;
        /* Its command, whose completion the backend does not report, yet; NULL: it does. */
        struct command *unreported;
        struct list dependents; /* dependencies on it */
        struct subscriber *subscribers;
        struct list link; /* DONE: in engine's failed or early */
        /* The error with which the implementation refused the launch; 0: it did not. */
        cl_int refused;
        /* The launch_query to answer when the launch leaves its queue; 0: none. */
        uint64_t asked;
};

struct command;

/* One entry of a command's wait list. While it blocks, the command is held. */
struct dependency {
        struct list link;    /* event's dependents */
        struct event *event; /* NULL: complete */
        struct command *command;
        bool blocking;
        /* If it fails, the command fails, also if that ignores other failures. */
        bool strict;
};

/* Make an event in the table, HELD. SP_E_PROTO: it exists; SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_event_new(struct engine *e, uint64_t id, struct event **ret)
        REQUIRES(engine_held);

/* Make an event without a name, HELD. Its command owns it until it is complete. */
SP_NODISCARD int engine_event_new_nameless(struct engine *e, struct event **ret)
        REQUIRES(engine_held);
/* Free an event whose command will never complete, and on which nothing waits. */
void engine_event_discard(struct event *ev) REQUIRES(engine_held);

struct event *engine_event_find(struct engine *e, uint64_t id) REQUIRES(engine_held);

/* Does the wait list name the event? A command that waits for itself would never be submitted. */
bool engine_event_among(uint64_t id, struct wire_u64s waits);

/* Make `d`, of a command in `domain`, wait for the event. 1: it waits; 0: the event was complete;
 * negative: the event failed, with that status. */
SP_NODISCARD int engine_event_depend(struct engine *e, uint64_t id, unsigned domain,
                                     struct dependency *d) REQUIRES(engine_held);
/* The same for an event that is not complete. */
void engine_event_join(struct event *ev, unsigned domain, struct dependency *d);
void engine_event_drop(struct dependency *d);

/* Have the event's completion observed: something other than a native command of its own domain
 * needs it. And: is it observed so? */
void engine_event_observe(struct event *ev);
bool engine_event_is_observed(const struct event *ev, unsigned domain);

/* The event is now that of the native command `native`, which it takes over. */
void engine_event_submitted(struct event *ev, struct backend_event *native, unsigned domain);

/* Complete the event: notify its subscribers, make its dependents ready, and forget it, or keep it
 * as failed. `times` may be NULL. */
void engine_event_complete(struct event *ev, cl_int status, const struct backend_times *times)
        REQUIRES(engine_held);

/* The peer is lost: events imported from it fail. */
void engine_event_fail_origin(struct engine *e, uint64_t peer, cl_int status) REQUIRES(engine_held);

/* Free all events without notifications, and release their native events. */
void engine_event_free_all(struct engine *e) REQUIRES(engine_held);

int engine_handle_event_import(void *user, const struct wire_event_import *m) REQUIRES(engine_held);
int engine_handle_event_subscribe(void *user, const struct wire_event_subscribe *m)
        REQUIRES(engine_held);
int engine_handle_event_watch(void *user, const struct wire_event_watch *m) REQUIRES(engine_held);
int engine_handle_event_done(void *user, const struct wire_event_done *m) REQUIRES(engine_held);

#endif
