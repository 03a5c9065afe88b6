#include "core/link/found_record.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"

enum {
        FOUND_MAX = 1024,       /* servers that are there, or have had a session */
        FOUND_OF_KEY_MAX = 256, /* of them with one key, which anybody can copy */
        TARGETS_MAX = 64        /* addresses of one server */
};

struct found *found_of(const struct server *s)
{
        return s->sessions.first->found;
}

struct found *found_find(struct client *c, const char *identity)
{
        list_each(f, &c->found.all, struct found, link)
        {
                if (!strcmp(f->identity, identity))
                        return f;
        }
        return NULL;
}

struct target *found_next_target(const struct found *f, const struct server_spec *spec)
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

void found_free(struct found *f)
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

bool found_has_key(const char *identity)
{
        return strspn(identity, "0123456789abcdef") == DISCOVERED_KEY;
}

/* Anybody may announce any number of servers. True: there is room for another one. */
static bool make_room(struct client *c, const char *identity) REQUIRES(client_held)
{
        unsigned count = 0, of_key = 0;
        bool key = found_has_key(identity);
        list_each(f, &c->found.all, struct found, link)
        {
                if (!f->present && !f->first && !found_next_target(f, NULL) && !has_borrowed(c, f))
                        found_free(f);
                else {
                        count++;
                        of_key += key && !strncmp(f->identity, identity, DISCOVERED_KEY);
                }
        }
        return count < FOUND_MAX && of_key < FOUND_OF_KEY_MAX;
}

void found_report_full(struct client *c, const char *name, int status)
{
        if (!c->found.told_full)
                log_warn("client", "%s is not used, and perhaps others: %s", name,
                         status == SP_E_LIMIT ? "there are too many servers" : status_text(status));
        c->found.told_full = true;
}

struct found *found_find_or_make(struct client *c, const char *identity)
{
        struct found *f = found_find(c, identity);
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

void found_add_target(struct client *c, struct found *f, struct server_spec *spec)
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

bool found_is_current(const struct found *f, const struct server_spec *spec)
{
        list_each(t, &f->targets, struct target, link)
        {
                if (&t->spec == spec)
                        return t->current;
        }
        return false;
}
