#include "core/command/operands.h"

#include "base/log.h"
#include "core/client.h"
#include "core/command/command.h"
#include "core/command/enqueue.h"
#include "core/command/queue.h"
#include "core/command/transfer.h"
#include "core/link/disconnected.h"
#include "core/link/peers.h"
#include "core/link/server.h"
#include "core/memory/content_size.h"
#include "core/memory/mem.h"
#include "core/memory/migration.h"
#include "core/memory/placement.h"
#include "core/memory/recorded_memory.h"
#include "core/memory/view.h"

/* Where the command's device has the bytes of `root`. */
static unsigned command_domain(const struct command *m, const struct _cl_mem *root)
        REQUIRES(client_held)
{
        return mem_domain(root, m->queue->device);
}

void arrival_failed(struct server *s, uint64_t event)
{
        struct handle *h;
        for (size_t pos = 0; (h = map_next(&s->client->objects.all, &pos));) {
                cl_mem m = h->type == HANDLE_MEM ? (cl_mem)h : NULL;
                if (m && placement_arrival_failed(&m->placement, s->index, event))
                        log_error("client", "data of a buffer could not be brought to %s",
                                  server_name(s));
        }
        migrations_avoid(s, event);
}

/* Enqueue a marker behind these events. It fails if one of them fails; with `flags`
 * COMMAND_REGARDLESS it never does. */
static int mark_behind(struct server *s, uint64_t queue, const struct ids *ids, uint64_t flags,
                       uint64_t *ret) REQUIRES(client_held)
{
        if (!server_session(s))
                return SP_E_GONE;
        uint64_t id = client_new_id(s->client, OBJECT_EVENT);
        int r = session_send(server_session(s), marker, .event = id, .queue = queue, .flags = flags,
                             .waits = ids_waits(ids));
        if (r == 0)
                *ret = id;
        return r;
}

/* Replace a replica's writers by two markers when they are too many to name. All later users wait
 * for the first marker. It fails if bytes did not arrive, so that they do not start. Only commands
 * that need the other writers' bytes wait for the second. */
static int collapse(cl_mem root, struct server *s, unsigned domain) REQUIRES(client_held)
{
        struct replica *at = placement_find(&root->placement, s->index, domain);
        uint64_t queue, event;
        if (!at || at->writer_count < PLACEMENT_WRITERS_MAX)
                return 0;
        int r = queue_side(root->context, s, domain, &queue);
        for (unsigned awaited = 0; awaited < 2 && r == 0; awaited++) {
                struct ids ids = { .count = 0 };
                for (size_t i = 0; i < at->writer_count && ids.count < array_size(ids.few); i++)
                        if (at->writers[i].awaited == awaited)
                                ids.few[ids.count++] = at->writers[i].event;
                if (ids.count < 2)
                        continue;
                r = mark_behind(s, queue, &ids, awaited ? 0 : COMMAND_REGARDLESS, &event);
                if (r == 0)
                        replica_collapse(at, awaited, event);
        }
        return r;
}

/* Is it worth to follow how it goes? Between two servers there is nothing to choose. */
static bool is_followed(const struct client *c, struct range part) REQUIRES(client_held)
{
        return c->server_count > 2 && part.end - part.begin >= placement_chain_bytes;
}

/* The flags of the command that receives the brought bytes. */
static uint64_t write_flags(const struct client *c, struct range part) REQUIRES(client_held)
{
        return is_followed(c, part) || (profile_is_on() && profile_times(NULL)) ? COMMAND_NOTIFY
                                                                                : 0;
}

static int bring_from_host(struct command *m, cl_mem root, struct range part, uint64_t id,
                           uint64_t queue) REQUIRES(client_held)
{
        struct ids waits = replica_waits(
                placement_find(&root->placement, m->server->index, command_domain(m, root)), part,
                WRITERS_ARRIVALS);
        return transfer_bring_host(
                m, root, part,
                &(struct wire_buffer_write){ .event = id,
                                             .queue = queue,
                                             .flags = write_flags(m->client, part),
                                             .transfer = id,
                                             .waits = ids_waits(&waits) });
}

static void ids_add(struct ids *ids, const struct ids *more)
{
        for (size_t i = 0; i < more->count && ids->count < array_size(ids->few); i++)
                ids->few[ids->count++] = more->few[i];
}

/* Collect the commands that a read of `part` on `s`, in `queue`, waits for. The read fails if bytes
 * did not arrive there. If one command brings all arriving bytes that it needs, the read sends them
 * as they arrive (COMMAND_FOLLOW). `content`: the replica with the number of bytes that mean
 * something; NULL: none. */
static int writers_of(cl_mem root, struct server *s, uint64_t queue, const struct replica *at,
                      struct range part, const struct replica *content, struct ids *ret,
                      uint64_t *ret_flags) REQUIRES(client_held)
{
        struct ids writers = replica_waits(at, part, WRITERS_OTHER);
        struct ids arrivals = replica_waits(at, part, WRITERS_ARRIVING);
        ret->count = 0;
        if (content) {
                *ret = replica_waits(content, content_size_range(root), WRITERS_ALL);
                /* Better to send too many bytes than to read the number too early. */
                if (ret->count + writers.count + arrivals.count > array_size(ret->few))
                        ret->count = 0;
        }
        ids_add(ret, &writers);
        *ret_flags = arrivals.count ? COMMAND_FOLLOW : 0;
        if (arrivals.count > 1) {
                int r = mark_behind(s, queue, &arrivals, 0, &arrivals.few[0]);
                if (r < 0)
                        return r;
                arrivals.count = 1;
        }
        ids_add(ret, &arrivals);
        return 0;
}

static int bring_from_server(struct command *m, cl_mem root, struct range part, struct server *from,
                             unsigned from_domain, uint64_t id, uint64_t queue)
        REQUIRES(client_held)
{
        uint64_t from_queue, to_peer = PEER_SELF, from_peer = PEER_SELF, flags = 0;
        if (from != m->server) {
                int r = server_introduce(from, m->server);
                if (r < 0)
                        return r;
                to_peer = m->server->peers.id;
                from_peer = from->peers.id;
        }
        int r = queue_side(m->queue->context, from, from_domain, &from_queue);
        if (r < 0)
                return r;
        struct session *session = server_session(from);
        if (server_refuses(from))
                return SP_E_GONE;
        /* A buffer in place has its initial data there before any command used it. */
        r = mem_declare(root, from);
        if (r < 0)
                return r;
        struct placement *p = &root->placement;
        const struct replica *content = content_size_at(root, part, from->index, from_domain);
        struct ids before;
        r = writers_of(root, from, from_queue, placement_find(p, from->index, from_domain), part,
                       content, &before, &flags);
        if (r < 0)
                return r;
        uint64_t event = client_new_id(m->client, OBJECT_EVENT);
        r = content ? content_size_request(session, root, event) : 0;
        if (r < 0)
                return r;
        r = transfer_bring_read(session, root, part,
                                &(struct wire_buffer_read){ .event = event,
                                                            .queue = from_queue,
                                                            .flags = flags,
                                                            .peer = to_peer,
                                                            .transfer = id,
                                                            .waits = ids_waits(&before) });
        if (r < 0)
                return r;
        struct ids waits =
                replica_waits(placement_find(p, m->server->index, command_domain(m, root)), part,
                              WRITERS_ARRIVALS);
        r = transfer_bring_write(m->session, root, part,
                                 &(struct wire_buffer_write){ .event = id,
                                                              .queue = queue,
                                                              .flags = write_flags(m->client, part),
                                                              .peer = from_peer,
                                                              .transfer = id,
                                                              .waits = ids_waits(&waits) });
        if (from != m->server)
                server_kick(from);
        return r;
}

/* Bring one part that one source has. */
static int bring(struct command *m, cl_mem root, const struct share *share) REQUIRES(client_held)
{
        struct client *c = m->client;
        struct range part = share->part;
        unsigned domain = command_domain(m, root);
        uint32_t from_server = share->server, from_domain = share->domain;
        uint64_t queue;
        int r = queue_side(m->queue->context, m->server, domain, &queue);
        if (r < 0)
                return r;
        uint64_t id = client_new_id(c, OBJECT_EVENT);
        if (from_server == PLACEMENT_HOST)
                r = bring_from_host(m, root, part, id, queue);
        else
                r = bring_from_server(m, root, part, c->servers[from_server], from_domain, id,
                                      queue);
        if (r < 0)
                return r;
        r = placement_copy(&root->placement, m->server->index, domain, part, id);
        if (r == 0 && profile_is_on())
                profile_move(root, share, m->server, id);
        if (r == 0)
                migration_begin(root, share, m->server, domain, id, is_followed(c, part));
        if (r == 0)
                r = collapse(root, m->server, domain);
        log_debug("client", "bytes %llu to %llu of a memory object go to %s",
                  (unsigned long long)part.begin, (unsigned long long)part.end,
                  server_name(m->server));
        return r;
}

/* Bring a part from `from`, and from other replicas if that is faster. */
static int bring_part(struct command *m, cl_mem root, struct range part, const struct replica *from)
        REQUIRES(client_held)
{
        struct share shares[PLACEMENT_SHARES_MAX];
        unsigned count = migration_plan(m->server, root, part, from, shares);
        int r = 0;
        for (unsigned i = 0; i < count && r == 0; i++)
                r = bring(m, root, &shares[i]);
        return r;
}

/* Where it is used first; "failure to allocate memory for [...] objects specified as arguments" elsewhere. */
static int use_pipe(struct command *m, cl_mem pipe) REQUIRES(client_held)
{
        unsigned domain = m->queue->device->domain;
        if (!pipe->pipe.server) {
                pipe->pipe.server = m->server;
                pipe->pipe.domain = domain;
        }
        if (pipe->pipe.server != m->server || pipe->pipe.domain != domain)
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        return mem_declare(pipe, m->server);
}

/* Servers that can't be asked for anything, or can't reach that one. */
static struct server_set avoided(const struct server *to) REQUIRES(client_held)
{
        const struct client *c = to->client;
        struct server_set all = to->peers.bad;
        for (unsigned i = 0; i < c->server_count; i++)
                if (server_refuses(c->servers[i]))
                        server_set_add(&all, i);
        return all;
}

static int bring_stale(struct command *m, cl_mem root, unsigned domain, struct range r)
        REQUIRES(client_held)
{
        struct placement *p = &root->placement;
        uint32_t server = m->server->index;
        const struct replica *from;
        struct range part;
        int e = 0;
        if (!placement_stale(p, server, domain, r, &part, &from))
                return 0;
        p->avoid = avoided(m->server);
        while (e == 0 && placement_stale(p, server, domain, r, &part, &from)) {
                r.begin = part.begin; /* nothing before it, however much nobody has */
                e = bring_part(m, root, part, from);
        }
        return e;
}

int command_use(struct command *m, cl_mem mem, struct range r, bool bring_it)
{
        if (mem_is_pipe(mem))
                return use_pipe(m, mem);
        if (m->enqueue->record)
                return record_use(m, mem, r, bring_it);
        cl_mem root = mem_root(mem);
        struct placement *p = &root->placement;
        uint32_t server = m->server->index, domain = command_domain(m, root);
        int e = mem_declare(mem, m->server);
        if (e == 0 && root->view && bring_it)
                e = view_take(root->view, r);
        struct replica *at = placement_find(p, server, domain);
        if (e == 0 && bring_it && !(at && range_set_has(&at->current, r))) {
                e = bring_stale(m, root, domain, r);
                at = placement_find(p, server, domain);
        }
        uint64_t queue = queue_order(m->queue);
        for (size_t i = 0; e == 0 && at && i < at->writer_count; i++) {
                struct writer *w = &at->writers[i];
                if (!w->awaited || !range_overlaps(w->range, r) || writer_is_seen(w, queue))
                        continue;
                if (!writer_is_among(w, m->waits, m->wait_count))
                        e = command_wait_for(m, w->event);
                writer_see(w, queue);
        }
        return e;
}

int command_wrote(struct command *m, cl_mem mem, struct range r, bool covers)
{
        if (mem_is_pipe(mem))
                return 0;
        if (m->enqueue->record)
                return record_wrote(m, mem, r);
        cl_mem root = mem_root(mem);
        unsigned domain = command_domain(m, root);
        int e = root->view ? view_lose(root->view, r) : 0;
        if (m->wait_count)
                placement_follow(&root->placement, m->server->index, domain, r, m->id, covers,
                                 m->waits, m->wait_count);
        uint64_t queue = queue_order(m->queue);
        if (e == 0)
                e = (covers ? placement_write : placement_may_write)(
                        &root->placement, m->server->index, domain, r, m->id, queue);
        if (e == 0 && root->view)
                view_changed(root->view);
        if (e == 0 && m->enqueue->blocking)
                placement_await(&root->placement, m->server->index, domain, m->id);
        if (e == 0)
                e = collapse(root, m->server, domain);
        if (e < 0) /* nobody knows any more which bytes are right */
                m->server->lost_status = e;
        return e;
}
