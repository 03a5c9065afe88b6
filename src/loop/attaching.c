#include "loop/serving.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/file.h"
#include "session/hello.h"
#include "transport/checked.h"
#include "transport/fabric.h"
#include "transport/other_end.h"
#include "transport/shm.h"

#define LOG "server"

enum {
        EARLY_MAX = 64,              /* peers that came before the client announced them */
        SHARED_MESSAGES = 256 << 10, /* rings of shared memory */
        SHARED_BULK = 2 << 20,
};

static bool same(const uint64_t a[2], uint64_t hi, uint64_t lo)
{
        return !((a[0] ^ hi) | (a[1] ^ lo)); /* both halves always: no hint in the time it takes */
}

/* Connections of a session that had others may arrive in any order. */
static bool is_outdated(const struct wire_hello *m, uint64_t generation)
{
        return m->lane ? m->generation != generation : m->generation <= generation;
}

int attaching_admit(struct server_loop *l, const struct wire_hello *m, struct session **ret,
                    const char **ret_text)
{
        if (l->over) {
                *ret_text = "the session has ended";
                return SP_E_GONE;
        }
        if (m->lane >= SESSION_LANES) {
                *ret_text = "this server has no such lane";
                return SP_E_UNSUPP;
        }
        if (m->role) {
                uint64_t token[2] = { m->key_hi, m->key_lo };
                if (!l->attach.claimed || !same(l->attach.id, m->session_hi, m->session_lo)) {
                        *ret_text = "no such session";
                        return SP_E_GONE;
                }
                *ret = engine_peer_session(l->engine, token);
                if (*ret && is_outdated(m, session_generation(*ret))) {
                        *ret_text = "a later connection has taken the place of this one";
                        return SP_E_LINK;
                }
                return *ret ? 0 : SP_E_AGAIN;
        }
        if (!l->attach.claimed) {
                if (m->lane || m->next_seq || m->generation) {
                        *ret_text = "no such session";
                        return SP_E_GONE;
                }
                l->attach.claimed = true;
                l->attach.id[0] = m->session_hi;
                l->attach.id[1] = m->session_lo;
                l->attach.key[0] = m->key_hi;
                l->attach.key[1] = m->key_lo;
        } else if (!same(l->attach.id, m->session_hi, m->session_lo)) {
                *ret_text = "no such session";
                return SP_E_GONE;
        } else if (!same(l->attach.key, m->key_hi, m->key_lo)) {
                *ret_text = "wrong key for this session";
                return SP_E_AUTH;
        } else if (is_outdated(m, session_generation(engine_session(l->engine)))) {
                *ret_text = "a later connection has taken the place of this one";
                return SP_E_LINK;
        }
        *ret = engine_session(l->engine);
        return 0;
}

/* Answer in one piece: nothing else was sent on the conn, so it fits. */
static int answer(struct conn *conn, const struct wire_hello_reply *m)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        int r = hello_put_reply(&out, m);
        if (r < 0)
                return r;
        struct iovec iov = { out.data, out.size };
        return conn->ops->sendv(conn, &iov, 1) == (ssize_t)out.size ? 0 : SP_E_LINK;
}

/* `clients`: with the memory in common, too. */
static int offer_memory(struct server_loop *l, struct conn **conn, unsigned lane, bool clients)
        REQUIRES(l->lock, engine_held)
{
        uint64_t size;
        bool arena = clients && !lane && l->arena.fd < 0;
        int r = shm_offer(conn, lane ? SHARED_BULK : SHARED_MESSAGES, arena ? ARENA_SIZE : 0);
        int fd = !r && arena ? arena_storage(*conn, &size) : -1;
        if (fd >= 0) {
                l->arena.fd = file_duplicate(fd);
                l->arena.size = size;
                arena_map_bounce(*conn, &l->arena.bounce);
        }
        if (!r && clients)
                arena_use_bounce(&l->arena.bounce, lane, *conn);
        return r;
}

int attaching_attach(struct server_loop *l, const struct wire_hello *m, struct session *s,
                     struct conn *conn, struct dial_reply *reply)
{
        struct channel *c = channel_of(l, s);
        unsigned lane = (unsigned)m->lane;
        uint64_t next_seq = lane ? 0 : session_next_seq(s), now = clock_now_ns();
        bool share = serving_option(l, CONFIG_share) && m->features & FEATURE_SHARED_MEMORY &&
                     conn->ops->caps & TRANSPORT_PASSES_FDS;
        bool packs = lane && m->features & FEATURE_LZ4 &&
                     link_can_pack(serving_option(l, CONFIG_compression));
        bool checks = m->features & FEATURE_CHECKSUM && conn->ops->caps & TRANSPORT_ALTERABLE &&
                      serving_option(l, CONFIG_checksum) != CHECKING_OFF;
        uint64_t features = (share ? FEATURE_SHARED_MEMORY : 0) | (packs ? FEATURE_LZ4 : 0) |
                            (checks ? FEATURE_CHECKSUM : 0);
        if (!lane && !m->role && engine_takes_uploads(l->engine))
                features |= m->features & FEATURE_UPLOADS;
        if (!lane && !m->role)
                features |= m->features & FEATURE_RECORDER;
        if (!lane && m->role && share)
                features |= m->features & FEATURE_STAGING;
        if (!lane && !m->role && m->features & FEATURE_NOTICES)
                engine_take_notices(l->engine);
        int r = c ? 0 : SP_E_NOMEM;
        struct rma *rma = NULL;
        const uint64_t key[2] = { m->key_hi, m->key_lo };
        bool direct = !m->role && m->origin && !reply &&
                      m->origin == conn_ends_digest(conn, CONN_DIALLED_THERE, key);
        if (!r && c->failed)
                r = SP_E_GONE;
        if (!r && m->role && lane && !share && !reply && !c->no_fabric)
                rma = fabric_open(conn, m->fabrics);
        if (rma)
                features &= ~(uint64_t)FEATURE_LZ4;
        if (!r && !reply) {
                struct wire_hello_reply out = { .version = WIRE_VERSION,
                                                .features = features,
                                                .next_seq = next_seq,
                                                .time_ns = now,
                                                .identity = bytes_str(l->params.identity),
                                                .local_path = bytes_str(l->params.local_path) };
                if (rma) {
                        out.fabric = bytes_str(rma_provider(rma));
                        out.fabric_address = rma_address(rma, &out.fabric_form);
                }
                r = answer(conn, &out);
        }
        if (r < 0) {
                rma_free(rma);
                conn_close(conn);
                return r;
        }
        if (checks)
                r = checked_begin(&conn, lane && !rma);
        if (r < 0) {
                rma_free(rma);
                return r;
        }
        if (rma)
                r = fabric_begin(&conn, rma, bytes_of(NULL, 0), 0);
        if (share)
                r = offer_memory(l, &conn, lane, !m->role);
        if (r < 0)
                return r;
        bool again = !lane && m->generation;
        uint64_t has = m->next_seq;
        if (again) {
                channel_down(c); /* the client has given them up */
                channel_await(l, c);
                c->relayed_ms = 0;
                if (engine_peer_connected(l->engine, s) && has < session_acked_seq(s))
                        has = session_acked_seq(s); /* it went on while it dialled */
        }
        r = link_up(&c->lanes.links[lane], s, lane, conn, has);
        if (r == 0)
                link_pack(&c->lanes.links[lane], features, serving_option(l, CONFIG_compression));
        if (r == 0 && !lane && m->role)
                peering_connected(l, c, features);
        if (r == 0 && again) {
                r = session_resume(s, m->generation);
                engine_settle(l->engine);
        }
        if (r < 0)
                return r;
        if (reply) {
                reply->version = WIRE_VERSION;
                reply->next_seq = next_seq;
                reply->time_ns = now;
        }
        channel_carry(l, c, lane);
        if (!m->role && !lane) {
                l->client = c;
                l->process.direct = direct;
                l->process.closed = false;
                serving_know_process(l, conn_process(c->lanes.links[0].conn));
                l->attach.attached = true;
                l->drain.understood = m->features & FEATURE_DRAIN;
        }
        log_info(LOG, "%s attached lane %u (%.*s, %s)", m->role ? "a peer" : "the client", lane,
                 (int)m->name.size, (const char *)m->name.data,
                 conn_name(c->lanes.links[lane].conn));
        return 0;
}

static void refuse(struct conn *conn, int status, const char *text)
{
        log_warn(LOG, "a connection was refused: %s", text);
        (void)!answer(conn, &(struct wire_hello_reply){ .status = status,
                                                        .time_ns = clock_now_ns(),
                                                        .text = bytes_str(text) });
        conn_close(conn);
}

/* A connection that came. Keeps it for later when it is a peer not announced yet. */
static void greet(struct server_loop *l, struct arrival *a, size_t *early)
        REQUIRES(l->lock, engine_held)
{
        struct wire_hello m;
        struct session *s;
        const char *text = "the hello is not valid";
        int r = hello_get(bytes_of(a->hello.data, a->hello.size), &m);
        uint64_t version;
        if (!r)
                r = hello_negotiate(&m, &version, &text);
        if (!r)
                r = attaching_admit(l, &m, &s, &text);
        if (r == SP_E_AGAIN && *early < EARLY_MAX && clock_now_ns() < a->deadline_ns) {
                list_append(&l->early, &a->link);
                ++*early;
                return;
        }
        if (r == SP_E_AGAIN) {
                r = SP_E_AUTH;
                text = "the client has not announced this peer";
        }
        struct conn *conn = steal(a->conn);
        if (r < 0)
                refuse(conn, r, text);
        else if ((r = attaching_attach(l, &m, s, conn, NULL)) < 0)
                log_warn(LOG, "a connection could not be attached: %s", status_text(r));
        arrival_free(a);
}

void attaching_take(struct server_loop *l)
{
        struct list again = { &again, &again };
        size_t early = 0;
        while (!list_empty(&l->early)) {
                struct list *first = l->early.next;
                list_remove(first);
                list_append(&again, first);
        }
        while (!list_empty(&again)) {
                struct list *first = again.next;
                list_remove(first);
                greet(l, list_entry(first, struct arrival, link), &early);
        }
        for (struct arrival *a; (a = box_take(l->box));) {
                if (a->session) {
                        peering_settle(l, a);
                        continue;
                }
                l->attach.attached = true;
                greet(l, a, &early);
        }
}
