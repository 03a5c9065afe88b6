#include "core/link/new_session.h"

#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/context.h"
#include "core/device.h"
#include "core/link/availability.h"
#include "core/link/described.h"
#include "core/link/found.h"
#include "core/link/io.h"
#include "core/link/listeners.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "core/progress.h"
#include "proto/info.h"

enum {
        PAUSE_FIRST_NS = 20000000, /* after a session that brought no devices, doubled each time */
        PAUSE_MAX_NS = 1000000000,
};

/* ---- numbers -------------------------------------------------------------------------------- */

/* Does nothing use it any more, though it may come back? */
static bool is_unused(const struct server *s) REQUIRES(client_held)
{
        return (s->state == SERVER_LOST || s->state == SERVER_IDLE) && s->reaped && !s->receiving &&
               list_empty(&s->sub_devices) && !server_is_used(s);
}

static bool is_newest(const struct server *s)
{
        return s->sessions.first->sessions.last == s;
}

/* Does nothing know it by its number any more? */
static bool is_forgotten(const struct server *s) REQUIRES(client_held)
{
        return (!is_newest(s) || found_is_gone(s->sessions.first)) && is_unused(s);
}

/* The first one has the devices that the application knows. */
static void retire(struct server *s) REQUIRES(client_held)
{
        struct client *c = s->client;
        for (unsigned i = 0; i < c->server_count; i++) {
                struct server *other = c->servers[i];
                server_set_remove(&other->peers.introduced, s->index);
                server_set_remove(&other->peers.turned, s->index);
                server_set_remove(&other->peers.bad, s->index);
                other->peers.relays[s->index] = 0;
        }
        struct server *first = s->sessions.first;
        if (s == first) {
                list_append(&c->sessions.retired, &s->sessions.retired);
                return;
        }
        if (first->sessions.last == s) { /* it is gone, and may come back */
                first->sessions.last = first;
                if (first->state == SERVER_IDLE)
                        first->state = SERVER_LOST;
                for (cl_uint i = 0; i < first->device_count; i++) {
                        first->devices[i]->available = first->devices[i]->present->available;
                        first->devices[i]->present = first->devices[i];
                }
        }
        server_free(s, false);
}

/* Have so many servers a number that only numbers for later sessions with them are left? */
static bool is_full(const struct client *c) REQUIRES(client_held)
{
        unsigned servers = 0;
        for (unsigned i = 0; c->server_count >= CLIENT_FIRST_MAX && i < c->server_count; i++)
                servers += is_newest(c->servers[i]) && !is_forgotten(c->servers[i]);
        return servers >= CLIENT_FIRST_MAX;
}

/* A number: that of the session before, a new one, or one whose server can retire. `quiet`: no call is in the midst
 * of anything. No call knows an idle server. CLIENT_SERVERS_MAX: there is none now. */
static unsigned find_number(struct client *c, const struct server *before, bool quiet)
        REQUIRES(client_held)
{
        if (!before && is_full(c))
                return CLIENT_SERVERS_MAX;
        bool has_number = before && c->servers[before->index] == before;
        if (has_number && before->state == SERVER_IDLE && is_unused(before))
                return before->index;
        if (c->server_count < CLIENT_SERVERS_MAX)
                return c->server_count;
        if (quiet && has_number && is_unused(before))
                return before->index;
        for (unsigned i = 0; i < c->server_count; i++) {
                const struct server *s = c->servers[i];
                if ((quiet || s->state == SERVER_IDLE) && is_forgotten(s))
                        return i;
        }
        return CLIENT_SERVERS_MAX;
}

/* ---- opening -------------------------------------------------------------------------------- */

bool server_may_begin(const struct server *s)
{
        const struct client *c = s->client;
        return c->io->open && c->disconnected.reconnect_ns && !c->closing && !s->spec->in_process &&
               s->sessions.first->sessions.last == s && !found_is_gone(s) &&
               (s->sessions.first->device_count || s->sessions.first->found);
}

/* Begin the first session with a server, or the one after `before`. */
static int begin(struct client *c, const struct server_spec *spec, struct server *before,
                 bool wanted, bool quiet, struct server **ret) REQUIRES(client_held)
{
        struct server *n;
        unsigned number = find_number(c, before, quiet);
        if (number == CLIENT_SERVERS_MAX)
                return SP_E_LIMIT;
        int r = server_new(c, number, spec, &n);
        if (r < 0)
                return r;
        n->sessions.wanted = wanted;
        if (before) {
                n->sessions.first = before->sessions.first;
                n->sessions.fruitless = before->device_count ? 0 : before->sessions.fruitless + 1;
        }
        unsigned shift = n->sessions.fruitless < 8 ? n->sessions.fruitless : 8;
        uint64_t pause = (uint64_t)PAUSE_FIRST_NS << shift >> 1;
        pause = pause < PAUSE_MAX_NS ? pause : PAUSE_MAX_NS;
        n->idle.awaited = before && before->state == SERVER_IDLE;
        uint64_t at = client_now_ns(c) + (n->sessions.fruitless ? pause : 0);
        r = c->io->open(c->io_user, n->spec, n->session, n->idle.awaited ? 0 : at,
                        server_describes(n), &n->link);
        if (r < 0) {
                server_free(n, false);
                return r;
        }
        if (number == c->server_count)
                c->server_count++;
        else
                retire(c->servers[number]);
        c->servers[number] = n;
        n->sessions.first->sessions.last = n;
        *ret = n;
        return 0;
}

static int open_anew(struct server *s, bool quiet) REQUIRES(client_held)
{
        struct server *n;
        return begin(s->client, s->spec, s, s->sessions.wanted, quiet, &n);
}

static bool is_quiet(const struct client *c) REQUIRES(client_held)
{
        return !c->wait.waiters && !c->wait.pumping;
}

int server_add(struct client *c, const struct server_spec *spec, bool wanted, struct server **ret)
{
        int r = c->io->open ? begin(c, spec, NULL, wanted, is_quiet(c), ret) : SP_E_UNSUPP;
        if (r == SP_E_LIMIT && !is_quiet(c))
                c->sessions.due = true;
        progress_wake(c);
        c->io->wake(c->io_user);
        return r;
}

int server_move(struct server *s, const struct server_spec *spec)
{
        struct client *c = s->client;
        if (s->state == SERVER_NEW) { /* the receiver does it: it may sleep on the link */
                s->sessions.moves_to = spec;
                c->io->wake(c->io_user);
                return 0;
        }
        s->spec = spec;
        if (s->state == SERVER_IDLE)
                return 0;
        if (s->state != SERVER_LOST)
                server_lost(s, SP_E_LINK, "it has moved");
        if (s->sessions.first->sessions.last != s)
                return 0; /* the loss has begun a session */
        int r = open_anew(s, is_quiet(c));
        progress_wake(c);
        c->io->wake(c->io_user);
        return r;
}

void server_begin_session(struct server *s)
{
        struct client *c = s->client;
        if (!server_may_begin(s))
                return;
        if (open_anew(s, false) < 0)
                c->sessions.due = true;
        progress_wake(c);
        c->io->wake(c->io_user);
}

void server_begin_again(struct server *s)
{
        struct client *c = s->client;
        int r = server_may_begin(s) ? open_anew(s, false) : SP_E_GONE;
        if (r < 0)
                server_lost(s, r, status_text(r));
        progress_wake(c);
        c->io->wake(c->io_user);
}

void servers_begin_sessions(struct client *c)
{
        if (!c->sessions.due || !is_quiet(c))
                return;
        c->sessions.due = false;
        for (unsigned i = 0; i < c->server_count; i++) {
                struct server *s = c->servers[i];
                if (s->state == SERVER_LOST && server_may_begin(s) && open_anew(s, true) < 0)
                        c->sessions.due = true;
        }
        found_begin_first(c);
}

/* ---- the new session ------------------------------------------------------------------------ */

static cl_device_id find_same(const struct server *first, const struct server *s,
                              const struct _cl_device_id *d)
{
        for (cl_uint i = 0; i < first->device_count; i++) {
                cl_device_id shown = first->devices[i];
                if (shown->present->server != s && device_is_same(shown, d))
                        return shown;
        }
        return NULL;
}

/* Put the new session's devices in the place of those that the application knows. Devices that did
 * not come back stay unavailable. */
static void take_place(struct server *s) REQUIRES(client_held)
{
        struct server *first = s->sessions.first;
        for (cl_uint i = 0; i < first->device_count; i++) {
                first->devices[i]->present = first->devices[i];
                first->devices[i]->available = false;
        }
        for (cl_uint i = 0; i < s->device_count; i++) {
                cl_device_id d = s->devices[i], shown = find_same(first, s, d);
                if (!shown) {
                        log_warn("client", "%s has a device that it did not have before: %s",
                                 server_name(s), device_text(d, CL_DEVICE_NAME));
                        continue;
                }
                d->shown = shown;
                d->svm = shown->svm;
                shown->present = d;
                device_changed(shown);
        }
        for (cl_uint i = 0; i < first->device_count; i++)
                if (first->devices[i]->present->server != s) {
                        log_warn("client", "%s does not have this device any more: %s",
                                 server_name(s), device_text(first->devices[i], CL_DEVICE_NAME));
                        device_changed(first->devices[i]);
                }
        server_notify_replaced(s);
}

/* Was the context made with one of the server's earlier sessions? */
static bool was_used(const struct _cl_context *x, const struct server *s)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (x->devices[i]->server->sessions.first == s->sessions.first)
                        return true;
        return false;
}

static void send_state(struct server *s) REQUIRES(client_held)
{
        char line[256];
        struct server *first = s->sessions.first;
        bool again = !first->idle.described; /* else it is the first session */
        first->idle.described = false;
        log_at(s->idle.awaited || !again ? LOG_INFO : LOG_WARN, "client",
               "the server %s is connected%s session", server_name(s),
               again ? " again, with a new" : ", with its first");
        snprintf(
                line, sizeof(line),
                "SpanCL: the server %s is connected again, with a new session, for contexts that are made "
                "from now on",
                server_name(s));
        list_each(x, &s->client->contexts, struct _cl_context, link) if (was_used(x, s))
                context_notify(x, line);
}

static void devices_came(struct request *q) REQUIRES(client_held)
{
        struct server *s = q->user;
        if (s->state == SERVER_UP) {
                int r = q->status ? SP_E_PROTO
                                  : server_take_devices(s, bytes_of(q->info.data, q->info.size));
                if (r < 0) {
                        server_lost(s, r, "it could not tell its devices");
                } else {
                        if (!found_came(s)) {
                                take_place(s);
                                send_state(s);
                        }
                }
        }
        s->idle.awaited = false;
        client_changed(s->client);
        buf_fini(&q->info);
}

/* It has described its devices, and has no session yet. */
static void description_came(struct server *s, struct io_connect *at) REQUIRES(client_held)
{
        int r = s->idle.described && s->state == SERVER_IDLE ? 0 : SP_E_GONE;
        hello_devices_fini(&at->devices);
        if (!r && !found_came(s))
                take_place(s);
        client_changed(s->client);
}

/* It has not been reached yet, and has another address now. Nothing has used the session. */
static int open_elsewhere(struct server *s) REQUIRES(client_held)
{
        struct client *c = s->client;
        struct io_link *link = s->link;
        s->spec = s->sessions.moves_to;
        s->sessions.moves_to = NULL;
        s->link = NULL;
        c->io->close(c->io_user, link, false);
        return c->io->open(c->io_user, s->spec, s->session, s->idle.awaited ? 0 : client_now_ns(c),
                           server_describes(s), &s->link);
}

/* A call waits for the session: has it waited long enough? The client goes on trying. */
static bool is_refused(struct server *s) REQUIRES(client_held)
{
        struct client *c = s->client;
        const char *text =
                s->idle.awaited && c->io->refused ? c->io->refused(c->io_user, s->link) : NULL;
        if (!text)
                return false;
        log_error("client", "%s", text);
        s->idle.awaited = false;
        client_changed(c);
        return true;
}

bool server_opening(struct server *s)
{
        struct client *c = s->client;
        if (s->receiving || !s->link)
                return false;
        s->receiving = true;
        int r = s->sessions.moves_to ? open_elsewhere(s) : c->io->receive(c->io_user, s->link);
        s->receiving = false;
        if (r < 0)
                server_lost(s, r, status_text(r));
        if (r <= 0)
                return r ? true : is_refused(s);
        struct io_connect at = { .spec = s->spec, .session = s->session, .link = s->link };
        c->io->opened(c->io_user, s->link, &at);
        memcpy(s->id, at.id, sizeof(s->id));
        memcpy(s->key, at.key, sizeof(s->key));
        s->sessions.ask.notify = devices_came;
        s->sessions.ask.user = s;
        server_connected(s, &at, &s->sessions.ask);
        if (at.described)
                description_came(s, &at);
        return true;
}
