#include "core/command/transfer.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/command/command.h"
#include "core/command/enqueue.h"
#include "core/command/event.h"
#include "core/command/queue.h"
#include "core/command/upload.h"
#include "core/link/disconnected.h"
#include "core/link/server.h"
#include "core/memory/image.h"
#include "core/memory/mem.h"
#include "core/memory/placement.h"
#include "core/memory/view.h"
#include "session/arrivals.h"

/* Where byte `offset` of the box without gaps lies, and how many follow it in one piece. */
static uint8_t *box_at(const struct host_box *b, uint64_t offset, size_t *ret_len)
{
        uint64_t rows = b->region[1], width = b->region[0];
        bool whole_rows = b->row_pitch == width;
        if (whole_rows && (b->region[2] == 1 || b->slice_pitch == width * rows)) {
                *ret_len = (size_t)(host_size(b) - offset);
                return b->at + offset;
        }
        uint64_t row = offset / width, x = offset % width;
        uint64_t slice = row / rows, y = row % rows;
        *ret_len = (size_t)(width - x);
        if (whole_rows)
                *ret_len += (size_t)((rows - y - 1) * width);
        return b->at + slice * b->slice_pitch + y * b->row_pitch + x;
}

struct incoming {
        uint64_t transfer;
        struct server *server;
        cl_event event;      /* that it is a part of; held; NULL: `fetch` tells */
        struct fetch *fetch; /* that it is a part of; NULL: nobody waits for it */
        cl_mem keep;         /* the object that is read; held */
        struct host_box to;
        /* Where its bytes are meanwhile, if others are still on their way there that it comes after;
         * owned. NULL: they go where they belong. */
        uint8_t *aside;
        bool unwanted; /* the command has failed, or its call does not wait any more */
        struct arrivals placed, came;
};

/* ---- to servers ----------------------------------------------------------------------------- */

struct outgoing {
        struct session_bulk bulk;
        struct upload *upload; /* NULL: all bytes are sent */
        bool whole;            /* all bytes are to be sent */
        struct client *client;
        struct list link; /* the client's */
        struct host_box from;
        uint8_t *copy;  /* `from` is it; owned. NULL: the application's memory, or that of `keep` */
        cl_event event; /* that it is a part of, held; NULL: none */
        cl_mem root;    /* the buffer that the initial data is of, held; NULL: none */
        cl_mem keep;    /* the owner of the memory, held; NULL: the application */
        struct sent *sent;
};

static const void *outgoing_at(struct session_bulk *b, uint64_t offset, size_t *ret_len)
{
        return box_at(&container_of(b, struct outgoing, bulk)->from, offset, ret_len);
}

static uint64_t outgoing_lacks(const struct session_bulk *b, uint64_t offset, uint64_t *ret_end)
{
        return upload_lacks(container_of(b, const struct outgoing, bulk)->upload, offset, ret_end);
}

/* Does a transfer go over the wide lanes? Lane 1 of every server is for threads that wait. A
 * transfer leaves it alone if no thread waits for its bytes (`aside`), or if enough bytes are on
 * their way already. */
static bool goes_wide(const struct client *c, uint64_t size, bool aside) REQUIRES(client_held)
{
        enum { SMALL = 256 << 10 };
        return size >= SMALL && (aside || c->transfers.moving + size >= SESSION_WIDE_DEFAULT);
}

static void outgoing_done(struct session_bulk *b, int status) REQUIRES(client_held)
{
        struct outgoing *o = container_of(b, struct outgoing, bulk);
        o->upload = upload_free(o->upload);
        o->client->transfers.moving -= o->bulk.total;
        if (o->sent) {
                *o->sent = (struct sent){ true, status };
                client_changed(o->client);
        }
        if (o->event) {
                event_part_done(o->event, CL_SUCCESS);
                event_unhold(o->event);
        }
        if (o->root) {
                o->root->sending--;
                mem_drop_initial(o->root);
                mem_unhold(o->root);
        }
        if (o->keep)
                mem_unhold(o->keep);
        list_remove(&o->link);
        mem_free(o->copy);
        mem_free(o);
}

static struct outgoing *outgoing_new(struct client *c, uint64_t transfer, struct host_box from,
                                     bool aside) REQUIRES(client_held)
{
        struct outgoing *o = mem_zalloc(sizeof(*o));
        if (!o)
                return NULL;
        o->client = c;
        o->from = from;
        list_append(&c->transfers.outgoing, &o->link);
        o->bulk = (struct session_bulk){
                .transfer = transfer,
                .total = host_size(&from),
                .at = outgoing_at,
                .done = outgoing_done,
                .wide = goes_wide(c, host_size(&from), aside),
        };
        c->transfers.moving += o->bulk.total;
        return o;
}

/* The message that announces it is sent. */
static void outgoing_start(struct outgoing *o, struct server *s, struct session *session)
        REQUIRES(client_held)
{
        server_want_bulk(s, o->bulk.total);
        if (!o->whole && upload_pays(s, o->bulk.total))
                o->upload = upload_new(s, &o->bulk);
        if (o->upload) {
                o->bulk.lacks = outgoing_lacks;
                upload_start(o->upload);
        }
        int r = session_bulk_send(session, &o->bulk, o->upload ? 0 : o->bulk.total);
        s->sending.fresh_bulk |= session_bulk_pending(session);
        if (r == 0)
                return;
        /* The server would wait for it for ever. */
        s->lost_status = r;
        outgoing_done(&o->bulk, r);
}

/* Where the box begins and ends. */
static const uint8_t *box_end(const struct host_box *b)
{
        return b->at + (b->region[2] - 1) * b->slice_pitch + (b->region[1] - 1) * b->row_pitch +
               b->region[0];
}

static bool boxes_meet(const struct host_box *a, const struct host_box *b)
{
        return a->at < box_end(b) && b->at < box_end(a);
}

/* Are bytes on their way into that memory, or, if `written`, still to be copied from it? */
static bool is_to_come(struct client *c, const struct host_box *box, bool written)
        REQUIRES(client_held)
{
        struct incoming *in;
        for (size_t pos = 0; (in = map_next(&c->transfers.incoming, &pos));)
                if (!in->unwanted && boxes_meet(box, &in->to))
                        return true;
        list_each(copy, &c->transfers.host_copies, struct host_copy, link)
        {
                const struct host_box to = host_bytes(copy->to, copy->size),
                                      from = host_bytes(copy->from, copy->size);
                if (boxes_meet(box, &to) || (written && boxes_meet(box, &from)))
                        return true;
        }
        return false;
}

static void outgoing_start_held(cl_event e) REQUIRES(client_held)
{
        struct outgoing *o = steal(e->held);
        struct session *session = server_session(e->server);
        if (session)
                outgoing_start(o, e->server, session);
        else
                outgoing_done(&o->bulk, SP_E_GONE);
}

int transfer_send(struct command *m, struct host_box from, cl_mem keep, struct sent *sent)
{
        struct outgoing *o = outgoing_new(m->client, m->id, from, !m->enqueue->blocking);
        if (!o) {
                m->server->lost_status = SP_E_NOMEM; /* it would wait for it for ever */
                return SP_E_NOMEM;
        }
        o->sent = sent;
        o->keep = keep;
        if (keep)
                mem_hold(keep);
        if (m->event) {
                o->event = m->event;
                event_hold(m->event);
                m->event->parts++;
        }
        /* Its bytes may be those of a read that it comes after. */
        if (m->event && m->event->before && is_to_come(m->client, &from, false))
                m->event->held = o;
        else
                outgoing_start(o, m->server, m->session);
        return 0;
}

/* From now on the bytes are in memory of its own. */
static void outgoing_detach(struct outgoing *o, struct server *s) REQUIRES(client_held)
{
        size_t len, size = host_size(&o->from);
        o->sent = NULL;
        upload_pause(o->upload);
        o->copy = mem_alloc(size);
        if (!o->copy) {
                s->lost_status = SP_E_NOMEM; /* nothing is sent any more */
                return;
        }
        for (uint64_t at = 0; at < size; at += len) {
                const uint8_t *from = box_at(&o->from, at, &len);
                memcpy(o->copy + at, from, len);
        }
        o->from = host_bytes(o->copy, size);
        upload_go_on(o->upload);
}

struct sending {
        struct server *server;
        struct sent sent;
};

static bool is_sent(void *arg) REQUIRES(client_held)
{
        const struct sending *w = arg;
        return w->sent.done || server_fails(w->server);
}

/* Does a blocking write end with its command, and not as soon as its bytes have been taken?
 * clEnqueueSVMMemcpy "does not return until the buffer data has been copied". */
static bool waits_for_end(const struct enqueue *q)
{
        return q->wait_count || q->type == CL_COMMAND_SVM_MEMCPY;
}

/* The write goes on without the call. */
static void let_go(struct command *m, const struct sent *sent) REQUIRES(client_held)
{
        m->queue->last_event = m->id;
        list_each(o, &m->client->transfers.outgoing, struct outgoing, link)
        {
                if (o->sent == sent)
                        outgoing_detach(o, m->server);
        }
}

static void wait_sent(struct command *m, struct sending *w) REQUIRES(client_held)
{
        client_wait(m->client, is_sent, w);
        if (profile_is_on())
                profile_wait_was(PROFILE_TAKEN, m->server, NULL, m->profile.bytes);
}

cl_int transfer_finish_write(struct command *m, int r, struct host_box from)
{
        struct sending w = { .server = m->server };
        bool only_data = m->enqueue->blocking && !waits_for_end(m->enqueue);
        if (r == 0)
                r = transfer_send(m, from, NULL, only_data ? &w.sent : NULL);
        if (r == 0 && only_data) {
                if (w.sent.done)
                        server_kick(m->server);
                else /* sends, too, and needs no progress thread for the rest */
                        wait_sent(m, &w);
                r = w.sent.status < 0 || !w.sent.done ? SP_E_GONE : 0;
                if (!w.sent.done)
                        let_go(m, &w.sent);
        }
        return command_end(m, r, m->enqueue->blocking && !only_data);
}

bool transfer_needs_event(const struct enqueue *q, uint64_t size)
{
        if (q->blocking)
                return waits_for_end(q);
        return size > SESSION_INLINE_DEFAULT; /* the memory is read after the call */
}

/* ---- from servers --------------------------------------------------------------------------- */

static bool is_small(const struct host_box *b)
{
        return host_size(b) <= SESSION_INLINE_DEFAULT;
}

/* Could bytes of a read come before those of one that it comes after, into the same memory? Not if all that
 * is to come from its server, as it itself, travels behind messages. */
static bool may_overtake(const struct command *m, const struct host_box *to) REQUIRES(client_held)
{
        if (!m->event->before)
                return false;
        if (is_small(to) && list_empty(&m->client->transfers.host_copies) &&
            m->client->transfers.incoming.count == m->server->transfers.small_incoming)
                return false;
        return is_to_come(m->client, to, true);
}

/* Not the application's memory, but that of the mapped object. */
static bool is_map(const struct _cl_event *e)
{
        return e->command == CL_COMMAND_MAP_BUFFER || e->command == CL_COMMAND_MAP_IMAGE ||
               e->command == CL_COMMAND_SVM_MAP;
}

/* Record in the view of a mapped object that the bytes have come, or will not come. */
static void notify_view(const struct incoming *in, bool came)
{
        struct placement *p = &mem_root(in->keep)->placement;
        if (!in->event)
                return;
        if (is_map(in->event) && came)
                placement_view_arrived(p, in->transfer);
        else if (is_map(in->event))
                placement_arrival_failed(p, PLACEMENT_VIEW, in->transfer);
}

/* The bytes that were put aside go where they belong. */
static void incoming_settle(const struct incoming *in)
{
        size_t len;
        for (uint64_t at = 0; at < host_size(&in->to); at += len) {
                uint8_t *to = box_at(&in->to, at, &len);
                memcpy(to, in->aside + at, len);
        }
}

static void fetch_part_done(struct client *c, struct fetch *f, bool came) REQUIRES(client_held)
{
        f->failed |= !came;
        if (!--f->open)
                client_changed(c);
}

static void incoming_end(struct incoming *in, cl_int status) REQUIRES(client_held)
{
        cl_event e = in->event;
        cl_mem keep = in->keep;
        if (in->fetch)
                fetch_part_done(in->server->client, in->fetch,
                                status == CL_SUCCESS && !in->unwanted);
        if (in->aside && status == CL_SUCCESS && !in->unwanted)
                incoming_settle(in);
        notify_view(in, status == CL_SUCCESS && !in->unwanted);
        map_del(&in->server->client->transfers.incoming, in->transfer);
        in->server->client->transfers.moving -= host_size(&in->to);
        in->server->transfers.small_incoming -= is_small(&in->to);
        mem_free(in->aside);
        arrivals_fini(&in->placed);
        arrivals_fini(&in->came);
        mem_free(in);
        if (e) {
                event_part_done(e, status);
                event_unhold(e);
        }
        mem_unhold(keep);
}

/* Count what is to come. */
static void incoming_begin(struct incoming *in) REQUIRES(client_held)
{
        struct client *c = in->server->client;
        in->server->transfers.small_incoming += is_small(&in->to);
        mem_hold(in->keep);
        c->transfers.moving += host_size(&in->to);
        server_want_bulk(in->server, host_size(&in->to));
}

int transfer_expect(struct command *m, struct host_box to, cl_mem keep)
{
        struct incoming *in = mem_zalloc(sizeof(*in));
        if (!in)
                return SP_E_NOMEM;
        in->transfer = m->id;
        in->server = m->server;
        in->event = m->event;
        in->to = to;
        in->keep = keep;
        bool overtakes = may_overtake(m, &to);
        if (overtakes)
                in->aside = mem_alloc(host_size(&to));
        int r = overtakes && !in->aside ? SP_E_NOMEM
                                        : map_put(&m->client->transfers.incoming, in->transfer, in);
        if (r < 0) {
                mem_free(in->aside);
                mem_free(in);
                return r;
        }
        event_hold(in->event);
        in->event->parts++;
        in->event->lags = true;
        m->wide = goes_wide(m->client, host_size(&to), false);
        incoming_begin(in);
        return 0;
}

int transfer_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                   void **ret)
{
        struct server *s = user;
        struct incoming *in = map_get(&s->client->transfers.incoming, transfer);
        if (!in || in->server != s || offset >= host_size(&in->to) ||
            *len > host_size(&in->to) - offset || arrivals_meet(&in->placed, offset, offset + *len))
                return SP_E_PROTO;
        size_t fits = sizeof(s->transfers.sink);
        if (in->unwanted) {
                *ret = s->transfers.sink;
        } else if (in->aside) {
                *ret = in->aside + offset;
                fits = *len;
        } else {
                *ret = box_at(&in->to, offset, &fits);
        }
        if (*len > fits)
                *len = fits;
        return arrivals_add(&in->placed, offset, offset + *len);
}

int transfer_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                     uint64_t *ret_below)
{
        struct server *s = user;
        struct incoming *in = map_get(&s->client->transfers.incoming, transfer);
        if (!in)
                return SP_E_PROTO;
        int r = arrivals_add(&in->came, offset, offset + len);
        if (r < 0)
                return r;
        *ret_below = in->came.below;
        if (in->came.below < host_size(&in->to))
                return 0;
        if (!in->aside || !in->event->before)
                incoming_end(in, CL_SUCCESS);
        return 1;
}

int transfer_cut(void *user, const struct wire_transfer_cut *m)
{
        struct server *s = user;
        struct incoming *in = map_get(&s->client->transfers.incoming, m->transfer);
        if (!in || in->server != s || in->to.region[1] != 1 || in->to.region[2] != 1 ||
            is_small(&in->to) || m->size <= SESSION_INLINE_DEFAULT ||
            m->size > host_size(&in->to) || arrivals_meet(&in->placed, m->size, host_size(&in->to)))
                return SP_E_PROTO;
        s->client->transfers.moving -= host_size(&in->to) - m->size;
        in->to.region[0] = (size_t)m->size;
        if (in->came.below < m->size)
                return 0;
        int r = session_ack(s->session, m->transfer, m->size);
        if (!in->aside || !in->event->before)
                incoming_end(in, CL_SUCCESS);
        return r;
}

void transfer_turn(cl_event e)
{
        struct incoming *in = map_get(&e->context->client->transfers.incoming, e->id);
        if (e->held)
                outgoing_start_held(e);
        if (in && in->aside && in->came.below == host_size(&in->to))
                incoming_end(in, CL_SUCCESS);
}

void transfer_detach(cl_event e)
{
        struct client *c = e->context->client;
        struct incoming *in = map_get(&c->transfers.incoming, e->id);
        if (in && !is_map(e))
                in->unwanted = true;
        list_each(o, &c->transfers.outgoing, struct outgoing, link)
        {
                if (o->event == e && !o->keep && !o->root)
                        outgoing_detach(o, e->server);
        }
}

int transfer_restart(void *user)
{
        struct server *s = user;
        struct incoming *in;
        int r = 0;
        for (size_t pos = 0; r == 0 && (in = map_next(&s->client->transfers.incoming, &pos));) {
                if (in->server != s)
                        continue;
                arrivals_fini(&in->came);
                arrivals_fini(&in->placed);
                in->placed.below = in->came.below;
                r = session_ack(s->session, in->transfer, in->came.below);
        }
        return r;
}

void incoming_cancel(struct client *c, uint64_t transfer)
{
        struct incoming *in = map_get(&c->transfers.incoming, transfer);
        if (!in)
                return;
        in->unwanted = true;
        incoming_end(in, CL_SUCCESS);
}

int incoming_failed(struct server *s, uint64_t transfer)
{
        struct incoming *in = map_get(&s->client->transfers.incoming, transfer);
        if (!in || in->server != s)
                return 0;
        bool some = in->placed.below || in->placed.ahead.count;
        if (some && in->came.below < host_size(&in->to))
                return SP_E_PROTO; /* they may just be written where they belong */
        incoming_cancel(s->client, transfer);
        return 0;
}

void transfers_server_lost(struct server *s, const struct server_loss *loss)
{
        struct map_walk walk = { 0 };
        struct incoming *in;
        while ((in = map_walk_next(&s->client->transfers.incoming, &walk))) {
                if (in->server != s)
                        continue;
                incoming_end(in, CL_DEVICE_NOT_AVAILABLE);
                map_walk_changed(&walk);
        }
}

/* ---- migrations ----------------------------------------------------------------------------- */

/* Where the pixels of an image are, all of them: an image is brought as a whole. */
static const uint64_t image_origin[3];

struct image_size {
        uint64_t v[3];
};

static struct image_size image_size(const struct _cl_mem *root)
{
        size_t all[3];
        image_region(&root->image, all);
        return (struct image_size){ { all[0], all[1], all[2] } };
}

int transfer_bring_read(struct session *session, cl_mem root, struct range part,
                        const struct wire_buffer_read *m)
{
        struct image_size all = image_size(root);
        if (mem_is_image(root))
                return session_send(session, image_read, .event = m->event, .queue = m->queue,
                                    .flags = COMMAND_REGARDLESS | m->flags, .image = root->id,
                                    .origin = { image_origin, 3 }, .region = { all.v, 3 },
                                    .peer = m->peer, .transfer = m->transfer, .waits = m->waits);
        return session_send(session, buffer_read, .event = m->event, .queue = m->queue,
                            .flags = COMMAND_REGARDLESS | m->flags, .buffer = root->id,
                            .offset = part.begin, .size = part.end - part.begin, .peer = m->peer,
                            .transfer = m->transfer, .waits = m->waits);
}

int transfer_bring_write(struct session *session, cl_mem root, struct range part,
                         const struct wire_buffer_write *m)
{
        struct image_size all = image_size(root);
        if (mem_is_image(root))
                return session_send(session, image_write, .event = m->event, .queue = m->queue,
                                    .flags = COMMAND_REGARDLESS | m->flags, .image = root->id,
                                    .origin = { image_origin, 3 }, .region = { all.v, 3 },
                                    .peer = m->peer, .transfer = m->transfer, .waits = m->waits);
        return session_send(session, buffer_write, .event = m->event, .queue = m->queue,
                            .flags = COMMAND_REGARDLESS | m->flags, .buffer = root->id,
                            .offset = part.begin, .size = part.end - part.begin, .peer = m->peer,
                            .transfer = m->transfer, .waits = m->waits);
}

static struct host_box host_part(const struct _cl_mem *root, struct range part)
{
        const uint8_t *from = root->initial ? root->initial
                              : root->view  ? root->view->other
                                            : root->host_ptr;
        size_t all[3];
        if (!mem_is_image(root))
                return host_bytes(from + part.begin, (size_t)(part.end - part.begin));
        image_region(&root->image, all);
        return image_box(root, all, root->row_pitch, root->slice_pitch, from);
}

int transfer_fetch(cl_mem root, struct range part, const struct replica *from, uint8_t *to,
                   struct fetch *f)
{
        struct client *c = root->context->client;
        struct server *s = c->servers[from->server];
        struct session *session = server_refuses(s) ? NULL : server_session(s);
        uint64_t queue;
        int r = session ? mem_declare(root, s) : SP_E_GONE;
        if (r == 0)
                r = queue_side(root->context, s, from->domain, &queue);
        struct incoming *in = r < 0 ? NULL : mem_zalloc(sizeof(*in));
        if (!in)
                return r < 0 ? r : SP_E_NOMEM;
        uint64_t size = part.end - part.begin, id = client_new_id(c, OBJECT_EVENT);
        struct ids waits = replica_waits(from, part, WRITERS_ARRIVALS);
        *in = (struct incoming){ .transfer = id,
                                 .server = s,
                                 .fetch = f,
                                 .keep = root,
                                 .to = host_bytes(to, (size_t)size) };
        r = map_put(&c->transfers.incoming, id, in);
        if (r < 0) {
                mem_free(in);
                return r;
        }
        uint64_t wide = goes_wide(c, size, false) ? COMMAND_WIDE : 0;
        incoming_begin(in);
        f->open++;
        r = transfer_bring_read(session, root, part,
                                &(struct wire_buffer_read){ .event = id,
                                                            .queue = queue,
                                                            .flags = wide,
                                                            .transfer = id,
                                                            .waits = ids_waits(&waits) });
        if (r < 0)
                incoming_cancel(c, id);
        else
                server_kick(s);
        return r;
}

struct fetch_waiter {
        struct client *client;
        struct fetch *fetch;
};

/* Has all come, or will some never come? */
static bool fetch_is_settled(void *arg) REQUIRES(client_held)
{
        const struct fetch_waiter *w = arg;
        struct incoming *in;
        if (!w->fetch->open)
                return true;
        for (size_t pos = 0; (in = map_next(&w->client->transfers.incoming, &pos));)
                if (in->fetch == w->fetch && server_refuses(in->server))
                        return true;
        return false;
}

int fetch_wait(struct client *c, struct fetch *f)
{
        struct incoming *in;
        if (f->open)
                client_wait(c, fetch_is_settled, &(struct fetch_waiter){ c, f });
        for (size_t pos = 0; f->open && (in = map_next(&c->transfers.incoming, &pos));) {
                if (in->fetch != f)
                        continue;
                in->fetch = NULL;
                in->unwanted = true;
                f->open--;
                f->failed = true;
        }
        return f->failed ? SP_E_GONE : 0;
}

/* Make the transfer of a part of the client's copy of a buffer. It holds the buffer. NULL: no memory. */
static struct outgoing *outgoing_new_part(cl_mem root, struct range part, uint64_t transfer)
        REQUIRES(client_held)
{
        struct outgoing *o =
                outgoing_new(root->context->client, transfer, host_part(root, part), true);
        if (!o)
                return NULL;
        o->root = root;
        root->sending++;
        mem_hold(root);
        return o;
}

int transfer_bring_host(struct command *m, cl_mem root, struct range part,
                        const struct wire_buffer_write *w)
{
        struct outgoing *o = outgoing_new_part(root, part, w->transfer);
        if (!o)
                return SP_E_NOMEM;
        int r = transfer_bring_write(m->session, root, part, w);
        if (r < 0) {
                outgoing_done(&o->bulk, r);
                return r;
        }
        /* Other servers get the bytes from that server; the client's copy is not needed any more. */
        if (root->initial)
                r = placement_drop(&root->placement, PLACEMENT_HOST, 0, part);
        outgoing_start(o, m->server, m->session);
        return r;
}

int transfer_reroute_host(struct server *to, cl_mem root, struct range part, uint64_t event)
{
        if (!root->initial && !root->host_ptr)
                return SP_E_GONE;
        uint64_t id = client_new_id(to->client, OBJECT_EVENT);
        struct outgoing *o = outgoing_new_part(root, part, id);
        if (!o)
                return SP_E_NOMEM;
        o->whole = true; /* the command may have ended meanwhile */
        int r = session_send(to->session, transfer_reroute, .event = event, .transfer = id);
        if (r < 0)
                outgoing_done(&o->bulk, r);
        else
                outgoing_start(o, to, to->session);
        return r;
}
