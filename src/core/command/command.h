/* A command on its way to a queue: the steps that all commands have in common. The lock is held
 * from command_begin to command_end.
 *
 *     command_begin, command_use for what it reads and writes, command_ready, its message,
 *     command_wrote for what it writes, command_end
 *
 * Each step returns 0 or the error that command_end is to get: SP_E_* or a cl_int. */
#ifndef SPANCL_CORE_COMMAND_H
#define SPANCL_CORE_COMMAND_H

#include "core/client.h"
#include "core/command/enqueue.h"
#include "core/command/event.h"
#include "core/memory/svm.h"
#include "core/profile/profile.h"
#include "proto/wire.h"
#include "session/session.h"
#include "trace/trace.h"

struct command {
        struct client *client;
        const struct enqueue *enqueue;
        struct svm_borrowed events; /* enqueue->waits */
        cl_command_queue queue;
        struct server *server;
        struct session *session;
        uint64_t id;
        uint64_t at;     /* where its message will be (session_unsent_at) */
        cl_event event;  /* NULL: none is needed */
        bool behind_all; /* a marker or barrier without wait list */
        bool wide;       /* transfer_expect: the lane of waiting threads has enough to do */
        struct trace_span span;
        struct profile_command profile;
        uint64_t *waits;
        size_t wait_count, wait_cap;
        uint64_t few_waits[16];
};

/* Take the lock, wait for room, make the wait list known to the server. command_end follows, also
 * after an error. */
SP_NODISCARD int command_begin(struct command *m, const struct enqueue *q) ACQUIRE(client_held);
/* Wait until the server's session takes more. Releases the lock while it waits. */
void command_wait_room(struct server *s) REQUIRES(client_held);
SP_NODISCARD int command_wait_for(struct command *m, uint64_t event) REQUIRES(client_held);

/* All bytes are brought: give the command its id and, if the application wants it or `event`, its
 * event. */
SP_NODISCARD int command_ready(struct command *m, bool event) REQUIRES(client_held);

/* The fields of its message. */
static inline uint64_t command_flags(const struct command *m)
{
        /* Another device's migrations may name the command in their wait lists. */
        if (!m->event)
                return m->queue->context->device_count > 1 ? COMMAND_NAMED : 0;
        return (m->event->watched ? COMMAND_NOTIFY : COMMAND_NAMED) | (m->wide ? COMMAND_WIDE : 0);
}
static inline struct wire_u64s command_waits(const struct command *m)
{
        return (struct wire_u64s){ m->waits, m->wait_count };
}

/* Its message is a marker with these further flags. */
SP_NODISCARD int command_send_marker(struct command *m, uint64_t flags) REQUIRES(client_held);

/* Without a wait list a marker waits for everything before it. So if the list is empty, add the id of no
 * command, which for the server is one that is complete. */
SP_NODISCARD int command_wait_for_nothing(struct command *m) REQUIRES(client_held);

/* Send a command that does nothing but wait for its wait list and the events that command_use
 * added. */
SP_NODISCARD int command_send_nothing(struct command *m) REQUIRES(client_held);

/* `r` < 0: the command could not be sent. Otherwise it is now the queue's last command; it is sent
 * soon, and if `wait`, waited for. Hands its event out and releases the lock. Returns the result of
 * the API call. */
cl_int command_end(struct command *m, int r, bool wait) RELEASE(client_held);

#endif
