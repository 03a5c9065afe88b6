#include "engine/program/part.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/program/include.h"
#include "os/folder.h"
#include "trace/trace.h"

void engine_part_fini(struct part *p)
{
        mem_free(p->devices);
        cached_build_fini(&p->cached);
        buf_fini(&p->info);
}

/* ---- merging what the domains say ----------------------------------------------------------- */

/* The kernel `name` in a part's info. */
static bool find_kernel(const struct part *part, struct bytes name, struct bytes *ret)
{
        struct bytes block = { part->info.data, part->info.size };
        struct info_entry e;
        struct bytes n;
        while (info_next(&block, &e)) {
                if (e.key != INFO_KERNEL || !info_find(e.value, CL_KERNEL_FUNCTION_NAME, &n) ||
                    n.size != name.size || memcmp(n.data, name.data, n.size))
                        continue;
                *ret = e.value;
                return true;
        }
        return false;
}

/* Append a kernel as part `first` has it, with the device info of later parts. */
static int put_kernel(struct build *b, size_t first, struct bytes kernel, struct bytes name)
{
        size_t mark;
        int r = info_begin(&b->info, INFO_KERNEL, &mark);
        if (!r)
                r = buf_put(&b->info, kernel.data, kernel.size);
        for (size_t i = first + 1; i < b->part_count; i++) {
                struct bytes other;
                struct info_entry e;
                if (!find_kernel(&b->parts[i], name, &other))
                        continue;
                while (!r && info_next(&other, &e))
                        if (e.key == INFO_KERNEL_DEVICE)
                                r = info_put(&b->info, e.key, e.value.data, e.value.size);
        }
        if (!r)
                info_end(&b->info, mark);
        return r;
}

static int merge_part(struct build *b, size_t index)
{
        struct bytes block = { b->parts[index].info.data, b->parts[index].info.size };
        struct info_entry e;
        while (info_next(&block, &e)) {
                struct bytes name, other;
                bool known = false;
                int r = 0;
                if (e.key != INFO_KERNEL) {
                        r = info_put(&b->info, e.key, e.value.data, e.value.size);
                } else if (info_find(e.value, CL_KERNEL_FUNCTION_NAME, &name)) {
                        for (size_t i = 0; i < index && !known; i++)
                                known = find_kernel(&b->parts[i], name, &other);
                        if (!known)
                                r = put_kernel(b, index, e.value, name);
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

void engine_part_merge(struct build *b)
{
        int r = 0;
        b->info.size = 0;
        for (size_t i = 0; i < b->part_count && !r; i++) {
                if (b->status == CL_SUCCESS)
                        b->status = b->parts[i].status;
                r = merge_part(b, i);
        }
        if (!r && b->info.size <= WIRE_BLOB_MAX)
                return;
        buf_fini(&b->info);
        b->status = r == SP_E_NOMEM ? CL_OUT_OF_HOST_MEMORY : CL_OUT_OF_RESOURCES;
}

/* ---- building ------------------------------------------------------------------------------- */

/* Take the engine's lock. Builds do not hold it, except in single-threaded engines. */
static void lock(struct build *b) LOCK_UNCHECKED
{
        if (!b->engine->params.single_threaded)
                engine_lock(b->engine);
}

static void unlock(struct build *b) LOCK_UNCHECKED
{
        if (!b->engine->params.single_threaded)
                engine_unlock(b->engine);
}

/* Make a folder for headers that exist only here. In the client's process its files are in their
 * places, but embedded headers are not files. False: no folder is needed, or none can be made
 * (*ret_status). */
static bool make_folder(struct build *b, const struct build_input *in, char folder[PATH_MAX],
                        cl_int *ret_status)
{
        const struct engine *e = b->engine;
        const char *base = e->scratch_dir ? e->scratch_dir : secure_getenv("TMPDIR");
        bool all = e->scratch_dir || e->params.in_process;
        *ret_status = CL_SUCCESS;
        if (all ? !in->headers->data.size && !strstr(in->options, "-I") : !in->embedded)
                return false;
        int n = snprintf(folder, PATH_MAX, "%s/spancl-headers-XXXXXX",
                         base && *base == '/' ? base : "/tmp");
        if (n < PATH_MAX && folder_make_unique(folder))
                return true;
        *ret_status = CL_OUT_OF_RESOURCES;
        return false;
}

static cl_int write_headers(const char *folder, const struct build_input *in, char **ret_options)
{
        int r = engine_include_write(folder, content_bytes(in->headers));
        if (!r)
                r = engine_include_rewrite(folder, in->options, ret_options);
        if (!r)
                return CL_SUCCESS;
        log_warn("engine", "can't write headers below %s", folder);
        return r == SP_E_NOMEM ? CL_OUT_OF_HOST_MEMORY : CL_OUT_OF_RESOURCES;
}

static cl_int set_constants(struct build *b, struct backend_program *native, struct bytes constants)
{
        struct info_entry e;
        cl_int status = CL_SUCCESS;
        while (status == CL_SUCCESS && info_next(&constants, &e)) {
                const uint8_t *p = e.value.data;
                status = b->engine->be->program.constant(native, (cl_uint)bytes_get_u64(p),
                                                         bytes_of(p + 8, e.value.size - 8));
        }
        return status;
}

static cl_int native_run(struct build *b, struct backend_program *native, const unsigned *devices,
                         size_t count, const struct build_input *in, struct buf *info)
{
        const struct backend_ops *be = b->engine->be;
        char folder[PATH_MAX], *options = NULL;
        cl_int status;
        TRACE_SPAN(compile, b->program->object.id);
        bool own = make_folder(b, in, folder, &status);
        if (own)
                status = write_headers(folder, in, &options);
        if (status == CL_SUCCESS)
                status = set_constants(b, native, bytes_of(in->constants.data, in->constants.size));
        if (status == CL_SUCCESS)
                status = (in->compile ? be->program.compile : be->program.build)(
                        native, devices, count, own ? options : in->options, info);
        mem_free(options);
        if (own)
                engine_include_remove(folder);
        return status;
}

bool engine_part_has(const struct part *p, unsigned device)
{
        for (size_t i = 0; i < p->device_count; i++)
                if (p->devices[i] == device)
                        return true;
        return false;
}

/* The program in this domain came from the cache, for all of its devices, and one from its source
 * replaced it. Build that one for the devices outside this build, as they were. */
static cl_int restore(struct build *b, const struct part *p, struct backend_program *native,
                      const struct build_input *in)
{
        struct engine *e = b->engine;
        const struct program *program = b->program;
        unsigned *others = mem_alloc(program->device_count * sizeof(*others));
        size_t count = 0;
        if (!others)
                return CL_OUT_OF_HOST_MEMORY;
        for (size_t i = 0; i < program->device_count; i++)
                if (!engine_part_has(p, program->devices[i]) &&
                    e->be->device.domain(e->backend, program->devices[i]) == p->domain)
                        others[count++] = program->devices[i];
        struct buf info = { 0 };
        cl_int status = count ? native_run(b, native, others, count, in, &info) : CL_SUCCESS;
        buf_fini(&info);
        mem_free(others);
        return status;
}

/* Build from source, IL or binaries. */
static cl_int part_build(struct build *b, struct part *p)
{
        struct program_replica *r = engine_program_replica(b->program, p->domain);
        struct backend_program *native = NULL;
        if (!b->program->parts || !b->in.headers)
                return BUILD_NEEDS;
        lock(b);
        r->named = false;
        struct build_input *before = steal(r->cached);
        /* Make a new native program if possible. Commands not known to be complete may hold kernels
         * of the old one, which could then not be built. */
        if (before || p->whole)
                engine_program_replace(b->program, p->domain, NULL, NULL);
        cl_int status = engine_program_native(b->program, p->domain, &native);
        unlock(b);
        if (before) {
                if (status == CL_SUCCESS)
                        status = restore(b, p, native, before);
                build_input_fini(before);
                mem_free(before);
        }
        if (status < 0)
                return status;
        return native_run(b, native, p->devices, p->device_count, &b->in, &p->info);
}

/* Is the build's input here? */
bool engine_part_input(const struct build *b)
{
        return b->is_link || (b->program->parts && b->in.headers);
}

/* Look for the part in the cache. */
void engine_part_find(struct build *b, struct part *p)
{
        /* A program for several devices may have to be made again (restore). */
        if (!p->keyed || (p->device_count > 1 && !engine_part_input(b)) ||
            !cached_build_find(b->engine, &p->key, p->devices, p->device_count, &p->cached))
                return;
        p->found = !buf_put(&p->info, p->cached.info.data, p->cached.info.size);
        if (p->found)
                TRACE(cached, b->program->object.id);
}

/* Make the program from the cached value. False: that was not usable. */
static bool part_load(struct build *b, struct part *p)
{
        struct backend_program *native;
        struct build_input *in = NULL;
        struct buf binaries = { 0 };
        if (p->device_count > 1 && !b->is_link) {
                in = mem_zalloc(sizeof(*in));
                if (!in || build_input_copy(&b->in, in) < 0) {
                        mem_free(in);
                        return false;
                }
        }
        /* PoCL has no binaries of a program that was not built. */
        bool kept = p->cached.type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE ||
                    !cached_build_binaries(&p->cached, p->devices, p->device_count, &binaries);
        native = kept ? cached_build_load(b->engine, &p->key, &p->cached, p->domain, p->devices,
                                          p->device_count, b->is_link ? "" : b->in.options)
                      : NULL;
        if (!native) {
                buf_fini(&binaries);
                if (in)
                        build_input_fini(in);
                mem_free(in);
                return false;
        }
        lock(b);
        engine_program_replace(b->program, p->domain, native, in);
        engine_program_replica(b->program, p->domain)->binaries = binaries;
        unlock(b);
        return true;
}

static cl_int part_link(struct build *b, struct part *p)
{
        struct engine *e = b->engine;
        struct backend_program **inputs = mem_alloc(b->input_count * sizeof(*inputs)), *made;
        cl_int status = inputs ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
        lock(b);
        for (size_t i = 0; i < b->input_count && status == CL_SUCCESS; i++)
                status = engine_program_native(b->inputs[i], p->domain, &inputs[i]);
        unlock(b);
        if (status == CL_SUCCESS) {
                TRACE_SPAN(compile, b->program->object.id);
                status =
                        e->be->program.link(e->backend, p->domain, p->devices, p->device_count,
                                            inputs, b->input_count, b->in.options, &p->info, &made);
        }
        mem_free(inputs);
        if (status == CL_SUCCESS) {
                lock(b);
                engine_program_replace(b->program, p->domain, made, NULL);
                unlock(b);
        }
        return status;
}

/* Store the part's key in the program, since the program may be a link's input. */
static void part_name(struct build *b, const struct part *p)
{
        struct program_replica *r = engine_program_replica(b->program, p->domain);
        lock(b);
        r->name = p->key;
        r->named = true;
        unlock(b);
}

/* Store the part. The client's process does it at once, because later it may be about to end, and
 * the implementation with it. */
static void part_store(struct build *b, struct part *p)
{
        cached_build_store(b->engine, &p->key,
                           engine_program_replica(b->program, p->domain)->native, p->devices,
                           p->device_count, bytes_of(p->info.data, p->info.size));
        p->keyed = false;
}

void engine_part_run(struct build *b, struct part *p)
{
        p->loaded = p->found && part_load(b, p);
        cached_build_fini(&p->cached);
        if (!p->loaded) {
                p->info.size = 0;
                p->status = b->is_link ? part_link(b, p) : part_build(b, p);
        }
        if (p->keyed && p->status == CL_SUCCESS)
                part_name(b, p);
        if (p->keyed && p->status == CL_SUCCESS && !p->loaded && b->engine->params.in_process)
                part_store(b, p);
}
