#include "engine/transfer/peer.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/command/event.h"
#include "engine/transfer/relay.h"
#include "engine/transfer/transfer.h"
#include "trace/trace.h"

static int take_message(void *user, struct bytes msg) REQUIRES(engine_held)
{
        struct peer *p = user;
        struct engine *e = p->engine;
        if (p->lost)
                return SP_E_GONE;
        TRACE_SPAN(message, wire_message_id(msg.data));
        int r = wire_dispatch(p->id ? &engine_server_handlers : &engine_client_handlers, p, msg);
        if (r < 0)
                log_warn("engine", "%s from %s: %s", wire_name(wire_message_id(msg.data)),
                         p->id ? "a peer" : "the client", status_text(r));
        engine_run(e);
        return r < 0 || p->id ? r : e->status;
}

static const struct session_ops session_ops = {
        .message = take_message,
        .bulk_place = engine_transfer_place,
        .bulk_arrived = engine_transfer_arrived,
        .bulk_restart = engine_transfer_restart,
};

int engine_peer_new(struct engine *e, uint64_t id, struct peer **ret)
{
        if (e->peers.count == ENGINE_PEERS_MAX)
                return SP_E_LIMIT;
        for (size_t i = 0; i < e->peers.count; i++)
                if (e->peers.all[i]->id == id)
                        return SP_E_PROTO;
        struct peer **peers = mem_realloc(e->peers.all, (e->peers.count + 1) * sizeof(*peers));
        if (!peers)
                return SP_E_NOMEM;
        e->peers.all = peers;
        struct peer *p = mem_zalloc(sizeof(*p));
        if (!p)
                return SP_E_NOMEM;
        p->engine = e;
        p->id = id;
        int r = session_new(&(struct session_params){ .ops = &session_ops, .user = p },
                            &p->session);
        if (r < 0) {
                mem_free(p);
                return r;
        }
        e->peers.all[e->peers.count++] = p;
        *ret = p;
        return 0;
}

struct peer *engine_peer_free(struct peer *p)
{
        if (!p)
                return NULL;
        session_free(p->session);
        engine_relay_free(p->relay);
        mem_free(p->sink);
        mem_free(p->name);
        mem_free(p);
        return NULL;
}

struct peer *engine_client(struct engine *e)
{
        return e->peers.all[0];
}

struct peer *engine_peer_find(struct engine *e, uint64_t id)
{
        for (size_t i = 0; i < e->peers.count; i++)
                if (e->peers.all[i]->id == id)
                        return e->peers.all[i];
        return NULL;
}

void engine_peer_sent(struct peer *p, int status)
{
        p->dirty = true;
        if (status >= 0 || p->lost)
                return;
        if (!p->id && !p->engine->status) {
                log_warn("engine", "can't answer the client: %s", status_text(status));
                p->engine->status = status;
        }
}

void engine_peer_retry_all(struct engine *e)
{
        for (size_t i = 0; i < e->peers.count; i++) {
                struct peer *p = e->peers.all[i];
                if (!p->waiting)
                        continue;
                p->waiting = false;
                p->dirty = true;
                session_bulk_retry(p->session);
        }
}

/* ---- the loop's side ------------------------------------------------------------------------ */

struct session *engine_peer_session(struct engine *e, const uint64_t token[2])
{
        struct peer *found = NULL;
        for (size_t i = 1; i < e->peers.count; i++) {
                struct peer *p = e->peers.all[i];
                /* No early exit, so that the time says nothing about the tokens. */
                uint64_t differ = (p->token[0] ^ token[0]) | (p->token[1] ^ token[1]);
                if (!differ && p->expected && !p->lost)
                        found = p;
        }
        return found ? found->session : NULL;
}

struct session *engine_session_at(struct engine *e, size_t i)
{
        return i < e->peers.count ? e->peers.all[i]->session : NULL;
}

/* Give up the peer: fail commands that wait for it, and drop the data for it. */
static void lose(struct peer *p) REQUIRES(engine_held)
{
        p->lost = true;
        engine_relay_end(p);
        p->engine->params.ops->hang_up(p->engine->params.user, p->session);
        session_end(p->session, SP_E_GONE);
        engine_event_fail_origin(p->engine, p->id, CL_DEVICE_NOT_AVAILABLE);
        engine_transfer_fail_peer(p, CL_DEVICE_NOT_AVAILABLE);
        engine_device_staging_end(p);
}

struct peer *engine_peer_of(struct engine *e, const struct session *s)
{
        for (size_t i = 1; i < e->peers.count; i++)
                if (e->peers.all[i]->session == s)
                        return e->peers.all[i];
        return NULL;
}

static void notify(struct peer *p, int status, const char *text) REQUIRES(engine_held)
{
        struct bytes why = bytes_str(text ? text : "");
        if (why.size > 1024)
                why.size = 1024;
        peer_send(engine_client(p->engine), peer_lost, .peer = p->id, .status = status,
                  .text = why);
}

void engine_peer_near(struct engine *e, struct session *s, bool near)
{
        struct peer *p = engine_peer_of(e, s);
        if (p)
                p->staging.near = near;
}

void engine_peer_failed(struct engine *e, struct session *s, int status, const char *text)
{
        struct peer *p = engine_peer_of(e, s);
        if (!p || p->lost)
                return;
        log_warn("engine", "a peer is lost: %s (%s)", text ? text : "", status_text(status));
        notify(p, status, text);
        lose(p);
        engine_run(e);
        engine_settle(e);
}

void engine_peer_unreachable(struct engine *e, struct session *s, const char *text)
{
        struct peer *p = engine_peer_of(e, s);
        if (!p || p->lost)
                return;
        engine_relay_again(p);
        notify(p, SP_E_LINK, text);
        engine_settle(e);
}

/* ---- messages ------------------------------------------------------------------------------- */

int engine_peer_known(struct engine *e, uint64_t id, struct peer **ret)
{
        struct peer *p = engine_peer_find(e, id);
        if (!id || id == PEER_SELF)
                return SP_E_PROTO;
        if (!p)
                return engine_peer_new(e, id, ret);
        *ret = p;
        return 0;
}

int engine_handle_peer_open(void *user, const struct wire_peer_open *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct peer *p;
        char host[1025], local_path[WIRE_LOCAL_PATH_MAX + 1];
        if (!m->host.size || m->host.size >= sizeof(host))
                return SP_E_PROTO;
        memcpy(host, m->host.data, m->host.size);
        host[m->host.size] = '\0';
        memcpy(local_path, m->local_path.data, m->local_path.size);
        local_path[m->local_path.size] = '\0';
        int r = engine_peer_known(e, m->peer, &p);
        if (r < 0 || p->lost)
                return r;
        mem_free(p->name);
        p->name = mem_strdup(host);
        p->token[0] = m->token_hi;
        p->token[1] = m->token_lo;
        p->expected = false;
        const uint64_t session_id[2] = { m->session_hi, m->session_lo };
        e->params.ops->dial(e->params.user, p->session, p->id, host, (unsigned)m->port, local_path,
                            session_id, p->token);
        if (p->relay)
                e->params.ops->relayed(e->params.user, p->session);
        engine_relay_again(p);
        return 0;
}

int engine_handle_peer_expect(void *user, const struct wire_peer_expect *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct peer *p;
        int r = engine_peer_known(e, m->peer, &p);
        if (r < 0 || p->lost)
                return r;
        e->params.ops->hang_up(e->params.user, p->session);
        p->token[0] = m->token_hi;
        p->token[1] = m->token_lo;
        p->expected = true;
        engine_relay_again(p);
        return 0;
}

int engine_handle_peer_lost(void *user, const struct wire_peer_lost *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct peer *p = engine_peer_find(e, m->peer);
        if (!p)
                return SP_E_PROTO;
        if (!p->lost)
                lose(p);
        return 0;
}

static int put_link(struct buf *b, const struct peer *p)
{
        const struct session_stats *s = session_get_stats(p->session);
        const struct {
                uint32_t key;
                uint64_t value;
        } entries[] = {
                { INFO_LINK_PEER, p->id },
                { INFO_LINK_MESSAGES_SENT, s->messages_sent },
                { INFO_LINK_BYTES_SENT, s->bytes_sent },
                { INFO_LINK_BULK_SENT, s->bulk_sent },
                { INFO_LINK_MESSAGES_RECEIVED, s->messages_received },
                { INFO_LINK_BYTES_RECEIVED, s->bytes_received },
                { INFO_LINK_BULK_RECEIVED, s->bulk_received },
        };
        size_t mark;
        int r = info_begin(b, INFO_LINK, &mark);
        for (size_t i = 0; !r && i < array_size(entries); i++)
                r = info_put_u64(b, entries[i].key, entries[i].value);
        if (!r && p->relay)
                r = info_put_u64(b, INFO_LINK_RELAYED, 1);
        if (!r && s->fabric_sent + s->fabric_received)
                r = info_put_u64(b, INFO_LINK_FABRIC_SENT, s->fabric_sent);
        if (!r && s->fabric_sent + s->fabric_received)
                r = info_put_u64(b, INFO_LINK_FABRIC_RECEIVED, s->fabric_received);
        if (!r && p->name)
                r = info_put(b, INFO_LINK_NAME, p->name, strlen(p->name));
        if (r < 0)
                return r;
        info_end(b, mark);
        return 0;
}

int engine_get_links(struct engine *e, struct buf *ret)
{
        int r = 0;
        for (size_t i = 0; !r && i < e->peers.count; i++)
                r = put_link(ret, e->peers.all[i]);
        return r;
}

int engine_handle_stats_query(void *user, const struct wire_stats_query *m)
{
        struct peer *p = user;
        struct buf links = { 0 };
        int r = engine_get_links(p->engine, &links);
        if (!r)
                r = engine_usage_put_energy(p->engine, &links);
        if (!r)
                peer_send(p, stats, .request = m->request,
                          .links = bytes_of(links.data, links.size));
        buf_fini(&links);
        return r;
}

int engine_handle_clock_query(void *user, const struct wire_clock_query *m)
{
        struct peer *p = user;
        struct engine *e = p->engine;
        peer_send(p, clock_reply, .time_ns = m->time_ns,
                  .remote_ns = e->params.ops->now_ns(e->params.user));
        return 0;
}

int engine_handle_clock_reply(void *user, const struct wire_clock_reply *m)
{
        /* The engine never asks, and an unrequested answer is harmless. */
        (void)user, (void)m;
        return 0;
}
