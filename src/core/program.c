#include "core/program.h"

#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/binary.h"
#include "core/include.h"
#include "core/server.h"
#include "proto/info.h"
#include "proto/option.h"

/* ---- results of builds ---------------------------------------------------------------------- */

static void reply_unhold(struct build_reply *r)
{
        if (!r || --r->holds)
                return;
        buf_fini(&r->info);
        mem_free(r);
}

static void kernel_info_free(struct kernel_info *k)
{
        if (!k)
                return;
        for (cl_uint i = 0; k->args && i < k->arg_count; i++) {
                mem_free(k->args[i].type_name);
                mem_free(k->args[i].name);
        }
        mem_free(k->args);
        mem_free(k->name);
        mem_free(k->attributes);
        mem_free(k->devices);
        mem_free(k);
}

void program_build_hold(struct program_build *b)
{
        b->holds++;
}

void program_build_unhold(struct program_build *b)
{
        if (!b || --b->holds)
                return;
        for (size_t i = 0; i < b->kernel_count; i++)
                kernel_info_free(b->kernels[i]);
        mem_free(b->kernels);
        for (cl_uint i = 0; b->devices && i < b->device_count; i++) {
                mem_free(b->devices[i].options);
                mem_free(b->devices[i].log);
                reply_unhold(b->devices[i].reply);
        }
        mem_free(b->devices);
        mem_free(b);
}

static struct program_build *build_new(cl_uint device_count)
{
        struct program_build *b = mem_zalloc(sizeof(*b));
        if (!b)
                return NULL;
        b->holds = 1;
        b->device_count = device_count;
        b->devices = mem_zalloc(device_count * sizeof(*b->devices));
        if (!b->devices) {
                program_build_unhold(b);
                return NULL;
        }
        for (cl_uint i = 0; i < device_count; i++)
                b->devices[i].status = CL_BUILD_NONE;
        return b;
}

/* A text as it came, which may lack its NUL. */
static int take_text(struct bytes block, uint32_t key, char **ret)
{
        struct bytes v;
        if (!info_find(block, key, &v))
                return 0;
        size_t n = strnlen(v.data, v.size);
        char *s = mem_alloc(n + 1);
        if (!s)
                return SP_E_NOMEM;
        memcpy(s, v.data, n);
        s[n] = 0;
        *ret = s;
        return 0;
}

static cl_uint take_u32(struct bytes block, uint32_t key, cl_uint fallback)
{
        struct bytes v;
        return info_find(block, key, &v) && v.size == 4 ? bytes_get_u32(v.data) : fallback;
}

static cl_ulong take_u64(struct bytes block, uint32_t key, cl_ulong fallback)
{
        return info_u64(block, key, fallback);
}

static int parse_arg(struct bytes block, struct kernel_arg_info *a)
{
        a->kind = (enum arg_kind)info_u64(block, INFO_ARG_KIND, 0);
        a->size = info_u64(block, INFO_ARG_SIZE, 0);
        a->address =
                take_u32(block, CL_KERNEL_ARG_ADDRESS_QUALIFIER, CL_KERNEL_ARG_ADDRESS_PRIVATE);
        a->access = take_u32(block, CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_ACCESS_NONE);
        a->type_qualifier = take_u64(block, CL_KERNEL_ARG_TYPE_QUALIFIER, CL_KERNEL_ARG_TYPE_NONE);
        a->read_only = a->address == CL_KERNEL_ARG_ADDRESS_CONSTANT ||
                       (a->type_qualifier & CL_KERNEL_ARG_TYPE_CONST);
        int r = take_text(block, CL_KERNEL_ARG_TYPE_NAME, &a->type_name);
        return r < 0 ? r : take_text(block, CL_KERNEL_ARG_NAME, &a->name);
}

static int parse_kernel(struct bytes block, cl_uint device_count, struct kernel_info **ret)
{
        struct kernel_info *k = mem_zalloc(sizeof(*k));
        if (!k)
                return SP_E_NOMEM;
        k->arg_count = take_u32(block, CL_KERNEL_NUM_ARGS, 0);
        k->arg_info = info_u64(block, INFO_ARG_NATIVE_INFO, 0);
        int r = k->arg_count <= ARG_INDEX_MAX ? 0 : SP_E_PROTO;
        if (!r) {
                k->devices = mem_zalloc(device_count * sizeof(*k->devices));
                k->args = mem_zalloc(k->arg_count * sizeof(*k->args));
                r = k->devices && k->args ? 0 : SP_E_NOMEM;
        }
        if (!r)
                r = take_text(block, CL_KERNEL_FUNCTION_NAME, &k->name);
        if (!r)
                r = take_text(block, CL_KERNEL_ATTRIBUTES, &k->attributes);
        if (!r && (!k->name || !*k->name))
                r = SP_E_PROTO;
        struct info_entry e;
        for (cl_uint i = 0; !r && i < k->arg_count && info_next(&block, &e);) {
                if (e.key == INFO_KERNEL_ARG)
                        r = parse_arg(e.value, &k->args[i++]);
        }
        if (r < 0)
                kernel_info_free(k);
        else
                *ret = k;
        return r;
}

/* Two devices' views of a kernel: CL_INVALID_KERNEL_DEFINITION if they differ. */
static bool differs(const struct kernel_info *a, const struct kernel_info *b)
{
        if (a->arg_count != b->arg_count)
                return true;
        for (cl_uint i = 0; i < a->arg_count; i++) {
                const struct kernel_arg_info *x = &a->args[i], *y = &b->args[i];
                if ((x->kind && y->kind && x->kind != y->kind) ||
                    (x->size && y->size && x->size != y->size))
                        return true;
        }
        return false;
}

static struct kernel_info *find_kernel(const struct program_build *b, const char *name)
{
        for (size_t i = 0; i < b->kernel_count; i++) {
                if (!strcmp(b->kernels[i]->name, name))
                        return b->kernels[i];
        }
        return NULL;
}

/* Take kernel `*k` in, or let the one of that name know what is new. *k is taken over. */
static int add_kernel(struct program_build *b, struct kernel_info **k)
{
        struct kernel_info *known = find_kernel(b, (*k)->name);
        if (known) {
                known->differs |= differs(known, *k);
                for (cl_uint i = 0; i < b->device_count; i++) {
                        if ((*k)->devices[i].size)
                                known->devices[i] = (*k)->devices[i];
                }
                kernel_info_free(steal(*k));
                return 0;
        }
        struct kernel_info **all =
                mem_realloc(b->kernels, (b->kernel_count + 1) * sizeof(struct kernel_info *));
        if (!all)
                return SP_E_NOMEM;
        b->kernels = all;
        all[b->kernel_count++] = steal(*k);
        return 0;
}

/* Index of a server's device in the program's; -1: it is none of its. */
static int find_device(const struct _cl_program *p, const struct server *s, uint64_t number)
{
        for (cl_uint i = 0; i < p->device_count; i++) {
                if (p->devices[i]->server == s && p->devices[i]->index == number)
                        return (int)i;
        }
        return -1;
}

/* The kernels of a reply, for those devices whose state is from it. */
static int take_kernels(const struct _cl_program *p, struct program_build *b, struct server *s,
                        struct build_reply *reply)
{
        struct bytes block = bytes_of(reply->info.data, reply->info.size);
        struct info_entry e, d;
        while (info_next(&block, &e)) {
                if (e.key != INFO_KERNEL)
                        continue;
                struct kernel_info *k = NULL;
                int r = parse_kernel(e.value, b->device_count, &k);
                if (r < 0)
                        return r;
                bool here = false;
                struct bytes rest = e.value;
                while (info_next(&rest, &d)) {
                        if (d.key != INFO_KERNEL_DEVICE)
                                continue;
                        int i = find_device(p, s, info_u64(d.value, INFO_BUILD_DEVICE, UINT64_MAX));
                        if (i < 0 || b->devices[i].reply != reply)
                                continue;
                        k->devices[i] = d.value;
                        here = true;
                }
                r = here ? add_kernel(b, &k) : 0;
                kernel_info_free(k);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_all_kernels(const struct _cl_program *p, struct program_build *b)
{
        for (cl_uint i = 0; i < b->device_count; i++) {
                struct build_reply *reply = b->devices[i].reply;
                bool taken = false;
                for (cl_uint j = 0; j < i && !taken; j++)
                        taken = b->devices[j].reply == reply;
                if (!reply || taken)
                        continue;
                int r = take_kernels(p, b, p->devices[i]->server, reply);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- programs ------------------------------------------------------------------------------- */

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

static void executables_free(cl_program p)
{
        for (cl_uint i = 0; p->executables && i < p->device_count; i++)
                mem_free((void *)(uintptr_t)p->executables[i].data);
        mem_free(p->executables);
        p->executables = NULL;
}

/* The servers may forget the program. */
static void undeclare(cl_program p)
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
        undeclare(p);
        program_build_unhold(p->build);
        executables_free(p);
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
                if (p->devices[i] == d)
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
        struct buf all = { 0 };
        struct bytes old = bytes_of(p->constants.data, p->constants.size);
        struct info_entry e;
        size_t mark;
        int r = 0;
        while (!r && info_next(&old, &e)) {
                if (bytes_get_u64(e.value.data) != id)
                        r = info_put(&all, e.key, e.value.data, e.value.size);
        }
        if (!r)
                r = info_begin(&all, INFO_CONSTANT, &mark);
        if (!r)
                r = buf_put_u64(&all, id);
        if (!r)
                r = buf_put(&all, value.data, value.size);
        if (r < 0) {
                buf_fini(&all);
                return r;
        }
        info_end(&all, mark);
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

int program_declare(cl_program p, struct server *s)
{
        uint64_t bit = (uint64_t)1 << server_index(s);
        struct session *session = server_session(s);
        if (!session)
                return SP_E_GONE;
        if (p->declared & bit)
                return 0;
        /* It was linked nowhere but on the servers that know it. */
        if (p->kind == PROGRAM_LINKED)
                return CL_INVALID_PROGRAM_EXECUTABLE;
        struct buf parts = { 0 }, devices = { 0 };
        int r = put_parts(p, s, &parts, &devices);
        if (!r && parts.size > WIRE_BLOB_MAX)
                r = SP_E_LIMIT;
        if (!r)
                r = session_send(session, program_create, .program = p->id, .kind = p->kind,
                                 .devices = { (uint64_t *)(void *)devices.data, devices.size / 8 },
                                 .parts = bytes_of(parts.data, parts.size));
        if (!r)
                p->declared |= bit;
        buf_fini(&parts);
        buf_fini(&devices);
        return r;
}

/* ---- building ------------------------------------------------------------------------------- */

/* One server's share of a build. */
struct job_part {
        struct request request;
        struct server *server;
        struct build_reply *reply; /* made when the answer is there */
};

enum job_action { JOB_BUILD, JOB_COMPILE, JOB_LINK };

struct program_job {
        enum job_action action;
        cl_program program; /* held */
        bool *covers;       /* per device: is it built? */
        cl_program *inputs; /* of a link; held until it is finished */
        cl_uint input_count;
        char *options; /* as given; NULL: none */
        struct include_result include;
        bool embedded; /* some headers are no files */
        struct job_part *parts;
        size_t part_count;
        size_t open;  /* answers that are missing, and one while questions are being sent */
        bool renamed; /* the servers know the program by a new id: earlier builds are lost */
        cl_int status;
        void(CL_CALLBACK *notify)(cl_program, void *);
        void *notify_data;
};

/* Lock not needed. */
static struct program_job *job_free(struct program_job *j)
{
        if (!j)
                return NULL;
        for (size_t i = 0; j->parts && i < j->part_count; i++)
                buf_fini(&j->parts[i].request.info);
        mem_free(j->parts);
        mem_free(j->covers);
        mem_free(j->inputs);
        mem_free(j->options);
        include_fini(&j->include);
        mem_free(j);
        return NULL;
}

/* Of those devices whose `covers` the caller has set: the servers to be asked. */
static void job_split(struct program_job *j)
{
        const struct _cl_program *p = j->program;
        for (cl_uint i = 0; i < p->device_count; i++) {
                if (!j->covers[i])
                        continue;
                size_t n = 0;
                while (n < j->part_count && j->parts[n].server != p->devices[i]->server)
                        n++;
                j->parts[n].server = p->devices[i]->server;
                if (n == j->part_count)
                        j->part_count++;
        }
}

static struct program_job *job_new(cl_program p, enum job_action action, const char *options)
{
        struct program_job *j = mem_zalloc(sizeof(*j));
        if (!j)
                return NULL;
        j->action = action;
        j->program = p;
        j->covers = mem_zalloc(p->device_count * sizeof(*j->covers));
        j->parts = mem_zalloc(p->device_count * sizeof(*j->parts));
        j->options = options ? mem_strdup(options) : NULL;
        return j->covers && j->parts && (!options || j->options) ? j : job_free(j);
}

static int collect(struct program_job *j, const struct program_build_params *params,
                   const char *folder)
{
        struct include_embedded *embedded =
                mem_zalloc((params->header_count + 1) * sizeof(*embedded));
        if (!embedded)
                return SP_E_NOMEM;
        for (cl_uint i = 0; i < params->header_count; i++)
                embedded[i] = (struct include_embedded){
                        params->header_names[i],
                        bytes_of(params->headers[i]->source, params->headers[i]->source_size),
                };
        int r = include_collect(
                &(struct include_params){
                        .source = bytes_of(j->program->source, j->program->source_size),
                        .options = j->options,
                        .folder = folder,
                        .embedded = embedded,
                        .embedded_count = params->header_count,
                },
                &j->include);
        mem_free(embedded);
        return r;
}

/* Find the headers; without the lock, which it does not need. */
static int job_include(struct program_job *j, const struct program_build_params *params)
{
        j->embedded = params->header_count;
        if (j->program->kind != PROGRAM_SOURCE) {
                const char *o = j->options ? j->options : "";
                return buf_put(&j->include.options, o, strlen(o) + 1);
        }
        char *folder = get_current_dir_name();
        int r = collect(j, params, folder && folder[0] == '/' ? folder : "/");
        free(folder);
        if (!r && j->include.files)
                log_debug("program", "%u include files, %zu bytes; %u not found", j->include.files,
                          j->include.headers.size, j->include.missing);
        return r;
}

/* The source as it is to be sent differs from what the servers have: it gets a new name there. */
static int job_source(struct program_job *j)
{
        cl_program p = j->program;
        struct buf *want = &j->include.source, *have = &p->sent_source;
        if (want->size == have->size &&
            (!want->size || !memcmp(want->data, have->data, want->size)))
                return 0;
        if (p->declared) {
                undeclare(p);
                p->id = client_new_id(p->context->client, OBJECT_PROGRAM);
                j->renamed = true;
        }
        buf_fini(have);
        *have = *want;
        *want = (struct buf){ 0 };
        return 0;
}

static int send_build(struct program_job *j, struct job_part *part, struct wire_u64s devices)
{
        cl_program p = j->program;
        int r = program_declare(p, part->server);
        struct session *session = server_session(part->server);
        if (r < 0 || !session)
                return r < 0 ? r : SP_E_GONE;
        return session_send(session, program_build, .request = part->request.id, .program = p->id,
                            .flags = (j->action == JOB_COMPILE ? BUILD_COMPILE : 0u) |
                                     (j->embedded ? BUILD_EMBEDDED : 0u),
                            .devices = devices,
                            .options = bytes_str((char *)j->include.options.data),
                            .headers = bytes_of(j->include.headers.data, j->include.headers.size),
                            .constants = bytes_of(p->constants.data, p->constants.size));
}

static int send_link(struct program_job *j, struct job_part *part, struct wire_u64s devices)
{
        cl_program p = j->program;
        struct buf inputs = { 0 };
        int r = 0;
        for (cl_uint i = 0; i < j->input_count && !r; i++) {
                r = program_declare(j->inputs[i], part->server);
                if (!r)
                        r = buf_put_u64(&inputs, j->inputs[i]->id);
        }
        struct session *session = server_session(part->server);
        if (!r && !session)
                r = SP_E_GONE;
        if (!r)
                r = session_send(session, program_link, .request = part->request.id,
                                 .program = p->id, .devices = devices,
                                 .inputs = { (uint64_t *)(void *)inputs.data, inputs.size / 8 },
                                 .options = bytes_str(j->options));
        if (!r)
                p->declared |= (uint64_t)1 << server_index(part->server);
        buf_fini(&inputs);
        return r;
}

static int part_send(struct program_job *j, struct job_part *part)
{
        cl_program p = j->program;
        struct buf devices = { 0 };
        int r = 0;
        for (cl_uint i = 0; i < p->device_count && !r; i++) {
                if (j->covers[i] && p->devices[i]->server == part->server)
                        r = buf_put_u64(&devices, p->devices[i]->index);
        }
        struct wire_u64s list = { (uint64_t *)(void *)devices.data, devices.size / 8 };
        if (!r)
                r = j->action == JOB_LINK ? send_link(j, part, list) : send_build(j, part, list);
        buf_fini(&devices);
        if (!r)
                server_flush(part->server);
        return r;
}

static const char *part_text(const struct job_part *part, struct buf *text)
{
        const char *name = server_name(part->server);
        if (part->request.status == CL_DEVICE_NOT_AVAILABLE) {
                text->size = 0;
                if (buf_put(text, "SpanCL: lost the server ", 24) == 0 &&
                    buf_put(text, name, strlen(name)) == 0 && buf_put(text, "\n", 2) == 0)
                        return (const char *)text->data;
        }
        return NULL;
}

/* What a success makes, where the native side does not tell. */
static cl_program_binary_type job_type(const struct program_job *j)
{
        switch (j->action) {
        case JOB_COMPILE:
                return CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT;
        case JOB_LINK:
                return options_library(j->options) ? CL_PROGRAM_BINARY_TYPE_LIBRARY
                                                   : CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
        default:
                return CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
        }
}

/* "To support non-uniform work-groups": "if the program was created with clCreateProgramWithSource, then the
 * program must be compiled for OpenCL C 2.0 or newer [...] and without the -cl-uniform-work-group-size
 * build option"; of others only the latter; "if the program was created using clLinkProgram, then all input
 * programs must support non-uniform work-groups." */
static bool job_is_uniform(const struct program_job *j, cl_uint i)
{
        for (cl_uint k = 0; k < j->input_count; k++) {
                const struct _cl_program *input = j->inputs[k];
                int at = program_device(input, j->program->devices[i]);
                if (at >= 0 && input->build && input->build->devices[at].uniform)
                        return true;
        }
        return options_uniform(j->options, j->program->kind == PROGRAM_SOURCE);
}

/* What the answer of its server says about device i; an empty reply: nothing. */
static int take_device(struct program_job *j, struct job_part *part, cl_uint i,
                       struct program_build *b)
{
        struct device_build *d = &b->devices[i];
        d->options = j->options ? mem_strdup(j->options) : NULL;
        if (j->options && !d->options)
                return SP_E_NOMEM;
        d->uniform = job_is_uniform(j, i);
        d->status = part->request.status == CL_SUCCESS ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
        if (part->reply) {
                d->reply = part->reply;
                d->reply->holds++;
                struct bytes block = bytes_of(d->reply->info.data, d->reply->info.size);
                struct info_entry e;
                while (info_next(&block, &e)) {
                        if (e.key != INFO_BUILD ||
                            info_u64(e.value, INFO_BUILD_DEVICE, UINT64_MAX) !=
                                    j->program->devices[i]->index)
                                continue;
                        d->status = (cl_build_status)take_u32(e.value, CL_PROGRAM_BUILD_STATUS,
                                                              (cl_uint)d->status);
                        d->type = take_u32(e.value, CL_PROGRAM_BINARY_TYPE,
                                           d->status == CL_BUILD_SUCCESS
                                                   ? job_type(j)
                                                   : CL_PROGRAM_BINARY_TYPE_NONE);
                        d->globals =
                                take_u64(e.value, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE, 0);
                        return take_text(e.value, CL_PROGRAM_BUILD_LOG, &d->log);
                }
        }
        struct buf text = { 0 };
        const char *log = part_text(part, &text);
        d->log = log ? mem_strdup(log) : NULL;
        buf_fini(&text);
        return 0;
}

/* The state of a device that this build does not concern. */
static int keep_device(const struct device_build *old, struct device_build *d)
{
        *d = *old;
        d->options = old->options ? mem_strdup(old->options) : NULL;
        d->log = old->log ? mem_strdup(old->log) : NULL;
        if (d->reply)
                d->reply->holds++;
        return (old->options && !d->options) || (old->log && !d->log) ? SP_E_NOMEM : 0;
}

static int job_result(struct program_job *j, struct program_build **ret)
{
        cl_program p = j->program;
        for (size_t n = 0; n < j->part_count; n++) {
                struct job_part *part = &j->parts[n];
                if (!part->request.info.size)
                        continue;
                part->reply = mem_zalloc(sizeof(*part->reply));
                if (!part->reply)
                        return SP_E_NOMEM;
                part->reply->holds = 1;
                part->reply->info = part->request.info;
                part->request.info = (struct buf){ 0 };
        }
        struct program_build *b = build_new(p->device_count);
        int r = b ? 0 : SP_E_NOMEM;
        for (cl_uint i = 0; i < p->device_count && !r; i++) {
                struct job_part *part = j->parts;
                while (j->covers[i] && part->server != p->devices[i]->server)
                        part++;
                if (j->covers[i])
                        r = take_device(j, part, i, b);
                else if (p->build && !j->renamed)
                        r = keep_device(&p->build->devices[i], &b->devices[i]);
        }
        if (!r)
                r = take_all_kernels(p, b);
        if (r < 0)
                program_build_unhold(b);
        else
                *ret = b;
        return r;
}

/* All answers are there. */
static void job_finish(struct program_job *j)
{
        cl_program p = j->program;
        struct program_build *b = NULL;
        int r = job_result(j, &b);
        for (size_t n = 0; n < j->part_count; n++) {
                if (j->status == CL_SUCCESS)
                        j->status = j->parts[n].request.status;
                reply_unhold(steal(j->parts[n].reply));
        }
        /* Without a result there is none: what was there before is gone on the servers. */
        if (r < 0)
                j->status = status_to_cl(r);
        program_build_unhold(p->build);
        p->build = b;
        p->job = NULL;
        executables_free(p);
        for (cl_uint i = 0; i < j->input_count; i++)
                program_unhold(j->inputs[i]);
        j->input_count = 0;
}

/* On the keeper thread, without the lock. */
static void job_call(void *data)
{
        struct program_job *j = data;
        cl_program p = j->program;
        struct client *c = p->context->client;
        j->notify(p, j->notify_data);
        client_lock(c);
        program_unhold(p);
        client_unlock(c);
        job_free(j);
}

static void job_close(struct program_job *j)
{
        if (--j->open)
                return;
        cl_program p = j->program;
        job_finish(j);
        if (client_defer(p->context->client, job_call, j) < 0) {
                log_error("program", "out of memory: the callback of a build is not called");
                program_unhold(p);
                job_free(j);
        }
}

static void part_done(struct request *r)
{
        job_close(r->user);
}

/* Ask all servers at once. Those that can't be asked have answered when this returns. */
static void job_send(struct program_job *j)
{
        struct client *c = j->program->context->client;
        for (size_t n = 0; n < j->part_count; n++) {
                struct job_part *part = &j->parts[n];
                part->request.user = j;
                part->request.notify = j->notify ? part_done : NULL;
                j->open++;
                int r = request_begin(c, part->server, &part->request);
                if (r < 0) {
                        part->request.done = true;
                        part->request.status = status_to_cl(r);
                        j->open--;
                        continue;
                }
                r = part_send(j, part);
                if (r < 0)
                        request_done(c, part->request.id, status_to_cl(r), bytes_of(NULL, 0));
        }
}

/* Do it. Lock held, also at the return; with a callback the job may be gone by then. */
static int job_run(struct program_job *j)
{
        struct client *c = j->program->context->client;
        j->open = 1;
        job_send(j);
        if (j->notify) {
                job_close(j);
                return 0;
        }
        for (size_t n = 0; n < j->part_count; n++) {
                if (!j->parts[n].request.done)
                        request_wait(c, &j->parts[n].request);
        }
        job_finish(j);
        int r = j->status;
        program_unhold(j->program);
        job_free(j);
        return r;
}

int program_build(cl_program p, const struct program_build_params *params)
{
        struct client *c = p->context->client;
        struct program_job *j =
                job_new(p, params->compile ? JOB_COMPILE : JOB_BUILD, params->options);
        if (!j)
                return SP_E_NOMEM;
        j->notify = params->notify;
        j->notify_data = params->notify_data;
        for (cl_uint i = 0; i < p->device_count; i++) {
                j->covers[i] = !params->devices;
                for (cl_uint k = 0; params->devices && k < params->device_count; k++)
                        j->covers[i] |= params->devices[k] == p->devices[i];
        }
        job_split(j);

        client_lock(c);
        /* CL_INVALID_OPERATION if the build of one of the devices by an earlier call has not ended, or
         * if kernel objects are attached to the program. */
        if (p->job || p->kernel_count) {
                client_unlock(c);
                job_free(j);
                return CL_INVALID_OPERATION;
        }
        p->job = j;
        program_hold(p);
        client_unlock(c);

        int r = job_include(j, params);

        client_lock(c);
        if (!r && j->include.options.size > WIRE_TEXT_MAX)
                r = SP_E_INVAL;
        if (!r)
                r = job_source(j);
        if (r < 0) {
                p->job = NULL;
                program_unhold(p);
                client_unlock(c);
                job_free(j);
                if (r == SP_E_INVAL)
                        r = params->compile ? CL_INVALID_COMPILER_OPTIONS
                                            : CL_INVALID_BUILD_OPTIONS;
                return r;
        }
        r = job_run(j);
        client_unlock(c);
        return r;
}

/* "All programs specified by input_programs contain a compiled binary or library for the device. In this
 * case, a link is performed [...] None of the programs contain a compiled binary or library for that
 * device. In that case, no link is performed [...] All other cases will return a CL_INVALID_OPERATION
 * error." */
static int link_covers(struct program_job *j, const struct program_link_params *params)
{
        const struct _cl_program *p = j->program;
        for (cl_uint i = 0; i < p->device_count; i++) {
                cl_uint have = 0;
                for (cl_uint k = 0; k < params->input_count; k++) {
                        const struct _cl_program *input = params->inputs[k];
                        int n = program_device(input, p->devices[i]);
                        /* One that is being compiled has none yet. */
                        if (n >= 0 && program_in_progress(input, (cl_uint)n))
                                return CL_INVALID_OPERATION;
                        cl_program_binary_type type =
                                n < 0 ? CL_PROGRAM_BINARY_TYPE_NONE
                                      : program_binary_type(input, (cl_uint)n);
                        have += type == CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT ||
                                type == CL_PROGRAM_BINARY_TYPE_LIBRARY;
                }
                if (have && have < params->input_count)
                        return CL_INVALID_OPERATION;
                j->covers[i] = have;
        }
        job_split(j);
        return 0;
}

/* Lock held. */
static int link_start(cl_program p, const struct program_link_params *params)
{
        struct program_job *j = job_new(p, JOB_LINK, params->options);
        if (!j)
                return SP_E_NOMEM;
        int r = link_covers(j, params);
        if (!r) {
                j->inputs = mem_dup(params->inputs, params->input_count * sizeof(cl_program));
                r = j->inputs ? 0 : SP_E_NOMEM;
        }
        if (r < 0) {
                job_free(j);
                return r;
        }
        j->notify = params->notify;
        j->notify_data = params->notify_data;
        j->input_count = params->input_count;
        for (cl_uint i = 0; i < j->input_count; i++)
                program_hold(j->inputs[i]);
        p->job = j;
        program_hold(p);
        return job_run(j);
}

int program_link(cl_context x, const struct program_link_params *params, cl_program *ret)
{
        cl_program p;
        client_lock(x->client);
        int r = program_new(x,
                            &(struct program_params){
                                    .kind = PROGRAM_LINKED,
                                    .devices = params->devices,
                                    .device_count = params->device_count,
                            },
                            &p);
        if (!r) {
                r = link_start(p, params);
                if (!r || r == CL_LINK_PROGRAM_FAILURE)
                        *ret = p;
                else
                        program_unhold(p);
        }
        client_unlock(x->client);
        return r;
}

bool program_in_progress(const struct _cl_program *p, cl_uint i)
{
        return p->job && p->job->covers[i];
}

int program_ready(cl_program p)
{
        struct client *c = p->context->client;
        client_lock(c);
        bool ready = p->kind != PROGRAM_BUILT_IN || p->build || p->job;
        client_unlock(c);
        return ready ? 0 : program_build(p, &(struct program_build_params){ 0 });
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
