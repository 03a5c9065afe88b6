#include "core/link/found.h"

#include <string.h>

#include "base/log.h"
#include "core/client.h"
#include "core/link/found_twins.h"
#include "core/link/new_session.h"

enum {
        TRIED_MAX = 4,            /* servers of the network with one key that have not answered */
        TRY_NEXT_NS = 2000000000, /* so long one address is tried while there are others */
        GIVE_WAY_NS = 2000000000  /* so long one server is tried while others wait */
};

bool found_is_gone(const struct server *s)
{
        const struct found *f = found_of(s);
        return f && (!f->present || f->twin);
}

bool found_is_used(const struct server *s)
{
        list_each(x, &s->client->contexts, struct _cl_context, link)
        {
                for (cl_uint i = 0; i < x->device_count; i++)
                        if (x->devices[i]->server->sessions.first == s->sessions.first)
                                return true;
        }
        return false;
}

bool found_shows(const struct server *s)
{
        return !found_is_gone(s) || found_is_used(s);
}

/* End the session of a server that is gone, if no context has it. True: it goes on. */
static bool leave(struct found *f) REQUIRES(client_held)
{
        struct server *s = f->first ? f->first->sessions.last : NULL;
        if (!s || s->state == SERVER_LOST)
                return false;
        if (found_is_used(s))
                return true;
        if (s->state == SERVER_UP && session_send(s->session, close, .status = 0) == 0)
                server_send(s);
        server_lost(s, SP_E_GONE, "it is withdrawn");
        return false;
}

/* The network's word? Then the identity begins with the key. */
static bool is_networks(const struct found *f)
{
        return !f->by_program && found_has_key(f->identity);
}

/* Anybody can copy a key into any number of records. So servers of the network that have not
 * answered take turns. Returns the one that has been tried for the longest time: of those with the
 * key of `f`, if `f` is one, and more than TRIED_MAX - 1 are tried; if `any`, of all. */
static struct found *find_tried(struct client *c, const struct found *f, bool any)
        REQUIRES(client_held)
{
        struct found *oldest = NULL;
        unsigned count = 0;
        list_each(g, &c->found.all, struct found, link)
        {
                if (!g->first || g->added || g->first->sessions.last != g->first ||
                    g->first->state != SERVER_NEW || g->by_program)
                        continue;
                if (!any && (!is_networks(f) || !is_networks(g) ||
                             strncmp(f->identity, g->identity, DISCOVERED_KEY) != 0))
                        continue;
                count++;
                oldest = oldest && oldest->begun_ns <= g->begun_ns ? oldest : g;
        }
        return any || count >= TRIED_MAX ? oldest : NULL;
}

/* Give the session of `g`, which has not answered, to `f`. `g` waits behind the others. */
static void give_way(struct client *c, struct found *g, struct found *f) REQUIRES(client_held)
{
        uint64_t now = client_now_ns(c);
        if (now - g->begun_ns < GIVE_WAY_NS)
                return;
        f->first = g->first;
        f->first->found = f;
        f->begun_ns = f->tried_ns = now;
        g->first = NULL;
        list_remove(&g->link);
        list_append(&c->found.all, &g->link);
        (void)!server_move(f->first,
                           &found_next_target(f, NULL)->spec); /* it can't fail: it is new */
}

/* False: there is no number for it. */
static bool begin_first(struct client *c, struct found *f) REQUIRES(client_held)
{
        struct target *t = found_next_target(f, NULL);
        struct found *other = find_tried(c, f, false);
        int r = other ? SP_E_LIMIT : server_add(c, &t->spec, f->by_program, &f->first);
        if (r == SP_E_LIMIT && !other)
                other = find_tried(c, f, true);
        f->begun_ns = f->tried_ns = client_now_ns(c);
        if (r == 0)
                f->first->found = f;
        else if (other)
                give_way(c, other, f);
        else if (r != SP_E_LIMIT || !c->sessions.due)
                found_report_full(c, t->spec.name, r);
        return r != SP_E_LIMIT;
}

bool found_step(struct client *c, struct found *f)
{
        bool before = f->present;
        f->present = found_next_target(f, NULL) != NULL;
        if (!f->present) {
                if (before && f->first)
                        log_info("client", "the server %s is withdrawn", server_name(f->first));
                f->twin = false;
                return leave(f);
        }
        if (!before || f->twin || !f->first)
                found_update_twin(c, f);
        if (f->twin)
                return leave(f);
        if (!f->first) {
                begin_first(c, f);
                return true;
        }
        struct server *last = f->first->sessions.last;
        if (last->state == SERVER_UP)
                return false;
        if (last->state == SERVER_IDLE && found_is_current(f, last->spec))
                return false;
        bool slow = last->state == SERVER_NEW && client_now_ns(c) - f->tried_ns > TRY_NEXT_NS;
        struct target *t = found_next_target(f, last->spec);
        if (!found_is_current(f, last->spec) || (slow && &t->spec != last->spec) ||
            last->state == SERVER_LOST) {
                f->tried_ns = client_now_ns(c);
                (void)!server_move(last, &t->spec); /* else the next time */
        }
        return last->state != SERVER_IDLE;
}

bool found_step_all(struct client *c)
{
        bool again = false;
        for (unsigned there = 0; there < 2; there++) {
                list_each(f, &c->found.all, struct found, link)
                {
                        if ((found_next_target(f, NULL) != NULL) == there)
                                again |= found_step(c, f);
                }
        }
        return again;
}

void found_begin_first(struct client *c)
{
        list_each(f, &c->found.all, struct found, link)
        {
                if (!f->present || f->twin || f->first)
                        continue;
                found_update_twin(c, f);
                if (!f->twin && !begin_first(c, f))
                        break;
        }
}

void found_tidy(struct client *c)
{
        list_each(f, &c->found.all, struct found, link)
        {
                if (!f->present)
                        leave(f);
        }
}

/* Sessions before this one brought no devices: it is the first that counts. */
static void adopt(struct server *s) REQUIRES(client_held)
{
        struct client *c = s->client;
        struct server *old = s->sessions.first;
        struct found *f = old->found;
        for (unsigned i = 0; i < c->server_count; i++)
                if (c->servers[i]->sessions.first == old)
                        c->servers[i]->sessions.first = s;
        list_each(r, &c->sessions.retired, struct server, sessions.retired)
        {
                if (r->sessions.first == old)
                        r->sessions.first = s;
        }
        old->found = NULL;
        s->sessions.first = s->sessions.last = s;
        s->found = f;
        f->first = s;
}

bool found_came(struct server *s)
{
        struct client *c = s->client;
        struct found *f = found_of(s);
        if (!f || f->added)
                return false;
        if (s != s->sessions.first)
                adopt(s);
        struct server *twin = found_find_twin(c, f, s->spec, s->identity);
        if (twin) {
                log_info("client", "%s is the server %s", server_name(s), server_name(twin));
                f->twin = true;
                leave(f);
                return true;
        }
        server_notify_added(s);
        if (client_add_devices(c, s) < 0)
                log_error("client", "%s: out of memory", server_name(s));
        f->added = true;
        client_show_devices(c, s);
        log_info("client", "the server %s is there", server_name(s));
        return true;
}
