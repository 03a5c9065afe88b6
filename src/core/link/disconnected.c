#include "core/link/disconnected.h"

#include <stdio.h>

#include "base/log.h"
#include "core/client.h"
#include "core/context.h"
#include "core/link/availability.h"
#include "core/link/found_sources.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "core/progress.h"
#include "core/recorder.h"
#include "trace/trace.h"

enum { LOSSES_MAX = 16 }; /* connections in a row that are of no use */

bool server_may_return(const struct server *s, int status)
{
        return status == SP_E_LINK && s->state == SERVER_UP && !s->spec->in_process &&
               s->client->disconnected.reconnect_ns && !s->client->closing;
}

bool server_tries_in_vain(struct server *s)
{
        uint64_t progress = session_next_seq(s->session) + session_acked_seq(s->session);
        s->disconnected.losses =
                progress == s->disconnected.progress ? s->disconnected.losses + 1 : 0;
        s->disconnected.progress = progress;
        return s->disconnected.losses >= LOSSES_MAX;
}

static void explain(struct server *s) REQUIRES(client_held)
{
        if (*s->disconnected.untold)
                log_at(s->disconnected.untold_level, "client", "the server %s %s", server_name(s),
                       s->disconnected.untold);
        s->disconnected.untold[0] = '\0';
}

void server_log(struct server *s, enum log_level level, const char *text)
{
        struct client *c = s->client;
        s->disconnected.untold_level = level;
        snprintf(s->disconnected.untold, sizeof(s->disconnected.untold), "%s", text);
        if (c->wait.waiters)
                explain(s);
        else
                log_info("client", "the server %s %s", server_name(s), text);
}

static void notify(struct server *s, const char *what) REQUIRES(client_held)
{
        char line[256];
        snprintf(line, sizeof(line), "SpanCL: the server %s %s", server_name(s), what);
        contexts_notify(s, line);
}

void server_set_available(struct server *s, bool available)
{
        available = available && !s->drains;
        for (cl_uint i = 0; i < s->device_count; i++) {
                s->devices[i]->available = available;
                device_changed(s->devices[i]->shown);
        }
        list_each(d, &s->sub_devices, struct _cl_device_id, link)
        {
                d->available = available;
                device_changed(d);
        }
}

static void refuse(struct server *s) REQUIRES(client_held)
{
        s->disconnected.refusing = true;
        server_set_available(s, false);
        requests_fail(s);
        client_changed(s->client);
}

/* An application that watches devices has other work to do meanwhile. */
static uint64_t patience_of(const struct client *c) REQUIRES(client_held)
{
        return c->disconnected.watchers_fail && c->availability.watched ? 0
                                                                        : c->disconnected.wait_ns;
}

void server_disconnected(struct server *s)
{
        struct client *c = s->client;
        TRACE(disconnected, s->index);
        recorder_trigger("lost the link to", server_name(s));
        s->state = SERVER_DISCONNECTED;
        c->disconnected.count++;
        s->lost_status = 0;
        s->sending.unsent_since = 0;
        s->sending.backlog = false;
        s->disconnected.redialled = false;
        server_halt(s);
        uint64_t now = client_now_ns(c);
        uint64_t patience = patience_of(c);
        s->disconnected.refuse_at_ns = patience < UINT64_MAX - now ? now + patience : UINT64_MAX;
        const char *text =
                "can't be reached; its commands continue, and the client tries to reconnect";
        server_log(s, LOG_WARN, text);
        notify(s, text);
        if (!patience)
                refuse(s);
        found_lost(s);
        /* The receiver connects it: it may sleep on its connections. */
        c->io->wake(c->io_user);
        progress_wake(c);
}

int server_redial(struct server *s)
{
        struct client *c = s->client;
        if (s->disconnected.redialled)
                return 0;
        s->disconnected.redialled = true;
        return c->io->reconnect(c->io_user, s->link,
                                client_now_ns(c) + c->disconnected.reconnect_ns);
}

void server_back(struct server *s)
{
        TRACE(reconnected, s->index);
        s->state = SERVER_UP;
        s->client->disconnected.count--;
        s->disconnected.refusing = false;
        s->sending.last_traffic = client_now_ns(s->client);
        server_set_available(s, true);
        if (*s->disconnected.untold) /* no call has met the loss */
                s->disconnected.untold[0] = '\0';
        else
                log_warn("client", "the server %s is connected again", server_name(s));
        notify(s, "is connected again");
        if (s->sending.bulk_lane) { /* either side may have some to go on with */
                s->sending.bulk_lane = false;
                server_want_bulk(s, UINT64_MAX);
        }
        server_send(s);
        client_changed(s->client);
}

bool server_refuses(const struct server *s)
{
        return s->state == SERVER_LOST || s->state == SERVER_IDLE || server_ends(s) ||
               (s->state == SERVER_DISCONNECTED &&
                (s->disconnected.refusing || s->client->closing));
}

bool server_fails(struct server *s)
{
        explain(s);
        return server_refuses(s);
}

void servers_watched(struct client *c)
{
        for (unsigned i = 0; i < c->server_count; i++) {
                struct server *s = c->servers[i];
                if (s->state == SERVER_DISCONNECTED && !patience_of(c))
                        s->disconnected.refuse_at_ns = 0;
        }
        servers_refuse(c);
}

void servers_refuse(struct client *c)
{
        for (unsigned i = 0; i < c->server_count; i++) {
                struct server *s = c->servers[i];
                if (s->state == SERVER_DISCONNECTED && !s->disconnected.refusing &&
                    client_now_ns(c) >= s->disconnected.refuse_at_ns)
                        refuse(s);
        }
}

static int tick_answers(struct server *s, uint64_t now) REQUIRES(client_held)
{
        struct client *c = s->client;
        bool counts = c->wait.waiters || c->progress.interests;
        int r = session_tick(s->session, counts ? SESSION_EXPECTS_ANSWERS : SESSION_EXPECTS_NOTHING,
                             c->disconnected.answer_ns, now);
        if (r < 0)
                log_warn(
                        "client",
                        "the server %s: %s for %llu ms (SPANCL_ANSWER_TIMEOUT): the client reconnects",
                        server_name(s), session_overdue(s->session),
                        (unsigned long long)(c->disconnected.answer_ns / 1000000));
        return r;
}

/* Is it connected to another process, and is nothing wrong with it so far? */
static bool is_timed(const struct server *s)
{
        return s->state == SERVER_UP && !s->lost_status && !s->spec->in_process;
}

static void drop(struct server *s, int status) REQUIRES(client_held)
{
        s->lost_status = status;
        if (!s->receiving)
                server_broken(s, status);
}

void servers_tick(struct client *c, uint64_t now_ns)
{
        for (unsigned i = 0; i < c->server_count && c->disconnected.answer_ns; i++) {
                struct server *s = c->servers[i];
                int r = is_timed(s) ? tick_answers(s, now_ns) : 0;
                if (r < 0)
                        drop(s, r);
        }
}

void servers_check_silence(struct client *c, uint64_t now_ns)
{
        for (unsigned i = 0; i < c->server_count && c->io->silent; i++) {
                struct server *s = c->servers[i];
                s->disconnected.silence_ns = UINT64_MAX;
                if (!is_timed(s) ||
                    !c->io->silent(c->io_user, s->link, now_ns, &s->disconnected.silence_ns))
                        continue;
                log_warn(
                        "client",
                        "the server %s: its host acknowledges nothing (SPANCL_LINK_TIMEOUT): the client reconnects",
                        server_name(s));
                drop(s, SP_E_LINK);
        }
}

static uint64_t deadline_of(const struct server *s) REQUIRES(client_held)
{
        uint64_t answer =
                s->client->disconnected.answer_ns ? session_deadline(s->session) : UINT64_MAX;
        uint64_t silence = s->disconnected.silence_ns;
        return silence && silence < answer ? silence : answer;
}

uint64_t servers_deadline(const struct client *c)
{
        uint64_t t = UINT64_MAX;
        for (unsigned i = 0; i < c->server_count; i++) {
                const struct server *s = c->servers[i];
                uint64_t at = UINT64_MAX;
                if (s->state == SERVER_DISCONNECTED && !s->disconnected.refusing)
                        at = s->disconnected.refuse_at_ns;
                else if (s->state == SERVER_UP && !s->spec->in_process)
                        at = deadline_of(s);
                else if (s->state == SERVER_IDLE && s->link)
                        at = s->idle.close_ns;
                t = at < t ? at : t;
        }
        return t;
}
