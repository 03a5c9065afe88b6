#include "core/memory/view.h"

#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/command/queue.h"
#include "core/command/transfer.h"
#include "core/link/server.h"
#include "core/memory/mem.h"
#include "core/memory/placement.h"
#include "os/fault.h"
#include "os/thread.h"
#include "os/vm.h"
#include "os/writes.h"

enum {
        BLOCK = 64 << 10, /* fetched at once, at least */
        BLOCK_MAX = 2 << 20,
        AHEAD = 4,          /* times the block's size: on their way while accesses ascend */
        HOT_MAX = 64 << 10, /* of one allocation, at a wait */
        HOT_COUNT = 32,     /* allocations, at a wait */
        GAP = 32 << 10,     /* takes as long to send as a message of its own, or less */
        /* Allocations up to this size stay writable while the kernel notes writes: each command
         * asks it, which takes 1 µs. */
        NOTED_MAX = 256 << 10,
        NOTED_MOST = 16 << 20, /* of one allocation, so asking takes a few ms at most */
};

static uint64_t view_address(const struct view *v)
{
        return (uint64_t)(uintptr_t)v->mem->host_ptr;
}

/* The pages with these bytes. */
static struct range pages_of(struct range r)
{
        uint64_t page = vm_page_size();
        return (struct range){ r.begin / page * page, (r.end + page - 1) / page * page };
}

/* The allocation's bytes in these pages. */
static struct range bytes_in(const struct view *v, struct range pages)
{
        if (pages.end > v->mem->size)
                pages.end = v->mem->size;
        return pages;
}

static int allow(struct view *v, struct range pages, enum vm_access access)
{
        static atomic_uint_fast64_t moves;
        v->moved = atomic_fetch_add(&moves, 1) + 1;
        return vm_allow(view_address(v) + pages.begin, (size_t)(pages.end - pages.begin), access);
}

/* Blocks that the view asked for ahead of the accesses. */
struct ahead {
        struct list link;
        struct range pages;
        struct fetch fetch;
        uint64_t changes; /* the view's when it asked */
};

/* ---- pages ---------------------------------------------------------------------------------- */

void view_changed(struct view *v)
{
        const struct replica *host = placement_find(&v->mem->placement, PLACEMENT_HOST, 0);
        bool comes = v->bringing || !list_empty(&v->ahead);
        if (!v->fresh && !v->open.count && !(host && host->current.count) && !comes)
                list_remove(&v->touched);
        else if (list_empty(&v->touched))
                list_append(&v->mem->context->views.touched, &v->touched);
}

static int host_wrote(struct view *v, struct range pages) REQUIRES(client_held)
{
        return placement_write(&v->mem->placement, PLACEMENT_HOST, 0, bytes_in(v, pages), 0, 0);
}

/* The kernel tells of a write once, so there has to be room to remember it. SP_E_NOMEM. */
static int reserve_notes(struct view *v) REQUIRES(client_held)
{
        size_t most = (size_t)(v->noted_size / GAP) + v->noted.count;
        return most ? placement_reserve(&v->mem->placement, most) : 0;
}

/* After reserve_notes: tell the placement which of these pages, all of them noted, the application has written. Small
 * gaps count as written, because each piece is a message of its own. */
static int take_notes_of(struct view *v, struct range pages) REQUIRES(client_held)
{
        enum { AT_ONCE = 64 };
        struct written parts[AT_ONCE];
        struct range piece = { pages.begin, pages.begin };
        uint64_t base = view_address(v), at = base + pages.begin;
        int r = 0;
        while (r == 0 && at < base + pages.end) {
                int count = writes_take(at, base + pages.end, parts, AT_ONCE, &at);
                if (count < 0) {
                        v->mem->chunk->noted = false;
                        return host_wrote(v, pages);
                }
                for (int i = 0; i < count && r == 0; i++) {
                        struct range part = { parts[i].begin - base, parts[i].end - base };
                        if (piece.begin == piece.end || part.begin - piece.end > GAP) {
                                r = piece.begin == piece.end ? 0 : host_wrote(v, piece);
                                piece = part;
                        }
                        piece.end = part.end;
                }
        }
        return r < 0 || piece.begin == piece.end ? r : host_wrote(v, piece);
}

/* The same for the noted pages among these. The application can't write them any more. */
static int end_notes(struct view *v, struct range pages) REQUIRES(client_held)
{
        struct range part, rest = pages;
        int r = 0;
        while (range_set_next(&v->noted, rest, true, &part)) {
                int e = take_notes_of(v, part);
                r = r < 0 ? r : e;
                if (!v->mem->chunk->watched)
                        writes_forget(view_address(v) + part.begin,
                                      (size_t)(part.end - part.begin));
                v->noted_size -= part.end - part.begin;
                rest.begin = part.end;
        }
        int e = range_set_remove(&v->noted, pages);
        return r < 0 ? r : e;
}

/* Close all pages. That joins mappings, so it needs no memory. */
static int close_all(struct view *v) REQUIRES(client_held)
{
        const struct range all = { 0, v->size };
        int r = reserve_notes(v);
        if (r < 0)
                return r;
        r = allow(v, all, VM_NONE);
        int e = end_notes(v, all);
        v->open.count = v->written.count = 0;
        view_changed(v);
        return r < 0 ? r : e;
}

static int set_access(struct view *v, struct range pages, enum vm_access access)
        REQUIRES(client_held)
{
        int r = range_set_reserve(&v->open, 1);
        if (r == 0)
                r = range_set_reserve(&v->written, 1);
        if (r == 0)
                r = range_set_reserve(&v->noted, 1);
        if (r == 0)
                r = reserve_notes(v);
        if (r < 0)
                return r;
        r = allow(v, pages, access);
        if (r < 0) {
                /* There are too many pieces: this one is to be the only one. */
                r = close_all(v);
                if (r < 0 || access == VM_NONE)
                        return r;
                r = allow(v, pages, access);
                if (r < 0)
                        return r;
        }
        int e = access == VM_WRITE ? 0 : end_notes(v, pages);
        r = access == VM_NONE ? range_set_remove(&v->open, pages) : range_set_add(&v->open, pages);
        if (r == 0)
                r = access == VM_WRITE ? range_set_add(&v->written, pages)
                                       : range_set_remove(&v->written, pages);
        view_changed(v);
        return r < 0 ? r : e;
}

/* No bytes come any more: they are current, unless a command has changed them since. */
static void ahead_end(struct view *v, struct ahead *a) REQUIRES(client_held)
{
        struct replica *host = placement_find(&v->mem->placement, PLACEMENT_HOST, 0);
        bool current = host && !a->fetch.failed && a->changes == v->changes;
        if (current && range_set_add(&host->current, bytes_in(v, a->pages)) < 0)
                log_debug("client", "out of memory: bytes of a view are fetched again");
        list_remove(&a->link);
        mem_free(a);
}

/* End all that have come. */
static void ahead_sweep(struct view *v) REQUIRES(client_held)
{
        list_each(a, &v->ahead, struct ahead, link)
        {
                if (!a->fetch.open)
                        ahead_end(v, a);
        }
        view_changed(v);
}

static struct ahead *ahead_find(const struct view *v, struct range pages) REQUIRES(client_held)
{
        list_each(a, &v->ahead, struct ahead, link)
        {
                if (range_overlaps(a->pages, pages))
                        return a;
        }
        return NULL;
}

/* Count these pages as not written, and have the kernel note writes to them. SP_E_UNSUPP. */
static int begin_notes(struct view *v, struct range pages) REQUIRES(client_held)
{
        uint64_t at = view_address(v) + pages.begin;
        size_t size = (size_t)(pages.end - pages.begin);
        if (!v->mem->chunk->noted)
                return SP_E_UNSUPP;
        int r = v->mem->chunk->watched ? 0 : writes_watch(at, size);
        return r < 0 ? r : writes_note(at, size);
}

/* Make pages writable that were not. `note`: a page counts as written when the kernel has noted it; else all do
 * now. */
static int allow_writes(struct view *v, struct range pages, bool note) REQUIRES(client_held)
{
        note = note && begin_notes(v, pages) == 0;
        int r = note ? 0 : host_wrote(v, pages);
        if (r == 0)
                r = set_access(v, pages, VM_WRITE);
        if (r < 0 || !note)
                return r;
        v->noted_size += pages.end - pages.begin;
        return range_set_add(&v->noted, pages);
}

/* Make readable pages writable. */
static int note_open(struct view *v) REQUIRES(client_held)
{
        struct range part, rest = { 0, v->size };
        int r = 0;
        while (r == 0 && range_set_next(&v->open, rest, true, &part)) {
                r = allow_writes(v, part, true);
                rest.begin = part.end;
        }
        return r;
}

/* The first command comes: from now on pages are watched. */
static int ripen(struct view *v) REQUIRES(client_held)
{
        const struct svm_chunk *chunk = v->mem->chunk;
        uint64_t base = svm_offset(v->mem), end = base + v->size;
        struct range all = { 0, v->size }, data, hole;
        if (!v->fresh)
                return 0;
        /* Another thread that writes now stops until the lock is released. */
        int r = allow(v, all, VM_READ);
        for (uint64_t at = base; r == 0 && vm_next_data(chunk->fd, at, end, &data.begin, &data.end);
             at = data.end + base) {
                data = (struct range){ data.begin - base, data.end - base };
                r = range_set_add(&v->open, data);
                if (r == 0)
                        r = host_wrote(v, data);
                v->was_written = true;
        }
        while (r == 0 && range_set_next(&v->open, all, false, &hole)) {
                all.begin = hole.end;
                if (allow(v, hole, VM_NONE) == 0)
                        continue;
                /* There are too many pieces. The rest counts as written: zeros. */
                hole.end = v->size;
                r = allow(v, hole, VM_READ);
                if (r == 0)
                        r = range_set_add(&v->open, hole);
                if (r == 0)
                        r = host_wrote(v, hole);
                v->was_written = true;
                break;
        }
        if (r == 0 && v->mem->chunk->noted && v->size <= NOTED_MAX)
                r = note_open(v);
        v->fresh = r < 0;
        if (v->fresh) {
                v->open.count = v->written.count = v->noted.count = 0;
                v->noted_size = 0;
                (void)allow(v, (struct range){ 0, v->size }, VM_WRITE);
        }
        view_changed(v);
        return r;
}

int view_take(struct view *v, struct range r)
{
        struct range part;
        int e = ripen(v);
        r = pages_of(r);
        while (e == 0 && range_set_next(&v->written, r, true, &part)) {
                v->was_written = true;
                r.begin = part.end;
                bool stays = v->size <= NOTED_MAX && range_set_has(&v->noted, part);
                if (stays)
                        e = reserve_notes(v);
                if (stays && e == 0)
                        e = take_notes_of(v, part);
                if (e == 0 && !(stays && v->mem->chunk->noted))
                        e = set_access(v, part, VM_READ);
        }
        return e;
}

/* Remember which pages are worth to be brought at the next wait: those that the application has
 * used, if they are few. */
static void note_lost(struct view *v, struct range lost) REQUIRES(client_held)
{
        bool used = !v->guessed ||
                    vm_touched(view_address(v) + lost.begin, (size_t)(lost.end - lost.begin));
        v->guessed = false;
        list_remove(&v->hot);
        if (!used || lost.end - lost.begin > HOT_MAX)
                return;
        vm_untouch(view_address(v) + lost.begin, (size_t)(lost.end - lost.begin));
        v->lost = lost;
        list_append(&v->mem->context->views.hot, &v->hot);
}

int view_lose(struct view *v, struct range r)
{
        struct range part, lost = { UINT64_MAX, 0 };
        int e = ripen(v);
        r = pages_of(r);
        v->was_written |= range_set_meets(&v->written, r);
        v->changes++;
        ahead_sweep(v);
        while (e == 0 && range_set_next(&v->open, r, true, &part)) {
                e = set_access(v, part, VM_NONE);
                lost.begin = part.begin < lost.begin ? part.begin : lost.begin;
                lost.end = part.end;
        }
        if (e == 0 && lost.end) {
                fault_arm();
                note_lost(v, lost);
        }
        return e;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Bytes that are current nowhere may have been written by kernels of which nobody said that they
 * reach them. */
static int adopt(struct view *v, struct range r) REQUIRES(client_held)
{
        cl_context x = v->mem->context;
        struct placement *p = &v->mem->placement;
        struct range_set unknown = { 0 };
        struct range part, rest;
        if (x->views.launches == v->launches || !x->views.device)
                return 0;
        struct replica *to = placement_at(p, server_index(x->views.device->server),
                                          mem_domain(v->mem, x->views.device));
        int e = to ? range_set_add(&unknown, r) : SP_E_NOMEM;
        for (size_t i = 0; e == 0 && i < p->count; i++) {
                rest = r;
                while (e == 0 && range_set_next(&p->replicas[i].current, rest, true, &part)) {
                        e = range_set_remove(&unknown, part);
                        rest.begin = part.end;
                }
        }
        for (size_t i = 0; e == 0 && i < unknown.count; i++)
                e = range_set_add(&to->current, unknown.ranges[i]);
        range_set_fini(&unknown);
        return e;
}

/* Ask for the stale bytes. */
static int fetch(struct view *v, struct range r, struct fetch *f) REQUIRES(client_held)
{
        struct placement *p = &v->mem->placement;
        const struct replica *from;
        struct range part;
        if (!placement_at(p, PLACEMENT_HOST, 0))
                return SP_E_NOMEM;
        int e = adopt(v, r);
        while (e == 0 && placement_stale(p, PLACEMENT_HOST, 0, r, &part, &from)) {
                e = transfer_fetch(v->mem, part, from, v->other + part.begin, f);
                r.begin = part.end;
        }
        return e;
}

static bool is_current(const struct view *v, struct range r) REQUIRES(client_held)
{
        const struct replica *host = placement_find(&v->mem->placement, PLACEMENT_HOST, 0);
        return host && range_set_has(&host->current, r);
}

/* If accesses ascend, ask for the blocks that come next. */
static void fetch_ahead(struct view *v, const struct view_run *run) REQUIRES(client_held)
{
        struct range block = { run->next, run->next };
        uint64_t end = run->next + AHEAD * run->size, size = run->size;
        ahead_sweep(v);
        while (run->size > BLOCK && block.end < end && block.end < v->size) {
                size = size < BLOCK_MAX ? size * 2 : BLOCK_MAX;
                block = (struct range){ block.end, block.end + size };
                if (block.end > v->size)
                        block.end = v->size;
                if (ahead_find(v, block) || is_current(v, bytes_in(v, block)))
                        continue;
                struct ahead *a = mem_zalloc(sizeof(*a));
                if (!a)
                        return;
                *a = (struct ahead){ .pages = block, .changes = v->changes };
                list_append(&v->ahead, &a->link);
                if (fetch(v, bytes_in(v, block), &a->fetch) < 0) {
                        a->fetch.failed = true;
                        return;
                }
        }
}

/* Wait for bytes that are on their way there. If some do not come, they are fetched again. */
static void await_ahead(struct view *v, struct range r) REQUIRES(client_held)
{
        struct ahead *a;
        while ((a = ahead_find(v, r))) {
                list_remove(&a->link);
                if (fetch_wait(v->mem->context->client, &a->fetch) < 0)
                        log_debug("client", "bytes of a view did not come ahead of an access");
                ahead_end(v, a);
        }
}

static bool may_bring(void *arg) REQUIRES(client_held)
{
        return !((const struct view *)arg)->bringing;
}

/* A launch that may write there meanwhile has to know of it: the view counts as touched. */
static void begin_bringing(struct view *v) REQUIRES(client_held)
{
        v->bringing = true;
        view_changed(v);
}

static void end_bringing(struct view *v) REQUIRES(client_held)
{
        v->bringing = false;
        view_changed(v);
        client_changed(v->mem->context->client);
}

/* Bring the bytes of a range that somebody uses: the last block of `run`, unless that is NULL. The
 * caller holds the object. No command writes there meanwhile, because the memory has no concurrent
 * access: commands that may write everything do not write there. */
static int bring(struct view *v, struct range r, const struct view_run *run) REQUIRES(client_held)
{
        struct client *c = v->mem->context->client;
        struct fetch f = { .open = 0 };
        /* Bytes that come twice could come after the application's writes. */
        while (v->bringing)
                client_wait(c, may_bring, v);
        begin_bringing(v);
        if (run && ahead_find(v, r))
                fetch_ahead(v, run);
        await_ahead(v, r);
        int e = fetch(v, r, &f);
        if (run && e == 0)
                fetch_ahead(v, run);
        int end = fetch_wait(c, &f);
        end_bringing(v);
        struct replica *host =
                e < 0 || end < 0 ? NULL : placement_at(&v->mem->placement, PLACEMENT_HOST, 0);
        if (e < 0 || end < 0)
                return e < 0 ? e : end;
        return host ? range_set_add(&host->current, r) : SP_E_NOMEM;
}

int view_read(struct view *v, struct range r, const uint8_t **ret)
{
        int e = ripen(v);
        if (e == 0)
                e = bring(v, r, NULL);
        view_changed(v);
        if (e == 0)
                *ret = v->other + r.begin;
        return e;
}

/* ---- faults --------------------------------------------------------------------------------- */

/* The pages to fetch for an access: more when accesses ascend. */
static struct range pages_for(const struct view *v, struct view_run *run, uint64_t offset)
{
        uint64_t at = (view_address(v) + offset) / BLOCK * BLOCK;
        struct range r = { at > view_address(v) ? at - view_address(v) : 0, 0 };
        bool ascends = run->size && r.begin == run->next;
        run->size = !ascends ? BLOCK : run->size < BLOCK_MAX ? run->size * 2 : BLOCK_MAX;
        r.end = at + run->size - view_address(v);
        if (r.end > v->size)
                r.end = v->size;
        run->next = r.end;
        return r;
}

static int open_to_write(struct view *v, struct range pages, bool note) REQUIRES(client_held)
{
        struct range part;
        int r = 0;
        while (r == 0 && range_set_next(&v->written, pages, false, &part)) {
                r = allow_writes(v, part, note);
                pages.begin = part.end;
        }
        return r;
}

/* The bytes are there: let the application use them. Where accesses ascend, blocks are larger, and count
 * as written as a whole: notes of single pages would cost more than they save. */
static int open_pages(struct view *v, struct range pages, bool write) REQUIRES(client_held)
{
        struct range part;
        bool notes = v->mem->chunk->noted && pages.end - pages.begin <= BLOCK &&
                     v->noted_size < NOTED_MOST;
        int r = 0;
        if (write || notes)
                return open_to_write(v, pages, notes);
        /* Pages that are open already may be written. */
        while (r == 0 && range_set_next(&v->open, pages, false, &part)) {
                r = set_access(v, part, VM_READ);
                /* The kernel maps no neighbours of a page whose writes it may have to note. */
                if (r == 0 && v->mem->chunk->watched)
                        vm_populate(view_address(v) + part.begin, (size_t)(part.end - part.begin));
                pages.begin = part.end;
        }
        return r;
}

static struct view *find_view(struct client *c, uint64_t address) REQUIRES(client_held)
{
        list_each(x, &c->contexts, struct _cl_context, link)
        {
                cl_mem m = svm_before(x, (const void *)(uintptr_t)address);
                if (m && m->view && address - view_address(m->view) < m->view->size)
                        return m->view;
        }
        return NULL;
}

/* The page is open already: another thread was faster, or ripen() was at work. False: it was open the last
 * time, too, so that the application itself has closed it. */
static bool may_retry(const struct view *v, const struct fault *f)
{
        const struct fault_memory now = { f->address, v->moved };
        bool again = f->memory->address == now.address && f->memory->state == now.state;
        *f->memory = now;
        return !again;
}

/* True: the access may be tried again. */
static bool serve(struct client *c, const struct fault *f) REQUIRES(client_held)
{
        struct view *v = find_view(c, f->address);
        if (!v)
                return false;
        cl_mem m = v->mem;
        uint64_t offset = f->address - view_address(v);
        struct range here = pages_of((struct range){ offset, offset + 1 });
        bool readable = v->fresh || range_set_has(&v->open, here);
        bool write = f->access == FAULT_WRITE || (f->access == FAULT_UNKNOWN && readable);
        if (v->fresh || (readable && (!write || range_set_has(&v->written, here))))
                return may_retry(v, f);
        struct view_run *run = write ? &v->writes : &v->reads;
        struct range pages = pages_for(v, run, offset);
        mem_hold(m);
        int r = bring(v, bytes_in(v, pages), run);
        if (r == 0)
                r = find_view(c, f->address) == v ? open_pages(v, pages, write) : SP_E_GONE;
        mem_unhold(m);
        if (r < 0)
                log_error("client", "the bytes of shared memory at %#llx can't be had: %s",
                          (unsigned long long)f->address, status_text(r));
        return r == 0;
}

static void *serve_all(void *arg)
{
        struct fault *f;
        (void)arg;
        thread_name("spancl-faults");
        while ((f = fault_next())) {
                struct client *c = f->user;
                client_lock(c);
                bool opened = serve(c, f);
                client_unlock(c);
                fault_end(f, opened);
        }
        return NULL;
}

int views_serve(void)
{
        int r = fault_begin_serving();
        if (r <= 0)
                return r;
        r = thread_start(NULL, true, serve_all, NULL);
        if (r < 0)
                fault_not_served();
        return r;
}

/* ---- waits ---------------------------------------------------------------------------------- */

void views_reached(struct command *m)
{
        cl_context x = m->queue->context;
        x->views.launches++;
        x->views.device = m->queue->device;
}

struct guess {
        cl_mem mem; /* held */
        struct range pages;
        uint64_t changes;
};

void views_bring_hot(cl_context x)
{
        struct guess all[HOT_COUNT];
        struct fetch f = { .open = 0 };
        unsigned count = 0;
        int e = 0;
        /* A command that still runs may write there. */
        if (!queues_idle(x))
                return;
        list_each(v, &x->views.hot, struct view, hot)
        {
                if (count == HOT_COUNT || e < 0)
                        break;
                list_remove(&v->hot);
                if (v->bringing || ahead_find(v, v->lost))
                        continue;
                begin_bringing(v);
                all[count++] = (struct guess){ v->mem, v->lost, v->changes };
                mem_hold(v->mem);
                e = fetch(v, bytes_in(v, v->lost), &f);
        }
        if (fetch_wait(x->client, &f) < 0)
                e = SP_E_GONE;
        while (count) {
                struct guess g = all[--count];
                struct view *v = g.mem->view;
                struct replica *host = placement_find(&g.mem->placement, PLACEMENT_HOST, 0);
                bool live = find_view(x->client, view_address(v)) == v;
                end_bringing(v);
                if (e == 0 && live && v->changes == g.changes && host &&
                    range_set_add(&host->current, bytes_in(v, g.pages)) == 0) {
                        v->guessed = !v->open.count;
                        if (open_pages(v, g.pages, v->was_written) < 0)
                                (void)close_all(v);
                        v->was_written = false;
                }
                mem_unhold(g.mem);
        }
}

/* ---- life ----------------------------------------------------------------------------------- */

int view_new(cl_mem m, bool fresh)
{
        struct svm_chunk *chunk = m->chunk;
        struct view *v = mem_zalloc(sizeof(*v));
        if (!v)
                return SP_E_NOMEM;
        list_init(&v->touched);
        list_init(&v->hot);
        list_init(&v->ahead);
        v->mem = m;
        v->other = (uint8_t *)(uintptr_t)(chunk->other + svm_offset(m));
        v->size = (size_t)pages_of((struct range){ 0, m->size }).end;
        v->fresh = fresh;
        v->launches = m->context->views.launches;
        if (fresh && allow(v, (struct range){ 0, v->size }, VM_WRITE) < 0) {
                mem_free(v);
                return SP_E_NOMEM;
        }
        m->view = v;
        view_changed(v);
        return 0;
}

void view_free(struct view *v)
{
        if (!v)
                return;
        const struct svm_chunk *chunk = v->mem->chunk;
        (void)allow(v, (struct range){ 0, v->size }, VM_NONE);
        if (v->noted.count && !chunk->watched)
                writes_forget(view_address(v), v->size);
        /* The next allocation there is to find it empty. */
        if (vm_empty_file(chunk->fd, svm_offset(v->mem), v->size) < 0)
                log_error("client", "memory of an allocation can't be given back");
        ahead_sweep(v); /* what is still to come holds the object */
        list_remove(&v->touched);
        list_remove(&v->hot);
        range_set_fini(&v->open);
        range_set_fini(&v->written);
        range_set_fini(&v->noted);
        mem_free(v);
}
