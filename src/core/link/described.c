#include "core/link/described.h"

#include "base/log.h"
#include "core/client.h"
#include "core/link/found_record.h"
#include "core/link/io.h"

/* Can a server be idle from the start? Then a later session must be able to begin, and nothing may need the session
 * before. */
static bool may_describe(const struct client *c) REQUIRES(client_held)
{
        return c->io->open && c->sessions.idle_ns && c->disconnected.reconnect_ns && !c->closing &&
               c->devices.filter.order != DEVICE_ORDER_LATENCY;
}

bool servers_describe(struct client *c)
{
        size_t remote = 0;
        for (size_t i = 0; i < c->specs.count; i++)
                remote += !c->specs.list[i].in_process;
        return remote > 1 && may_describe(c);
}

/* Does the client know of several servers outside the process? One that nobody has named counts if it is there. */
static bool has_several(const struct client *c) REQUIRES(client_held)
{
        size_t n = 0;
        for (size_t i = 0; i < c->specs.count; i++)
                n += !c->specs.list[i].in_process && !c->specs.list[i].implied;
        for (unsigned i = 0; i < c->server_count; i++) {
                const struct server *s = c->servers[i];
                n += s->spec->implied && s == s->sessions.first && s->device_count;
        }
        list_each(f, &c->found.all, struct found, link)
        {
                n += !f->twin && found_next_target(f, NULL);
        }
        return n > 1;
}

bool server_describes(const struct server *s)
{
        const struct client *c = s->client;
        /* A callback for new devices watches them, which takes a session. */
        return may_describe(c) && has_several(c) && !c->availability.fn && !s->spec->in_process &&
               !s->idle.awaited && !s->sessions.wanted && !s->sessions.first->device_count;
}

int server_described(struct server *s, struct io_connect *at)
{
        s->load = at->devices.sessions;
        s->state = SERVER_IDLE;
        s->idle.described = true;
        int r = server_take_devices(s, bytes_of(at->devices.info.data, at->devices.info.size));
        log_info("client",
                 "the server %s has described %u devices; no session begins before their use",
                 server_name(s), (unsigned)s->device_count);
        if (r < 0)
                server_lost(s, r, "it could not tell its devices");
        else
                server_reap(s, false);
        return r;
}
