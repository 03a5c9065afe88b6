#include "core/memory/svm.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/command/command.h"
#include "core/command/enqueue.h"
#include "core/command/event.h"
#include "core/command/transfer.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "core/memory/mem.h"
#include "core/memory/placement.h"
#include "core/memory/usm.h"
#include "core/memory/view.h"
#include "core/progress.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/vm.h"
#include "os/writes.h"

enum {
        CHUNK = 4 << 20,
        ALIGN = 512, /* more than any data type needs, and as much as devices want of buffers */
        TRIES = 8,
};

/* Where there is normally nothing on a 64-bit host; the last one is for programs under ThreadSanitizer,
 * which allows little else. Behind them: where this process has room. */
static const uint64_t bases_64[] = { 0x110000000000, 0x280000000000, 0x3f0000000000,
                                     0x7e8000000000 };
/* The same for a 32-bit client: its servers have nothing below 4 GiB, and it has little in the middle. */
static const uint64_t bases_32[] = { 0x40000000, 0x80000000, 0x60000000, 0x20000000 };

_Static_assert(array_size(bases_64) == array_size(bases_32), "");

#define IS_32 (sizeof(void *) == 4)

/* ---- who has it ----------------------------------------------------------------------------- */

void svm_settle(struct client *c)
{
        unsigned domain = 0;
        for (unsigned i = 0; i < c->server_count; i++) {
                struct server *s = c->servers[i];
                for (cl_uint k = 0; k < s->device_count; k++) {
                        const struct _cl_device_id *d = s->devices[k];
                        if (d->svm == INFO_SVM_OWN_ADDRESSES && !c->svm.address_owner) {
                                c->svm.address_owner = s;
                                domain = d->domain;
                        }
                        if (d->svm == INFO_SVM_SHARES && !c->svm.sharer)
                                c->svm.sharer = s;
                }
        }
        for (unsigned i = 0; i < c->server_count; i++) {
                struct server *s = c->servers[i];
                for (cl_uint k = 0; k < s->device_count; k++) {
                        cl_device_id d = s->devices[k];
                        /* Two that choose would choose differently; and in one process an address
                         * is one memory only. */
                        bool can = d->svm == INFO_SVM_OWN_ADDRESSES
                                           ? s == c->svm.address_owner && d->domain == domain
                                           : s != c->svm.address_owner;
                        if (d->svm == INFO_SVM_SHARES)
                                can = s == c->svm.sharer;
                        if (!can)
                                d->svm = INFO_SVM_NONE;
                }
        }
        c->io->random(c->io_user, &c->svm.offset, sizeof(c->svm.offset));
        c->svm.offset = c->svm.offset % (IS_32 ? 1ull << 28 : 1ull << 36) / VM_GRANULE * VM_GRANULE;
}

void svm_server_added(struct server *s)
{
        struct client *c = s->client;
        /* Contexts may have chunks already. */
        bool may_choose = !c->svm.address_owner && list_empty(&c->contexts);
        unsigned domain = 0;
        for (cl_uint k = 0; k < s->device_count; k++) {
                cl_device_id d = s->devices[k];
                if (d->svm == INFO_SVM_OWN_ADDRESSES && may_choose && !c->svm.address_owner) {
                        c->svm.address_owner = s;
                        domain = d->domain;
                }
        }
        for (cl_uint k = 0; k < s->device_count; k++) {
                cl_device_id d = s->devices[k];
                bool owner = s == c->svm.address_owner;
                if (d->svm == INFO_SVM_OWN_ADDRESSES ? !owner || d->domain != domain
                                                     : owner || d->svm == INFO_SVM_SHARES)
                        d->svm = INFO_SVM_NONE;
        }
}

void svm_server_replaced(struct server *s)
{
        struct client *c = s->client;
        if (c->svm.address_owner && c->svm.address_owner->sessions.first == s->sessions.first)
                c->svm.address_owner = s;
}

bool svm_uses(const struct server *s)
{
        return s->client->svm.address_owner == s;
}

bool svm_any(const struct _cl_context *x)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (x->devices[i]->svm)
                        return true;
        return false;
}

bool svm_in_one_place(const struct _cl_context *x)
{
        const struct server *s = NULL; /* a server's domains have such memory in common */
        for (cl_uint i = 0; i < x->device_count; i++) {
                const struct _cl_device_id *d = x->devices[i];
                if (d->svm && s && d->server != s)
                        return false;
                s = d->svm ? d->server : s;
        }
        return true;
}

bool svm_only_in_one_place(const struct _cl_context *x)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (!x->devices[i]->svm)
                        return false;
        return svm_in_one_place(x);
}

/* The context's device that stands for the server; NULL: none has SVM. */
static cl_device_id server_device(cl_context x, const struct server *s)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (x->devices[i]->server == s && x->devices[i]->svm)
                        return x->devices[i];
        return NULL;
}

bool svm_reaches_host(cl_context x)
{
        const struct server *sharer = x->client->svm.sharer;
        return svm_any(x) && (!sharer || !server_device(x, sharer) || svm_in_one_place(x));
}

bool svm_is_here(const struct _cl_mem *root, const struct server *s)
{
        return root->chunk && s == s->client->svm.sharer;
}

/* ---- chunks --------------------------------------------------------------------------------- */

struct ask {
        struct request request;
        bool sent;
};

static void ask_send(struct ask *a, const struct svm_chunk *chunk, cl_device_id d)
        REQUIRES(client_held)
{
        struct client *c = d->client;
        struct session *session = server_session(d->server);
        if (!session || request_begin(c, d->server, &a->request) < 0)
                return;
        a->sent = true;
        if (session_send(session, svm_create, .request = a->request.id, .svm = chunk->id,
                         .device = d->index, .address = chunk->address, .size = chunk->size) < 0)
                request_done(c, a->request.id, CL_OUT_OF_HOST_MEMORY, (struct bytes){ 0 });
        else
                server_send(d->server);
}

/* SP_E_BUSY: it can't be at that address. */
static int ask_take(struct ask *a, struct svm_chunk *chunk, struct server *s) REQUIRES(client_held)
{
        if (!a->sent) /* the server is gone, and with it its devices; or disconnected, and will want it then */
                return server_session(s) ? SP_E_GONE : 0;
        request_wait(s->client, &a->request);
        cl_int status = a->request.status;
        uint64_t address = chunk->address;
        if (status == CL_SUCCESS && a->request.info.size == 8)
                address = bytes_get_u64(a->request.info.data);
        buf_fini(&a->request.info);
        if (status == CL_SUCCESS) {
                server_set_add(&chunk->servers, s->index);
                /* Where something is mapped here already is not the server's to choose. */
                if (!chunk->address)
                        chunk->address = address;
                return chunk->address == address ? 0 : SP_E_BUSY;
        }
        if (status == CL_DEVICE_NOT_AVAILABLE)
                return server_session(s) ? SP_E_GONE : 0;
        return status == CL_INVALID_HOST_PTR ? SP_E_BUSY : SP_E_LIMIT;
}

/* Have the servers release the chunk. */
static void take_back(struct client *c, struct svm_chunk *chunk) REQUIRES(client_held)
{
        server_set_each(i, &chunk->servers)
        {
                struct session *session = server_session(c->servers[i]);
                /* Without memory the server keeps it until the session ends. */
                if (session && session_send(session, release, .object = chunk->id) == 0)
                        server_kick(c->servers[i]);
        }
        chunk->servers = (struct server_set){ { 0 } };
}

static void chunk_unmap(struct svm_chunk *chunk)
{
        if (chunk->other) {
                fault_forget(chunk->address);
                vm_unmap(chunk->other, chunk->size);
                file_close(chunk->fd);
                chunk->other = 0;
        }
        vm_unmap(chunk->address, chunk->size);
}

static int ask_one(cl_context x, struct svm_chunk *chunk, struct server *s) REQUIRES(client_held)
{
        struct ask a = { .sent = false };
        ask_send(&a, chunk, server_device(x, s));
        int r = ask_take(&a, chunk, s);
        return r == 0 && server_set_is_empty(&chunk->servers) ? SP_E_GONE : r;
}

/* All but the one that was asked already, at the same time. */
static int ask_others(cl_context x, struct svm_chunk *chunk) REQUIRES(client_held)
{
        struct client *c = x->client;
        const unsigned count = c->server_count;
        struct ask *all = mem_zalloc(count * sizeof(*all));
        const struct server_set asked = chunk->servers;
        int r = all ? 0 : SP_E_NOMEM;
        for (unsigned i = 0; all && i < count; i++) {
                cl_device_id d = server_device(x, c->servers[i]);
                if (d && !server_set_has(&asked, i))
                        ask_send(&all[i], chunk, d);
        }
        for (unsigned i = 0; all && i < count; i++) {
                if (server_set_has(&asked, i) || !server_device(x, c->servers[i]))
                        continue;
                int one = ask_take(&all[i], chunk, c->servers[i]);
                r = r ? r : one;
        }
        mem_free(all);
        return r;
}

/* Where to look next: there, or, if that was no good, elsewhere. */
static uint64_t next_address(struct client *c, size_t size, bool elsewhere) REQUIRES(client_held)
{
        const uint64_t *bases = IS_32 ? bases_32 : bases_64;
        size_t count = array_size(bases_64);
        if (elsewhere)
                c->svm.base = (c->svm.base + 1) % (count + 1);
        uint64_t at = c->svm.offset;
        c->svm.offset += size;
        uint64_t end = c->svm.base == count ? 0 : bases[c->svm.base] + at + size;
        return end && end <= UINTPTR_MAX ? end - size : 0;
}

static bool may_note(struct client *c) REQUIRES(client_held)
{
        if (c->svm.writes == SVM_WRITES_MPROTECT)
                return false;
        if (writes_can_be_noted())
                return true;
        if (c->svm.writes == SVM_WRITES_USERFAULTFD)
                log_warn("client", "SPANCL_USM_WRITES=userfaultfd: the kernel does not note writes "
                                   "here, so mprotect finds them");
        c->svm.writes = SVM_WRITES_MPROTECT;
        return false;
}

/* For allocations with views. */
static int chunk_map_twice(struct client *c, struct svm_chunk *chunk) REQUIRES(client_held)
{
        int r = views_serve();
        if (r == 0)
                r = vm_map_twice(chunk->address, chunk->size, &chunk->address, &chunk->other,
                                 &chunk->fd);
        if (r < 0)
                return r;
        r = fault_watch(chunk->address, chunk->size, c);
        if (r < 0)
                chunk_unmap(chunk);
        /* In a large chunk the kernel should map the neighbours of pages that are read, so it is not watched. */
        chunk->noted = r == 0 && may_note(c);
        chunk->watched = chunk->noted && chunk->size <= CHUNK &&
                         writes_watch(chunk->address, chunk->size) == 0;
        return r;
}

static int chunk_place(cl_context x, struct svm_chunk *chunk, bool again) REQUIRES(client_held)
{
        struct client *c = x->client;
        struct server *address_owner = c->svm.address_owner;
        int r = 0;
        chunk->id = client_new_id(c, OBJECT_SVM);
        if (address_owner && server_device(x, address_owner)) {
                chunk->address = 0;
                r = ask_one(x, chunk, address_owner);
        } else {
                chunk->address = next_address(c, chunk->size, again);
        }
        if (r < 0)
                return r;
        /* A device that is this process's own works on the very bytes. */
        if (chunk->paged && !(c->svm.sharer && server_device(x, c->svm.sharer)))
                r = chunk_map_twice(c, chunk);
        else
                r = vm_map(chunk->address, chunk->size, &chunk->address);
        if (r < 0)
                return r;
        r = ask_others(x, chunk);
        if (r == 0 && server_set_is_empty(&chunk->servers))
                r = SP_E_GONE;
        if (r < 0)
                chunk_unmap(chunk);
        return r;
}

static void chunk_free(cl_context x, struct svm_chunk *chunk) REQUIRES(client_held)
{
        take_back(x->client, chunk);
        chunk_unmap(chunk);
        list_remove(&chunk->link);
        range_set_fini(&chunk->free);
        mem_free(chunk->live);
        mem_free(chunk);
}

/* Chunks that did not fit are given back at the end, so that the next try is another one. */
static int chunk_agree(cl_context x, struct svm_chunk *chunk) REQUIRES(client_held)
{
        struct svm_chunk tried[TRIES];
        unsigned count = 0;
        int r = SP_E_BUSY;
        for (bool again = false; r == SP_E_BUSY && count < TRIES; again = true) {
                chunk->servers = (struct server_set){ { 0 } };
                r = chunk_place(x, chunk, again);
                if (r < 0)
                        tried[count++] = *chunk;
        }
        while (count)
                take_back(x->client, &tried[--count]);
        return r;
}

static int chunk_new(cl_context x, size_t size, bool paged, struct svm_chunk **ret)
        REQUIRES(client_held)
{
        struct svm_chunk *chunk = mem_zalloc(sizeof(*chunk));
        if (!chunk)
                return SP_E_NOMEM;
        list_init(&chunk->link);
        chunk->paged = paged;
        chunk->size = size > CHUNK ? (size + VM_GRANULE - 1) / VM_GRANULE * VM_GRANULE : CHUNK;
        int r = range_set_add(&chunk->free, (struct range){ 0, chunk->size });
        if (r == 0)
                r = chunk_agree(x, chunk);
        if (r < 0) {
                range_set_fini(&chunk->free);
                mem_free(chunk);
                return r;
        }
        log_debug("client", "%zu bytes of shared virtual memory at %#llx", chunk->size,
                  (unsigned long long)chunk->address);
        list_append(&x->svm_chunks, &chunk->link);
        *ret = chunk;
        return 0;
}

void svm_end(cl_context x)
{
        list_each(chunk, &x->svm_chunks, struct svm_chunk, link)
        {
                chunk_free(x, chunk);
        }
}

/* ---- allocations ---------------------------------------------------------------------------- */

/* The first allocation that begins behind `at`. */
static size_t live_after(const struct svm_chunk *chunk, const void *at)
{
        size_t lo = 0, hi = chunk->live_count;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if ((uintptr_t)chunk->live[mid]->host_ptr <= (uintptr_t)at)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo;
}

static int live_reserve(struct svm_chunk *chunk)
{
        if (chunk->live_count < chunk->live_cap)
                return 0;
        size_t cap = chunk->live_cap ? chunk->live_cap * 2 : 16;
        cl_mem *more = mem_realloc(chunk->live, cap * sizeof(cl_mem));
        if (!more)
                return SP_E_NOMEM;
        chunk->live = more;
        chunk->live_cap = cap;
        return 0;
}

static void live_add(struct svm_chunk *chunk, cl_mem m)
{
        size_t i = live_after(chunk, m->host_ptr);
        memmove(chunk->live + i + 1, chunk->live + i,
                (chunk->live_count - i) * sizeof(*chunk->live));
        chunk->live[i] = m;
        chunk->live_count++;
}

/* `align`: a power of two; 0: any offset in the chunk will do. */
static bool find_room(const struct svm_chunk *chunk, size_t size, size_t align, struct range *ret)
{
        for (size_t i = 0; i < chunk->free.count; i++) {
                const struct range *r = &chunk->free.ranges[i];
                uint64_t begin =
                        r->begin + (align ? -(chunk->address + r->begin) & (align - 1) : 0);
                if (begin > r->end || r->end - begin < size)
                        continue;
                *ret = (struct range){ begin, begin + size };
                return true;
        }
        return false;
}

/* The room that an allocation takes. Pages of views are closed and opened one by one. */
static size_t room_of(const struct svm_chunk *chunk, size_t size)
{
        size_t unit = chunk->other ? vm_page_size() : ALIGN;
        return (size + unit - 1) / unit * unit;
}

static struct svm_chunk *find_chunk(cl_context x, bool paged, size_t size, size_t align,
                                    struct range *ret)
{
        struct svm_chunk *chunk = NULL;
        list_each(at, &x->svm_chunks, struct svm_chunk, link)
        {
                if (!chunk && at->paged == paged && find_room(at, room_of(at, size), align, ret))
                        chunk = at;
        }
        return chunk;
}

/* Does the application see the memory of an allocation without maps? */
static bool is_managed(cl_context x) REQUIRES(client_held)
{
        static bool told;
        if (!x->client->svm.managed || svm_reaches_host(x))
                return x->client->svm.managed;
        if (!told)
                log_warn(
                        "client",
                        "SPANCL_SVM=managed: memory of a context with devices of this process and of servers is "
                        "coarse-grained. The program has to map it");
        told = true;
        return false;
}

int svm_alloc(cl_context x, cl_mem_flags flags, size_t size, size_t align,
              const struct usm_kind *usm, cl_mem *ret)
{
        struct range room;
        bool paged = usm || is_managed(x);
        if (size > WIRE_BULK_MAX - VM_GRANULE - align)
                return SP_E_LIMIT;
        struct svm_chunk *chunk = find_chunk(x, paged, size, align, &room);
        int r = 0;
        if (!chunk) {
                /* Servers may have let go of freed allocations meanwhile. */
                client_poll(x->client);
                chunk = find_chunk(x, paged, size, align, &room);
        }
        if (!chunk) {
                /* A chunk begins at a multiple of VM_GRANULE, wherever a server has put it. With room for another
                 * alignment, an allocation of CL_DEVICE_MAX_MEM_ALLOC_SIZE would not fit in one of the device's. */
                assert(align <= VM_GRANULE);
                r = chunk_new(x, size, paged, &chunk);
                if (r == 0 && !find_room(chunk, room_of(chunk, size), align, &room))
                        r = SP_E_NOMEM;
        }
        if (r == 0)
                r = live_reserve(chunk);
        if (r == 0)
                r = range_set_remove(&chunk->free, room);
        if (r < 0)
                return r;
        cl_mem m;
        r = mem_new_svm(x, flags, chunk, (size_t)room.begin, size, &m);
        if (r < 0) {
                if (range_set_add(&chunk->free, room) < 0) /* it stays unused */
                        log_error("client", "out of memory: an address range is lost");
                return r;
        }
        chunk->used++;
        live_add(chunk, m);
        if (usm)
                m->usm = *usm;
        if (paged)
                atomic_store_explicit(&x->paged, true, memory_order_relaxed);
        if (chunk->other)
                r = view_new(m, m->usm.type != CL_MEM_TYPE_DEVICE_INTEL);
        if (r < 0) {
                (void)svm_free(x, m->host_ptr, usm != NULL);
                return r;
        }
        *ret = m;
        return 0;
}

cl_mem svm_before(cl_context x, const void *at)
{
        list_each(chunk, &x->svm_chunks, struct svm_chunk, link)
        {
                uint64_t offset = (uint64_t)(uintptr_t)at - chunk->address;
                if ((uint64_t)(uintptr_t)at < chunk->address || offset >= chunk->size)
                        continue;
                size_t i = live_after(chunk, at);
                return i ? chunk->live[i - 1] : NULL;
        }
        return NULL;
}

cl_mem svm_find(cl_context x, const void *at)
{
        cl_mem m = svm_before(x, at);
        return m && svm_at(m, at) < m->size ? m : NULL;
}

cl_mem svm_find_usm(cl_context x, const void *at)
{
        if (!atomic_load_explicit(&x->paged, memory_order_relaxed))
                return NULL;
        client_lock(x->client);
        cl_mem m = svm_find(x, at);
        client_unlock(x->client);
        return m && (m->usm.type || m->view) ? m : NULL;
}

bool svm_may_fault(const void *at, size_t size)
{
        return fault_is_watched((uint64_t)(uintptr_t)at, size);
}

int svm_borrow(struct svm_borrowed *ret, const void *at, size_t size)
{
        *ret = (struct svm_borrowed){ .at = at };
        if (!at || !size || !svm_may_fault(at, size))
                return 0;
        ret->at = ret->copy = mem_dup(at, size);
        return ret->copy ? 0 : SP_E_NOMEM;
}

void svm_give_back(struct svm_borrowed *b)
{
        mem_free(b->copy);
}

bool svm_is_foreign(cl_context x, const void *at)
{
        list_each(other, client_contexts(x->client), struct _cl_context, link)
        {
                if (other != x && svm_find(other, at))
                        return true;
        }
        return false;
}

bool svm_free(cl_context x, const void *at, bool usm)
{
        cl_mem m = svm_find(x, at);
        if (!m || m->host_ptr != at || (m->usm.type != 0) != usm)
                return false;
        struct svm_chunk *chunk = m->chunk;
        size_t i = live_after(chunk, at);
        memmove(chunk->live + i - 1, chunk->live + i,
                (chunk->live_count - i) * sizeof(*chunk->live));
        chunk->live_count--;
        mem_unhold(m);
        return true;
}

/* Is there another one with nothing in it? */
static bool has_spare(const struct svm_chunk *chunk, cl_context x)
{
        list_each(other, &x->svm_chunks, struct svm_chunk, link)
        {
                if (other != chunk && other->paged == chunk->paged && !other->used &&
                    other->size == CHUNK)
                        return true;
        }
        return false;
}

void svm_leave(cl_mem m)
{
        view_free(steal(m->view));
}

void svm_ended(cl_mem m)
{
        struct svm_chunk *chunk = m->chunk;
        size_t begin = svm_offset(m), size = room_of(chunk, m->size);
        if (range_set_add(&chunk->free, (struct range){ begin, begin + size }) < 0)
                log_error("client", "out of memory: an address range is lost");
        /* One is kept for the next allocation. */
        if (--chunk->used == 0 && (chunk->size != CHUNK || has_spare(chunk, m->context)))
                chunk_free(m->context, chunk);
}

/* ---- commands ------------------------------------------------------------------------------- */

/* Enqueue a command that does nothing. Its event completes with `tail`, which it owns. */
static cl_int enqueue_tail(const struct enqueue *q, struct event_tail *tail)
{
        struct command m;
        int r = command_begin(&m, q);
        if (r == 0 && !tail)
                r = SP_E_NOMEM;
        if (r == 0)
                r = command_ready(&m, true);
        if (r == 0) {
                event_set_tail(m.event, tail);
                tail = NULL;
                r = command_send_nothing(&m);
        }
        if (tail)
                tail->free(tail);
        return command_end(&m, r, q->blocking);
}

static void host_copy_run(struct event_tail *t, cl_event e, cl_int status) REQUIRES(client_held)
{
        struct host_copy *copy = container_of(t, struct host_copy, tail);
        if (status == CL_SUCCESS)
                memcpy(copy->to, copy->from, copy->size);
        list_remove(&copy->link);
        event_part_done(e, CL_SUCCESS);
}

static void host_copy_free(struct event_tail *t)
{
        struct host_copy *copy = container_of(t, struct host_copy, tail);
        list_remove(&copy->link);
        mem_free(copy);
}

cl_int enqueue_host_copy(const struct enqueue *q, void *to, const void *from, size_t size)
{
        struct client *c = q->queue->context->client;
        struct host_copy *copy = mem_alloc(sizeof(*copy));
        if (!copy)
                return enqueue_tail(q, NULL);
        *copy = (struct host_copy){
                .tail = { host_copy_run, host_copy_free }, .to = to, .from = from, .size = size
        };
        client_lock(c);
        list_append(&c->transfers.host_copies, &copy->link);
        client_unlock(c);
        return enqueue_tail(q, &copy->tail);
}

struct freeing {
        struct event_tail tail;
        struct deferred call;
        cl_event event; /* held while the callback is to come */
        void(CL_CALLBACK *fn)(cl_command_queue, cl_uint, void **, void *);
        void *user_data;
        cl_uint count;
        void *pointers[];
};

/* On the progress thread, without the lock. */
static void freeing_call(struct deferred *d)
{
        struct freeing *f = container_of(d, struct freeing, call);
        cl_event e = f->event;
        struct client *c = e->context->client;
        f->fn(e->queue, f->count, f->count ? f->pointers : NULL, f->user_data);
        client_lock(c);
        event_part_done(e, CL_SUCCESS);
        event_unhold(e);
        client_unlock(c);
}

static void freeing_run(struct event_tail *t, cl_event e, cl_int status) REQUIRES(client_held)
{
        struct freeing *f = container_of(t, struct freeing, tail);
        if (status == CL_SUCCESS && f->fn) {
                f->event = e;
                event_hold(e);
                client_defer(e->context->client, &f->call, freeing_call);
                return;
        }
        for (cl_uint i = 0; status == CL_SUCCESS && i < f->count; i++)
                (void)svm_free(e->context, f->pointers[i], false);
        event_part_done(e, status);
}

static void freeing_free(struct event_tail *t)
{
        mem_free(container_of(t, struct freeing, tail));
}

cl_int enqueue_svm_free(const struct enqueue *q, cl_uint count, void *const *pointers,
                        void(CL_CALLBACK *fn)(cl_command_queue, cl_uint, void **, void *),
                        void *user_data)
{
        struct freeing *f = mem_zalloc(sizeof(*f) + count * sizeof(f->pointers[0]));
        if (f) {
                f->tail = (struct event_tail){ freeing_run, freeing_free };
                f->fn = fn;
                f->user_data = user_data;
                f->count = count;
                if (count)
                        memcpy(f->pointers, pointers, count * sizeof(f->pointers[0]));
        }
        return enqueue_tail(q, f ? &f->tail : NULL);
}
