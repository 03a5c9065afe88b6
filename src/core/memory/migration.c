#include "core/memory/migration.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/command/queue.h"
#include "core/command/transfer.h"
#include "core/link/disconnected.h"
#include "core/link/listeners.h"
#include "core/link/peers.h"
#include "core/link/server.h"
#include "core/memory/mem.h"
#include "core/memory/placement.h"

/* A measured rate counts twice as much for each such time since it was measured, so that a server
 * that was slow is tried again. */
#define RATE_AGE_NS 30000000000ull

enum {
        WAYS_MAX = 4,
        WAITS_MAX = 3,
};

/* Another replica with the bytes, and the events that a read there waits for. The bytes stay there
 * while the copy is under way: later writers there wait for commands that need the copy. */
struct way {
        uint32_t server, domain;
        bool follow; /* the last of `waits` brings them (COMMAND_FOLLOW) */
        unsigned wait_count;
        uint64_t waits[WAITS_MAX];
};

struct migration {
        const struct _cl_mem *root; /* if that is still there, and is the one with the id */
        uint64_t root_id;
        uint64_t event;
        struct range part;
        uint32_t from, from_domain;
        struct server *to;
        unsigned domain;
        bool announced;
        unsigned way_count;
        struct way ways[WAYS_MAX]; /* the best first */
};

/* Find the events that a read of `part` at this replica waits for. False: there are too many, or
 * another copy than replica_arrival's is still arriving, so that nothing shows whether the bytes
 * came. */
static bool find_way(const struct replica *at, struct range part, struct way *ret)
{
        uint64_t arrival = replica_arrival(at, part);
        unsigned arrivals = 0;
        *ret = (struct way){ .server = at->server, .domain = at->domain };
        for (size_t i = 0; i < at->writer_count; i++) {
                const struct writer *w = &at->writers[i];
                if (!w->event || w->here || !range_overlaps(w->range, part) ||
                    w->event == arrival || (w->arrival && replica_passed(at, i)))
                        continue;
                arrivals += w->arrival;
                if (ret->wait_count + 1 == WAITS_MAX)
                        return false;
                ret->waits[ret->wait_count++] = w->event;
        }
        ret->follow = arrival != 0;
        if (arrival)
                ret->waits[ret->wait_count++] = arrival;
        return !arrivals;
}

static void find_ways(struct migration *f, const struct _cl_mem *root)
{
        const struct placement *p = &root->placement;
        for (size_t i = 0; i < p->count && f->way_count < WAYS_MAX; i++) {
                const struct replica *at = &p->replicas[i];
                bool source = at->server == f->from && at->domain == f->from_domain;
                if (!source && at->server != f->to->index && at->server != PLACEMENT_VIEW &&
                    range_set_has(&at->current, f->part))
                        f->way_count += find_way(at, f->part, &f->ways[f->way_count]);
        }
}

static void migration_free(struct client *c, struct migration *f)
{
        map_del(&c->migrations.all, f->event);
        mem_free(f);
}

/* The client is not notified when a small migration completes: it is remembered as long as there is
 * room. */
static void remember_small(struct client *c, uint64_t event) REQUIRES(client_held)
{
        uint64_t *at =
                &c->migrations.small[c->migrations.next_small++ % array_size(c->migrations.small)];
        struct migration *oldest = *at ? map_get(&c->migrations.all, *at) : NULL;
        if (oldest)
                migration_free(c, oldest);
        *at = event;
}

void migration_begin(cl_mem root, const struct share *share, struct server *to, unsigned domain,
                     uint64_t event, bool announced)
{
        struct client *c = to->client;
        struct migration now = { .root = root,
                                 .root_id = root->id,
                                 .event = event,
                                 .part = share->part,
                                 .from = share->server,
                                 .from_domain = share->domain,
                                 .to = to,
                                 .domain = domain,
                                 .announced = announced };
        if (share->server != to->index && share->server != PLACEMENT_HOST)
                find_ways(&now, root);
        if (!announced && !now.way_count)
                return;
        struct migration *f = mem_dup(&now, sizeof(now));
        if (!f || map_put(&c->migrations.all, event, f) < 0) {
                mem_free(f);
                return;
        }
        if (announced)
                placement_sends(&root->placement, share->server, share->domain, 1);
        else
                remember_small(c, event);
}

static cl_mem migration_root(struct client *c, const struct migration *f) REQUIRES(client_held)
{
        struct handle *h = client_object(c, f->root);
        cl_mem root = h && h->type == HANDLE_MEM ? (cl_mem)h : NULL;
        return root && root->id == f->root_id ? root : NULL;
}

/* The migration is over; its source does not send it any more. Returns the placement, NULL: the
 * object does not exist any more. */
static struct placement *landed(struct client *c, const struct migration *f) REQUIRES(client_held)
{
        cl_mem root = migration_root(c, f);
        if (root && f->announced)
                placement_sends(&root->placement, f->from, f->from_domain, -1);
        return root ? &root->placement : NULL;
}

void migration_ended(struct server *to, uint64_t event, cl_int status, const uint64_t times[3],
                     bool timed)
{
        struct client *c = to->client;
        struct migration *f = map_get(&c->migrations.all, event);
        if (!f || f->to != to)
                return;
        struct placement *p = landed(c, f);
        if (p && status == CL_COMPLETE)
                placement_arrived(p, to->index, f->domain, event);
        if (timed && times[2] > times[1] && f->from < CLIENT_SERVERS_MAX) {
                uint64_t rate = (f->part.end - f->part.begin) * 1000 / (times[2] - times[1]);
                to->rates[f->from].mb_s = rate < 1 ? 1 : rate < UINT32_MAX ? (uint32_t)rate : 0;
                to->rates[f->from].at_ns = client_now_ns(c);
                log_debug("client", "bytes came to %s with %u MB/s from server %u", server_name(to),
                          to->rates[f->from].mb_s, f->from);
        }
        migration_free(c, f);
}

static void drop_way(struct migration *f, unsigned i)
{
        f->way_count--;
        memmove(&f->ways[i], &f->ways[i + 1], (f->way_count - i) * sizeof(f->ways[0]));
}

void migrations_avoid(struct server *to, uint64_t event)
{
        struct migration *f;
        for (size_t pos = 0; (f = map_next(&to->client->migrations.all, &pos));) {
                for (unsigned i = f->way_count; i-- > 0;) {
                        const struct way *way = &f->ways[i];
                        if (way->server == to->index && way->follow &&
                            way->waits[way->wait_count - 1] == event)
                                drop_way(f, i);
                }
        }
}

static int go(struct migration *f, cl_mem root, const struct way *way) REQUIRES(client_held)
{
        struct client *c = f->to->client;
        struct session *to = server_session(f->to);
        if (!to)
                return SP_E_GONE;
        if (way->server == PLACEMENT_HOST)
                return transfer_reroute_host(f->to, root, f->part, f->event);
        struct server *from = c->servers[way->server];
        uint64_t queue;
        if (server_refuses(from))
                return SP_E_GONE;
        int r = server_introduce(from, f->to);
        if (r == 0)
                r = queue_side(root->context, from, way->domain, &queue);
        struct session *session = server_session(from);
        if (r == 0 && !session)
                r = SP_E_GONE;
        if (r < 0)
                return r;
        uint64_t id = client_new_id(c, OBJECT_EVENT);
        r = transfer_bring_read(
                session, root, f->part,
                &(struct wire_buffer_read){ .event = client_new_id(c, OBJECT_EVENT),
                                            .queue = queue,
                                            .flags = way->follow ? COMMAND_FOLLOW : 0,
                                            .peer = f->to->peers.id,
                                            .transfer = id,
                                            .waits = { way->waits, way->wait_count } });
        if (r < 0)
                return r;
        server_kick(from);
        return session_send(to, transfer_reroute, .event = f->event, .peer = from->peers.id,
                            .transfer = id);
}

/* Take the first way that works. */
static int find_other(struct migration *f, cl_mem root) REQUIRES(client_held)
{
        while (f->way_count) {
                struct way way = f->ways[0];
                drop_way(f, 0);
                int r = go(f, root, &way);
                if (r < 0 && r != SP_E_GONE && r != SP_E_HOST)
                        return r;
                if (r < 0)
                        continue;
                if (f->announced)
                        placement_sends(&root->placement, f->from, f->from_domain, -1);
                f->from = way.server;
                f->from_domain = way.domain;
                if (f->announced)
                        placement_sends(&root->placement, f->from, f->from_domain, 1);
                log_info("client",
                         "what was to come to %s from a server that can't send it comes from %s",
                         server_name(f->to),
                         way.server == PLACEMENT_HOST
                                 ? "this program"
                                 : server_name(f->to->client->servers[way.server]));
                return 0;
        }
        return SP_E_GONE;
}

int migration_orphaned(void *user, const struct wire_transfer_orphaned *m)
{
        struct server *s = user;
        struct client *c = s->client;
        struct migration *f = map_get(&c->migrations.all, m->event);
        cl_mem root = f && f->to == s ? migration_root(c, f) : NULL;
        int r = SP_E_GONE;
        if (root) { /* other servers that are lost meanwhile may release it */
                mem_hold(root);
                r = find_other(f, root);
                mem_unhold(root);
        }
        if (r == SP_E_GONE && server_session(s))
                r = session_send(server_session(s), transfer_reroute, .event = m->event,
                                 .status = CL_DEVICE_NOT_AVAILABLE);
        server_kick(s);
        return r == SP_E_GONE ? 0 : r;
}

void migrations_server_lost(struct server *to, const struct server_loss *loss)
{
        struct client *c = to->client;
        struct map_walk walk = { 0 };
        struct migration *f;
        while ((f = map_walk_next(&c->migrations.all, &walk))) {
                if (f->to != to)
                        continue;
                landed(c, f);
                migration_free(c, f);
                map_walk_changed(&walk);
        }
}

void migrations_fini(struct client *c)
{
        struct migration *f;
        for (size_t pos = 0; (f = map_next(&c->migrations.all, &pos));)
                mem_free(f);
        map_fini(&c->migrations.all);
}

unsigned migration_plan(const struct server *to, const struct _cl_mem *root, struct range part,
                        const struct replica *from, struct share ret[PLACEMENT_SHARES_MAX])
{
        uint32_t rates[CLIENT_SERVERS_MAX];
        uint64_t now = client_now_ns(to->client);
        if (mem_is_image(root)) { /* in one piece */
                ret[0] = (struct share){ part, from->server, from->domain };
                return 1;
        }
        for (unsigned i = 0; i < CLIENT_SERVERS_MAX; i++) {
                uint64_t old = (now - to->rates[i].at_ns) / RATE_AGE_NS;
                uint64_t rate = (uint64_t)to->rates[i].mb_s << (old < 10 ? old : 10);
                rates[i] = rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
        }
        return placement_share(&root->placement, to->index, part, from, rates, ret);
}
