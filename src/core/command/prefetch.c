#include "core/command/prefetch.h"

#include <string.h>

#include "base/mem.h"
#include "core/client.h"
#include "core/command/action.h"
#include "core/command/ahead.h"
#include "core/command/event.h"
#include "core/command/queue.h"
#include "core/command/transfer.h"
#include "core/link/disconnected.h"
#include "core/link/server.h"
#include "core/memory/mem.h"
#include "core/memory/placement.h"
#include "core/memory/view.h"
#include "core/profile/profile.h"

enum {
        SMALL = 4096, /* bytes of the largest read that is sent ahead */
        GUESSES = 8,
        READS = 4,   /* sent ahead at a time */
        REPEATS = 2, /* so often a read has to follow the same commands before it is sent ahead */
};

/* A read that the program has made. */
struct guess {
        uint64_t behind;    /* the commands before it (prefetch.behind) */
        cl_mem root;        /* not held: valid only if it is still an object with the id `id` */
        uint64_t id;        /* 0: the entry is free */
        struct range bytes; /* in the root */
        unsigned repeats;
};

/* A read that was sent ahead. */
struct read {
        cl_event event; /* held; NULL: the entry is free */
        uint64_t id;    /* of the event */
        struct guess *guess;
        uint64_t root;
        struct range range;
        bool taken;   /* a call of the program waits for it */
        bool dropped; /* the program does not get it; the bytes may still arrive */
        uint8_t bytes[SMALL];
};

struct prefetch {
        /* The kinds of the step's commands so far, and its reads, as a hash. A step begins with the first command
         * behind a read. */
        uint64_t behind;
        bool reading;    /* the newest command was a read of a buffer */
        uint64_t before; /* all commands of the step have larger ids */
        uint64_t newest; /* id of the last read that was sent ahead */
        struct guess guesses[GUESSES];
        unsigned next; /* the guess that is replaced next */
        struct read reads[READS];
};

int prefetch_new(struct prefetch **ret)
{
        *ret = mem_zalloc(sizeof(**ret));
        return *ret ? 0 : SP_E_NOMEM;
}

struct prefetch *prefetch_free(struct prefetch *p)
{
        mem_free(p);
        return NULL;
}

/* ---- the program's habits ------------------------------------------------------------------- */

static uint64_t add(uint64_t hash, uint64_t value)
{
        hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
        return hash ^ hash >> 29;
}

static uint64_t add_read(uint64_t behind, uint64_t root, struct range bytes)
{
        return add(add(add(behind, root), bytes.begin), bytes.end);
}

static bool range_is(struct range a, struct range b)
{
        return a.begin == b.begin && a.end == b.end;
}

/* Return true if the program waits for this read alone. A read that does not block, behind commands that are still to
 * run, costs no round trip of its own: the next wait is for both. */
static bool is_waited_for(const struct enqueue *q)
{
        const struct _cl_command_queue *queue = q->queue;
        return q->blocking || queue->last_event == queue->finished ||
               (!queue->failed && queue->last_event <= queue->completed);
}

/* Count a read that the program makes now. */
static void learn(struct prefetch *p, cl_mem root, struct range bytes) REQUIRES(client_held)
{
        for (size_t i = 0; i < GUESSES; i++) {
                struct guess *g = &p->guesses[i];
                if (g->id == root->id && g->behind == p->behind && range_is(g->bytes, bytes)) {
                        g->repeats += g->repeats < REPEATS;
                        return;
                }
        }
        p->guesses[p->next] = (struct guess){ p->behind, root, root->id, bytes, 1 };
        p->next = (p->next + 1) % GUESSES;
}

/* ---- which bytes may be read ahead ---------------------------------------------------------- */

/* Return true if only commands can change the buffer's bytes. */
static bool is_plain(const struct _cl_mem *root)
{
        return !mem_is_image(root) && !mem_is_pipe(root) && !root->host_ptr && !root->chunk &&
               !root->usm.type && !root->view && !root->content && list_empty(&root->mappings);
}

/* Return true if all writers of the bytes come before the queue's command with this id, and the queue has waited for
 * those in other queues. False, too, if the bytes are stale in the queue's domain. *ret_newest: the id of the newest
 * writer, 0 if there is none. */
static bool is_behind_writers(const struct _cl_command_queue *q, const struct _cl_mem *root,
                              struct range bytes, uint64_t id, uint64_t *ret_newest)
        REQUIRES(client_held)
{
        const struct replica *at = placement_find(&root->placement, q->device->server->index,
                                                  mem_domain(root, q->device));
        uint64_t order = queue_order(q), newest = 0;
        if (!at || !range_set_has(&at->current, bytes))
                return false;
        for (size_t i = 0; i < at->writer_count; i++) {
                const struct writer *w = &at->writers[i];
                if (!range_overlaps(w->range, bytes))
                        continue;
                bool seen = w->queue == order || (w->awaited && writer_is_seen(w, order));
                if (!seen || w->event > id)
                        return false;
                if (w->event > newest)
                        newest = w->event;
        }
        *ret_newest = newest;
        return true;
}

/* Return the guess's buffer if the step has written the bytes, and a read right behind the queue's newest command gets
 * them. Else NULL. */
static cl_mem readable(const struct prefetch *p, cl_command_queue q, const struct guess *g)
        REQUIRES(client_held)
{
        uint64_t newest;
        const struct handle *h = client_object(q->context->client, g->root);
        if (!h || h->type != HANDLE_MEM || g->root->id != g->id || !is_plain(g->root) ||
            !is_behind_writers(q, g->root, g->bytes, UINT64_MAX, &newest))
                return NULL;
        return newest > p->before ? g->root : NULL;
}

/* ---- reads ahead ---------------------------------------------------------------------------- */

static void let_go(struct read *r) REQUIRES(client_held)
{
        cl_event e = steal(r->event);
        r->dropped = r->taken = false;
        if (e)
                event_unhold(e);
}

/* Return an entry whose memory expects no bytes. Those of a dropped read may still arrive. NULL: there is none. */
static struct read *unused_read(struct prefetch *p) REQUIRES(client_held)
{
        for (size_t i = 0; i < READS; i++) {
                struct read *r = &p->reads[i];
                if (r->dropped && event_is_done(r->event))
                        let_go(r);
                if (!r->event)
                        return r;
        }
        return NULL;
}

/* The program has enqueued another command than the reads, so the guesses were wrong. */
static void drop_all(struct prefetch *p) REQUIRES(client_held)
{
        for (size_t i = 0; i < READS; i++) {
                struct read *r = &p->reads[i];
                if (!r->event || r->taken || r->dropped)
                        continue;
                r->guess->repeats = 0;
                r->dropped = true;
        }
}

/* Send a read behind all commands of the queue. SP_E_NOMEM, SP_E_GONE. */
static int send_read(cl_command_queue q, cl_mem root, struct guess *g, struct read *r)
        REQUIRES(client_held)
{
        size_t size = (size_t)(g->bytes.end - g->bytes.begin);
        const struct enqueue enqueue = { .queue = q, .type = CL_COMMAND_READ_BUFFER };
        const struct action action = { .kind = ACTION_BUFFER_READ,
                                       .from = { .mem = root, .named = root, .bytes = g->bytes } };
        struct command m = { .client = q->context->client,
                             .enqueue = &enqueue,
                             .queue = q,
                             .server = q->device->server,
                             .session = server_session(q->device->server) };
        int e = command_ready(&m, true);
        if (e == 0)
                e = transfer_expect(&m, host_bytes(r->bytes, size), root);
        if (e == 0)
                e = action_send(&m, &action);
        if (e < 0 && m.event) {
                incoming_cancel(m.client, m.id);
                event_complete(m.event, CL_OUT_OF_HOST_MEMORY);
                event_unhold(m.event);
        }
        if (e < 0)
                return e;
        m.event->ahead.guessed = true;
        q->last_event = m.id;
        q->last_at = m.at;
        r->event = m.event;
        r->id = m.id;
        r->guess = g;
        r->root = root->id;
        r->range = g->bytes;
        return 0;
}

/* Return the first guess that has followed these commands often enough, and its buffer. NULL: there is none. */
static struct guess *next_guess(struct prefetch *p, cl_command_queue q, uint64_t behind,
                                cl_mem *ret_root) REQUIRES(client_held)
{
        for (size_t i = 0; i < GUESSES; i++) {
                struct guess *g = &p->guesses[i];
                if (g->id && g->behind == behind && g->repeats >= REPEATS &&
                    (*ret_root = readable(p, q, g)))
                        return g;
        }
        return NULL;
}

/* Send the reads that have followed these commands. A failure is no error, because the program enqueues its reads
 * itself. */
static void send_reads(struct prefetch *p, cl_command_queue q) REQUIRES(client_held)
{
        struct server *s = q->device->server;
        uint64_t behind = p->behind;
        cl_mem root;
        for (unsigned n = 0; n < READS; n++) {
                struct guess *g = next_guess(p, q, behind, &root);
                struct read *r = g ? unused_read(p) : NULL;
                if (!r || q->failed || server_fails(s) || !session_has_room(server_session(s)) ||
                    send_read(q, root, g, r) < 0)
                        return;
                p->newest = r->id;
                behind = add_read(behind, g->id, g->bytes);
        }
}

void prefetch_behind(const struct command *m)
{
        struct prefetch *p = m->queue->prefetch;
        if (m->enqueue->record)
                return;
        drop_all(p);
        if (m->enqueue->type != CL_COMMAND_READ_BUFFER) {
                if (p->reading) {
                        p->behind = 0;
                        p->before = m->id - 1;
                }
                p->reading = false;
                p->behind = add(p->behind, m->enqueue->type);
        }
        send_reads(p, m->queue);
}

void prefetch_stop(struct prefetch *p)
{
        for (size_t i = 0; i < READS; i++)
                if (!p->reads[i].taken)
                        let_go(&p->reads[i]);
}

/* ---- the program's reads -------------------------------------------------------------------- */

/* Return the read ahead with the bytes of a read that the program makes now. NULL: there is none. */
static struct read *find(struct prefetch *p, cl_command_queue q, const struct _cl_mem *root,
                         struct range bytes) REQUIRES(client_held)
{
        uint64_t newest;
        if (q->last_event != p->newest || ahead_is_due(q) || server_fails(q->device->server) ||
            !is_plain(root))
                return NULL;
        for (size_t i = 0; i < READS; i++) {
                struct read *r = &p->reads[i];
                if (r->event && !r->taken && !r->dropped && r->root == root->id &&
                    range_is(r->range, bytes) && is_behind_writers(q, root, bytes, r->id, &newest))
                        return r;
        }
        return NULL;
}

/* Return true if the events of the wait list are complete when read r is. */
static bool waits_come_before(const struct read *r, const cl_event *waits, cl_uint count)
        REQUIRES(client_held)
{
        for (cl_uint i = 0; i < count; i++) {
                const struct _cl_event *e = waits[i];
                if (e->status != CL_COMPLETE && (e->status < 0 || e->queue != r->event->queue ||
                                                 e->many_queues || e->id > r->id))
                        return false;
        }
        return true;
}

static bool are_complete(const cl_event *waits, cl_uint count) REQUIRES(client_held)
{
        for (cl_uint i = 0; i < count; i++)
                if (waits[i]->status != CL_COMPLETE)
                        return false;
        return true;
}

/* Make an event for the application, which is complete. SP_E_NOMEM. */
static int complete_event(const struct enqueue *q, cl_event *ret) REQUIRES(client_held)
{
        uint64_t id = client_new_id(q->queue->context->client, OBJECT_EVENT);
        int r = event_new(q->queue, q->type, id, true, ret);
        if (r == 0) {
                (*ret)->notified = true;
                event_complete(*ret, CL_COMPLETE);
        }
        return r;
}

static void wait_for(cl_event e, uint64_t size) REQUIRES(client_held)
{
        if (event_is_done(e))
                return;
        client_wait(e->context->client, event_is_settled, e);
        if (profile_is_on())
                profile_wait_was(PROFILE_BLOCKING, e->server, e, size);
        views_waited(e->context);
}

/* Return the result of a read for which the program has waited. */
static cl_int waited_status(const struct read *r, const cl_event *waits, cl_uint count)
        REQUIRES(client_held)
{
        for (cl_uint i = 0; i < count; i++)
                if (waits[i]->status < 0)
                        return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        if (r->event->status < 0)
                return r->event->status;
        return r->event->status == CL_COMPLETE && are_complete(waits, count)
                       ? CL_SUCCESS
                       : CL_DEVICE_NOT_AVAILABLE;
}

/* Wait for the read and the wait list. Releases the lock meanwhile, so callbacks of the program may release the
 * events: hold them. */
static void wait_for_all(const struct read *r, const cl_event *waits, cl_uint count)
        REQUIRES(client_held)
{
        for (cl_uint i = 0; i < count; i++)
                event_hold(waits[i]);
        wait_for(r->event, r->range.end - r->range.begin);
        /* In most cases the completion of the read implies theirs. */
        for (cl_uint i = 0; i < count; i++)
                if (event_watch(waits[i]) == 0)
                        wait_for(waits[i], 0);
}

static void unhold_all(const cl_event *waits, cl_uint count) REQUIRES(client_held)
{
        for (cl_uint i = 0; i < count; i++)
                event_unhold(waits[i]);
}

/* Give the program the bytes of r. False: the client has not waited, and the read or the wait list is not complete or
 * has failed. True: *ret is the result of the call. After a wait the result is always true, because callbacks of the
 * program may have released the buffer and the queue meanwhile. */
static bool give(const struct enqueue *q, const cl_event *waits, struct read *r, void *to,
                 cl_event *ret_event, cl_int *ret) REQUIRES(client_held)
{
        cl_uint count = q->wait_count;
        bool waits_now = q->blocking && !(event_is_done(r->event) && are_complete(waits, count));
        r->taken = true;
        if (waits_now)
                wait_for_all(r, waits, count);
        *ret = waited_status(r, waits, count);
        if (waits_now)
                unhold_all(waits, count);
        if (*ret == CL_SUCCESS && q->ret_event && complete_event(q, ret_event) < 0)
                *ret = CL_OUT_OF_HOST_MEMORY;
        if (*ret == CL_SUCCESS)
                memcpy(to, r->bytes, (size_t)(r->range.end - r->range.begin));
        bool given = waits_now || *ret == CL_SUCCESS;
        r->taken = false;
        if (event_is_done(r->event) || !atomic_load(&q->queue->h.refs))
                let_go(r); /* maybe the queue's last hold */
        else
                r->dropped = true;
        return given;
}

bool prefetch_take(const struct enqueue *q, cl_mem mem, size_t offset, size_t size, void *to,
                   cl_int *ret)
{
        cl_command_queue queue = q->queue;
        struct client *c = queue->context->client;
        struct prefetch *p = queue->prefetch;
        struct svm_borrowed events;
        cl_event event = NULL;
        bool given = false;
        if (q->record)
                return false;
        int borrowed = svm_borrow(&events, q->waits, q->wait_count * sizeof(cl_event));
        client_lock(c);
        cl_mem root = mem_root(mem);
        struct range bytes = mem_range(mem, offset, size);
        /* An event would have the times of another command. */
        bool timed = q->ret_event && queue->properties & CL_QUEUE_PROFILING_ENABLE;
        bool small = size <= SMALL && borrowed == 0 && !timed;
        struct read *r = small ? find(p, queue, root, bytes) : NULL;
        if (small && is_waited_for(q))
                learn(p, root, bytes);
        p->behind = add_read(p->behind, root->id, bytes);
        p->reading = true;
        if (r && waits_come_before(r, events.at, q->wait_count))
                given = give(q, events.at, r, to, &event, ret);
        client_unlock(c);
        svm_give_back(&events);
        if (event) /* not with the lock held: it may be unified shared memory */
                *q->ret_event = event;
        return given;
}
