#include "engine/program/program.h"

#include "base/mem.h"
#include "engine/device.h"
#include "engine/program/cached_build.h"

struct program_replica *engine_program_replica(struct program *p, unsigned domain)
{
        for (size_t i = 0; i < p->replica_count; i++)
                if (p->replicas[i].domain == domain)
                        return &p->replicas[i];
        return NULL;
}

void engine_program_replace(struct program *p, unsigned domain, struct backend_program *native,
                            struct build_input *cached)
{
        struct program_replica *r = engine_program_replica(p, domain);
        if (r->native)
                p->object.engine->be->program.release(r->native);
        if (r->cached) {
                build_input_fini(r->cached);
                mem_free(r->cached);
        }
        buf_fini(&r->binaries);
        r->native = native;
        r->cached = cached;
        r->named = false;
}

static void program_free(struct object *o) REQUIRES(engine_held)
{
        struct program *p = container_of(o, struct program, object);
        o->engine->objects.programs--;
        for (size_t i = 0; i < p->replica_count; i++)
                engine_program_replace(p, p->replicas[i].domain, NULL, NULL);
        mem_free(p->replicas);
        mem_free(p->devices);
        content_unref(p->parts);
        mem_free(p);
}

struct program *engine_program_find(struct engine *e, uint64_t id)
{
        struct object *o = engine_object_find(e, id);
        return o ? container_of(o, struct program, object) : NULL;
}

bool engine_program_has(const struct program *p, uint64_t device)
{
        for (size_t i = 0; i < p->device_count; i++)
                if (p->devices[i] == device)
                        return true;
        return false;
}

/* Make the native program for the devices of one domain, from binaries with those devices' parts. */
static cl_int native_create(struct program *p, struct program_replica *replica)
{
        struct engine *e = p->object.engine;
        unsigned domain = replica->domain;
        if (p->object.excess)
                return CL_OUT_OF_RESOURCES;
        /* The link made no program here. */
        if (p->kind == PROGRAM_KIND_LINKED)
                return CL_INVALID_PROGRAM_EXECUTABLE;
        if (!engine_program_complete(p))
                return CL_INVALID_PROGRAM_EXECUTABLE;
        struct bytes parts = content_bytes(p->parts);
        struct buf own = { 0 };
        struct info_entry part;
        size_t count = 0;
        unsigned *devices = mem_alloc(p->device_count * sizeof(*devices));
        int r = devices ? 0 : SP_E_NOMEM;
        for (size_t i = 0; !r && i < p->device_count; i++) {
                bool here = e->be->device.domain(e->backend, p->devices[i]) == domain;
                if (here)
                        devices[count++] = p->devices[i];
                if (p->kind == PROGRAM_KIND_BINARY && info_next(&parts, &part) && here)
                        r = info_put(&own, part.key, part.value.data, part.value.size);
        }
        cl_int status = CL_OUT_OF_HOST_MEMORY;
        if (!r)
                status = e->be->program.create(
                        e->backend, domain, p->kind, devices, count,
                        p->kind == PROGRAM_KIND_BINARY ? bytes_of(own.data, own.size) : parts,
                        &replica->native);
        buf_fini(&own);
        mem_free(devices);
        return status;
}

cl_int engine_program_native(struct program *p, unsigned domain, struct backend_program **ret)
{
        struct program_replica *r = engine_program_replica(p, domain);
        if (!r)
                return CL_INVALID_DEVICE;
        if (!r->native) {
                cl_int status = native_create(p, r);
                if (status < 0)
                        return status;
        }
        *ret = r->native;
        return CL_SUCCESS;
}

/* ---- messages ------------------------------------------------------------------------------- */

/* Are there as many parts as the kind wants, and nothing else? */
static bool parts_valid(const struct program *p, struct bytes parts)
{
        struct info_entry part;
        size_t count = 0;
        if (info_check(parts) < 0)
                return false;
        while (info_next(&parts, &part)) {
                if (part.key != INFO_PART)
                        return false;
                count++;
        }
        return count == (p->kind == PROGRAM_KIND_BINARY ? p->device_count : 1);
}

int engine_content_take(struct engine *e, struct bytes data, struct bytes digest,
                        uint8_t ret_digest[BLAKE2B_SIZE], struct content **ret)
{
        if (!digest.size) {
                int r = content_put(&e->programs.contents, data, ret);
                if (!r)
                        memcpy(ret_digest, (*ret)->digest, BLAKE2B_SIZE);
                return r;
        }
        if (digest.size != BLAKE2B_SIZE || data.size)
                return SP_E_PROTO;
        memcpy(ret_digest, digest.data, BLAKE2B_SIZE);
        *ret = content_get(&e->programs.contents, ret_digest);
        return 0;
}

bool engine_program_complete(struct program *p)
{
        if (!p->parts)
                p->parts = content_get(&p->object.engine->programs.contents, p->digest);
        /* Content that can't be a program counts as absent. */
        if (p->parts && !parts_valid(p, content_bytes(p->parts))) {
                content_unref(p->parts);
                p->parts = NULL;
        }
        return p->parts;
}

/* May the program use printf? If its source does not, no; for binaries, or a source that is not
 * here, it is unknown, so yes. */
static bool may_print(const struct program *p)
{
        return p->kind == PROGRAM_KIND_BINARY || p->kind == PROGRAM_KIND_IL || !p->parts ||
               (p->kind == PROGRAM_KIND_SOURCE &&
                memmem(p->parts->data.data, p->parts->data.size, "printf", 6));
}

static int add_device(struct program *p, uint64_t device)
{
        struct engine *e = p->object.engine;
        if (!engine_device_valid(e, device) || engine_program_has(p, device))
                return SP_E_PROTO;
        p->devices[p->device_count++] = (unsigned)device;
        unsigned domain = e->be->device.domain(e->backend, (unsigned)device);
        if (!engine_program_replica(p, domain))
                p->replicas[p->replica_count++].domain = domain;
        return 0;
}

int engine_program_new(struct engine *e, uint64_t id, unsigned kind, struct wire_u64s devices,
                       struct program **ret)
{
        struct program *p = mem_zalloc(sizeof(*p));
        if (!p)
                return SP_E_NOMEM;
        p->object = (struct object){ .engine = e, .id = id, .refs = 1, .free = program_free };
        e->objects.programs++;
        p->kind = kind;
        list_init(&p->questions);
        p->devices = mem_alloc(devices.count * sizeof(*p->devices));
        p->replicas = mem_zalloc(devices.count * sizeof(*p->replicas));
        int r = p->devices && p->replicas ? 0 : SP_E_NOMEM;
        for (size_t i = 0; !r && i < devices.count; i++)
                r = add_device(p, wire_u64s_at(devices, i));
        if (!r)
                r = engine_object_add(e, &p->object);
        if (engine_limit_exceeded(e, LIMIT_PROGRAMS, e->objects.programs, 0))
                p->object.excess = true;
        if (r < 0)
                engine_object_unref(&p->object);
        else
                *ret = p;
        return r;
}

int engine_handle_program_create(void *user, const struct wire_program_create *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        if (!m->devices.count)
                return SP_E_PROTO;
        struct program *p;
        int r = engine_program_new(e, m->program, (unsigned)m->kind, m->devices, &p);
        if (!r)
                r = engine_content_take(e, m->parts, m->digest, p->digest, &p->parts);
        if (r < 0)
                return r;
        if (p->parts && !engine_program_complete(p))
                return SP_E_PROTO;
        e->programs.prints |= may_print(p);
        return 0;
}

int engine_handle_content(void *user, const struct wire_content *m)
{
        struct content *c;
        int r = content_put(&((struct peer *)user)->engine->programs.contents, m->data, &c);
        if (!r)
                content_unref(c);
        return r;
}

static cl_int put_binaries(struct program *p, struct wire_u64s devices, struct buf *out)
{
        struct engine *e = p->object.engine;
        if (p->building)
                return CL_INVALID_OPERATION;
        for (size_t i = 0; i < devices.count; i++) {
                uint64_t device = wire_u64s_at(devices, i);
                struct backend_program *native;
                if (!engine_program_has(p, device))
                        return CL_INVALID_DEVICE;
                unsigned domain = e->be->device.domain(e->backend, (unsigned)device);
                const struct program_replica *r = engine_program_replica(p, domain);
                cl_int status = CL_SUCCESS;
                if (r->binaries.size)
                        status = cached_build_binary(&r->binaries, (unsigned)device, out);
                else
                        status = engine_program_native(p, domain, &native);
                if (!status && !r->binaries.size)
                        status = e->be->program.binary(native, (unsigned)device, out);
                if (status < 0)
                        return status;
                if (out->size > WIRE_BLOB_MAX)
                        return CL_OUT_OF_RESOURCES;
        }
        return CL_SUCCESS;
}

int engine_handle_program_binaries_query(void *user, const struct wire_program_binaries_query *m)
{
        struct peer *peer = user;
        struct program *p = engine_program_find(peer->engine, m->program);
        if (!p)
                return SP_E_PROTO;
        struct buf out = { 0 };
        cl_int status = put_binaries(p, m->devices, &out);
        peer_send(peer, program_binaries, .request = m->request, .status = status,
                  .parts = bytes_of(out.data, status < 0 ? 0 : out.size));
        buf_fini(&out);
        return 0;
}

static int inspect(struct program *p, uint64_t device, struct buf *out)
{
        struct engine *e = p->object.engine;
        struct backend_program *native;
        uint8_t part[8];
        unsigned domain = e->be->device.domain(e->backend, (unsigned)device);
        cl_int status =
                p->building ? CL_INVALID_OPERATION : engine_program_native(p, domain, &native);
        cl_program_binary_type type = CL_PROGRAM_BINARY_TYPE_NONE;
        if (status >= 0)
                type = e->be->program.type ? e->be->program.type(native, (unsigned)device)
                                           : CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
        bytes_put_u32(part, (uint32_t)status);
        bytes_put_u32(part + 4, type);
        return info_put(out, INFO_PART, part, sizeof(part));
}

int engine_handle_program_inspect(void *user, const struct wire_program_inspect *m)
{
        struct peer *peer = user;
        struct program *p = engine_program_find(peer->engine, m->program);
        if (!p || p->kind != PROGRAM_KIND_BINARY)
                return SP_E_PROTO;
        struct buf out = { 0 };
        int r = 0;
        for (size_t i = 0; i < m->devices.count && !r; i++) {
                uint64_t device = wire_u64s_at(m->devices, i);
                r = engine_program_has(p, device) ? inspect(p, device, &out) : SP_E_PROTO;
        }
        if (r != SP_E_PROTO)
                peer_send(peer, program_inspected, .request = m->request, .status = r,
                          .parts = bytes_of(out.data, r < 0 ? 0 : out.size));
        buf_fini(&out);
        return r == SP_E_PROTO ? r : 0;
}
