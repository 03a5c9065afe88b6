/* The server-side event graph. An event is the completion of one command, or of something elsewhere
 * (imported). The table has those that are not complete, and the newest of those that failed; what it
 * does not have completed successfully. */
#ifndef SPANCL_ENGINE_EVENT_H
#define SPANCL_ENGINE_EVENT_H

#include "engine/transfer/peer.h"

enum event_state {
        EVENT_HELD,      /* nothing native stands for it (yet) */
        EVENT_SUBMITTED, /* `native` does, in `domain` */
        EVENT_DONE,      /* kept: failed, or not imported yet */
};

struct subscriber;

struct event {
        struct engine *engine;
        uint64_t id; /* 0: a command's of a recording, which has no name and is not in the table */
        enum event_state state;
        cl_int status; /* DONE */
        bool imported;
        bool notify;     /* the client wants to know */
        uint64_t origin; /* imported, or told before: the peer it comes from; 0: the client */
        uint64_t queue;  /* id; 0: imported */
        unsigned domain;
        struct backend_event *native;
        struct command
                *unreported;    /* its command, of which nobody has asked to be told; NULL: else */
        struct list dependents; /* dependencies on it */
        struct subscriber *subscribers;
        struct list link; /* DONE: engine's failed or early */
        cl_int refused;   /* the implementation refused the launch with this error; 0: it did not */
        uint64_t asked;   /* the launch_query to answer when the launch leaves its queue; 0: none */
};

struct command;

/* One entry of a command's wait list. While it blocks, the command is held. */
struct dependency {
        struct list link;    /* event's dependents */
        struct event *event; /* NULL: complete */
        struct command *command;
        bool blocking;
        bool strict; /* its failure is the command's, also if that is regardless of others */
};

/* A new one in the table, HELD. SP_E_PROTO: it exists; SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_event_new(struct engine *e, uint64_t id, struct event **ret);

/* One without a name, HELD: its command's until it is complete. */
SP_NODISCARD int engine_event_new_nameless(struct engine *e, struct event **ret);
/* Its command will never be complete; nothing waits for it any more. */
void engine_event_discard(struct event *ev);

struct event *engine_event_find(struct engine *e, uint64_t id);

/* Does the wait list name the event? A command whose list names its own would never go. */
bool engine_event_among(uint64_t id, struct wire_u64s waits);

/* Make `d` wait for the event, for a command of `domain`. 1: it does; 0: the event was complete;
 * negative: it failed, with that status. */
SP_NODISCARD int engine_event_depend(struct engine *e, uint64_t id, unsigned domain,
                                     struct dependency *d);
/* The same for an event that is not complete. */
void engine_event_join(struct event *ev, unsigned domain, struct dependency *d);
void engine_event_drop(struct dependency *d);

/* Somebody is to be told when it is complete: anyone but a native command of its own domain. Is there? */
void engine_event_observe(struct event *ev);
bool engine_event_is_observed(const struct event *ev, unsigned domain);

/* The native command `native` stands for it from now on; the event takes it over. */
void engine_event_submitted(struct event *ev, struct backend_event *native, unsigned domain);

/* Complete it: tells who wants to know, makes dependents ready, forgets it or keeps it as failed.
 * `times` may be NULL. */
void engine_event_complete(struct event *ev, cl_int status, const struct backend_times *times);

/* The peer is lost: what was imported from it fails. */
void engine_event_fail_origin(struct engine *e, uint64_t peer, cl_int status);

/* Free all, telling nobody; native events are released. */
void engine_event_free_all(struct engine *e);

int engine_handle_event_import(void *user, const struct wire_event_import *m);
int engine_handle_event_subscribe(void *user, const struct wire_event_subscribe *m);
int engine_handle_event_watch(void *user, const struct wire_event_watch *m);
int engine_handle_event_done(void *user, const struct wire_event_done *m);

#endif
