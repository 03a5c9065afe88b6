#include "engine/object.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/command/command.h"
#include "engine/completion/untracked.h"
#include "engine/device.h"
#include "os/vm.h"

int engine_object_add(struct engine *e, struct object *o)
{
        if (map_get(&e->objects.table, o->id))
                return SP_E_PROTO;
        if (e->objects.table.count >= ENGINE_OBJECTS_MAX)
                return SP_E_LIMIT;
        o->excess = engine_limit_exceeded(e, LIMIT_OBJECTS, e->objects.table.count, 1);
        return map_put(&e->objects.table, o->id, o);
}

struct object *engine_object_find(struct engine *e, uint64_t id)
{
        return map_get(&e->objects.table, id);
}

void engine_object_ref(struct object *o)
{
        o->refs++;
}

void engine_object_unref(struct object *o)
{
        if (!o || --o->refs)
                return;
        struct engine *e = o->engine;
        uint64_t request = o->request;
        o->free(o);
        if (request && !e->closing)
                peer_send(engine_client(e), released, .request = request);
}

/* Hold the buffer until the untracked commands in flight complete. They hold nothing themselves,
 * since the backend keeps their buffers. The client may want to be notified when they no longer use
 * it, and its bytes count towards limits until then. Memory that it is made over, as in the arena, is unmapped and used
 * again when the client releases that, which it does behind the buffer. */
static int keep_for_untracked(struct buffer *b) REQUIRES(engine_held)
{
        const struct engine *e = b->object.engine;
        bool asked = b->object.request || (b->parent && b->parent->object.request);
        const struct buffer *root = b;
        while (root->parent)
                root = root->parent;
        return asked || root->svm || engine_limits_memory(e) ? engine_untracked_keep(b) : 0;
}

int engine_handle_release(void *user, const struct wire_release *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        /* Events end by themselves, peers with the session. */
        if (object_id_type(m->object) == OBJECT_PEER)
                return engine_peer_find(e, m->object) && !m->request ? 0 : SP_E_PROTO;
        struct object *o = map_del(&e->objects.table, m->object);
        if (!o)
                return SP_E_PROTO;
        o->request = m->request;
        e->objects.releases++;
        int r = object_id_type(o->id) == OBJECT_BUFFER
                        ? keep_for_untracked(container_of(o, struct buffer, object))
                        : 0;
        engine_object_unref(o);
        return r;
}

/* An array by domain grows when an object is first used in a new domain: sub-devices add domains. */
static bool replicas_grow(void **array, size_t *count, unsigned domain, size_t size)
{
        uint8_t *p = mem_realloc(*array, (domain + 1) * size);
        if (!p)
                return false;
        memset(p + *count * size, 0, (domain + 1 - *count) * size);
        *array = p;
        *count = domain + 1;
        return true;
}

/* ---- buffers and images --------------------------------------------------------------------- */

/* Count `size` bytes more towards the session's limit, and in *charged. */
static cl_int storage_take(struct engine *e, uint64_t size, uint64_t *charged) REQUIRES(engine_held)
{
        if (!engine_storage_take(e, size))
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        *charged += size;
        return CL_SUCCESS;
}

static void storage_give(struct engine *e, uint64_t size, uint64_t *charged) REQUIRES(engine_held)
{
        engine_storage_give(e, size);
        *charged -= size;
}

/* The size of a buffer's storage in each domain; a buffer inside another object has none. */
static uint64_t storage_of(const struct buffer *b)
{
        size_t all[3];
        if (b->parent || b->svm)
                return 0;
        if (engine_buffer_is_pipe(b))
                return (uint64_t)b->packet_size * b->packets;
        if (!engine_buffer_is_image(b))
                return b->size;
        image_region(&b->image, all);
        return image_bytes(&b->image, all);
}

static void buffer_free(struct object *o) REQUIRES(engine_held)
{
        struct buffer *b = container_of(o, struct buffer, object);
        for (size_t i = 0; i < b->replica_count; i++) {
                if (b->replicas[i].native)
                        o->engine->be->buffer.release(b->replicas[i].native);
                engine_storage_give_on(o->engine, storage_of(b), &b->replicas[i].devices);
        }
        storage_give(o->engine, b->charged, &b->charged);
        mem_free(b->replicas);
        if (b->parent)
                engine_object_unref(&b->parent->object);
        if (b->svm)
                engine_object_unref(&b->svm->object);
        mem_free(b);
}

/* The parameters of a new buffer; one with neither parent nor image needs only a size. */
struct buffer_params {
        uint64_t id;
        cl_mem_flags flags;
        uint64_t origin, size;
        struct buffer *parent;
        struct svm *svm;
        struct image_desc image;
        cl_uint packet_size, packets;
};

static int buffer_new(struct engine *e, const struct buffer_params *params) REQUIRES(engine_held)
{
        struct buffer *b = mem_zalloc(sizeof(*b));
        struct buffer *parent = params->parent;
        if (!b)
                return SP_E_NOMEM;
        b->object =
                (struct object){ .engine = e, .id = params->id, .refs = 1, .free = buffer_free };
        b->flags = params->flags;
        b->origin = params->origin;
        b->size = params->size;
        b->image = params->image;
        b->packet_size = params->packet_size;
        b->packets = params->packets;
        if (parent) {
                b->parent = parent;
                engine_object_ref(&parent->object);
        }
        if (params->svm) {
                b->svm = params->svm;
                engine_object_ref(&b->svm->object);
        }
        int r = engine_object_add(e, &b->object);
        if (r < 0)
                engine_object_unref(&b->object);
        return r;
}

struct buffer *engine_buffer_find(struct engine *e, uint64_t id)
{
        struct object *o = object_id_type(id) == OBJECT_BUFFER ? engine_object_find(e, id) : NULL;
        return o ? container_of(o, struct buffer, object) : NULL;
}

/* Keep the flags on how kernels use it. Flags about the host's access concern only the application
 * and the client. */
static cl_mem_flags native_flags(cl_mem_flags flags)
{
        return flags & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
}

static cl_int replica_create(struct buffer *b, unsigned domain, unsigned root,
                             struct backend_buffer **ret) REQUIRES(engine_held)
{
        struct engine *e = b->object.engine;
        struct backend_buffer *parent = NULL;
        cl_int status =
                b->parent ? engine_buffer_native(b->parent, domain, root, &parent) : CL_SUCCESS;
        if (status < 0)
                return status;
        if (engine_buffer_is_pipe(b))
                return e->be->buffer.create_pipe
                               ? e->be->buffer.create_pipe(e->backend, domain, b->packet_size,
                                                           b->packets, ret)
                               : CL_INVALID_OPERATION;
        if (engine_buffer_is_image(b))
                return e->be->buffer.create_image(e->backend, domain, native_flags(b->flags),
                                                  &b->image, parent, ret);
        if (b->svm && !b->svm->native)
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        if (b->svm)
                return e->be->svm.create_buffer(e->backend, domain, b->svm->native,
                                                native_flags(b->flags), (size_t)b->origin,
                                                (size_t)b->size, ret);
        if (!parent)
                return e->be->buffer.create(e->backend, domain, native_flags(b->flags),
                                            (size_t)b->size, ret);
        return e->be->buffer.create_sub(e->backend, parent, native_flags(b->flags),
                                        (size_t)b->origin, (size_t)b->size, ret);
}

static struct replica *replica_of(struct buffer *b, unsigned domain)
{
        if (domain >= b->replica_count && !replicas_grow((void **)&b->replicas, &b->replica_count,
                                                         domain, sizeof(struct replica)))
                return NULL;
        return &b->replicas[domain];
}

cl_int engine_buffer_charge(struct buffer *b, unsigned domain, unsigned root)
{
        if (!engine_limits_devices(b->object.engine))
                return CL_SUCCESS;
        while (b->parent)
                b = b->parent;
        struct replica *r = replica_of(b, domain);
        struct svm *s = b->svm;
        if (!r)
                return CL_OUT_OF_HOST_MEMORY;
        if (s && !s->counts)
                return CL_SUCCESS;
        return engine_storage_take_on(b->object.engine, root, s ? s->size : storage_of(b),
                                      s ? &s->devices : &r->devices)
                       ? CL_SUCCESS
                       : CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

/* Make the storage in a domain, and count it. */
static cl_int replica_make(struct buffer *b, unsigned domain, unsigned root, struct replica *r)
        REQUIRES(engine_held)
{
        struct engine *e = b->object.engine;
        cl_int status = storage_take(e, storage_of(b), &b->charged);
        if (status < 0)
                return status;
        /* The next command tries again after a failure: there may be memory by then. */
        status = replica_create(b, domain, root, &r->native);
        if (status < 0) {
                storage_give(e, storage_of(b), &b->charged);
                if (status == CL_MEM_OBJECT_ALLOCATION_FAILURE && storage_of(b)) {
                        engine_device_staging_trim(e);
                        engine_storage_full(e);
                }
        }
        return status;
}

cl_int engine_buffer_native(struct buffer *b, unsigned domain, unsigned root,
                            struct backend_buffer **ret)
{
        struct replica *r = replica_of(b, domain);
        if (!r)
                return CL_OUT_OF_HOST_MEMORY;
        if (b->object.excess)
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        cl_int status = engine_buffer_charge(b, domain, root);
        if (status >= 0 && !r->native) {
                status = replica_make(b, domain, root, r);
                if (status < 0)
                        engine_storage_give_on(b->object.engine, storage_of(b), &r->devices);
        }
        if (status < 0)
                return status;
        *ret = r->native;
        return CL_SUCCESS;
}

int engine_handle_buffer_create(void *user, const struct wire_buffer_create *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        return buffer_new(
                e, &(struct buffer_params){ .id = m->buffer, .flags = m->flags, .size = m->size });
}

int engine_handle_sub_buffer_create(void *user, const struct wire_sub_buffer_create *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct buffer *parent = engine_buffer_find(e, m->parent);
        /* Sub-buffers of sub-buffers do not exist in OpenCL. */
        if (!parent || parent->parent || engine_buffer_is_image(parent) ||
            engine_buffer_is_pipe(parent))
                return SP_E_PROTO;
        if (m->origin > parent->size || m->size > parent->size - m->origin)
                return SP_E_PROTO;
        return buffer_new(e, &(struct buffer_params){ .id = m->buffer,
                                                      .flags = m->flags,
                                                      .origin = m->origin,
                                                      .size = m->size,
                                                      .parent = parent });
}

/* A 1D image of a buffer, a 2D image in a buffer, or a 2D image with the pixels of another one. */
static bool parent_fits(const struct image_desc *d, const struct buffer *parent)
{
        if (!parent)
                return d->type != CL_MEM_OBJECT_IMAGE1D_BUFFER && !d->row_pitch;
        if (!engine_buffer_is_image(parent)) {
                bool pitched = d->type == CL_MEM_OBJECT_IMAGE2D && d->row_pitch &&
                               d->row_pitch / image_pixel_size(d->order, d->data_type) >= d->width;
                bool line = d->type == CL_MEM_OBJECT_IMAGE1D_BUFFER && !d->row_pitch;
                size_t span = image_span(d);
                return (pitched || line) && span && span <= parent->size;
        }
        /* Their number bounds the depth of calls that go from parent to parent. */
        unsigned parents = 0;
        for (const struct buffer *b = parent; b && engine_buffer_is_image(b); b = b->parent)
                parents++;
        return parents <= IMAGE_PARENTS_MAX && d->type == CL_MEM_OBJECT_IMAGE2D &&
               parent->image.type == d->type && parent->image.width == d->width &&
               parent->image.height == d->height &&
               image_pixel_size(parent->image.order, parent->image.data_type) ==
                       image_pixel_size(d->order, d->data_type);
}

int engine_handle_pipe_create(void *user, const struct wire_pipe_create *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        return buffer_new(e, &(struct buffer_params){ .id = m->pipe,
                                                      .flags = m->flags,
                                                      .packet_size = (cl_uint)m->packet_size,
                                                      .packets = (cl_uint)m->packets });
}

int engine_handle_image_create(void *user, const struct wire_image_create *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct buffer *parent = m->parent ? engine_buffer_find(e, m->parent) : NULL;
        const struct image_desc d = {
                .type = (uint32_t)m->type,
                .order = (uint32_t)m->order,
                .data_type = (uint32_t)m->data_type,
                .width = (size_t)m->width,
                .height = (size_t)m->height,
                .depth = (size_t)m->depth,
                .array_size = (size_t)m->array_size,
                .row_pitch = (size_t)m->row_pitch,
        };
        size_t all[3];
        if ((m->parent && (!parent || engine_buffer_is_pipe(parent))) || !image_is_valid(&d) ||
            !parent_fits(&d, parent))
                return SP_E_PROTO;
        image_region(&d, all);
        if (!image_bytes(&d, all))
                return SP_E_PROTO;
        return buffer_new(
                e, &(struct buffer_params){
                           .id = m->image, .flags = m->flags, .parent = parent, .image = d });
}

/* ---- shared virtual memory ------------------------------------------------------------------ */

static void svm_free(struct object *o) REQUIRES(engine_held)
{
        struct svm *s = container_of(o, struct svm, object);
        if (s->native)
                o->engine->be->svm.release(s->native);
        storage_give(o->engine, s->charged, &s->charged);
        engine_storage_give_on(o->engine, s->size, &s->devices);
        mem_free(s);
}

/* Count an allocation on each device of the native context: kernels on all of them may use its addresses. */
static bool svm_charge(struct svm *s, unsigned device) REQUIRES(engine_held)
{
        struct engine *e = s->object.engine;
        unsigned root = engine_device_root(e, device);
        unsigned domain = e->be->device.domain(e->backend, device);
        for (unsigned i = 0; i < e->device_count && engine_limits_devices(e); i++)
                if ((i == root || e->be->device.domain(e->backend, i) == domain) &&
                    !engine_storage_take_on(e, i, s->size, &s->devices))
                        return false;
        return true;
}

static int svm_new(struct engine *e, const struct wire_svm_create *m, cl_int *ret_status,
                   uint64_t *ret_address) REQUIRES(engine_held)
{
        struct svm *s = mem_zalloc(sizeof(*s));
        if (!s)
                return SP_E_NOMEM;
        s->object = (struct object){ .engine = e, .id = m->svm, .refs = 1, .free = svm_free };
        s->size = m->size;
        s->counts = true;
        *ret_status = storage_take(e, m->size, &s->charged);
        if (*ret_status == CL_SUCCESS && !svm_charge(s, (unsigned)m->device))
                *ret_status = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        if (*ret_status < 0)
                engine_storage_report(e);
        if (engine_limit_exceeded(e, LIMIT_OBJECTS, e->objects.table.count, 1))
                *ret_status = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        if (*ret_status == CL_SUCCESS)
                *ret_status = e->be->svm.create(e->backend, (unsigned)m->device, m->address,
                                                (size_t)m->size, false, &s->native, ret_address);
        int r = *ret_status < 0 ? 0 : engine_object_add(e, &s->object);
        if (*ret_status < 0 || r < 0)
                engine_object_unref(&s->object);
        return r;
}

int engine_handle_svm_create(void *user, const struct wire_svm_create *m)
{
        struct peer *peer = user;
        struct engine *e = peer->engine;
        uint64_t address = 0;
        cl_int status;
        if (!engine_device_valid(e, m->device) || m->size % 65536 || m->address % 65536)
                return SP_E_PROTO;
        int r = svm_new(e, m, &status, &address);
        if (r < 0)
                return r;
        peer_send(peer, svm_created, .request = m->request, .status = status,
                  .address = status < 0 ? 0 : address);
        return 0;
}

/* Map the arena and make it native. On failure s->native stays NULL, and buffers in it fail later. */
static void storage_map(struct engine *e, const struct wire_storage_create *m, struct svm *s)
{
        const struct engine_ops *ops = e->params.ops;
        size_t size = (size_t)m->size;
        uint64_t address, same;
        if (!ops->map_arena || ops->map_arena(e->params.user, m->offset, size, &address) < 0)
                return;
        if (e->be->svm.create(e->backend, (unsigned)m->device, address, size, true, &s->native,
                              &same) < 0)
                vm_unmap(address, size);
}

int engine_handle_storage_create(void *user, const struct wire_storage_create *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        if (!engine_device_valid(e, m->device) || m->size % VM_GRANULE || m->offset % VM_GRANULE)
                return SP_E_PROTO;
        struct svm *s = mem_zalloc(sizeof(*s));
        if (!s)
                return SP_E_NOMEM;
        s->object = (struct object){ .engine = e, .id = m->svm, .refs = 1, .free = svm_free };
        s->size = m->size;
        int r = engine_object_add(e, &s->object);
        if (r < 0) {
                engine_object_unref(&s->object);
                return r;
        }
        if (!s->object.excess)
                storage_map(e, m, s);
        return 0;
}

int engine_handle_svm_buffer_create(void *user, const struct wire_svm_buffer_create *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct object *o = engine_object_find(e, m->svm);
        if (!o)
                return SP_E_PROTO;
        struct svm *s = container_of(o, struct svm, object);
        if (m->offset > s->size || m->size > s->size - m->offset)
                return SP_E_PROTO;
        return buffer_new(e, &(struct buffer_params){ .id = m->buffer,
                                                      .flags = m->flags,
                                                      .origin = m->offset,
                                                      .size = m->size,
                                                      .svm = s });
}

/* ---- samplers ------------------------------------------------------------------------------- */

static void sampler_free(struct object *o)
{
        struct sampler *s = container_of(o, struct sampler, object);
        for (size_t i = 0; i < s->replica_count; i++)
                if (s->replicas[i].native)
                        o->engine->be->sampler.release(s->replicas[i].native);
        mem_free(s->replicas);
        mem_free(s);
}

struct sampler *engine_sampler_find(struct engine *e, uint64_t id)
{
        struct object *o = object_id_type(id) == OBJECT_SAMPLER ? engine_object_find(e, id) : NULL;
        return o ? container_of(o, struct sampler, object) : NULL;
}

cl_int engine_sampler_native(struct sampler *s, unsigned domain, struct backend_sampler **ret)
{
        struct engine *e = s->object.engine;
        if (domain >= s->replica_count && !replicas_grow((void **)&s->replicas, &s->replica_count,
                                                         domain, sizeof(struct sampler_replica)))
                return CL_OUT_OF_HOST_MEMORY;
        struct sampler_replica *r = &s->replicas[domain];
        if (s->object.excess)
                r->status = CL_OUT_OF_RESOURCES;
        if (!r->native && r->status == CL_SUCCESS)
                r->status = e->be->sampler.create(e->backend, domain, &s->desc, &r->native);
        if (r->status < 0)
                return r->status;
        *ret = r->native;
        return CL_SUCCESS;
}

int engine_handle_sampler_create(void *user, const struct wire_sampler_create *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct sampler *s = mem_zalloc(sizeof(*s));
        if (!s)
                return SP_E_NOMEM;
        s->object =
                (struct object){ .engine = e, .id = m->sampler, .refs = 1, .free = sampler_free };
        s->desc = (struct sampler_desc){ m->normalized, (uint32_t)m->addressing,
                                         (uint32_t)m->filter };
        int r = engine_object_add(e, &s->object);
        if (r < 0)
                engine_object_unref(&s->object);
        return r;
}

/* ---- queues --------------------------------------------------------------------------------- */

static void queue_free(struct object *o) REQUIRES(engine_held)
{
        struct queue *q = container_of(o, struct queue, object);
        list_remove(&q->dirty);
        mem_free(q->untracked.entries);
        if (q->native)
                o->engine->be->queue.release(q->native);
        if (q->chain_queue)
                engine_object_unref(&q->chain_queue->object);
        engine_device_unref(o->engine, q->sub);
        mem_free(q);
}

static struct queue *find_queue(struct engine *e, uint64_t id, bool on_device)
{
        struct object *o = engine_object_find(e, id);
        struct queue *q = o ? container_of(o, struct queue, object) : NULL;
        return q && q->on_device == on_device ? q : NULL;
}

struct queue *engine_queue_find(struct engine *e, uint64_t id)
{
        return find_queue(e, id, false);
}

struct queue *engine_device_queue_find(struct engine *e, uint64_t id)
{
        return find_queue(e, id, true);
}

void engine_queue_dirty(struct queue *q)
{
        if (list_empty(&q->dirty))
                list_append(&q->object.engine->objects.dirty_queues, &q->dirty);
}

static struct queue *queue_alloc(struct engine *e, uint64_t id, unsigned device, unsigned root)
{
        struct queue *q = mem_zalloc(sizeof(*q));
        if (!q)
                return NULL;
        q->object = (struct object){ .engine = e, .id = id, .refs = 1, .free = queue_free };
        q->device = device;
        q->root = root;
        q->domain = e->be->device.domain(e->backend, q->device);
        list_init(&q->held);
        list_init(&q->barriers);
        list_init(&q->in_flight);
        list_init(&q->fences);
        list_init(&q->order);
        list_init(&q->dirty);
        list_init(&q->untracked.link);
        return q;
}

int engine_queue_new(struct engine *e, uint64_t id, uint64_t device, struct queue **ret)
{
        if (!engine_device_valid(e, device))
                return SP_E_PROTO;
        struct queue *q =
                queue_alloc(e, id, (unsigned)device, engine_device_root(e, (unsigned)device));
        if (!q)
                return SP_E_NOMEM;
        int r = engine_object_add(e, &q->object);
        if (r < 0) {
                mem_free(q);
                return r;
        }
        q->sub = engine_device_ref(e, device);
        *ret = q;
        return 0;
}

int engine_queue_like(struct queue *q, struct queue **ret)
{
        struct engine *e = q->object.engine;
        struct queue *like = queue_alloc(e, q->object.id, q->device, q->root);
        if (!like)
                return SP_E_NOMEM;
        like->sub = engine_device_share(q->sub);
        *ret = like;
        return 0;
}

int engine_handle_queue_create(void *user, const struct wire_queue_create *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct queue *q;
        int r = engine_queue_new(e, m->queue, m->device, &q);
        if (r < 0)
                return r;
        if (q->object.excess) {
                q->on_device = m->properties & CL_QUEUE_ON_DEVICE;
                q->in_order = !(m->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
                q->status = CL_OUT_OF_RESOURCES;
                return 0;
        }
        if (m->properties & CL_QUEUE_ON_DEVICE) {
                q->on_device = true;
                q->status = CL_INVALID_QUEUE_PROPERTIES;
                if (e->be->device_queue.create)
                        q->status = e->be->device_queue.create(e->backend, q->device, m->properties,
                                                               (cl_uint)m->size, &q->native);
                return 0;
        }
        q->profiling = (m->properties & CL_QUEUE_PROFILING_ENABLE) || engine_has_observers(e);
        q->in_order = !(m->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        cl_command_queue_properties props =
                (m->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) |
                (q->profiling ? CL_QUEUE_PROFILING_ENABLE : 0);
        q->status = e->be->queue.create(e->backend, q->device, props, &q->native);
        if (q->status == CL_INVALID_QUEUE_PROPERTIES && !q->in_order) {
                /* Any order works here, because a submitted command depends on earlier ones only. */
                props &= ~(cl_command_queue_properties)CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
                q->status = e->be->queue.create(e->backend, q->device, props, &q->native);
        }
        q->failure_stays =
                q->native && e->be->queue.failure_stays && e->be->queue.failure_stays(q->native);
        q->marker_max = q->native && e->be->queue.marker_max ? e->be->queue.marker_max(q->native)
                                                             : SIZE_MAX;
        return 0;
}

int engine_handle_queue_set_default(void *user, const struct wire_queue_set_default *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct queue *q = engine_device_queue_find(e, m->queue);
        if (!q)
                return SP_E_PROTO;
        /* No error is sent: kernels that need a default queue and have none fail. */
        if (q->native && e->be->device_queue.set_default(q->native) < 0)
                log_warn("engine", "the default queue of device %u can't be replaced", q->device);
        return 0;
}
