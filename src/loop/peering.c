#include "loop/serving.h"

#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/thread.h"
#include "transport/fabric.h"
#include "transport/shm.h"

#define LOG "server"

enum {
        DIAL_TIMEOUT_MS = 10000,
        RELAYED_FIRST_MS = 2000, /* the pause between tries while the client relays */
        RELAYED_MAX_MS = 30000,  /* and it is the other side's turn then */
        PATIENCE_MS = 4000,      /* after which the client is told that a peer can't be reached */
};

void peering_failed(struct server_loop *l, struct channel *c, int status, const char *text)
{
        if (c->failed)
                return;
        c->failed = true;
        engine_peer_failed(l->engine, c->lanes.session, status, text);
}

void peering_disconnected(struct channel *c)
{
        struct target *t = c->target;
        log_info(LOG, "the connection with a peer is lost; %s",
                 t ? "it is tried again" : "it will try again");
        engine_peer_disconnected(c->loop->engine, c->lanes.session);
        if (!t)
                return;
        uint64_t now = clock_now_ns();
        t->pause_ms = RETRY_FIRST_MS;
        t->again_ns = now + RETRY_FIRST_MS * 1000000ull;
        if (t->report_ns == UINT64_MAX)
                t->report_ns = now + PATIENCE_MS * 1000000ull;
}

/* One try. */
struct dialling {
        struct mailbox *box;
        struct session *session;
        struct target target;
        uint64_t generation, next_seq;
        unsigned lanes; /* for bulk */
        bool share, packs, fabric;
        enum checking checks;
        /* server_loop_params */
        int (*connect)(void *user, const struct dial_params *p, struct conn **ret,
                       struct dial_reply *reply);
        void *user;
};

/* `local_path`: over the Unix socket that the other server has on its host, which may be this one. */
static int dial(const struct dialling *d, struct dial_params *p, bool local_path, struct conn **ret,
                struct dial_reply *reply)
{
        p->address = local_path ? d->target.local_path : d->target.address;
        p->own_user = local_path;
        return d->connect ? d->connect(d->user, p, ret, reply) : loop_connect(p, ret, reply);
}

static void *dial_thread(void *arg)
{
        struct dialling *d = arg;
        struct target *t = &d->target;
        thread_name("spancl-dial");
        for (unsigned lane = 0; lane <= d->lanes; lane++) {
                struct dial_params p = {
                        .timeout_ms = DIAL_TIMEOUT_MS,
                        .role = DIAL_PEER,
                        .lane = lane,
                        .session_id = { t->id[0], t->id[1] },
                        .key = { t->token[0], t->token[1] },
                        .next_seq = d->next_seq,
                        .generation = d->generation,
                        .name = "peer",
                        .share = d->share,
                        .packs = d->packs,
                        .checks = d->checks,
                        .fabric = d->fabric && lane == 1 ? fabric_chosen() : NULL,
                };
                struct dial_reply reply;
                struct arrival *a = mem_zalloc(sizeof(*a));
                if (!a)
                        break; /* the engine's commands fail when the client gives up */
                a->session = d->session;
                a->generation = d->generation;
                a->lane = lane;
                a->status = dial(d, &p, *t->local_path, &a->conn, &reply);
                if (a->status < 0 && *t->local_path && !lane) {
                        *t->local_path = 0;
                        a->status = dial(d, &p, false, &a->conn, &reply);
                }
                a->next_seq = reply.next_seq;
                a->features = reply.features;
                snprintf(a->text, sizeof(a->text), "%s", reply.text);
                bool failed = a->status < 0;
                if (!failed && lane && !lane_thread_takes(a->conn))
                        d->lanes = 1;
                box_post(d->box, a);
                if (failed)
                        break;
        }
        box_unref(d->box);
        mem_free(d);
        return NULL;
}

static int start_try(struct server_loop *l, struct channel *c) REQUIRES(l->lock, engine_held)
{
        struct target *t = c->target;
        struct dialling *d = mem_zalloc(sizeof(*d));
        if (!d)
                return SP_E_NOMEM;
        if (c->try < session_generation(c->lanes.session))
                c->try = session_generation(c->lanes.session);
        t->again_ns = UINT64_MAX;
        d->target = *t;
        d->session = c->lanes.session;
        d->generation = ++c->try;
        d->next_seq = session_next_seq(c->lanes.session);
        d->lanes = (unsigned)serving_option(l, CONFIG_peer_lanes);
        if (!d->lanes)
                d->lanes = lane_thread_lanes(1);
        d->share = serving_option(l, CONFIG_share);
        d->packs = link_can_pack(serving_option(l, CONFIG_compression));
        d->fabric = !c->no_fabric;
        d->checks = serving_option(l, CONFIG_checksum);
        d->connect = l->params.connect;
        d->user = l->params.user;
        d->box = box_ref(l->box);
        int r = thread_start(NULL, true, dial_thread, d);
        if (r < 0) {
                box_unref(d->box);
                mem_free(d);
        }
        return r;
}

/* Notify the client that the peer can't be reached. The first time at once, because the way may
 * never work; later after a while. */
static void peer_notify(struct server_loop *l, struct channel *c, const char *text)
        REQUIRES(l->lock, engine_held)
{
        struct target *t = c->target;
        if (t->report_ns == UINT64_MAX || (t->reached && clock_now_ns() < t->report_ns))
                return;
        t->report_ns = UINT64_MAX;
        engine_peer_unreachable(l->engine, c->lanes.session, text);
}

/* A try has failed. */
static void try_later(struct server_loop *l, struct channel *c, int status, const char *text)
        REQUIRES(l->lock, engine_held)
{
        struct target *t = c->target;
        channel_down(c);
        log_info(LOG, "no link to a peer: %s", text);
        if (status == SP_E_GONE) {
                peering_failed(l, c, status, text);
                return;
        }
        unsigned *pause_ms = c->relayed_ms ? &c->relayed_ms : &t->pause_ms;
        unsigned max_ms = c->relayed_ms ? RELAYED_MAX_MS : RETRY_MAX_MS;
        t->again_ns = clock_now_ns() + dial_pause(pause_ms, max_ms) * 1000000ull;
        if (c->relayed_ms) /* each time: it is the other side's turn */
                engine_peer_unreachable(l->engine, c->lanes.session, text);
        else if (status != SP_E_LINK) /* it was there, and was cut: it may be there again soon */
                peer_notify(l, c, text);
}

static void try_now(struct server_loop *l, struct channel *c) REQUIRES(l->lock, engine_held)
{
        int r = start_try(l, c);
        if (r < 0)
                try_later(l, c, r, status_text(r));
}

void peering_dial(void *user, struct session *s, uint64_t peer, const char *host, unsigned port,
                  const char *local_path, const uint64_t session_id[2],
                  const uint64_t token[2]) LOCK_UNCHECKED
{
        struct server_loop *l = user;
        struct channel *c = channel_of(l, s);
        (void)peer;
        if (c && !c->target)
                c->target = mem_zalloc(sizeof(*c->target));
        if (!c || !c->target) {
                log_error(LOG, "out of memory: a peer is not dialled");
                return;
        }
        struct target *t = c->target;
        channel_down(c);
        *t = (struct target){ .id = { session_id[0], session_id[1] },
                              .token = { token[0], token[1] },
                              .again_ns = 0, /* as soon as this message is worked off */
                              .report_ns = clock_now_ns() + PATIENCE_MS * 1000000ull,
                              .pause_ms = RETRY_FIRST_MS };
        struct address at;
        if (!address_of_peer(host, port, &at))
                address_put(&at, t->address);
        else /* the try fails, and its text names the host */
                snprintf(t->address, sizeof(t->address), "%s", host);
        if (serving_option(l, CONFIG_share) && *local_path && !address_of_path(local_path, &at))
                address_put(&at, t->local_path);
}

void peering_hang_up(void *user, struct session *s) LOCK_UNCHECKED
{
        struct server_loop *l = user;
        struct channel *c = channel_of(l, s);
        if (!c)
                return;
        channel_down(c);
        mem_free(c->target);
        c->target = NULL;
}

void peering_relayed(void *user, struct session *s) LOCK_UNCHECKED
{
        struct server_loop *l = user;
        struct channel *c = channel_of(l, s);
        struct target *t = c ? c->target : NULL;
        bool dialling = t && t->again_ns == UINT64_MAX && !c->lanes.links[0].conn;
        if (!c)
                return;
        channel_down(c);
        c->relayed_ms = c->relayed_ms ? c->relayed_ms : RELAYED_FIRST_MS;
        if (!t)
                return;
        t->report_ns = UINT64_MAX;
        if (!dialling)
                t->again_ns = clock_now_ns() + c->relayed_ms * 1000000ull;
        serving_rouse(l);
}

int peering_pass(void *user, struct session *s, int fd) LOCK_UNCHECKED
{
        struct channel *c = channel_of(user, s);
        struct conn *conn = c ? c->lanes.links[0].conn : NULL;
        return conn ? conn_pass(conn, fd) : SP_E_LINK;
}

int peering_take(void *user, struct session *s) LOCK_UNCHECKED
{
        struct channel *c = channel_of(user, s);
        struct conn *conn = c ? c->lanes.links[0].conn : NULL;
        return conn ? conn_take(conn) : SP_E_NOENT;
}

void peering_connected(struct server_loop *l, struct channel *c, uint64_t features)
{
        if (features & FEATURE_STAGING)
                conn_take_passed(c->lanes.links[0].conn);
        engine_peer_near(l->engine, c->lanes.session, features & FEATURE_STAGING);
}

void peering_see_to(struct server_loop *l)
{
        list_each(c, &l->channels, struct channel, link)
        {
                if (c->target && clock_now_ns() >= c->target->again_ns)
                        try_now(l, c);
                if (c->target && clock_now_ns() >= c->target->report_ns)
                        peer_notify(l, c, "no answer");
        }
}

/* A connection that this side dialled is there. */
static void peer_reached(struct server_loop *l, struct channel *c, struct arrival *a)
        REQUIRES(l->lock, engine_held)
{
        struct target *t = c->target;
        if (!a->lane) {
                channel_down(c);
                channel_await(l, c);
                (void)engine_peer_connected(l->engine, c->lanes.session);
        }
        int r = link_up(&c->lanes.links[a->lane], c->lanes.session, a->lane, steal(a->conn),
                        a->next_seq);
        if (!r)
                link_pack(&c->lanes.links[a->lane], a->features,
                          serving_option(l, CONFIG_compression));
        if (!r && !a->lane) {
                peering_connected(l, c, a->features);
                r = session_resume(c->lanes.session, a->generation);
                engine_settle(l->engine);
        }
        if (r < 0) {
                channel_down(c);
                peering_failed(l, c, r, status_text(r));
                return;
        }
        channel_carry(l, c, a->lane);
        if (a->lane != 1)
                return;
        if (c->relayed_ms)
                log_info(LOG,
                         "a peer that could not be reached is: the client need not relay any more");
        engine_peer_direct(l->engine, c->lanes.session);
        engine_settle(l->engine);
        c->relayed_ms = 0;
        t->reached = true;
        t->report_ns = UINT64_MAX;
        t->pause_ms = RETRY_FIRST_MS;
}

void peering_settle(struct server_loop *l, struct arrival *a)
{
        struct channel *c = channel_of(l, a->session);
        const struct target *t = c ? c->target : NULL;
        bool given_up = !t || c->failed || a->generation != c->try || t->again_ns != UINT64_MAX;
        if (c && !a->status && a->generation < session_generation(c->lanes.session))
                a->status = SP_E_LINK; /* the other side has closed it: it is relayed anew */
        const char *text = a->text[0] ? a->text : status_text(a->status);
        if (!given_up && !a->status)
                peer_reached(l, c, a);
        else if (!given_up && a->lane > 1)
                log_info(LOG, "one lane less to a peer: %s", text);
        else if (!given_up)
                try_later(l, c, a->status, text);
        arrival_free(a);
}
