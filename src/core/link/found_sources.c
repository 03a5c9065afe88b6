#include "core/link/found_sources.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/link/found.h"
#include "core/link/io.h"
#include "discovery/discovery.h"

bool found_are_searched(const struct client *c)
{
        return c->found.sources && *c->found.sources;
}

void found_choose_sources(struct client *c)
{
        bool named = false;
        for (size_t i = 0; i < c->specs.count; i++)
                named |= !c->specs.list[i].implied;
        if (named && c->found.wait_implied)
                c->found.wait_ns = 0;
        if (!found_are_searched(c) || strcmp(c->found.sources, "auto"))
                return;
        c->found.automatic = true;
        if (named || !discovery_suits())
                *c->found.sources = 0;
}

void found_lost(struct server *s)
{
        if (found_of(s))
                discovery_poke(s->client->found.discovery);
}

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
        struct found *f = found_find_or_make(c, identity);
        if (!f)
                found_report_full(c, d->name, SP_E_LIMIT);
        for (unsigned i = 0; f && i < d->address_count; i++) {
                struct server_spec spec;
                if (discovered_spec(d, item->use, i, &spec) == 0)
                        found_add_target(c, f, &spec);
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
        again |= found_step_all(c);
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
