#include "core/flight.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/mem.h"
#include "core/server.h"

/* What was measured is taken for too little by twice as much for each so long ago: who once was slow is tried
 * again. */
#define RATE_AGE_NS 30000000000ull

struct flight {
        const struct _cl_mem *root; /* if that is still there, and is the one with the id */
        uint64_t root_id;
        uint64_t event, size;
        uint32_t from, from_domain;
        struct server *to;
        unsigned domain;
};

void flight_begin(cl_mem root, struct range part, uint32_t from, uint32_t from_domain,
                  struct server *to, unsigned domain, uint64_t event)
{
        const struct flight now = { .root = root,
                                    .root_id = root->id,
                                    .event = event,
                                    .size = part.end - part.begin,
                                    .from = from,
                                    .from_domain = from_domain,
                                    .to = to,
                                    .domain = domain };
        struct flight *f = mem_dup(&now, sizeof(now));
        if (!f || map_put(&to->client->flights, event, f) < 0) {
                mem_free(f);
                return;
        }
        placement_sends(&root->placement, from, from_domain, 1);
}

/* It counts no more. Returns the placement, NULL: the object is not there any more. */
static struct placement *landed(struct client *c, const struct flight *f)
{
        struct handle *h = client_object(c, f->root);
        cl_mem root = h && h->type == HANDLE_MEM ? (cl_mem)h : NULL;
        if (!root || root->id != f->root_id)
                return NULL;
        placement_sends(&root->placement, f->from, f->from_domain, -1);
        return &root->placement;
}

void flight_ended(struct server *to, uint64_t event, cl_int status, const uint64_t times[3],
                  bool timed)
{
        struct client *c = to->client;
        struct flight *f = map_get(&c->flights, event);
        if (!f || f->to != to)
                return;
        map_del(&c->flights, event);
        struct placement *p = landed(c, f);
        if (p && status == CL_COMPLETE)
                placement_arrived(p, to->index, f->domain, event);
        if (timed && times[2] > times[1] && f->from < CLIENT_SERVERS_MAX) {
                uint64_t rate = f->size * 1000 / (times[2] - times[1]);
                to->rates[f->from].mb_s = rate < 1 ? 1 : rate < UINT32_MAX ? (uint32_t)rate : 0;
                to->rates[f->from].at_ns = client_now_ns(c);
                log_debug("client", "bytes came to %s with %u MB/s from server %u", server_name(to),
                          to->rates[f->from].mb_s, f->from);
        }
        mem_free(f);
}

void flights_lost(struct server *to)
{
        struct client *c = to->client;
        struct flight *f;
        for (size_t pos = 0; (f = map_next(&c->flights, &pos));) {
                if (f->to != to)
                        continue;
                landed(c, f);
                map_del(&c->flights, f->event);
                mem_free(f);
                pos = 0; /* the map has changed */
        }
}

void flights_fini(struct client *c)
{
        struct flight *f;
        for (size_t pos = 0; (f = map_next(&c->flights, &pos));)
                mem_free(f);
        map_fini(&c->flights);
}

unsigned flight_plan(const struct server *to, const struct _cl_mem *root, struct range part,
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
