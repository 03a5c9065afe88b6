#include "core/command/command.h"

#include "base/mem.h"
#include "core/client.h"
#include "core/command/ahead.h"
#include "core/command/command_buffer.h"
#include "core/command/enqueue.h"
#include "core/command/event.h"
#include "core/command/prefetch.h"
#include "core/command/queue.h"
#include "core/command/transfer.h"
#include "core/link/disconnected.h"
#include "core/link/server.h"
#include "core/memory/view.h"
#include "core/profile/names.h"
#include "core/status.h"

static bool has_room(void *arg) REQUIRES(client_held)
{
        struct server *s = arg;
        return server_fails(s) || session_has_room(server_session(s));
}

void command_wait_room(struct server *s)
{
        if (has_room(s))
                return;
        client_wait(s->client, has_room, s);
        if (profile_is_on())
                profile_wait_was(PROFILE_ROOM, s, NULL, 0);
}

static cl_event waited(const struct command *m, cl_uint i)
{
        return ((const cl_event *)m->events.at)[i];
}

int command_begin(struct command *m, const struct enqueue *q)
{
        m->span = trace_begin(TRACE_enqueue, 0);
        m->client = q->queue->context->client;
        m->enqueue = q;
        m->queue = q->queue;
        m->profile.begin_ns = 0;
        if (profile_is_on() && !q->record)
                profile_begin(m);
        m->server = q->queue->device->server;
        m->id = 0;
        m->event = NULL;
        m->behind_all = false;
        m->wide = false;
        m->waits = m->few_waits;
        m->wait_count = 0;
        m->wait_cap = array_size(m->few_waits);
        int borrowed = svm_borrow(&m->events, q->waits, q->wait_count * sizeof(cl_event));
        client_lock(m->client);
        if (borrowed < 0)
                return borrowed;
        command_wait_room(m->server);
        m->session = server_fails(m->server) ? NULL : server_session(m->server);
        if (!m->session)
                return SP_E_GONE;
        if (q->record)
                return record_begin(m);
        for (cl_uint i = 0; i < q->wait_count; i++) {
                cl_event e = waited(m, i);
                int r = event_reach(e, m->server);
                if (r > 0)
                        r = command_wait_for(m, e->id);
                if (r < 0)
                        return r;
        }
        return ahead_is_due(m->queue) ? ahead_order(m->queue) : 0;
}

/* A message has no room for more: one marker for them all. */
static int fold_waits(struct command *m) REQUIRES(client_held)
{
        uint64_t id = client_new_id(m->client, OBJECT_EVENT);
        int r = session_send(m->session, marker, .event = id, .queue = m->enqueue->queue->id,
                             .flags = COMMAND_NAMED, .waits = command_waits(m));
        m->wait_count = 0;
        return r < 0 ? r : command_wait_for(m, id);
}

int command_wait_for(struct command *m, uint64_t event)
{
        if (m->wait_count == WIRE_WAITS_MAX && m->enqueue) {
                int r = m->enqueue->record ? record_fold_waits(m) : fold_waits(m);
                if (r < 0)
                        return r;
        }
        if (m->wait_count == m->wait_cap) {
                uint64_t *more = mem_alloc(m->wait_cap * 2 * sizeof(*more));
                if (!more)
                        return SP_E_NOMEM;
                memcpy(more, m->waits, m->wait_count * sizeof(*more));
                if (m->waits != m->few_waits)
                        mem_free(m->waits);
                m->waits = more;
                m->wait_cap *= 2;
        }
        m->waits[m->wait_count++] = event;
        return 0;
}

/* Does the client itself have to do something before the command may be complete? */
static bool comes_later(const struct command *m) REQUIRES(client_held)
{
        for (cl_uint i = 0; i < m->enqueue->wait_count; i++)
                if (event_lags(waited(m, i)))
                        return true;
        return queue_lags(m->queue, m->behind_all);
}

static int follow(struct command *m) REQUIRES(client_held)
{
        int r = queue_follow(m->queue, m->event, m->behind_all);
        for (cl_uint i = 0; i < m->enqueue->wait_count && r == 0; i++)
                r = event_follow(m->event, waited(m, i));
        return r;
}

int command_ready(struct command *m, bool event)
{
        if (m->enqueue->record)
                return record_ready(m);
        m->id = client_new_id(m->client, OBJECT_EVENT);
        event |= profile_is_timing() && profile_counts(&m->profile) && profile_times(&m->profile);
        bool app = m->enqueue->ret_event != NULL, later = comes_later(m);
        /* Sending for command_use may have shown that the server is gone. Then nothing would
         * complete the event. */
        if (!server_session(m->server))
                return SP_E_GONE;
        m->at = session_position(m->session);
        if (!app && !event && !later)
                return 0;
        int r = event_new(m->queue, m->enqueue->type, m->id, app, &m->event);
        /* Until the application waits for or queries the event, the server need not notify that it
         * succeeded. If the client has work to do before it (`later`), the server notifies in any
         * case. */
        if (r == 0 && !event && !later && !(m->queue->properties & CL_QUEUE_PROFILING_ENABLE))
                m->event->watched = false;
        return r == 0 && later ? follow(m) : r;
}

int command_send_marker(struct command *m, uint64_t flags)
{
        return session_send(m->session, marker, .event = m->id, .queue = m->queue->id,
                            .flags = command_flags(m) | flags, .waits = command_waits(m));
}

int command_wait_for_nothing(struct command *m)
{
        if (m->enqueue->record) /* there it is not meant anyway */
                return 0;
        return m->wait_count ? 0 : command_wait_for(m, client_new_id(m->client, OBJECT_EVENT));
}

int command_send_nothing(struct command *m)
{
        int r = command_wait_for_nothing(m);
        return r < 0 ? r : command_send_marker(m, 0);
}

/* The result of a blocking command. Errors of commands before it are not the call's own. */
static cl_int blocking_status(const struct command *m) REQUIRES(client_held)
{
        if (m->event->status < 0)
                return m->event->status;
        if (event_is_done(m->event))
                return CL_SUCCESS;
        transfer_detach(m->event);
        return CL_DEVICE_NOT_AVAILABLE;
}

/* Give the record of the call its event, and the command's name (core/profile/calls.h). */
static void tell_span(struct command *m, int r) REQUIRES(client_held)
{
        m->span.value = m->id;
        if (r < 0 || m->enqueue->record)
                m->span.probe = TRACE_enqueue;
        else if (m->span.probe == TRACE_enqueue)
                m->span.probe = trace_at(TRACE_enqueue, names_of_kind(m->enqueue->type), 0);
}

cl_int command_end(struct command *m, int r, bool wait)
{
        cl_int status = status_to_cl(r);
        if (m->enqueue->record)
                record_end(m, r);
        if (r == 0) {
                m->queue->last_event = m->id;
                m->queue->last_at = m->at;
                if (!m->event)
                        m->queue->unnamed = m->id;
                if (profile_counts(&m->profile))
                        profile_sent(m);
                if (m->queue->prefetch)
                        prefetch_behind(m);
                if (wait) {
                        if (m->queue->properties & CL_QUEUE_PROFILING_ENABLE || profile_is_timing())
                                server_ask_clock(m->server);
                        client_wait(m->client, event_is_settled, m->event);
                        if (profile_is_on())
                                profile_wait_was(PROFILE_BLOCKING, m->server, m->event,
                                                 m->profile.bytes);
                        views_waited(m->queue->context);
                        status = blocking_status(m);
                } else {
                        server_kick(m->server);
                }
        } else if (m->event) {
                event_complete(m->event, status);
        }
        /* The queue does not wait for what this command should have waited for. */
        if (r < 0 && m->wait_count && !m->enqueue->record)
                m->queue->order = client_new_id(m->client, OBJECT_QUEUE);
        if (profile_counts(&m->profile))
                profile_end(m);
        if (m->waits != m->few_waits)
                mem_free(m->waits);
        m->waits = m->few_waits;
        m->wait_count = 0;
        bool handed_out = m->event && m->enqueue->ret_event && status == CL_SUCCESS;
        if (m->event && !handed_out)
                event_unhold(m->event);
        svm_give_back(&m->events);
        if (trace_has_begun(&m->span))
                tell_span(m, r);
        trace_end(&m->span);
        client_unlock(m->client);
        if (handed_out) /* not with the lock held: it may be unified shared memory */
                *m->enqueue->ret_event = m->event;
        return status;
}
