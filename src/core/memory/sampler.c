#include "core/memory/sampler.h"

#include "base/mem.h"
#include "core/client.h"
#include "core/context.h"
#include "core/handle.h"
#include "core/link/server.h"

int sampler_new(cl_context x, const struct sampler_desc *desc,
                const cl_sampler_properties *properties, size_t property_count, cl_sampler *ret)
{
        cl_sampler s = mem_zalloc(sizeof(*s));
        if (!s)
                return SP_E_NOMEM;
        int r = map_put(&x->client->objects.all, (uintptr_t)s, s);
        if (r == 0 && properties) {
                s->properties = mem_dup(properties, property_count * sizeof(*properties));
                s->property_count = property_count;
                r = s->properties ? 0 : SP_E_NOMEM;
        }
        if (r < 0) {
                map_del(&x->client->objects.all, (uintptr_t)s);
                mem_free(s);
                return r;
        }
        handle_init(&s->h, HANDLE_SAMPLER);
        s->context = x;
        s->id = client_new_id(x->client, OBJECT_SAMPLER);
        s->desc = *desc;
        context_hold(x);
        *ret = s;
        return 0;
}

static void destroy(cl_sampler s) REQUIRES(client_held)
{
        cl_context x = s->context;
        struct client *c = x->client;
        map_del(&c->objects.all, (uintptr_t)s);
        c->objects.gone++;
        server_set_each(i, &s->declared)
        {
                struct server *server = c->servers[i];
                struct session *session = server_session(server);
                /* Without memory the server keeps it until the session ends. */
                if (session && session_send(session, release, .object = s->id) == 0)
                        server_kick(server);
        }
        mem_free(s->properties);
        handle_free(&s->h, sizeof(*s));
        context_unhold(x);
}

void sampler_hold(cl_sampler s)
{
        atomic_fetch_add(&s->h.holds, 1);
}

void sampler_unhold(cl_sampler s)
{
        if (atomic_fetch_sub(&s->h.holds, 1) == 1)
                destroy(s);
}

int sampler_declare(cl_sampler s, struct server *server)
{
        if (server_set_has(&s->declared, server->index))
                return 0;
        struct session *session = server_session(server);
        if (!session)
                return SP_E_GONE;
        int r = session_send(session, sampler_create, .sampler = s->id,
                             .normalized = s->desc.normalized, .addressing = s->desc.addressing,
                             .filter = s->desc.filter);
        if (r < 0)
                return r;
        server_set_add(&s->declared, server->index);
        return 0;
}
