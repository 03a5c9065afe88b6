#include "core/link/found.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/link/io.h"
#include "core/link/listeners.h"
#include "core/link/new_session.h"
#include "discovery/discovery.h"
#include "transport/address.h"

enum {
        FOUND_MAX = 1024,         /* servers that are there, or have had a session */
        FOUND_OF_KEY_MAX = 256,   /* of them with one key, which anybody can copy */
        TARGETS_MAX = 64,         /* addresses of one server */
        TRIED_MAX = 4,            /* servers of the network with one key that have not answered */
        TRY_NEXT_NS = 2000000000, /* so long one address is tried while there are others */
        GIVE_WAY_NS = 2000000000  /* so long one server is tried while others wait */
};

/* A place where the server is, or was. Links borrow the specification, so it stays. */
struct target {
        struct list link;
        struct server_spec spec;
        bool current;
};

struct found {
        struct list link;     /* the client's */
        char *identity;       /* key and name; without a key source and id */
        struct server *first; /* NULL: no session has begun yet */
        struct list targets;
        unsigned target_count;
        bool by_program; /* the program has named it */
        bool present;    /* it has a current target */
        bool added;      /* its devices have joined the client's */
        bool twin;       /* it is a server that the client has otherwise */
        uint64_t tried_ns;
        uint64_t begun_ns; /* its session, or when that gave way */
};

bool found_are_searched(const struct client *c)
{
        return c->found.sources && *c->found.sources;
}

void found_choose_sources(struct client *c)
{
        if (!found_are_searched(c) || strcmp(c->found.sources, "auto"))
                return;
        bool named = false;
        for (size_t i = 0; i < c->specs.count; i++)
                named |= !c->specs.list[i].implied;
        c->found.automatic = true;
        if (named || !discovery_suits())
                *c->found.sources = 0;
}

static struct found *found_of(const struct server *s)
{
        return s->sessions.first->found;
}

bool found_is_gone(const struct server *s)
{
        const struct found *f = found_of(s);
        return f && (!f->present || f->twin);
}

static bool is_used(const struct server *s)
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
        return !found_is_gone(s) || is_used(s);
}

/* ---- servers -------------------------------------------------------------------------------- */

static struct found *find(struct client *c, const char *identity) REQUIRES(client_held)
{
        list_each(f, &c->found.all, struct found, link)
        {
                if (!strcmp(f->identity, identity))
                        return f;
        }
        return NULL;
}

/* The current target behind the one with `spec`, or the first one. NULL: none. */
static struct target *next_target(const struct found *f, const struct server_spec *spec)
{
        struct target *first = NULL;
        bool behind = false;
        list_each(t, &f->targets, struct target, link)
        {
                if (t->current && behind)
                        return t;
                if (t->current && !first)
                        first = t;
                behind |= &t->spec == spec;
        }
        return first;
}

static void found_free(struct found *f)
{
        list_each(t, &f->targets, struct target, link)
        {
                server_spec_fini(&t->spec);
                mem_free(t);
        }
        list_remove(&f->link);
        mem_free(f->identity);
        mem_free(f);
}

/* Does a server borrow the target? */
static bool is_borrowed(struct client *c, const struct target *t) REQUIRES(client_held)
{
        for (unsigned i = 0; i < c->server_count; i++)
                if (c->servers[i]->spec == &t->spec || c->servers[i]->sessions.moves_to == &t->spec)
                        return true;
        list_each(s, &c->sessions.retired, struct server, sessions.retired)
        {
                if (s->spec == &t->spec)
                        return true;
        }
        return false;
}

static bool has_borrowed(struct client *c, const struct found *f) REQUIRES(client_held)
{
        list_each(t, &f->targets, struct target, link)
        {
                if (is_borrowed(c, t))
                        return true;
        }
        return false;
}

/* Is the identity one of the network's, with a key at its beginning? */
static bool has_key(const char *identity)
{
        return strspn(identity, "0123456789abcdef") == DISCOVERED_KEY;
}

/* Anybody may announce any number of servers. True: there is room for another one. */
static bool make_room(struct client *c, const char *identity) REQUIRES(client_held)
{
        unsigned count = 0, of_key = 0;
        bool key = has_key(identity);
        list_each(f, &c->found.all, struct found, link)
        {
                if (!f->present && !f->first && !next_target(f, NULL) && !has_borrowed(c, f))
                        found_free(f);
                else {
                        count++;
                        of_key += key && !strncmp(f->identity, identity, DISCOVERED_KEY);
                }
        }
        return count < FOUND_MAX && of_key < FOUND_OF_KEY_MAX;
}

static void report_full(struct client *c, const char *name, int status) REQUIRES(client_held)
{
        if (!c->found.told_full)
                log_warn("client", "%s is not used, and perhaps others: %s", name,
                         status == SP_E_LIMIT ? "there are too many servers" : status_text(status));
        c->found.told_full = true;
}

static struct found *find_or_make(struct client *c, const char *identity) REQUIRES(client_held)
{
        struct found *f = find(c, identity);
        if (f)
                return f;
        if (!make_room(c, identity))
                return NULL;
        f = mem_zalloc(sizeof(*f));
        if (f)
                f->identity = mem_strdup(identity);
        if (!f || !f->identity) {
                mem_free(f);
                return NULL;
        }
        list_init(&f->targets);
        list_append(&c->found.all, &f->link);
        return f;
}

/* A target of `f` that is not current and that no server borrows. NULL: there is none. */
static struct target *unused_target(struct client *c, struct found *f) REQUIRES(client_held)
{
        list_each(t, &f->targets, struct target, link)
        {
                if (!t->current && !is_borrowed(c, t))
                        return t;
        }
        return NULL;
}

/* Take `spec` over. */
static void add_target(struct client *c, struct found *f, struct server_spec *spec)
        REQUIRES(client_held)
{
        list_each(t, &f->targets, struct target, link)
        {
                if (!strcmp(t->spec.address, spec->address)) {
                        t->current = true;
                        server_spec_fini(spec);
                        return;
                }
        }
        struct target *t =
                f->target_count < TARGETS_MAX ? mem_zalloc(sizeof(*t)) : unused_target(c, f);
        if (!t) {
                server_spec_fini(spec);
                return; /* out of memory, or it has too many */
        }
        if (f->target_count < TARGETS_MAX) {
                f->target_count++;
        } else {
                server_spec_fini(&t->spec);
                list_remove(&t->link);
        }
        t->spec = *spec;
        t->current = true;
        list_append(&f->targets, &t->link);
}

static bool is_current(const struct found *f, const struct server_spec *spec)
{
        list_each(t, &f->targets, struct target, link)
        {
                if (&t->spec == spec)
                        return t->current;
        }
        return false;
}

/* ---- twins ---------------------------------------------------------------------------------- */

static bool is_usual_loopback(const struct address *a)
{
        return address_is_here(a) && (strncmp(a->host, "127.", 4) || !strcmp(a->host, "127.0.0.1"));
}

/* Do both addresses lead to one server, as far as can be told without a resolver? Only a name, as
 * localhost, and the first number of each kind stand for each other: a host has many loopbacks. */
static bool same_place(const struct address *x, const struct address *y)
{
        if ((x->ops->caps ^ y->ops->caps) & TRANSPORT_PEERS || x->port != y->port)
                return false;
        return !strcmp(x->host, y->host) ||
               (x->ops->caps & TRANSPORT_PEERS && is_usual_loopback(x) && is_usual_loopback(y));
}

bool found_same_server(const struct server_spec *a, const struct server_spec *b)
{
        struct address x, y;
        return a->address && b->address && address_parse(a->address, &x) == 0 &&
               address_parse(b->address, &y) == 0 && same_place(&x, &y);
}

/* Does the configuration name the host as the record does? */
static bool same_name(const struct server_spec *configured, const struct server_spec *found)
{
        struct address a;
        if (!configured->address || address_parse(configured->address, &a) < 0)
                return false;
        size_t n = strcspn(a.host, ".");
        return !strncmp(found->name, a.host, n) && (found->name[n] == ' ' || found->name[n] == '.');
}

/* Is the server that `spec` leads to, with the key `identity` ("": not known), this one? One that was
 * found has to be there: anybody can announce an address. Else both records have to say the same. */
static bool is_same(struct server *s, const struct server_spec *spec, const char *identity)
{
        struct address x, y;
        if (!s->spec->address || address_parse(s->spec->address, &x) < 0 ||
            address_parse(spec->address, &y) < 0)
                return false;
        const char *first = s->sessions.first->identity;
        const char *key = *s->identity ? s->identity : *first ? first : x.key;
        bool same_key = !strcmp(key, identity);
        if (*key && *identity && !same_key)
                return false;
        if (same_key && *key && same_name(s->spec, spec))
                return true;
        bool there = s->state == SERVER_UP || s->state == SERVER_DISCONNECTED;
        return found_of(s) && !there ? !strcmp(s->spec->address, spec->address)
                                     : same_place(&x, &y);
}

/* The server that is the same as `spec`, which has the key `identity` ("": not known). */
static struct server *find_twin(struct client *c, const struct found *f,
                                const struct server_spec *spec, const char *identity)
        REQUIRES(client_held)
{
        for (unsigned i = 0; i < c->server_count; i++) {
                struct server *s = c->servers[i];
                if (found_of(s) != f && !found_is_gone(s) && s->state != SERVER_LOST &&
                    is_same(s, spec, identity))
                        return s;
        }
        return NULL;
}

/* Find out if the client has the server otherwise: by the address where it was last, or by the one
 * that is to be tried first. */
static void update_twin(struct client *c, struct found *f) REQUIRES(client_held)
{
        const struct server *last = f->first ? f->first->sessions.last : NULL;
        if (last && !is_current(f, last->spec))
                last = NULL;
        const struct server_spec *spec = last ? last->spec : &next_target(f, NULL)->spec;
        struct address a;
        const char *key = address_parse(spec->address, &a) == 0 ? a.key : "";
        struct server *twin = find_twin(c, f, spec, last && *last->identity ? last->identity : key);
        if (twin && !f->twin)
                log_info("client", "%s is the server %s", spec->name, server_name(twin));
        f->twin = twin != NULL;
}

/* ---- sessions ------------------------------------------------------------------------------- */

/* End the session of a server that is gone, if no context has it. True: it goes on. */
static bool leave(struct found *f) REQUIRES(client_held)
{
        struct server *s = f->first ? f->first->sessions.last : NULL;
        if (!s || s->state == SERVER_LOST)
                return false;
        if (is_used(s))
                return true;
        if (s->state == SERVER_UP && session_send(s->session, close, .status = 0) == 0)
                server_send(s);
        server_lost(s, SP_E_GONE, "it is withdrawn");
        return false;
}

/* The network's word? Then the identity begins with the key. */
static bool is_networks(const struct found *f)
{
        return !f->by_program && has_key(f->identity);
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
        (void)!server_move(f->first, &next_target(f, NULL)->spec); /* it can't fail: it is new */
}

/* False: there is no number for it. */
static bool begin_first(struct client *c, struct found *f) REQUIRES(client_held)
{
        struct target *t = next_target(f, NULL);
        struct found *other = find_tried(c, f, false);
        int r = other ? SP_E_LIMIT : server_add(c, &t->spec, &f->first);
        if (r == SP_E_LIMIT && !other)
                other = find_tried(c, f, true);
        f->begun_ns = f->tried_ns = client_now_ns(c);
        if (r == 0)
                f->first->found = f;
        else if (other)
                give_way(c, other, f);
        else if (r != SP_E_LIMIT || !c->sessions.due)
                report_full(c, t->spec.name, r);
        return r != SP_E_LIMIT;
}

/* Do what is due. True: look again in a second. */
static bool step(struct client *c, struct found *f) REQUIRES(client_held)
{
        bool before = f->present;
        f->present = next_target(f, NULL) != NULL;
        if (!f->present) {
                if (before && f->first)
                        log_info("client", "the server %s is withdrawn", server_name(f->first));
                f->twin = false;
                return leave(f);
        }
        if (!before || f->twin || !f->first)
                update_twin(c, f);
        if (f->twin)
                return leave(f);
        if (!f->first) {
                begin_first(c, f);
                return true;
        }
        struct server *last = f->first->sessions.last;
        if (last->state == SERVER_UP)
                return false;
        bool slow = last->state == SERVER_NEW && client_now_ns(c) - f->tried_ns > TRY_NEXT_NS;
        struct target *t = next_target(f, last->spec);
        if (!is_current(f, last->spec) || (slow && &t->spec != last->spec) ||
            last->state == SERVER_LOST) {
                f->tried_ns = client_now_ns(c);
                (void)!server_move(last, &t->spec); /* else the next time */
        }
        return true;
}

/* The same for all: first for those that are gone, because others may be their twins. */
static bool step_all(struct client *c) REQUIRES(client_held)
{
        bool again = false;
        for (unsigned there = 0; there < 2; there++) {
                list_each(f, &c->found.all, struct found, link)
                {
                        if ((next_target(f, NULL) != NULL) == there)
                                again |= step(c, f);
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
                update_twin(c, f);
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

void found_lost(struct server *s)
{
        if (found_of(s))
                discovery_poke(s->client->found.discovery);
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
        struct server *twin = find_twin(c, f, s->spec, s->identity);
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

/* ---- discovery ------------------------------------------------------------------------------ */

static void take_item(struct client *c, const struct discovery_item *item) REQUIRES(client_held)
{
        const struct discovered *d = item->record;
        char identity[DISCOVERED_ID_MAX + 512];
        if (item->use != DISCOVERED_USED && item->use != DISCOVERED_USED_HERE)
                return;
        /* Hosts that share a home folder share a key. */
        if (item->use == DISCOVERED_USED)
                snprintf(identity, sizeof(identity), "%s %s", d->key, d->name);
        else
                snprintf(identity, sizeof(identity), "%.500s %s", item->source, d->id);
        struct found *f = find_or_make(c, identity);
        if (!f)
                report_full(c, d->name, SP_E_LIMIT);
        for (unsigned i = 0; f && i < d->address_count; i++) {
                struct server_spec spec;
                if (discovered_spec(d, item->use, i, &spec) == 0)
                        add_target(c, f, &spec);
        }
}

/* On discovery's thread. */
static bool on_found(void *user, const struct discovery_item *items, size_t count, bool settled)
{
        struct client *c = user;
        bool again = false;
        size_t strangers = 0;
        client_lock(c);
        if (c->closing) {
                client_unlock(c);
                return false;
        }
        list_each(f, &c->found.all, struct found, link)
        {
                list_each(t, &f->targets, struct target, link) t->current &= f->by_program;
        }
        for (size_t i = 0; i < count; i++) {
                strangers += items[i].use == DISCOVERED_NOT_PAIRED;
                take_item(c, &items[i]);
        }
        if (strangers > c->found.strangers)
                log_info("client",
                         "discovery: this user is not paired with %zu servers; "
                         "`spancl discover` lists them",
                         strangers);
        c->found.strangers = strangers;
        again |= step_all(c);
        c->found.settled |= settled;
        client_changed(c);
        if (c->wait.pumping)
                c->io->wake(c->io_user);
        else
                client_poll(c); /* links of sessions that have ended */
        client_unlock(c);
        return again;
}

/* Have the sources reported, and their servers answered? */
static bool is_settled(void *arg) REQUIRES(client_held)
{
        struct client *c = arg;
        if (c->closing)
                return true;
        list_each(f, &c->found.all, struct found, link)
        {
                const struct server *s = f->first ? f->first->sessions.last : NULL;
                if (f->present && !f->twin && s && !s->device_count && s->state != SERVER_LOST)
                        return false;
        }
        return c->found.settled;
}

void found_begin(struct client *c)
{
        char *error = NULL;
        if (!found_are_searched(c))
                return;
        int r = discovery_new(c->found.sources, on_found, c, &c->found.discovery, &error);
        if (r < 0) {
                log_error("client", "%s", error ? error : status_text(r));
                mem_free(error);
                return;
        }
        client_wait_until(c, is_settled, c, client_now_ns(c) + c->found.wait_ns);
}

void found_end(struct client *c)
{
        client_lock(c);
        struct discovery *d = c->found.discovery;
        c->found.discovery = NULL;
        client_unlock(c);
        discovery_free(d);
}

void found_abandon(struct client *c) LOCK_UNCHECKED
{
        discovery_abandon(c->found.discovery);
        c->found.discovery = NULL;
}

void found_fini(struct client *c) LOCK_UNCHECKED
{
        list_each(f, &c->found.all, struct found, link) found_free(f);
        mem_free(c->found.sources);
}

/* ---- the program ---------------------------------------------------------------------------- */

static int parse(const char *servers, struct server_specs *ret)
{
        char *error = NULL;
        *ret = (struct server_specs){ 0 };
        int r = config_servers_parse(servers, "the program's servers", &ret->specs, &ret->count,
                                     &error);
        if (r < 0 && error)
                log_error("client", "%s", error);
        mem_free(error);
        for (size_t i = 0; r == 0 && i < ret->count; i++)
                if (ret->specs[i].in_process)
                        r = SP_E_INVAL;
        if (r < 0)
                config_servers_free(ret->specs, ret->count);
        return r;
}

int found_add(struct client *c, const char *servers)
{
        struct server_specs all;
        int r = parse(servers, &all);
        if (r < 0)
                return r;
        for (size_t i = 0; i < all.count; i++) {
                struct found *f = r == 0 ? find_or_make(c, all.specs[i].name) : NULL;
                if (!f) {
                        r = r ? r : SP_E_LIMIT;
                        server_spec_fini(&all.specs[i]);
                        continue;
                }
                f->by_program = true;
                add_target(c, f, &all.specs[i]);
                step(c, f);
                if (!f->first && !f->twin)
                        r = SP_E_LIMIT;
        }
        mem_free(all.specs);
        client_changed(c);
        return r;
}

int found_remove(struct client *c, const char *servers)
{
        struct server_specs all;
        int r = parse(servers, &all);
        if (r < 0)
                return r;
        for (size_t i = 0; i < all.count; i++) {
                struct found *f = find(c, all.specs[i].name);
                if (!f || !f->present)
                        r = SP_E_NOENT;
        }
        for (size_t i = 0; r == 0 && i < all.count; i++) {
                struct found *f = find(c, all.specs[i].name);
                list_each(t, &f->targets, struct target, link) t->current = false;
        }
        step_all(c);
        config_servers_free(all.specs, all.count);
        client_changed(c);
        return r;
}

int found_list(struct client *c, struct buf *out)
{
        static const char *const states[] = { "connecting", "connected", "disconnected", "lost" };
        int r = 0;
        for (unsigned i = 0; i < c->server_count && r == 0; i++) {
                const struct server *s = c->servers[i], *first = s->sessions.first;
                char line[512];
                if (first->sessions.last != s || (found_is_gone(s) && !is_used(s)))
                        continue;
                snprintf(line, sizeof(line), "%.400s\t%s\t%u\n", server_name(s),
                         found_is_gone(s) ? "gone" : states[s->state],
                         (unsigned)first->device_count);
                r = buf_put(out, line, strlen(line));
        }
        return r;
}
