#include "core/program/job.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "core/program/build.h"
#include "core/program/content.h"
#include "core/program/include.h"
#include "core/program/program.h"
#include "core/progress.h"
#include "core/status.h"
#include "os/folder.h"
#include "proto/info.h"
#include "proto/option.h"
#include "trace/trace.h"

/* One server's share of a build. */
struct job_part {
        struct request request;
        struct server *server;
        struct build_reply *reply; /* made when the answer is there */
        bool complete;             /* everything was sent: it lacked something */
};

enum job_action { JOB_BUILD, JOB_COMPILE, JOB_LINK };

enum covers { COVERS_NOT, COVERS, COVERS_BY_PARENT };

struct program_job {
        enum job_action action;
        cl_program program;  /* held */
        enum covers *covers; /* per device: is it built? */
        cl_program *inputs;  /* of a link; held until it is finished */
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
        struct deferred call; /* of it */
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

/* List the servers to be asked: those of the devices whose `covers` the caller has set. */
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
        char *folder = folder_current();
        int r = collect(j, params, folder && folder[0] == '/' ? folder : "/");
        free(folder);
        if (!r && j->include.files)
                log_debug("program", "%u include files, %zu bytes; %u not found", j->include.files,
                          j->include.headers.size, j->include.missing);
        return r;
}

/* Prepare the source to be sent. If it differs from the servers' version, the program gets a new id
 * there. */
static int job_source(struct program_job *j) REQUIRES(client_held)
{
        cl_program p = j->program;
        struct buf *want = &j->include.source, *have = &p->sent_source;
        p->prints |=
                j->include.missing ||
                program_text_prints(bytes_of(j->include.headers.data, j->include.headers.size)) ||
                program_text_prints(bytes_str(j->options ? j->options : ""));
        if (want->size == have->size &&
            (!want->size || !memcmp(want->data, have->data, want->size)))
                return 0;
        if (!server_set_is_empty(&p->declared)) {
                program_undeclare(p);
                p->id = client_new_id(p->context->client, OBJECT_PROGRAM);
                j->renamed = true;
        }
        buf_fini(have);
        *have = *want;
        *want = (struct buf){ 0 };
        return 0;
}

static int send_build(struct program_job *j, struct job_part *part, struct wire_u64s devices)
        REQUIRES(client_held)
{
        cl_program p = j->program;
        /* A server needs only the names of source and IL if the build is in its cache. */
        bool cached = p->kind == PROGRAM_SOURCE || p->kind == PROGRAM_IL;
        enum content_mode mode = part->complete ? CONTENT_SEND
                                 : cached       ? CONTENT_HOPE
                                                : CONTENT_KNOWN;
        struct content_name headers = { 0 };
        int r = program_declare(p, part->server, mode);
        if (!r)
                r = content_name(part->server,
                                 bytes_of(j->include.headers.data, j->include.headers.size), mode,
                                 &headers);
        struct session *session = server_session(part->server);
        if (r < 0 || !session)
                return r < 0 ? r : SP_E_GONE;
        return session_send(session, program_build, .request = part->request.id, .program = p->id,
                            .flags = (j->action == JOB_COMPILE ? BUILD_COMPILE : 0u) |
                                     (j->embedded ? BUILD_EMBEDDED : 0u),
                            .devices = devices,
                            .options = bytes_str((char *)j->include.options.data),
                            .headers = headers.data, .headers_digest = headers.digest,
                            .constants = bytes_of(p->constants.data, p->constants.size));
}

static int send_link(struct program_job *j, struct job_part *part, struct wire_u64s devices)
        REQUIRES(client_held)
{
        cl_program p = j->program;
        struct buf inputs = { 0 };
        int r = 0;
        for (cl_uint i = 0; i < j->input_count && !r; i++) {
                /* A link request is not repeated with more bytes, so a declaration sends them all.
                 * Inputs that are declared on the server were compiled there. */
                if (!server_set_has(&j->inputs[i]->declared, server_index(part->server)))
                        r = program_declare(j->inputs[i], part->server, CONTENT_SEND);
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
                server_set_add(&p->declared, server_index(part->server));
        buf_fini(&inputs);
        return r;
}

static int part_send(struct program_job *j, struct job_part *part) REQUIRES(client_held)
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

/* The binary type that a successful job makes, where the native side does not tell it. */
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

/* clGetKernelArgInfo: argument information is only available if the program was made with
 * clCreateProgramWithSource and compiled with -cl-kernel-arg-info, which the server always adds. PoCL has it without
 * any options, too. The information that binaries and IL have is given. */
static bool has_arg_info(const struct program_job *j, cl_uint i)
{
        const struct _cl_program *p = j->program;
        if (j->action != JOB_LINK)
                return p->kind != PROGRAM_SOURCE || !j->options ||
                       strstr(j->options, "-cl-kernel-arg-info");
        for (cl_uint n = 0; n < j->input_count; n++) {
                const struct _cl_program *input = j->inputs[n];
                int d = program_device(input, p->devices[i]);
                if (d >= 0 && (input->build ? input->build->devices[d].arg_info
                                            : input->kind != PROGRAM_SOURCE))
                        return true;
        }
        return false;
}

/* Take the part about device i out of its server's answer; an empty reply has none. */
static int take_device(struct program_job *j, struct job_part *part, cl_uint i,
                       struct program_build *b) REQUIRES(client_held)
{
        struct device_build *d = &b->devices[i];
        d->options = j->options ? mem_strdup(j->options) : NULL;
        if (j->options && !d->options)
                return SP_E_NOMEM;
        d->uniform = job_is_uniform(j, i);
        d->by_parent = j->covers[i] == COVERS_BY_PARENT;
        d->arg_info = has_arg_info(j, i);
        d->status = part->request.status == CL_SUCCESS ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
        int r = part->reply ? device_build_take(d, j->program->devices[i]->index, part->reply,
                                                job_type(j))
                            : 0;
        if (r)
                return r < 0 ? r : 0;
        struct buf text = { 0 };
        const char *log = part_text(part, &text);
        d->log = log ? mem_strdup(log) : NULL;
        buf_fini(&text);
        return 0;
}

static int job_result(struct program_job *j, struct program_build **ret) REQUIRES(client_held)
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
        struct program_build *b = program_build_new(p->device_count);
        int r = b ? 0 : SP_E_NOMEM;
        for (cl_uint i = 0; i < p->device_count && !r; i++) {
                struct job_part *part = j->parts;
                while (j->covers[i] && part->server != p->devices[i]->server)
                        part++;
                if (j->covers[i])
                        r = take_device(j, part, i, b);
                else if (p->build && !j->renamed)
                        r = device_build_copy(&p->build->devices[i], &b->devices[i]);
        }
        if (!r)
                r = program_build_take_kernels(p, b);
        if (r < 0)
                program_build_unhold(b);
        else
                *ret = b;
        return r;
}

/* All answers are there. */
static void job_finish(struct program_job *j) REQUIRES(client_held)
{
        cl_program p = j->program;
        struct program_build *b = NULL;
        int r = job_result(j, &b);
        for (size_t n = 0; n < j->part_count; n++) {
                if (j->status == CL_SUCCESS)
                        j->status = j->parts[n].request.status;
                build_reply_unhold(steal(j->parts[n].reply));
        }
        /* On failure there is no result: the servers have dropped the previous build. */
        if (r < 0)
                j->status = status_to_cl(r);
        program_build_unhold(p->build);
        p->build = b;
        p->job = NULL;
        program_drop_binaries(p);
        for (cl_uint i = 0; i < j->input_count; i++)
                program_unhold(j->inputs[i]);
        j->input_count = 0;
}

/* On the progress thread, without the lock. */
static void job_call(struct deferred *d)
{
        struct program_job *j = container_of(d, struct program_job, call);
        cl_program p = j->program;
        struct client *c = p->context->client;
        j->notify(p, j->notify_data);
        client_lock(c);
        program_unhold(p);
        client_unlock(c);
        job_free(j);
}

static void job_close(struct program_job *j) REQUIRES(client_held)
{
        if (--j->open)
                return;
        job_finish(j);
        client_defer(j->program->context->client, &j->call, job_call);
}

static bool part_begin(struct program_job *j, struct job_part *part);

/* If the server lacked something that was only named, ask it again. */
static bool part_again(struct program_job *j, struct job_part *part)
{
        if (part->request.status <= 0)
                return false;
        if (part->complete) {
                part->request.status = CL_OUT_OF_RESOURCES;
                return false;
        }
        part->complete = true;
        buf_fini(&part->request.info);
        return part_begin(j, part);
}

static void part_done(struct request *r) REQUIRES(client_held)
{
        struct job_part *part = container_of(r, struct job_part, request);
        if (!part_again(r->user, part))
                job_close(r->user);
}

/* Ask a server. One that can't be asked has answered when this returns; false: without part_done. */
static bool part_begin(struct program_job *j, struct job_part *part) REQUIRES(client_held)
{
        struct client *c = j->program->context->client;
        int r = request_begin(c, part->server, &part->request);
        if (r < 0) {
                part->request.done = true;
                part->request.status = status_to_cl(r);
                return false;
        }
        r = part_send(j, part);
        if (r < 0)
                request_done(c, part->request.id, status_to_cl(r), bytes_of(NULL, 0));
        return true;
}

/* Ask all servers at once. */
static void job_send(struct program_job *j) REQUIRES(client_held)
{
        for (size_t n = 0; n < j->part_count; n++) {
                struct job_part *part = &j->parts[n];
                part->request.user = j;
                part->request.notify = j->notify ? part_done : NULL;
                j->open++;
                if (!part_begin(j, part))
                        j->open--;
        }
}

/* Do it. With a callback the job may be gone by then. */
static int job_run(struct program_job *j) REQUIRES(client_held)
{
        struct client *c = j->program->context->client;
        j->open = 1;
        job_send(j);
        if (j->notify) {
                job_close(j);
                return 0;
        }
        for (size_t n = 0; n < j->part_count; n++) {
                do {
                        if (!j->parts[n].request.done)
                                request_wait(c, &j->parts[n].request);
                } while (part_again(j, &j->parts[n]));
        }
        job_finish(j);
        int r = j->status;
        program_unhold(j->program);
        job_free(j);
        return r;
}

static bool is_listed(const struct program_build_params *params, const struct _cl_device_id *d)
{
        for (cl_uint i = 0; i < params->device_count; i++)
                if (params->devices[i]->shown == d->shown)
                        return true;
        return !params->devices;
}

/* "If a program binary has not been built for a sub-device, the program binary associated with the parent
 * device will be used." To its server they are two devices: it is built for both. */
static enum covers covers(const struct _cl_program *p, const struct program_build_params *params,
                          cl_uint i)
{
        const struct device_build *before = p->build ? &p->build->devices[i] : NULL;
        if (is_listed(params, p->devices[i]))
                return COVERS;
        if (before && before->status != CL_BUILD_NONE && !before->by_parent)
                return COVERS_NOT;
        for (cl_device_id d = p->devices[i]->parent; d; d = d->parent)
                if (is_listed(params, d))
                        return COVERS_BY_PARENT;
        return COVERS_NOT;
}

int program_build(cl_program p, const struct program_build_params *params)
{
        TRACE_SPAN(build, 0);
        struct client *c = p->context->client;
        struct program_job *j =
                job_new(p, params->compile ? JOB_COMPILE : JOB_BUILD, params->options);
        if (!j)
                return SP_E_NOMEM;
        j->notify = params->notify;
        j->notify_data = params->notify_data;
        client_lock(c);
        for (cl_uint i = 0; i < p->device_count; i++)
                j->covers[i] = covers(p, params, i);
        job_split(j);
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
        span_build.value = p->id;
        r = job_run(j);
        client_unlock(c);
        return r;
}

/* "All programs specified by input_programs contain a compiled binary or library for the device. In this
 * case, a link is performed [...] None of the programs contain a compiled binary or library for that
 * device. In that case, no link is performed [...] All other cases will return a CL_INVALID_OPERATION
 * error." */
static int link_covers(struct program_job *j, const struct program_link_params *params)
        REQUIRES(client_held)
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
                j->covers[i] = have ? COVERS : COVERS_NOT;
        }
        job_split(j);
        return 0;
}

static int link_start(cl_program p, const struct program_link_params *params) REQUIRES(client_held)
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
        for (cl_uint i = 0; i < j->input_count; i++) {
                program_hold(j->inputs[i]);
                p->prints |= j->inputs[i]->prints;
        }
        p->job = j;
        program_hold(p);
        return job_run(j);
}

int program_link(cl_context x, const struct program_link_params *params, cl_program *ret)
{
        TRACE_SPAN(build, 0);
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
                span_build.value = p->id;
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

const char *program_job_options(const struct _cl_program *p)
{
        return p->job->options;
}

int program_ready(cl_program p)
{
        struct client *c = p->context->client;
        client_lock(c);
        bool ready = p->kind != PROGRAM_BUILT_IN || p->build || p->job;
        client_unlock(c);
        return ready ? 0 : program_build(p, &(struct program_build_params){ 0 });
}
