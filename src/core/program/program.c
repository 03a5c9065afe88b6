#include "core/program/program.h"

#include "base/mem.h"
#include "core/client.h"
#include "core/context.h"
#include "core/handle.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "core/program/build.h"
#include "core/program/content.h"
#include "core/program/job.h"
#include "core/status.h"
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

bool program_text_prints(struct bytes text)
{
        return text.size && memmem(text.data, text.size, "print", 5);
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
        p->prints = p->kind == PROGRAM_IL || p->kind == PROGRAM_BINARY ||
                    program_text_prints(bytes_of(p->source, p->source_size));
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
                struct session *session = server_session(s);
                /* Without memory the server keeps it until the session ends. */
                if (server_set_has(&p->declared, s->index) && session &&
                    session_send(session, release, .object = p->id) == 0)
                        server_kick(s);
                server_set_remove(&p->declared, s->index);
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
        mem_free(p->binary_types);
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
        if (p->build && p->build->devices[i].status != CL_BUILD_NONE)
                return p->build->devices[i].type;
        /* The device was not built: the type of the binary that the application gave. */
        return p->binary_types ? p->binary_types[i] : CL_PROGRAM_BINARY_TYPE_NONE;
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
                r = info_put(parts, INFO_PART, p->binaries[i].data, p->binaries[i].size);
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
        struct session *session = server_session(s);
        if (!session)
                return SP_E_GONE;
        bool again = server_set_has(&p->declared, s->index);
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
                server_set_add(&p->declared, s->index);
        buf_fini(&parts);
        buf_fini(&devices);
        return r;
}

/* ---- binaries ------------------------------------------------------------------------------- */

enum question { BINARIES, INSPECT };

/* Ask a server about those of its devices that `want` names. */
static int ask(cl_program p, struct server *s, enum question question, const bool *want,
               struct buf *ret) REQUIRES(client_held)
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
                const struct wire_u64s list = { (uint64_t *)(void *)devices.data,
                                                devices.size / 8 };
                if (question == BINARIES)
                        r = session_send(session, program_binaries_query, .request = request.id,
                                         .program = p->id, .devices = list);
                else
                        r = session_send(session, program_inspect, .request = request.id,
                                         .program = p->id, .devices = list);
                if (r < 0)
                        request_done(c, request.id, status_to_cl(r), bytes_of(NULL, 0));
                request_wait(c, &request);
                r = request.status;
        }
        *ret = request.info;
        buf_fini(&devices);
        return r;
}

/* Take over a server's answer: one part for each device that was asked for. */
typedef int (*take_fn)(void *user, cl_uint device, struct bytes part);

static int take_parts(cl_program p, const struct server *s, const bool *want, struct buf *info,
                      take_fn take, void *user)
{
        struct bytes parts = bytes_of(info->data, info->size);
        struct info_entry e;
        int r = 0;
        for (cl_uint i = 0; i < p->device_count && !r; i++) {
                if (!want[i] || p->devices[i]->server != s)
                        continue;
                r = info_next(&parts, &e) && e.key == INFO_PART ? take(user, i, e.value)
                                                                : SP_E_PROTO;
        }
        return r;
}

/* Each server is asked once, about all of its devices. */
static bool is_first_of_server(const struct _cl_program *p, const bool *want, cl_uint i)
{
        for (cl_uint k = 0; k < i; k++)
                if (want[k] && p->devices[k]->server == p->devices[i]->server)
                        return false;
        return want[i];
}

/* For the time of a question the program and its build stay. */
static int ask_all(cl_program p, enum question question, const bool *want, take_fn take, void *user)
        REQUIRES(client_held)
{
        const struct program_build *b = p->build;
        int r = 0;
        for (cl_uint i = 0; i < p->device_count && !r; i++) {
                struct buf info = { 0 };
                if (!is_first_of_server(p, want, i))
                        continue;
                r = ask(p, p->devices[i]->server, question, want, &info);
                /* While it waited, another thread may have built the program anew. */
                if (!r && (p->job || p->build != b))
                        r = CL_INVALID_OPERATION;
                if (!r)
                        r = take_parts(p, p->devices[i]->server, want, &info, take, user);
                buf_fini(&info);
        }
        return r;
}

struct inspection {
        cl_program_binary_type *types;
        cl_int *status;
};

static int take_inspection(void *user, cl_uint device, struct bytes part)
{
        struct inspection *x = user;
        if (part.size != 8)
                return SP_E_PROTO;
        cl_int status = (cl_int)bytes_get_u32(part.data);
        x->status[device] = status < 0 ? status : CL_SUCCESS;
        x->types[device] = bytes_get_u32((const uint8_t *)part.data + 4);
        return 0;
}

int program_inspect(cl_program p, cl_int *ret_status)
{
        struct inspection x = { mem_zalloc(p->device_count * sizeof(*x.types)), ret_status };
        bool *want = mem_alloc(p->device_count * sizeof(*want));
        int r = x.types && want ? 0 : SP_E_NOMEM;
        for (cl_uint i = 0; i < p->device_count && !r; i++) {
                want[i] = true;
                /* For this message a server can't answer that it lacks named content. */
                r = program_declare(p, p->devices[i]->server, CONTENT_SEND);
        }
        if (!r)
                r = ask_all(p, INSPECT, want, take_inspection, &x);
        if (!r)
                p->binary_types = steal(x.types);
        mem_free(x.types);
        mem_free(want);
        return r;
}

static int take_binary(void *user, cl_uint device, struct bytes part)
{
        struct bytes *all = user;
        void *copy = part.size ? mem_dup(part.data, part.size) : NULL;
        if (part.size && !copy)
                return SP_E_NOMEM;
        all[device] = bytes_of(copy, part.size);
        return 0;
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
        if (!r)
                r = ask_all(p, BINARIES, want, take_binary, all);
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
