#include "engine/transfer/upload.h"

#include <assert.h>

#include "base/mem.h"
#include "engine/command/command.h"
#include "engine/transfer/upload_store.h"
#include "os/thread.h"

enum {
        /* How far a chunk may be ahead of the complete bytes: it bounds staging memory, and gaps in
         * the arrivals. */
        AHEAD = 64 << 20,
        NAMES_MAX = 1 << 20,  /* of all transfers: 1 TiB on its way */
        STORE_MAX = 32 << 20, /* bytes that wait to be stored; chunks beyond it are not stored */
        FEW_CORES = 4,
};
static_assert(WIRE_UPLOAD_NAME == sizeof(struct upload_name), "names are digests");

enum chunk_state { CHUNK_NAMED, CHUNK_LOOKED_UP, CHUNK_HELD, CHUNK_LACKING, CHUNK_CAME };

struct upload {
        struct list link; /* engine_uploads.waiting, while chunks are to be looked up */
        struct transfer *transfer;
        struct upload_name *names;
        uint8_t *states; /* enum chunk_state */
        size_t count;    /* of chunks that are named */
        size_t room;
        size_t next;     /* the first chunk that is not looked up */
        size_t answered; /* chunks before it */
};

/* A chunk to be stored. */
struct upload_job {
        struct list link;
        struct upload_name name;
        size_t size;
        uint8_t bytes[];
};

static size_t chunk_size(const struct transfer *t, size_t chunk)
{
        uint64_t begin = (uint64_t)chunk * WIRE_UPLOAD_CHUNK, left = t->total - begin;
        return left < WIRE_UPLOAD_CHUNK ? (size_t)left : WIRE_UPLOAD_CHUNK;
}

/* ---- chunks that the store has ---------------------------------------------------------------- */

/* Put a chunk into its place. False: the client sends its bytes. */
static bool fill(struct upload *u, size_t chunk, const uint8_t *bytes) REQUIRES(engine_held)
{
        struct transfer *t = u->transfer;
        struct peer *p = t->peer;
        uint64_t begin = (uint64_t)chunk * WIRE_UPLOAD_CHUNK, below = 0;
        size_t size = chunk_size(t, chunk), len;
        if (map_get(&t->engine->transfers.table, t->id) != t ||
            arrivals_meet(&t->in.placed, begin, begin + size))
                return false; /* the client has sent some of it without waiting */
        for (size_t at = 0; at < size; at += len) {
                void *place;
                len = size - at;
                int r = engine_transfer_place(p, t->id, begin + at, false, &len, &place);
                if (r < 0 && !at)
                        return false;
                if (r >= 0) {
                        u->states[chunk] = CHUNK_HELD; /* engine_upload_arrived leaves it alone */
                        memcpy(place, bytes + at, len);
                        r = engine_transfer_arrived(p, t->id, begin + at, len, &below);
                }
                if (r < 0) { /* no memory: the rest can't come any more */
                        engine_peer_sent(p, r);
                        break;
                }
        }
        return true;
}

/* Answer about the chunks whose answer is known, in their order. It goes before any acknowledgement
 * of their bytes. */
static void answer(struct upload *u) REQUIRES(engine_held)
{
        struct transfer *t = u->transfer;
        while (u->answered < u->next && u->states[u->answered] >= CHUNK_HELD) {
                size_t first = u->answered, n = 0;
                uint64_t has = 0;
                for (; n < WIRE_UPLOAD_CHUNKS && first + n < u->next &&
                       u->states[first + n] >= CHUNK_HELD;
                     n++)
                        has |= (uint64_t)(u->states[first + n] == CHUNK_HELD) << n;
                u->answered += n;
                peer_send(t->peer, upload_answer, .transfer = t->id, .first = first, .count = n,
                          .has = has);
                if (has && t->arrived)
                        engine_peer_sent(t->peer, session_ack(t->peer->session, t->id, t->arrived));
        }
}

/* Return true if the next chunk may be looked up now. */
static bool may_look_up(const struct upload *u) REQUIRES(engine_held)
{
        const struct transfer *t = u->transfer;
        uint64_t begin = (uint64_t)u->next * WIRE_UPLOAD_CHUNK;
        return u->next < u->count && begin < t->in.came.below + AHEAD &&
               !engine_transfer_lacks_room(t, begin);
}

static struct upload *next_upload(struct engine *e) REQUIRES(engine_held)
{
        list_each(u, &e->uploads.waiting, struct upload, link)
        {
                if (may_look_up(u))
                        return u;
        }
        return NULL;
}

/* Look one chunk up. Unless the engine is single-threaded, this releases the lock meanwhile. */
static void look_up(struct upload *u, uint8_t *bytes) REQUIRES(engine_held) LOCK_UNCHECKED
{
        struct transfer *t = u->transfer;
        struct engine *e = t->engine;
        size_t chunk = u->next++, size = chunk_size(t, chunk);
        const struct upload_name name = u->names[chunk];
        u->states[chunk] = CHUNK_LOOKED_UP;
        if (u->next == u->count)
                list_remove(&u->link);
        t->refs++;
        if (!e->params.single_threaded)
                engine_unlock(e);
        bool has = upload_store_get(e->uploads.store, &name, bytes, size);
        if (!e->params.single_threaded)
                engine_lock(e);
        if (!e->closing && !e->uploads.stop) {
                bool held = has && fill(u, chunk, bytes);
                if (!held)
                        u->states[chunk] = CHUNK_LACKING;
                answer(u);
        }
        engine_transfer_unref(t);
}

/* ---- chunks that come ------------------------------------------------------------------------- */

/* Return true if all bytes of the chunk are here. */
static bool is_whole(const struct transfer *t, size_t chunk)
{
        uint64_t begin = (uint64_t)chunk * WIRE_UPLOAD_CHUNK, end = begin + chunk_size(t, chunk);
        uint64_t from = begin > t->in.came.below ? begin : t->in.came.below;
        return from >= end || range_set_has(&t->in.came.ahead, (struct range){ from, end });
}

/* Copy the chunk, for a thread to store. */
static void keep(struct transfer *t, size_t chunk) REQUIRES(engine_held)
{
        struct engine *e = t->engine;
        uint64_t begin = (uint64_t)chunk * WIRE_UPLOAD_CHUNK, len;
        size_t size = chunk_size(t, chunk);
        bool there = !e->uploads.stop && !t->status && t->writer &&
                     t->writer->outcome.status >= 0 && begin >= t->memory.freed;
        if (!there || e->uploads.job_bytes + size > STORE_MAX)
                return;
        struct upload_job *job = mem_alloc(sizeof(*job) + size);
        if (!job)
                return;
        job->name = t->upload->names[chunk];
        job->size = size;
        for (size_t at = 0; at < size; at += (size_t)len) {
                const uint8_t *from = engine_transfer_at(t, begin + at, &len);
                if (!from) {
                        mem_free(job);
                        return;
                }
                len = len < size - at ? len : size - at;
                memcpy(job->bytes + at, from, (size_t)len);
        }
        list_init(&job->link);
        list_append(&e->uploads.jobs, &job->link);
        e->uploads.job_bytes += size;
        engine_uploads_go_on(e);
}

void engine_upload_arrived(struct transfer *t, uint64_t offset, uint64_t len)
{
        struct upload *u = t->upload;
        if (!u)
                return;
        size_t end = (size_t)((offset + len + WIRE_UPLOAD_CHUNK - 1) / WIRE_UPLOAD_CHUNK);
        for (size_t i = (size_t)(offset / WIRE_UPLOAD_CHUNK); i < end && i < u->count; i++) {
                if (u->states[i] != CHUNK_LACKING || !is_whole(t, i))
                        continue;
                u->states[i] = CHUNK_CAME;
                keep(t, i);
        }
        if (!list_empty(&u->link))
                engine_uploads_go_on(t->engine);
}

static void store_first(struct engine *e) REQUIRES(engine_held) LOCK_UNCHECKED
{
        struct upload_job *job = list_entry(e->uploads.jobs.next, struct upload_job, link);
        list_remove(&job->link);
        if (!e->params.single_threaded)
                engine_unlock(e);
        upload_store_put(e->uploads.store, &job->name, bytes_of(job->bytes, job->size));
        if (!e->params.single_threaded)
                engine_lock(e);
        e->uploads.job_bytes -= job->size;
        mem_free(job);
}

/* ---- threads ---------------------------------------------------------------------------------- */

/* Do one piece of work; false: there is none. */
static bool work(struct engine *e, uint8_t *bytes) REQUIRES(engine_held)
{
        struct upload *u = next_upload(e);
        if (u)
                look_up(u, bytes);
        else if (!list_empty(&e->uploads.jobs))
                store_first(e);
        else
                return false;
        return true;
}

/* The memory of a thread that looks chunks up; the thread frees it. */
struct upload_thread {
        struct engine *engine;
        uint8_t bytes[WIRE_UPLOAD_CHUNK];
};

static void *uploads_main(void *arg)
{
        struct upload_thread *own = arg;
        struct engine *e = own->engine;
        engine_lock(e);
        while (!e->uploads.stop) {
                if (work(e, own->bytes))
                        engine_settle(e);
                else
                        engine_sleep(e, &e->uploads.wake, UINT64_MAX);
        }
        engine_unlock(e);
        mem_free(own);
        return NULL;
}

static bool start_thread(struct engine *e, thread_id *ret) REQUIRES(engine_held)
{
        struct upload_thread *own = mem_alloc(sizeof(*own));
        if (!own)
                return false;
        own->engine = e;
        if (!thread_start(ret, false, uploads_main, own))
                return true;
        mem_free(own);
        return false;
}

/* Return false if there is no thread. */
static bool start_threads(struct engine *e) REQUIRES(engine_held)
{
        struct engine_uploads *s = &e->uploads;
        unsigned cores = thread_cores(), count = cores <= FEW_CORES ? 2 : UPLOAD_THREADS;
        while (!s->stop && s->thread_count < count && start_thread(e, &s->threads[s->thread_count]))
                s->thread_count++;
        return s->thread_count != 0;
}

void engine_uploads_go_on(struct engine *e)
{
        struct engine_uploads *s = &e->uploads;
        if (!s->store || s->inside)
                return;
        if (!e->params.single_threaded) {
                condition_broadcast(&s->wake);
                return;
        }
        s->inside = true;
        while (work(e, s->bytes)) {
        }
        s->inside = false;
}

int engine_uploads_init(struct engine *e)
{
        struct engine_uploads *s = &e->uploads;
        uint64_t limit = config_option_number(e->params.options, CONFIG_upload_cache) << 20;
        list_init(&s->waiting);
        list_init(&s->jobs);
        condition_init(&s->wake);
        if (!e->params.upload_dir || !limit)
                return 0;
        if (e->params.single_threaded) {
                s->bytes = mem_alloc(WIRE_UPLOAD_CHUNK);
                if (!s->bytes)
                        return SP_E_NOMEM;
        }
        return upload_store_new(e->params.upload_dir, limit, &s->store);
}

void engine_uploads_stop(struct engine *e) LOCK_UNCHECKED
{
        struct engine_uploads *s = &e->uploads;
        engine_lock(e);
        s->stop = true;
        condition_broadcast(&s->wake);
        engine_unlock(e);
        while (s->thread_count)
                thread_join(s->threads[--s->thread_count]);
        /* The last chunks are stored, too: a program may end with its only write. */
        while (!list_empty(&s->jobs)) {
                struct upload_job *job = list_entry(s->jobs.next, struct upload_job, link);
                list_remove(&job->link);
                upload_store_put(s->store, &job->name, bytes_of(job->bytes, job->size));
                mem_free(job);
        }
}

void engine_uploads_fini(struct engine *e)
{
        struct engine_uploads *s = &e->uploads;
        s->store = upload_store_free(s->store);
        condition_fini(&s->wake);
        mem_free(s->bytes);
}

/* ---- transfers -------------------------------------------------------------------------------- */

int engine_upload_restart(struct transfer *t)
{
        struct upload *u = t->upload;
        int r = 0;
        for (size_t i = 0; u && i < u->next && !r; i++) {
                uint64_t begin = (uint64_t)i * WIRE_UPLOAD_CHUNK, end = begin + chunk_size(t, i);
                if (u->states[i] == CHUNK_CAME && end > t->in.came.below)
                        u->states[i] = CHUNK_LACKING; /* forgotten: it comes again */
                if (u->states[i] != CHUNK_HELD || begin < t->in.came.below)
                        continue;
                r = arrivals_add(&t->in.placed, begin, end);
                if (!r)
                        r = arrivals_add(&t->in.came, begin, end);
        }
        t->arrived = t->in.came.below;
        return r;
}

void engine_upload_free(struct transfer *t)
{
        struct upload *u = t->upload;
        if (!u)
                return;
        t->engine->uploads.names -= u->room;
        list_remove(&u->link);
        mem_free(u->names);
        mem_free(u->states);
        mem_free(u);
        t->upload = NULL;
}

static int upload_of(struct transfer *t, struct upload **ret) REQUIRES(engine_held)
{
        if (!t->upload) {
                t->upload = mem_zalloc(sizeof(*t->upload));
                if (!t->upload)
                        return SP_E_NOMEM;
                list_init(&t->upload->link);
                t->upload->transfer = t;
        }
        *ret = t->upload;
        return 0;
}

/* Make room for names: twice as much as before, but for no more chunks than the transfer has. */
static int grow(struct upload *u, size_t count, size_t chunks) REQUIRES(engine_held)
{
        struct engine_uploads *s = &u->transfer->engine->uploads;
        size_t room = u->room ? 2 * u->room : WIRE_UPLOAD_CHUNKS;
        if (count <= u->room)
                return 0;
        room = room > chunks ? chunks : room;
        if (s->names + room - u->room > NAMES_MAX)
                return SP_E_LIMIT;
        struct upload_name *names = mem_realloc(u->names, room * sizeof(*names));
        if (names)
                u->names = names;
        uint8_t *states = mem_realloc(u->states, room);
        if (states)
                u->states = states;
        if (!names || !states)
                return SP_E_NOMEM;
        s->names += room - u->room;
        u->room = room;
        return 0;
}

int engine_handle_upload_offer(void *user, const struct wire_upload_offer *m)
{
        struct peer *p = user;
        struct engine *e = p->engine;
        struct transfer *t = map_get(&e->transfers.table, m->transfer);
        struct upload *u;
        size_t count = m->names.size / WIRE_UPLOAD_NAME;
        if (!e->uploads.store || !t || t->peer != p || p->id || t->in.early || !count ||
            m->names.size % WIRE_UPLOAD_NAME)
                return SP_E_PROTO;
        size_t chunks = (size_t)((t->total - 1) / WIRE_UPLOAD_CHUNK + 1);
        int r = upload_of(t, &u);
        if (r < 0)
                return r;
        if (m->first != u->count || count > chunks - u->count)
                return SP_E_PROTO;
        r = grow(u, u->count + count, chunks);
        if (r < 0)
                return r;
        memcpy(u->names + u->count, m->names.data, count * sizeof(*u->names));
        memset(u->states + u->count, CHUNK_NAMED, count);
        u->count += count;
        if (!e->params.single_threaded && !e->uploads.thread_count && !start_threads(e)) {
                /* Without a thread the server looks no chunk up, and the client sends the bytes. */
                memset(u->states + m->first, CHUNK_LACKING, count);
                u->next = u->count;
                answer(u);
                return 0;
        }
        if (list_empty(&u->link))
                list_append(&e->uploads.waiting, &u->link);
        engine_uploads_go_on(e);
        return 0;
}
