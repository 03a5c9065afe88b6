#include "core/command/upload.h"

#include <assert.h>

#include "base/blake2bp.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/link/io.h"
#include "core/progress.h"

enum {
        CHUNK = WIRE_UPLOAD_CHUNK,
        OFFER_CHUNKS = 16,  /* named by one message, at least, unless they are the last ones */
        AHEAD_CHUNKS = 128, /* hashed ahead of the answers: the link may turn out to be fast */
        /* After so many chunks in a row that the server lacked, only each MISS_EACH-th write is tried. */
        MISSES_MAX = 4096,
        MISS_EACH = 16,
        FEW_CORES = 4,
        /* If a link's rate is more than this part of one thread's rate of hashing, it gains little, and
         * the server would write all that comes to its disk. */
        LINK_SHARE = 2,
};
static_assert((int)WIRE_UPLOAD_NAME == (int)BLAKE2B_SIZE, "names are digests");

struct upload {
        struct list link; /* the client's, all */
        struct server *server;
        struct session_bulk *bulk; /* NULL: the upload is freed when no thread uses it */
        size_t count;              /* of chunks with names; later chunks are sent without */
        size_t next;               /* the first chunk that no thread has taken */
        size_t offered, answered;  /* chunks before these */
        uint8_t (*names)[BLAKE2B_SIZE];
        bool *hashed, *has;
        unsigned users; /* threads that hash a chunk of it */
        bool paused;
        unsigned readers; /* threads that read its bytes; guarded by client.uploads.lock */
};

static size_t chunk_size(const struct session_bulk *b, size_t chunk)
{
        uint64_t left = b->total - (uint64_t)chunk * CHUNK;
        return left < CHUNK ? (size_t)left : CHUNK;
}

/* ---- when to name chunks ---------------------------------------------------------------------- */

/* False also if the rates of the link or of this host are not known yet. */
static bool is_fast(struct server *s) REQUIRES(client_held)
{
        struct client *c = s->client;
        uint64_t hashed = c->transfers.uploads.rate;
        uint64_t rate = s->link && c->io->rate ? c->io->rate(c->io_user, s->link) : 0;
        return rate == UINT64_MAX || (hashed && rate > hashed / LINK_SHARE);
}

bool upload_pays(struct server *s, uint64_t size)
{
        struct client *c = s->client;
        if (size < CHUNK || !s->transfers.uploads || c->transfers.uploads.mode == UPLOAD_OFF)
                return false;
        if (c->transfers.uploads.mode == UPLOAD_ON)
                return true;
        if (is_fast(s))
                return false;
        return c->transfers.uploads.misses < MISSES_MAX ||
               ++c->transfers.uploads.tries % MISS_EACH == 0;
}

static void upload_delete(struct upload *u)
{
        mem_free(u->names);
        mem_free(u->hashed);
        mem_free(u->has);
        mem_free(u);
}

/* ---- names ------------------------------------------------------------------------------------ */

/* Hash a chunk; `room` has room for a chunk that is in several pieces. */
static void hash(struct session_bulk *b, size_t chunk, uint8_t *room, uint8_t ret[BLAKE2B_SIZE])
{
        uint64_t at = (uint64_t)chunk * CHUNK;
        size_t size = chunk_size(b, chunk), len;
        const uint8_t *p = b->at(b, at, &len);
        if (len >= size) {
                blake2bp_of(bytes_of(p, size), ret);
                return;
        }
        for (size_t have = 0; have < size; have += len) {
                p = b->at(b, at + have, &len);
                len = len < size - have ? len : size - have;
                memcpy(room + have, p, len);
        }
        blake2bp_of(bytes_of(room, size), ret);
}

/* Send the known names, in their order, if there are enough for a message. */
static void offer(struct upload *u) REQUIRES(client_held)
{
        struct server *s = u->server;
        struct session *session = server_session(s);
        size_t end = u->offered;
        while (end < u->count && u->hashed[end])
                end++;
        if (!session || (end < u->count && end - u->offered < OFFER_CHUNKS))
                return;
        while (u->offered < end) {
                size_t n = end - u->offered;
                n = n < WIRE_UPLOAD_CHUNKS ? n : WIRE_UPLOAD_CHUNKS;
                int r = session_send(session, upload_offer, .transfer = u->bulk->transfer,
                                     .first = u->offered,
                                     .names = bytes_of(u->names[u->offered], n * BLAKE2B_SIZE));
                if (r < 0) {
                        s->lost_status = r; /* the server would wait for it for ever */
                        return;
                }
                u->offered += n;
        }
        server_flush(s);
}

static void took(struct client *c, size_t size, uint64_t ns) REQUIRES(client_held)
{
        uint64_t rate = ns ? size * 1000000000ull / ns : 0;
        if (rate && size == CHUNK)
                c->transfers.uploads.rate = c->transfers.uploads.rate
                                                    ? (7 * c->transfers.uploads.rate + rate) / 8
                                                    : rate;
}

/* Hash the next chunk. The lock is released meanwhile if there are threads. */
static void hash_next(struct upload *u, uint8_t *room) REQUIRES(client_held) LOCK_UNCHECKED
{
        struct client *c = u->server->client;
        struct session_bulk *b = u->bulk;
        size_t chunk = u->next++, size = chunk_size(b, chunk);
        uint64_t begin = client_now_ns(c);
        u->users++;
        if (c->io->threads) {
                lock_take(&c->transfers.uploads.lock);
                u->readers++;
                lock_release(&c->transfers.uploads.lock);
                client_unlock(c);
        }
        hash(b, chunk, room, u->names[chunk]);
        uint64_t end = client_now_ns(c);
        if (c->io->threads) {
                lock_take(&c->transfers.uploads.lock);
                if (!--u->readers)
                        condition_broadcast(&c->transfers.uploads.unread);
                lock_release(&c->transfers.uploads.lock);
                client_lock(c);
        }
        took(c, size, end - begin);
        u->users--;
        if (u->bulk) {
                u->hashed[chunk] = true;
                offer(u);
        } else if (!u->users) {
                upload_delete(u);
        }
}

static struct upload *next_upload(struct client *c) REQUIRES(client_held)
{
        list_each(u, &c->transfers.uploads.all, struct upload, link)
        {
                if (u->next < u->count && u->next < u->answered + AHEAD_CHUNKS && !u->paused)
                        return u;
        }
        return NULL;
}

/* The memory of a thread that hashes; the thread frees it. */
struct hasher {
        struct client *client;
        uint8_t room[CHUNK];
};

static void *hash_main(void *user)
{
        struct hasher *h = user;
        struct client *c = h->client;
        client_lock(c);
        while (!c->transfers.uploads.stop) {
                struct upload *u = next_upload(c);
                if (u)
                        hash_next(u, h->room);
                else
                        client_sleep(c, &c->transfers.uploads.work, UINT64_MAX);
        }
        client_unlock(c);
        mem_free(h);
        return NULL;
}

static bool start_thread(struct client *c, thread_id *ret) REQUIRES(client_held)
{
        struct hasher *h = mem_alloc(sizeof(*h));
        if (!h)
                return false;
        h->client = c;
        if (!thread_start(ret, false, hash_main, h))
                return true;
        mem_free(h);
        return false;
}

/* Return false if there is no thread. */
static bool start_threads(struct client *c) REQUIRES(client_held)
{
        unsigned count = thread_cores() <= FEW_CORES ? 2 : UPLOADS_THREADS;
        while (!c->transfers.uploads.stop && c->transfers.uploads.thread_count < count &&
               start_thread(c, &c->transfers.uploads.threads[c->transfers.uploads.thread_count]))
                c->transfers.uploads.thread_count++;
        return c->transfers.uploads.thread_count != 0;
}

struct upload *upload_new(struct server *s, struct session_bulk *b)
{
        bool hashes = !s->client->io->threads || start_threads(s->client);
        struct upload *u = hashes ? mem_zalloc(sizeof(*u)) : NULL;
        if (!u)
                return NULL;
        list_init(&u->link);
        u->server = s;
        u->bulk = b;
        u->count = (size_t)((b->total - 1) / CHUNK + 1);
        u->names = mem_alloc(u->count * sizeof(*u->names));
        u->hashed = mem_zalloc(u->count * sizeof(*u->hashed));
        u->has = mem_zalloc(u->count * sizeof(*u->has));
        if (u->names && u->hashed && u->has)
                return u;
        upload_delete(u);
        return NULL;
}

void upload_start(struct upload *u)
{
        struct client *c = u->server->client;
        list_append(&c->transfers.uploads.all, &u->link);
        if (c->io->threads) {
                condition_broadcast(&c->transfers.uploads.work);
                progress_wake(c); /* for the answers, if no thread waits */
                return;
        }
        static uint8_t room[CHUNK];
        while (u->next < u->count)
                hash_next(u, room);
}

/* ---- answers ---------------------------------------------------------------------------------- */

uint64_t upload_lacks(const struct upload *u, uint64_t offset, uint64_t *ret_end)
{
        size_t chunk = (size_t)(offset / CHUNK);
        while (chunk < u->answered && u->has[chunk])
                chunk++;
        uint64_t begin = (uint64_t)chunk * CHUNK;
        begin = begin < offset ? offset : begin;
        while (chunk < u->answered && !u->has[chunk])
                chunk++;
        *ret_end = chunk >= u->count ? u->bulk->total : (uint64_t)chunk * CHUNK;
        return begin < u->bulk->total ? begin : u->bulk->total;
}

int upload_answered(void *user, const struct wire_upload_answer *m)
{
        struct server *s = user;
        struct client *c = s->client;
        list_each(u, &c->transfers.uploads.all, struct upload, link)
        {
                if (u->server != s || u->bulk->transfer != m->transfer)
                        continue;
                if (m->first != u->answered || m->count > u->offered - u->answered)
                        return SP_E_PROTO;
                for (size_t i = 0; i < m->count; i++) {
                        bool has = m->has >> i & 1;
                        u->has[u->answered++] = has;
                        c->transfers.uploads.misses = has ? 0 : c->transfers.uploads.misses + 1;
                }
                if (c->transfers.uploads.mode == UPLOAD_AUTO && u->offered < u->count && is_fast(s))
                        u->count = u->offered;
                condition_broadcast(&c->transfers.uploads.work);
                struct session_bulk *b = u->bulk;
                session_bulk_ready(s->session, b,
                                   u->answered == u->count ? b->total
                                                           : (uint64_t)u->answered * CHUNK);
                s->sending.fresh_bulk |= session_bulk_pending(s->session);
                return 0;
        }
        return SP_E_PROTO;
}

/* ---- lifetime --------------------------------------------------------------------------------- */

static void await_readers(struct upload *u) REQUIRES(client_held) LOCK_UNCHECKED
{
        struct client *c = u->server->client;
        lock_take(&c->transfers.uploads.lock);
        while (u->readers)
                condition_wait(&c->transfers.uploads.unread, &c->transfers.uploads.lock);
        lock_release(&c->transfers.uploads.lock);
}

void upload_pause(struct upload *u)
{
        if (!u)
                return;
        u->paused = true;
        await_readers(u);
}

void upload_go_on(struct upload *u)
{
        if (!u)
                return;
        u->paused = false;
        condition_broadcast(&u->server->client->transfers.uploads.work);
}

struct upload *upload_free(struct upload *u)
{
        if (!u)
                return NULL;
        await_readers(u);
        list_remove(&u->link);
        u->bulk = NULL;
        if (!u->users)
                upload_delete(u);
        return NULL;
}

void uploads_stop(struct client *c) LOCK_UNCHECKED
{
        c->transfers.uploads.stop = true;
        condition_broadcast(&c->transfers.uploads.work);
        while (c->transfers.uploads.thread_count) {
                thread_id t = c->transfers.uploads.threads[--c->transfers.uploads.thread_count];
                client_unlock(c);
                thread_join(t);
                client_lock(c);
        }
}

void uploads_forget(struct client *c)
{
        list_each(u, &c->transfers.uploads.all, struct upload, link)
        {
                u->readers = 0;
                u->paused = true;
        }
        c->transfers.uploads.thread_count = 0;
        c->transfers.uploads.stop = true;
}
