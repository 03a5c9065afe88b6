#include "core/link/peers.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/command/event.h"
#include "core/link/listeners.h"
#include "core/link/server.h"
#include "core/progress.h"
#include "transport/address.h"

/* Is the server on the client's own host? */
static bool is_local(const struct server_spec *spec)
{
        struct address a;
        return spec->in_process || (!address_parse(spec->address, &a) && address_is_here(&a));
}

/* Write the target's host as peer_open has it: with the key that the target must have. If it has no
 * key, the user's `tcp:` for the server counts for its peer-host, too: servers do not go
 * unencrypted to another host unless the user said so. */
static void peer_host(const struct server *target, char *ret, size_t size)
{
        struct address a;
        bool plain = !address_parse(target->spec->address, &a) && a.ops->caps & TRANSPORT_PEERS &&
                     !(a.ops->caps & TRANSPORT_ENCRYPTED);
        address_put_peer(target->spec->peer_host, target->identity, plain, ret, size);
}

/* How well `dialler` can reach `target`: 0 not at all. */
static int reach(const struct server_spec *dialler, const struct server_spec *target)
{
        struct address a;
        if (target->in_process || !target->peer_host ||
            address_of_peer(target->peer_host, target->peer_port, &a) < 0)
                return 0;
        if (!address_is_here(&a))
                return 3;
        return !is_local(dialler) ? 0 : a.ops->caps & TRANSPORT_SAME_HOST ? 1 : 2;
}

/* The server that `s` calls `peer`. NULL: none. */
static struct server *peer_named(const struct server *s, uint64_t peer) REQUIRES(client_held)
{
        for (unsigned i = 0; i < s->client->server_count; i++)
                if (s->client->servers[i]->peers.id == peer && s->client->servers[i] != s)
                        return s->client->servers[i];
        return NULL;
}

static void mark(struct server_set *a_set, struct server_set *b_set, const struct server *a,
                 const struct server *b)
{
        server_set_add(a_set, b->index);
        server_set_add(b_set, a->index);
}

/* Have `dialler` connect to `target`. */
static int introduce(struct server *dialler, struct server *target) REQUIRES(client_held)
{
        struct client *c = dialler->client;
        struct session *to_dialler = server_session(dialler), *to_target = server_session(target);
        if (!to_dialler || !to_target)
                return SP_E_GONE;
        uint64_t token[2];
        char host[1024];
        peer_host(target, host, sizeof(host));
        c->io->random(c->io_user, token, sizeof(token));
        int r = session_send(to_target, peer_expect, .peer = dialler->peers.id,
                             .token_hi = token[0], .token_lo = token[1]);
        if (r < 0)
                return r;
        server_send(target); /* the earlier it is there, the less the dialler waits */
        return session_send(
                to_dialler, peer_open, .peer = target->peers.id, .host = bytes_str(host),
                .port = target->spec->peer_port, .session_hi = target->id[0],
                .session_lo = target->id[1], .token_hi = token[0], .token_lo = token[1],
                .local_path = bytes_str(target->spec->peer_given ? "" : target->local_path));
}

/* Begin to relay between a and b, or begin anew: both servers forget what was on its way. */
static int relay_begin(struct server *a, struct server *b) REQUIRES(client_held)
{
        struct session *to_a = server_session(a), *to_b = server_session(b);
        if (!to_a || !to_b)
                return SP_E_GONE;
        uint64_t number = ++a->client->relayed;
        int r = session_send(to_a, peer_relay, .peer = b->peers.id, .number = number);
        if (r == 0)
                r = session_send(to_b, peer_relay, .peer = a->peers.id, .number = number);
        if (r < 0)
                return r;
        a->peers.relays[b->index] = b->peers.relays[a->index] = number;
        server_send(a);
        server_send(b);
        return 0;
}

/* Relay everything that a and b exchange through this client from now on. */
static int relay(struct server *a, struct server *b) REQUIRES(client_held)
{
        struct client *c = a->client;
        log_warn("client",
                 "%s and %s can't reach each other: what they exchange goes through this program. "
                 "Give one a name that the other knows, with #peer-host in SPANCL_SERVERS",
                 server_name(a), server_name(b));
        int r = relay_begin(a, b);
        if (r < 0)
                return r;
        c->progress.interests++; /* also when the application does not wait */
        progress_wake(c);
        return 0;
}

int server_introduce(struct server *a, struct server *b)
{
        if (server_set_has(&a->peers.bad, b->index))
                return SP_E_HOST;
        if (server_set_has(&a->peers.introduced, b->index))
                return 0;
        int there = reach(a->spec, b->spec), back = reach(b->spec, a->spec);
        int r = !there && !back ? relay(a, b) : there >= back ? introduce(a, b) : introduce(b, a);
        if (r == 0)
                mark(&a->peers.introduced, &b->peers.introduced, a, b);
        return r;
}

/* `s` can't connect to `other`: let `other` connect, or else relay through this client. While the
 * client relays, both servers try in turn, because either way may open later. */
static int find_way(struct server *s, struct server *other) REQUIRES(client_held)
{
        bool back = reach(other->spec, s->spec) > 0;
        if (server_set_has(&s->peers.bad, other->index) || !server_session(s) ||
            !server_session(other))
                return 0;
        int r = 0;
        if (s->peers.relays[other->index]) {
                if (back)
                        r = introduce(other, s);
        } else if (server_set_has(&s->peers.turned, other->index) || !back) {
                r = relay(s, other);
        } else {
                mark(&s->peers.turned, &other->peers.turned, s, other);
                r = introduce(other, s);
        }
        server_send(other);
        return r;
}

int peers_lost(void *user, const struct wire_peer_lost *m)
{
        struct server *s = user;
        struct server *other = peer_named(s, m->peer);
        if (s->client->closing || !other) /* it goes away because of us */
                return 0;
        if (m->status == SP_E_LINK) {
                log_info("client", "%s can't reach %s: %.*s", server_name(s), server_name(other),
                         (int)m->text.size, (const char *)m->text.data);
                int r = find_way(s, other);
                server_send(s);
                return r;
        }
        log_warn("client", "%s has lost %s: %.*s", server_name(s), server_name(other),
                 (int)m->text.size, (const char *)m->text.data);
        mark(&s->peers.bad, &other->peers.bad, s, other);
        events_relay(s, other);
        struct session *session = server_session(other);
        if (session &&
            session_send(session, peer_lost, .peer = s->peers.id, .status = m->status) == 0)
                server_send(other);
        return 0;
}

/* ---- relaying ------------------------------------------------------------------------------- */

/* Where a message of `s` for `peer` goes on to. NULL: it is lost meanwhile, or they reach each other. SP_E_PROTO: none
 * such. */
static int relay_to(struct server *s, uint64_t peer, struct server **ret) REQUIRES(client_held)
{
        struct server *other = peer_named(s, peer);
        if (!other)
                return SP_E_PROTO;
        *ret = s->peers.relays[other->index] && server_session(other) ? other : NULL;
        return 0;
}

/* They do not need this client any more. */
static void unrelay(struct server *a, struct server *b) REQUIRES(client_held)
{
        if (!a->peers.relays[b->index])
                return;
        a->peers.relays[b->index] = b->peers.relays[a->index] = 0;
        a->client->progress.interests--;
}

/* Notify the other servers, so that they do not wait for bytes of the lost one. It may not even
 * have connected to them yet. */
static void notify_peers(struct server *s, int status) REQUIRES(client_held)
{
        struct client *c = s->client;
        server_set_each(i, &s->peers.introduced)
        {
                struct server *other = c->servers[i];
                struct session *session = server_session(other);
                if (session &&
                    session_send(session, peer_lost, .peer = s->peers.id, .status = status) == 0)
                        server_kick(other);
        }
}

void peers_server_lost(struct server *s, const struct server_loss *loss)
{
        struct client *c = s->client;
        if (!c->closing)
                notify_peers(s, loss->status);
        for (unsigned i = 0; i < c->server_count; i++)
                unrelay(s, c->servers[i]);
}

int peers_direct(void *user, const struct wire_peer_direct *m)
{
        struct server *s = user;
        struct server *other = peer_named(s, m->peer);
        if (!other)
                return SP_E_PROTO;
        if (s->peers.relays[other->index] != m->number)
                return 0;
        log_warn(
                "client",
                "%s and %s reach each other now: nothing of theirs goes through this program any more",
                server_name(s), server_name(other));
        unrelay(s, other);
        return 0;
}

/* The message for `to` is in its outbox, or could not be put there. */
static void passed(struct server *to, int r) REQUIRES(client_held)
{
        if (r < 0) /* a gap in the other side's stream */
                to->lost_status = r;
        server_send(to);
}

int peers_relay_hello(void *user, const struct wire_relay_hello *m)
{
        struct server *s = user, *to;
        int r = relay_to(s, m->peer, &to);
        if (r == 0 && to)
                passed(to, session_send(to->session, relay_hello, .peer = s->peers.id,
                                        .number = m->number, .generation = m->generation,
                                        .next_seq = m->next_seq));
        return r;
}

int peers_relay_again(void *user, const struct wire_relay_again *m)
{
        struct server *s = user, *other;
        int r = relay_to(s, m->peer, &other);
        /* Both may ask: once is enough. */
        if (r == 0 && other && s->peers.relays[other->index] == m->number)
                r = relay_begin(s, other);
        return r;
}

int peers_relay_data(void *user, const struct wire_relay_data *m)
{
        struct server *s = user, *to;
        int r = relay_to(s, m->peer, &to);
        if (r == 0 && to)
                passed(to, session_send(to->session, relay_data, .peer = s->peers.id,
                                        .lane = m->lane, .data = m->data));
        return r;
}

int peers_relay_taken(void *user, const struct wire_relay_taken *m)
{
        struct server *s = user, *to;
        int r = relay_to(s, m->peer, &to);
        if (r == 0 && to)
                passed(to, session_send(to->session, relay_taken, .peer = s->peers.id,
                                        .lane = m->lane, .size = m->size));
        return r;
}
