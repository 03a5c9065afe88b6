#include "core/program.h"

#include "base/mem.h"
#include "core/binary.h"
#include "core/build.h"
#include "core/context.h"
#include "core/server.h"
#include "proto/info.h"

static void params_free(const struct program_params *params)
{
        mem_free(params->source);
        mem_free(params->il);
        for (cl_uint i = 0; params->binaries && i < params->device_count; i++)
                mem_free((void *)(uintptr_t)params->binaries[i].data);
        mem_free(params->binaries);
        mem_free(params->kernel_names);
}

int program_new(cl_context x, const struct program_params *params, cl_program *ret)
{
        cl_program p = mem_zalloc(sizeof(*p));
        cl_device_id *devices =
                mem_dup(params->devices, params->device_count * sizeof(*params->devices));
        if (!p || !devices) {
                params_free(params);
                mem_free(devices);
                mem_free(p);
                return SP_E_NOMEM;
        }
        for (cl_uint i = 0; i < params->device_count; i++)
                devices[i] = context_device(x, devices[i]);
        handle_init(&p->h, HANDLE_PROGRAM);
        p->context = x;
        context_hold(x);
        p->id = client_new_id(x->client, OBJECT_PROGRAM);
        p->devices = devices;
        p->device_count = params->device_count;
        p->kind = params->kind;
        p->source = params->source;
        p->source_size = params->source_size;
        p->il = params->il;
        p->il_size = params->il_size;
        p->binaries = params->binaries;
        p->kernel_names_given = params->kernel_names;
        *ret = p;
        return 0;
}

void program_drop_binaries(cl_program p)
{
        for (cl_uint i = 0; p->executables && i < p->device_count; i++)
                mem_free((void *)(uintptr_t)p->executables[i].data);
        mem_free(p->executables);
        p->executables = NULL;
}

void program_undeclare(cl_program p)
{
        for (cl_uint i = 0; i < p->device_count; i++) {
                struct server *s = p->devices[i]->server;
                uint64_t bit = (uint64_t)1 << server_index(s);
                struct session *session = server_session(s);
                /* Without memory the server keeps it until the session ends. */
                if ((p->declared & bit) && session &&
                    session_send(session, release, .object = p->id) == 0)
                        server_kick(s);
                p->declared &= ~bit;
        }
}

void program_hold(cl_program p)
{
        atomic_fetch_add(&p->h.holds, 1);
}

void program_unhold(cl_program p)
{
        if (atomic_fetch_sub(&p->h.holds, 1) != 1)
                return;
        program_undeclare(p);
        program_build_unhold(p->build);
        program_drop_binaries(p);
        buf_fini(&p->sent_source);
        buf_fini(&p->constants);
        params_free(&(struct program_params){
                .device_count = p->device_count,
                .source = p->source,
                .il = p->il,
                .binaries = p->binaries,
                .kernel_names = p->kernel_names_given,
        });
        context_unhold(p->context);
        mem_free(p->devices);
        handle_free(&p->h, sizeof(*p));
}

int program_device(const struct _cl_program *p, cl_device_id d)
{
        for (cl_uint i = 0; i < p->device_count; i++) {
                if (p->devices[i]->shown == d->shown)
                        return (int)i;
        }
        return -1;
}

bool program_is_built(const struct _cl_program *p)
{
        for (cl_uint i = 0; p->build && !p->job && i < p->device_count; i++) {
                const struct device_build *d = &p->build->devices[i];
                if (d->status == CL_BUILD_SUCCESS &&
                    d->type != CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT &&
                    d->type != CL_PROGRAM_BINARY_TYPE_LIBRARY)
                        return true;
        }
        return false;
}

cl_program_binary_type program_binary_type(const struct _cl_program *p, cl_uint i)
{
        struct bytes native;
        cl_program_binary_type type = CL_PROGRAM_BINARY_TYPE_NONE;
        if (p->build && p->build->devices[i].status != CL_BUILD_NONE)
                return p->build->devices[i].type;
        /* Of a device that was not built, what its given binary is. */
        if (p->binaries && binary_unwrap(p->devices[i], p->binaries[i], &native, &type) < 0)
                return CL_PROGRAM_BINARY_TYPE_NONE;
        return type;
}

int program_constant(cl_program p, cl_uint id, struct bytes value)
{
        /* The last value of an id counts. */
        struct buf all = { 0 }, entry = { 0 };
        struct bytes old = bytes_of(p->constants.data, p->constants.size);
        struct info_entry e;
        int r = 0;
        while (!r && info_next(&old, &e)) {
                if (bytes_get_u64(e.value.data) != id)
                        r = info_put(&all, e.key, e.value.data, e.value.size);
        }
        if (!r)
                r = buf_put_u64(&entry, id);
        if (!r)
                r = buf_put(&entry, value.data, value.size);
        if (!r)
                r = info_put(&all, INFO_CONSTANT, entry.data, entry.size);
        buf_fini(&entry);
        if (r < 0) {
                buf_fini(&all);
                return r;
        }
        buf_fini(&p->constants);
        p->constants = all;
        return 0;
}

/* ---- declaring ------------------------------------------------------------------------------ */

/* The parts of program_create for a server; numbers of its devices. */
static int put_parts(cl_program p, const struct server *s, struct buf *parts, struct buf *devices)
{
        int r = 0;
        for (cl_uint i = 0; i < p->device_count && !r; i++) {
                cl_device_id d = p->devices[i];
                if (d->server != s)
                        continue;
                r = buf_put_u64(devices, d->index);
                if (r < 0 || p->kind != PROGRAM_BINARY)
                        continue;
                struct bytes native;
                cl_program_binary_type type;
                r = binary_unwrap(d, p->binaries[i], &native, &type);
                if (!r)
                        r = info_put(parts, INFO_PART, native.data, native.size);
        }
        if (r < 0)
                return r;
        switch (p->kind) {
        case PROGRAM_SOURCE:
                return p->sent_source.size ? info_put(parts, INFO_PART, p->sent_source.data,
                                                      p->sent_source.size)
                                           : info_put(parts, INFO_PART, p->source, p->source_size);
        case PROGRAM_IL:
                return info_put(parts, INFO_PART, p->il, p->il_size);
        case PROGRAM_BUILT_IN:
                return info_put(parts, INFO_PART, p->kernel_names_given,
                                strlen(p->kernel_names_given));
        default:
                return 0;
        }
}

int program_declare(cl_program p, struct server *s, enum content_mode mode)
{
        uint64_t bit = (uint64_t)1 << server_index(s);
        struct session *session = server_session(s);
        if (!session)
                return SP_E_GONE;
        bool again = p->declared & bit;
        if (again && (mode != CONTENT_SEND || p->kind == PROGRAM_LINKED))
                return 0;
        /* It was linked nowhere but on the servers that know it. */
        if (p->kind == PROGRAM_LINKED)
                return CL_INVALID_PROGRAM_EXECUTABLE;
        struct buf parts = { 0 }, devices = { 0 };
        struct content_name name = { 0 };
        int r = put_parts(p, s, &parts, &devices);
        if (!r && parts.size > WIRE_BLOB_MAX)
                r = SP_E_LIMIT;
        if (!r)
                r = content_name(s, bytes_of(parts.data, parts.size), mode, &name);
        if (!r && !again)
                r = session_send(session, program_create, .program = p->id, .kind = p->kind,
                                 .devices = { (uint64_t *)(void *)devices.data, devices.size / 8 },
                                 .parts = name.data, .digest = name.digest);
        if (!r)
                p->declared |= bit;
        buf_fini(&parts);
        buf_fini(&devices);
        return r;
}

/* ---- binaries ------------------------------------------------------------------------------- */

/* Wrap what a server sent; `want` names the devices that were asked for. */
static int take_binaries(cl_program p, const struct program_build *b, const struct server *s,
                         const bool *want, struct bytes parts, struct bytes *all)
{
        struct info_entry e;
        for (cl_uint i = 0; i < p->device_count; i++) {
                if (!want[i] || p->devices[i]->server != s)
                        continue;
                if (!info_next(&parts, &e) || e.key != INFO_PART)
                        return SP_E_PROTO;
                struct buf container = { 0 };
                int r = e.value.size ? binary_wrap(p->devices[i], b->devices[i].type, e.value,
                                                   &container)
                                     : 0;
                if (r < 0)
                        return r;
                all[i] = bytes_of(container.data, container.size);
        }
        return 0;
}

static int fetch_from(cl_program p, const struct program_build *b, struct server *s,
                      const bool *want, struct bytes *all)
{
        struct client *c = p->context->client;
        struct session *session = server_session(s);
        struct request request = { 0 };
        struct buf devices = { 0 };
        int r = session ? 0 : SP_E_GONE;
        for (cl_uint i = 0; i < p->device_count && !r; i++) {
                if (want[i] && p->devices[i]->server == s)
                        r = buf_put_u64(&devices, p->devices[i]->index);
        }
        if (!r)
                r = request_begin(c, s, &request);
        if (!r) {
                r = session_send(session, program_binaries_query, .request = request.id,
                                 .program = p->id,
                                 .devices = { (uint64_t *)(void *)devices.data, devices.size / 8 });
                if (r < 0)
                        request_done(c, request.id, status_to_cl(r), bytes_of(NULL, 0));
                request_wait(c, &request);
                r = request.status;
        }
        /* While it waited, another thread may have built the program anew. */
        if (!r && (p->job || p->build != b))
                r = CL_INVALID_OPERATION;
        if (!r)
                r = take_binaries(p, b, s, want, bytes_of(request.info.data, request.info.size),
                                  all);
        buf_fini(&request.info);
        buf_fini(&devices);
        return r;
}

int program_fetch_binaries(cl_program p)
{
        if (p->executables || !p->build || p->job)
                return 0;
        struct program_build *b = p->build;
        struct bytes *all = mem_zalloc(p->device_count * sizeof(*all));
        bool *want = mem_zalloc(p->device_count * sizeof(*want));
        int r = all && want ? 0 : SP_E_NOMEM;
        program_hold(p);
        program_build_hold(b);
        for (cl_uint i = 0; i < p->device_count && !r; i++)
                want[i] = b->devices[i].status == CL_BUILD_SUCCESS;
        for (cl_uint i = 0; i < p->device_count && !r; i++) {
                bool asked = !want[i];
                for (cl_uint k = 0; k < i && !asked; k++)
                        asked = want[k] && p->devices[k]->server == p->devices[i]->server;
                if (!asked)
                        r = fetch_from(p, b, p->devices[i]->server, want, all);
        }
        if (!r && !p->executables && p->build == b)
                p->executables = steal(all);
        for (cl_uint i = 0; all && i < p->device_count; i++)
                mem_free((void *)(uintptr_t)all[i].data);
        mem_free(all);
        mem_free(want);
        program_build_unhold(b);
        program_unhold(p);
        return r;
}
