#include "core/memory/mem.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/context.h"
#include "core/handle.h"
#include "core/link/listeners.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "core/memory/image.h"
#include "core/memory/placement.h"
#include "core/memory/storage.h"
#include "core/memory/svm.h"
#include "core/memory/usm.h"
#include "core/memory/view.h"
#include "core/progress.h"
#include "os/vm.h"

static bool is_host_memory(const struct _cl_mem *m)
{
        return m->host_ptr && !m->chunk && !m->parent;
}

static void destroy(cl_mem m) REQUIRES(client_held)
{
        m->context->ahead.host_memory -= is_host_memory(m);
        while (m->destructors) {
                struct destructor *d = m->destructors;
                m->destructors = d->next;
                mem_free(d);
        }
        if (m->content)
                mem_unhold(m->content);
        placement_fini(&m->placement);
        if (!m->storage)
                free(m->shadow);
        storage_free(m->storage);
        mem_free(m->initial);
        mem_free(m->properties);
        handle_free(&m->h, sizeof(*m));
}

static cl_mem mem_new(cl_context x, cl_mem_flags flags, size_t size) REQUIRES(client_held)
{
        cl_mem m = mem_zalloc(sizeof(*m));
        if (!m)
                return NULL;
        handle_init(&m->h, HANDLE_MEM);
        list_init(&m->mappings);
        m->flags = flags;
        m->size = size;
        m->id = client_new_id(x->client, OBJECT_BUFFER);
        m->context = x;
        return m;
}

/* The end of a constructor, if not r < 0. */
static int mem_finish(cl_mem m, int r, cl_mem *ret) REQUIRES(client_held)
{
        m->context->ahead.host_memory += is_host_memory(m);
        if (r == 0)
                r = map_put(&m->context->client->objects.all, (uintptr_t)m, m);
        if (r < 0) {
                destroy(m);
                return r;
        }
        context_hold(m->context);
        if (m->parent)
                mem_hold(m->parent);
        *ret = m;
        return 0;
}

static int take_properties(cl_mem m, const cl_mem_properties *list, size_t count)
{
        if (!list)
                return 0;
        m->properties = mem_dup(list, count * sizeof(*list));
        m->property_count = count;
        return m->properties ? 0 : SP_E_NOMEM;
}

/* The initial data is where the device uses it. */
static int storage_written(cl_mem m) REQUIRES(client_held)
{
        struct server *s = m->storage->server;
        cl_context x = m->context;
        for (cl_uint i = 0; i < x->device_count; i++)
                if (mem_is_here(m, x->devices[i]))
                        return placement_write(&m->placement, server_index(s),
                                               mem_domain(m, x->devices[i]), mem_all(m), 0, 0);
        return 0;
}

/* Find the bytes of an allocation where a thread that holds the lock may read them. */
static int read_view(cl_mem svm, const void *at, size_t size, const void **ret)
        REQUIRES(client_held)
{
        uint64_t offset = svm_at(svm, at);
        const uint8_t *bytes;
        mem_hold(svm);
        int r = view_read(svm->view, (struct range){ offset, offset + size }, &bytes);
        if (r == 0)
                *ret = bytes;
        mem_unhold(svm);
        return r;
}

int mem_new_buffer(cl_context x, const struct buffer_params *params, cl_mem *ret)
{
        cl_mem svm = params->host_ptr ? svm_find(x, params->host_ptr) : NULL;
        /* "CL_INVALID_BUFFER_SIZE if CL_MEM_USE_HOST_PTR or CL_MEM_COPY_HOST_PTR is set in flags, and
         * host_ptr is a pointer returned by clSVMAlloc, and size is greater than the size passed to
         * clSVMAlloc." */
        if (svm && params->size > svm->size - svm_at(svm, params->host_ptr))
                return CL_INVALID_BUFFER_SIZE;
        if (svm && svm->usm.type == CL_MEM_TYPE_DEVICE_INTEL) /* no memory of the host's */
                return CL_INVALID_HOST_PTR;
        if (!svm && params->host_ptr && svm_may_fault(params->host_ptr, params->size))
                return CL_INVALID_HOST_PTR; /* another context's */
        bool over = svm && params->flags & CL_MEM_USE_HOST_PTR;
        const void *from = params->host_ptr;
        int e = 0;
        if (svm && svm->view && !over)
                e = read_view(svm, params->host_ptr, params->size, &from);
        if (e < 0)
                return e;
        cl_mem m = mem_new(x, params->flags, params->size);
        if (!m)
                return SP_E_NOMEM;
        int r = take_properties(m, params->properties, params->property_count);
        if (!(params->flags & CL_MEM_USE_HOST_PTR))
                m->storage = storage_new(x, params->size);
        if (m->storage)
                m->shadow = m->storage->address;
        if (m->storage && params->flags & CL_MEM_COPY_HOST_PTR) {
                memcpy(m->shadow, from, params->size);
                return mem_finish(m, r ? r : storage_written(m), ret);
        }
        if (params->flags & CL_MEM_COPY_HOST_PTR) {
                m->initial = mem_dup(from, params->size);
                r = m->initial ? r : SP_E_NOMEM;
        } else if (params->flags & CL_MEM_USE_HOST_PTR) {
                m->host_ptr = params->host_ptr;
        }
        if (over) { /* it has the bytes of the allocation */
                m->parent = svm;
                m->origin = svm_at(svm, params->host_ptr);
        } else if (r == 0 && params->flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR)) {
                r = placement_write(&m->placement, PLACEMENT_HOST, 0, mem_all(m), 0, 0);
        }
        return mem_finish(m, r, ret);
}

int mem_new_svm(cl_context x, cl_mem_flags flags, struct svm_chunk *chunk, size_t offset,
                size_t size, cl_mem *ret)
{
        cl_mem m = mem_new(x, flags, size);
        if (!m)
                return SP_E_NOMEM;
        m->chunk = chunk;
        m->host_ptr = (void *)(uintptr_t)(chunk->address + offset);
        return mem_finish(m, 0, ret);
}

int mem_new_sub_buffer(cl_mem parent, cl_mem_flags flags, size_t origin, size_t size, cl_mem *ret)
{
        cl_mem m = mem_new(parent->context, flags, size);
        if (!m)
                return SP_E_NOMEM;
        m->parent = parent;
        m->origin = origin;
        if (parent->host_ptr)
                m->host_ptr = (uint8_t *)parent->host_ptr + origin;
        return mem_finish(m, 0, ret);
}

int mem_new_pipe(cl_context x, cl_mem_flags flags, cl_uint packet_size, cl_uint packets,
                 cl_mem *ret)
{
        cl_mem m = mem_new(x, flags, (size_t)packet_size * packets);
        if (!m)
                return SP_E_NOMEM;
        m->pipe.packet_size = packet_size;
        m->pipe.packets = packets;
        return mem_finish(m, 0, ret);
}

/* The application's memory is the image's layout, up to the last pixel. */
static int image_take_host(cl_mem m, void *host_ptr)
{
        if (m->flags & CL_MEM_COPY_HOST_PTR) {
                m->initial = mem_dup(host_ptr, image_host_size(m));
                if (!m->initial)
                        return SP_E_NOMEM;
        } else if (m->flags & CL_MEM_USE_HOST_PTR) {
                m->host_ptr = host_ptr;
        } else {
                return 0;
        }
        return placement_write(&m->placement, PLACEMENT_HOST, 0, mem_all(m), 0, 0);
}

int mem_new_image(cl_context x, const struct image_params *params, cl_mem *ret)
{
        size_t all[3];
        cl_mem svm = params->host_ptr ? svm_find(x, params->host_ptr) : NULL;
        if (svm ? svm->usm.type || svm->view
                : params->host_ptr && svm_may_fault(params->host_ptr, 1))
                return CL_INVALID_HOST_PTR;
        image_region(&params->desc, all);
        size_t size = image_bytes(&params->desc, all);
        cl_mem parent = params->parent;
        if (parent)
                size = mem_is_image(parent) ? parent->size : image_span(&params->desc);
        cl_mem m = mem_new(x, params->flags, size);
        if (!m)
                return SP_E_NOMEM;
        m->image = params->desc;
        m->row_pitch = params->row_pitch;
        m->slice_pitch = params->slice_pitch;
        int r = take_properties(m, params->properties, params->property_count);
        if (!r && !parent)
                r = image_take_host(m, params->host_ptr);
        if (parent) {
                m->parent = parent;
                m->host_ptr = parent->host_ptr;
        }
        return mem_finish(m, r, ret);
}

int mem_on_destroy(cl_mem m, void(CL_CALLBACK *fn)(cl_mem, void *), void *user_data)
{
        struct destructor *d = mem_alloc(sizeof(*d));
        if (!d)
                return SP_E_NOMEM;
        *d = (struct destructor){
                .next = m->destructors,
                .fn = (void(CL_CALLBACK *)(void *, void *))(void *)fn,
                .user_data = user_data,
        };
        m->destructors = d;
        return 0;
}

void mem_hold(cl_mem m)
{
        atomic_fetch_add(&m->h.holds, 1);
}

/* Nobody has the object any more. */
static void bury(cl_mem m) REQUIRES(client_held)
{
        cl_context x = m->context;
        cl_mem parent = m->parent;
        x->client->progress.interests -= m->awaited;
        destroy(m);
        if (parent)
                mem_unhold(parent);
        context_unhold(x);
}

/* On the progress thread, without the lock. "The registered callback functions are called and then the memory
 * object's resources are freed and the memory object is deleted." */
static void call_destructors(struct deferred *end)
{
        cl_mem m = container_of(end, struct _cl_mem, end);
        struct client *c = m->context->client;
        for (struct destructor *d = m->destructors; d; d = d->next)
                d->fn(m, d->user_data);
        client_lock(c);
        bury(m);
        client_unlock(c);
}

/* An object that waits until the servers do not use it any more: its destructors are called then, and
 * its addresses may be given to the next allocation. */
struct funeral {
        cl_mem mem;
        unsigned open; /* servers that have not answered, and one while they are asked */
        struct request requests[];
};

static void funeral_step(struct funeral *f) REQUIRES(client_held)
{
        cl_mem m = f->mem;
        if (--f->open)
                return;
        mem_free(f);
        if (m->chunk)
                svm_ended(m);
        if (m->destructors)
                client_defer(m->context->client, &m->end, call_destructors);
        else
                bury(m);
}

static void server_let_go(struct request *r) REQUIRES(client_held)
{
        buf_fini(&r->info);
        funeral_step(r->user);
}

/* Tell the servers. With `f`, they answer when their commands that use it are over. */
static void release_at_servers(cl_mem m, struct funeral *f) REQUIRES(client_held)
{
        struct client *c = m->context->client;
        server_set_each(i, &m->declared)
        {
                struct session *s = server_session(c->servers[i]);
                struct request *r = f && s ? &f->requests[i] : NULL;
                if (!s)
                        continue;
                if (r) {
                        r->notify = server_let_go;
                        r->user = f;
                        f->open++;
                        if (request_begin(c, c->servers[i], r) < 0) {
                                f->open--;
                                r = NULL;
                        }
                }
                /* Without memory the server keeps the object until the session ends. */
                if (session_send(s, release, .object = m->id, .request = r ? r->id : 0) == 0)
                        server_kick(c->servers[i]);
                else if (r)
                        request_done(c, r->id, CL_OUT_OF_HOST_MEMORY, (struct bytes){ 0 });
        }
}

/* "After the memobj reference count becomes zero and commands queued for execution on a command-queue(s) that
 * use memobj have finished, the memory object is deleted." */
static struct funeral *funeral_new(cl_mem m) REQUIRES(client_held)
{
        unsigned servers = m->context->client->server_count;
        struct funeral *f = mem_zalloc(sizeof(*f) + servers * sizeof(f->requests[0]));
        if (!f)
                return NULL;
        f->mem = m;
        f->open = 1;
        return f;
}

/* Drop the mappings that it leaves. */
static void mappings_drop(cl_mem m)
{
        list_each(map, &mem_root(m)->mappings, struct mapping, link)
        {
                if (map->mem != m)
                        continue;
                list_remove(&map->link);
                mem_free(map);
        }
}

void mem_release(cl_mem m)
{
        struct client *c = m->context->client;
        if (m->destructors && !m->awaited) {
                m->awaited = true;
                c->progress.interests++;
                progress_wake(c);
        }
        mem_unhold(m);
}

void mem_unhold(cl_mem m)
{
        if (atomic_fetch_sub(&m->h.holds, 1) != 1)
                return;
        struct client *c = m->context->client;
        mappings_drop(m);
        map_del(&c->objects.all, (uintptr_t)m);
        c->objects.gone++;
        m->h.type = 0; /* "this memory object is no longer valid" in its callbacks */
        if (m->chunk)
                svm_leave(m);
        /* Bytes that a launch took along may still be on their way to the server, though the application
         * has waited for all of its commands. */
        struct funeral *f = m->destructors || m->chunk ? funeral_new(m) : NULL;
        release_at_servers(m, f);
        if (f) {
                funeral_step(f);
                return;
        }
        if (m->chunk)
                svm_ended(m);
        if (m->destructors)
                log_error("client", "out of memory: destructor callbacks are not called");
        bury(m);
}

static int declare_in_place(cl_mem m, struct session *session, cl_mem_flags flags)
        REQUIRES(client_held)
{
        int r = storage_declare(m->storage, session);
        return r < 0 ? r
                     : session_send(session, svm_buffer_create, .buffer = m->id,
                                    .svm = m->storage->id, .flags = flags, .size = m->size);
}

int mem_declare(cl_mem m, struct server *s)
{
        if (server_set_has(&m->declared, s->index))
                return 0;
        if (m->parent) {
                int r = mem_declare(m->parent, s);
                if (r < 0)
                        return r;
        }
        struct session *session = server_session(s);
        if (!session)
                return SP_E_GONE;
        /* The client checks the host's access to the memory; for the server it is only storage. */
        cl_mem_flags flags = m->flags & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
        const struct image_desc *d = &m->image;
        cl_mem root = mem_root(m);
        const struct svm_chunk *chunk = root->chunk;
        size_t origin = mem_root_offset(m);
        int r;
        if (mem_is_pipe(m))
                r = session_send(session, pipe_create, .pipe = m->id, .flags = flags,
                                 .packet_size = m->pipe.packet_size, .packets = m->pipe.packets);
        else if (mem_is_image(m))
                r = session_send(session, image_create, .image = m->id, .flags = flags,
                                 .type = d->type, .order = d->order, .data_type = d->data_type,
                                 .width = d->width, .height = d->height, .depth = d->depth,
                                 .array_size = d->array_size, .row_pitch = d->row_pitch,
                                 .parent = m->parent ? m->parent->id : 0);
        else if (chunk && server_set_has(&chunk->servers, s->index))
                r = session_send(session, svm_buffer_create, .buffer = m->id, .svm = chunk->id,
                                 .flags = flags, .offset = svm_offset(root) + origin,
                                 .size = m->size);
        else if (m->storage && m->storage->server == s)
                r = declare_in_place(m, session, flags);
        else if (m->parent)
                r = session_send(session, sub_buffer_create, .buffer = m->id, .parent = root->id,
                                 .flags = flags, .origin = origin, .size = m->size);
        else
                r = session_send(session, buffer_create, .buffer = m->id, .flags = flags,
                                 .size = m->size);
        if (r < 0)
                return r;
        server_set_add(&m->declared, s->index);
        return 0;
}

bool mem_is_here(const struct _cl_mem *root, const struct _cl_device_id *d)
{
        return svm_is_here(root, d->server) || storage_is_here(root->storage, d);
}

unsigned mem_domain(const struct _cl_mem *root, const struct _cl_device_id *d)
{
        cl_context x = root->context;
        if (!root->chunk && !root->storage)
                return d->domain;
        bool common = root->chunk || mem_is_here(root, d);
        for (cl_uint i = 0; common && d->svm && i < x->device_count; i++)
                if (x->devices[i]->server == d->server && x->devices[i]->svm)
                        return x->devices[i]->domain;
        return d->domain;
}

/* Huge pages take fewer faults than pages, and more memory if little of them is used. */
static void *shadow_new(size_t size, size_t used)
{
        enum { PAGE = 4096, LARGE = 2 << 20 };
        bool large = size >= LARGE && used >= size / 2;
        void *p;
        if (posix_memalign(&p, large ? LARGE : PAGE, size ? size : 1) != 0)
                return NULL;
        if (large)
                vm_prefer_large_pages(p, size);
        return p;
}

void *mem_host(cl_mem m, size_t offset, size_t used)
{
        cl_mem root = mem_root(m);
        size_t at = mem_root_offset(m) + offset;
        if (root->host_ptr)
                return (uint8_t *)root->host_ptr + at;
        size_t size = mem_is_image(root) ? image_host_size(root) : root->size;
        if (size > PTRDIFF_MAX) /* of a buffer that the driver has not refused yet */
                return NULL;
        if (!root->shadow)
                root->shadow = shadow_new(size, used);
        return root->shadow ? (uint8_t *)root->shadow + at : NULL;
}

void mem_drop_initial(cl_mem root)
{
        struct range all = { 0, root->size }, r;
        const struct replica *host = placement_find(&root->placement, PLACEMENT_HOST, 0);
        if (!root->initial || root->sending)
                return;
        if (host && range_set_next(&host->current, all, true, &r))
                return;
        mem_free(root->initial);
        root->initial = NULL;
}

void mems_server_lost(struct server *s, const struct server_loss *loss)
{
        struct handle *h;
        for (size_t pos = 0; (h = map_next(&s->client->objects.all, &pos));)
                if (h->type == HANDLE_MEM)
                        placement_forget_server(&((cl_mem)h)->placement, s->index);
}
