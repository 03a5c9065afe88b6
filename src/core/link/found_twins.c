#include "core/link/found_twins.h"

#include <string.h>

#include "base/log.h"
#include "core/client.h"
#include "core/link/found.h"
#include "transport/address.h"

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
        bool there = s->state != SERVER_NEW && s->state != SERVER_LOST;
        return found_of(s) && !there ? !strcmp(s->spec->address, spec->address)
                                     : same_place(&x, &y);
}

struct server *found_find_twin(struct client *c, const struct found *f,
                               const struct server_spec *spec, const char *identity)
{
        for (unsigned i = 0; i < c->server_count; i++) {
                struct server *s = c->servers[i];
                if (found_of(s) != f && !found_is_gone(s) && s->state != SERVER_LOST &&
                    is_same(s, spec, identity))
                        return s;
        }
        return NULL;
}

void found_update_twin(struct client *c, struct found *f)
{
        const struct server *last = f->first ? f->first->sessions.last : NULL;
        if (last && !found_is_current(f, last->spec))
                last = NULL;
        const struct server_spec *spec = last ? last->spec : &found_next_target(f, NULL)->spec;
        struct address a;
        const char *key = address_parse(spec->address, &a) == 0 ? a.key : "";
        struct server *twin =
                found_find_twin(c, f, spec, last && *last->identity ? last->identity : key);
        if (twin && !f->twin)
                log_info("client", "%s is the server %s", spec->name, server_name(twin));
        f->twin = twin != NULL;
}
