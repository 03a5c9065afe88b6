/* Programs: created from the message's parts, built on any thread, described by info records. */
#include "backend/native/program.h"

#include "backend/emit.h"
#include "backend/native/kernelinfo.h"
#include "backend/native/kernellist.h"
#include "backend/native/room.h"
#include "os/lock.h"

/* Kinds of program_create, and what program_link makes. */
enum { SOURCE, BINARIES, IL, BUILT_IN, LINKED };

/* ---- creation ------------------------------------------------------------------------------- */

/* The native ids of backend devices; false: one is not of this domain. */
static bool take_devices(struct native_domain *domain, struct backend *b, const unsigned *devices,
                         size_t count, cl_device_id *ret)
{
        for (size_t i = 0; i < count; i++) {
                if (devices[i] >= b->device_count ||
                    &b->domains[b->devices[devices[i]].domain] != domain)
                        return false;
                ret[i] = b->devices[devices[i]].context_id;
        }
        return true;
}

static cl_program create_from_source(struct native_domain *d, struct bytes part, cl_int *err)
{
        const char *text = part.size ? part.data : "";
        return d->api->clCreateProgramWithSource(d->context, 1, &text, &part.size, err);
}

static cl_program create_from_binaries(struct native_domain *d, const cl_device_id *ids,
                                       size_t count, struct bytes parts, cl_int *err)
{
        *err = CL_OUT_OF_HOST_MEMORY;
        size_t *sizes = mem_alloc(count * sizeof(*sizes));
        const unsigned char **data = mem_alloc(count * sizeof(*data));
        cl_program program = NULL;
        if (sizes && data) {
                struct info_entry e;
                size_t n = 0;
                while (n < count && info_next(&parts, &e)) {
                        sizes[n] = e.value.size;
                        data[n++] = e.value.data;
                }
                *err = CL_INVALID_VALUE;
                if (n == count && d->api->clCreateProgramWithBinary)
                        program = d->api->clCreateProgramWithBinary(d->context, (cl_uint)count, ids,
                                                                    sizes, data, NULL, err);
        }
        mem_free(sizes);
        mem_free(data);
        return program;
}

static cl_program create_from_il(struct native_domain *d, struct bytes part, cl_int *err)
{
        if (d->api->clCreateProgramWithIL)
                return d->api->clCreateProgramWithIL(d->context, part.data, part.size, err);
        /* cl_khr_il_program, with OpenCL 1.2 and 2.0 */
        clCreateProgramWithILKHR_fn create = NULL;
        if (d->api->clGetExtensionFunctionAddressForPlatform) {
                void *found = d->api->clGetExtensionFunctionAddressForPlatform(
                        d->platform->id, "clCreateProgramWithILKHR");
                memcpy(&create, &found, sizeof(create));
        }
        *err = CL_INVALID_OPERATION;
        return create ? create(d->context, part.data, part.size, err) : NULL;
}

static cl_program create_built_in(struct native_domain *d, const cl_device_id *ids, size_t count,
                                  struct bytes part, cl_int *err)
{
        *err = CL_INVALID_VALUE;
        if (!d->api->clCreateProgramWithBuiltInKernels)
                return NULL;
        char *names = mem_alloc(part.size + 1);
        if (!names) {
                *err = CL_OUT_OF_HOST_MEMORY;
                return NULL;
        }
        if (part.size)
                memcpy(names, part.data, part.size);
        names[part.size] = '\0';
        cl_program program = d->api->clCreateProgramWithBuiltInKernels(d->context, (cl_uint)count,
                                                                       ids, names, err);
        mem_free(names);
        return program;
}

static cl_program create(struct native_domain *d, unsigned kind, const cl_device_id *ids,
                         size_t count, struct bytes parts, cl_int *err)
{
        struct bytes part;
        if (kind == BINARIES)
                return create_from_binaries(d, ids, count, parts, err);
        *err = CL_INVALID_VALUE;
        if (!info_find(parts, INFO_PART, &part))
                return NULL;
        switch (kind) {
        case SOURCE:
                return create_from_source(d, part, err);
        case IL:
                return create_from_il(d, part, err);
        case BUILT_IN:
                return create_built_in(d, ids, count, part, err);
        default:
                return NULL;
        }
}

static void start(struct backend_program *p, struct backend *b, struct native_domain *d,
                  cl_program program, unsigned kind)
{
        *p = (struct backend_program){
                .backend = b, .domain = d, .program = program, .kind = kind
        };
        lock_init(&p->binaries_turn);
}

cl_int native_program_create(struct backend *b, unsigned domain, unsigned kind,
                             const unsigned *devices, size_t device_count, struct bytes parts,
                             struct backend_program **ret)
{
        if (domain >= b->domain_count)
                return CL_INVALID_CONTEXT;
        struct native_domain *d = &b->domains[domain];
        cl_device_id *ids = mem_alloc(device_count * sizeof(*ids));
        struct backend_program *p = mem_zalloc(sizeof(*p));
        cl_int err = CL_OUT_OF_HOST_MEMORY;
        cl_program program = NULL;
        if (ids && p) {
                err = CL_INVALID_DEVICE;
                if (take_devices(d, b, devices, device_count, ids)) {
                        op_enter();
                        program = create(d, kind, ids, device_count, parts, &err);
                        op_leave();
                }
        }
        mem_free(ids);
        if (!program) {
                mem_free(p);
                return err ? err : CL_OUT_OF_RESOURCES;
        }
        start(p, b, d, program, kind);
        *ret = p;
        return CL_SUCCESS;
}

void native_program_release(struct backend_program *p)
{
        if (!p)
                return;
        op_enter();
        p->domain->api->clReleaseProgram(p->program);
        op_leave();
        lock_fini(&p->binaries_turn);
        mem_free(p);
}

/* ---- building ------------------------------------------------------------------------------- */

static const char arg_info_option[] = "-cl-kernel-arg-info";

static cl_int run(struct backend_program *p, const cl_device_id *ids, size_t count,
                  const char *options, bool compile)
{
        const cl_icd_dispatch *api = p->domain->api;
        if (!compile)
                return api->clBuildProgram(p->program, (cl_uint)count, ids, options, NULL, NULL);
        if (!api->clCompileProgram)
                return CL_COMPILER_NOT_AVAILABLE;
        cl_int r = api->clCompileProgram(p->program, (cl_uint)count, ids, options, 0, NULL, NULL,
                                         NULL, NULL);
        /* clCompileProgram: CL_COMPILE_PROGRAM_FAILURE. Oclgrind 21.10 has clBuildProgram's error. */
        return r == CL_BUILD_PROGRAM_FAILURE ? CL_COMPILE_PROGRAM_FAILURE : r;
}

/* Replace a program that was built by a new one of the same source or IL. Done if the
 * implementation needs that to build again, and if no build for other devices is lost. */
static cl_int renew(struct backend_program *p, size_t device_count)
{
        if (!p->built || (p->kind != SOURCE && p->kind != IL) ||
            p->domain->quirks->rebuild != REBUILD_ANEW)
                return CL_SUCCESS;
        const cl_icd_dispatch *api = p->domain->api;
        cl_program_info from = p->kind == IL ? CL_PROGRAM_IL : CL_PROGRAM_SOURCE;
        cl_uint all = 0;
        size_t size = 0;
        cl_int r =
                api->clGetProgramInfo(p->program, CL_PROGRAM_NUM_DEVICES, sizeof(all), &all, NULL);
        if (!r && device_count == all)
                r = api->clGetProgramInfo(p->program, from, 0, NULL, &size);
        if (r || !size)
                return r;
        char *text = mem_alloc(size);
        if (!text)
                return CL_OUT_OF_HOST_MEMORY;
        cl_program made = NULL;
        r = api->clGetProgramInfo(p->program, from, size, text, NULL);
        if (!r)
                made = p->kind == IL ? create_from_il(p->domain, bytes_of(text, size), &r)
                                     : create_from_source(p->domain, bytes_of(text, size - 1), &r);
        mem_free(text);
        if (made) {
                api->clReleaseProgram(p->program);
                p->program = made;
                p->built = false;
        }
        return r;
}

static cl_int build(struct backend_program *p, const cl_device_id *ids, size_t count,
                    const char *options, bool compile)
{
        const struct native_domain *d = p->domain;
        if (atomic_load(&d->broken))
                return CL_OUT_OF_RESOURCES;
        enum arg_info how = d->quirks->arg_info;
        /* Where the option may harm, an object is compiled without it: the link that fails because of it comes too
         * late to compile the object again. */
        bool harmless = how == ARG_INFO_ADD || (how == ARG_INFO_RETRY && !compile);
        bool add = p->kind == SOURCE && d->platform->version >= 120 && harmless &&
                   !strstr(options, arg_info_option);
        if (add) {
                size_t n = strlen(options);
                char *more = mem_alloc(n + sizeof(arg_info_option) + 1);
                if (!more)
                        return CL_OUT_OF_HOST_MEMORY;
                memcpy(more, options, n);
                more[n] = ' ';
                memcpy(more + n + 1, arg_info_option, sizeof(arg_info_option));
                cl_int r = run(p, ids, count, n ? more : more + 1, compile);
                mem_free(more);
                bool retry = d->quirks->arg_info == ARG_INFO_RETRY &&
                             (r == CL_BUILD_PROGRAM_FAILURE || r == CL_INVALID_BUILD_OPTIONS ||
                              r == CL_COMPILE_PROGRAM_FAILURE || r == CL_INVALID_COMPILER_OPTIONS);
                if (!retry)
                        return r;
        }
        cl_int r = run(p, ids, count, options, compile);
        /* clBuildProgram: CL_INVALID_OPERATION if the program was made from built-in kernels; they need
         * no build. */
        return p->kind == BUILT_IN && r == CL_INVALID_OPERATION ? CL_SUCCESS : r;
}

/* Several domains build the same program, or give its binary, at the same time. Where these would change the cache on
 * disk under each other, one after the other. NULL: they need not. */
static struct lock *take_turn(const struct backend *b, const struct native_domain *d) LOCK_UNCHECKED
{
        static struct lock one_at_a_time = LOCK_INIT;
        if (d->quirks->disk_cache != DISK_CACHE_RACES || b->domain_count < 2)
                return NULL;
        lock_take(&one_at_a_time);
        return &one_at_a_time;
}

static void end_turn(struct lock *turn) LOCK_UNCHECKED
{
        if (turn)
                lock_release(turn);
}

/* May it be better a second time, because another process changed the cache on disk meanwhile? */
static bool was_disturbed(const struct native_domain *d, cl_program made, cl_int r, bool executable)
{
        cl_uint kernels = 0;
        if (d->quirks->disk_cache != DISK_CACHE_RACES)
                return false;
        if (r == CL_SUCCESS)
                return executable &&
                       d->api->clCreateKernelsInProgram(made, 0, NULL, &kernels) == CL_SUCCESS &&
                       !kernels;
        return r == CL_BUILD_PROGRAM_FAILURE || r == CL_COMPILE_PROGRAM_FAILURE ||
               r == CL_LINK_PROGRAM_FAILURE;
}

/* The driver's log, and behind it `note`. */
static void emit_log(struct emit *e, struct backend_program *p, cl_device_id id, const char *note)
{
        __typeof__(clGetProgramBuildInfo) *ask = p->domain->api->clGetProgramBuildInfo;
        size_t size = 0, note_size = strlen(note) + 1;
        char *text = NULL;
        if (ask(p->program, id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) == CL_SUCCESS && size)
                text = mem_zalloc(size + 1 + note_size);
        if (text && ask(p->program, id, CL_PROGRAM_BUILD_LOG, size, text, NULL) == CL_SUCCESS)
                emit_str(e, CL_PROGRAM_BUILD_LOG, strcat(text, note));
        else
                emit_str(e, CL_PROGRAM_BUILD_LOG, note);
        mem_free(text);
}

static void emit_build(struct emit *e, struct backend_program *p, unsigned number, cl_int result)
{
        __typeof__(clGetProgramBuildInfo) *ask = p->domain->api->clGetProgramBuildInfo;
        cl_device_id id = p->backend->devices[number].context_id;
        cl_int status;
        cl_uint type;
        size_t globals;
        char note[ROOM_NOTE_MAX] = "";
        size_t mark = emit_begin(e, INFO_BUILD);
        emit_u64(e, INFO_BUILD_DEVICE, number);
        if (ask(p->program, id, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status, NULL) !=
                    CL_SUCCESS ||
            (p->kind == BUILT_IN && result == CL_SUCCESS))
                status = result == CL_SUCCESS ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
        emit_data(e, CL_PROGRAM_BUILD_STATUS, &status, sizeof(status));
        if (result != CL_SUCCESS)
                room_note(note);
        emit_log(e, p, id, note);
        if (ask(p->program, id, CL_PROGRAM_BINARY_TYPE, sizeof(type), &type, NULL) == CL_SUCCESS)
                emit_uint(e, CL_PROGRAM_BINARY_TYPE, type);
        if (ask(p->program, id, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE, sizeof(globals),
                &globals, NULL) == CL_SUCCESS)
                emit_data(e, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE, &globals,
                          sizeof(globals));
        emit_end(e, mark);
}

static void emit_kernels(struct emit *e, struct backend_program *p, const unsigned *devices,
                         size_t device_count)
{
        cl_kernel *kernels = NULL;
        cl_uint count = kernellist_new(p, devices[0], &kernels);
        for (cl_uint i = 0; i < count; i++) {
                kernelinfo_emit(e, p, kernels[i], devices, device_count);
                p->domain->api->clReleaseKernel(kernels[i]);
        }
        mem_free(kernels);
}

static cl_int build_and_notify(struct backend_program *p, const unsigned *devices,
                               size_t device_count, const char *options, bool compile,
                               struct buf *info)
{
        cl_device_id *ids = mem_alloc(device_count * sizeof(*ids));
        if (!ids)
                return CL_OUT_OF_HOST_MEMORY;
        if (!device_count || !take_devices(p->domain, p->backend, devices, device_count, ids)) {
                mem_free(ids);
                return CL_INVALID_DEVICE;
        }
        struct lock *turn = take_turn(p->backend, p->domain);
        cl_int r = renew(p, device_count);
        if (!r)
                r = build(p, ids, device_count, options ? options : "", compile);
        if (was_disturbed(p->domain, p->program, r, !compile))
                r = build(p, ids, device_count, options ? options : "", compile);
        end_turn(turn);
        p->built = true;
        p->failed = r != CL_SUCCESS;
        mem_free(ids);
        if (!info)
                return r;

        struct emit e = { .out = info };
        for (size_t i = 0; i < device_count; i++)
                emit_build(&e, p, devices[i], r);
        if (r == CL_SUCCESS && !compile)
                emit_kernels(&e, p, devices, device_count);
        return e.status < 0 ? CL_OUT_OF_HOST_MEMORY : r;
}

cl_int native_program_build(struct backend_program *p, const unsigned *devices, size_t device_count,
                            const char *options, struct buf *info)
{
        return build_and_notify(p, devices, device_count, options, false, info);
}

cl_int native_program_compile(struct backend_program *p, const unsigned *devices,
                              size_t device_count, const char *options, struct buf *info)
{
        return build_and_notify(p, devices, device_count, options, true, info);
}

cl_int native_program_constant(struct backend_program *p, cl_uint id, struct bytes value)
{
        const cl_icd_dispatch *api = p->domain->api;
        cl_int r = renew(p, 1);
        if (r < 0)
                return r;
        return api->clSetProgramSpecializationConstant
                       ? api->clSetProgramSpecializationConstant(p->program, id, value.size,
                                                                 value.data)
                       : CL_INVALID_OPERATION;
}

cl_program_binary_type native_program_type(struct backend_program *p, unsigned device)
{
        cl_program_binary_type type;
        return p->domain->api->clGetProgramBuildInfo(
                       p->program, p->backend->devices[device].context_id, CL_PROGRAM_BINARY_TYPE,
                       sizeof(type), &type, NULL) == CL_SUCCESS
                       ? type
                       : CL_PROGRAM_BINARY_TYPE_NONE;
}

/* Is it an executable for all devices, and no library? */
static bool is_executable(struct backend_program *p, const unsigned *devices, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (native_program_type(p, devices[i]) == CL_PROGRAM_BINARY_TYPE_LIBRARY)
                        return false;
        return true;
}

static cl_program link_programs(struct native_domain *d, const cl_device_id *ids, size_t id_count,
                                const cl_program *programs, size_t count, const char *options,
                                cl_int *ret)
{
        return d->api->clLinkProgram(d->context, (cl_uint)id_count, ids, options, (cl_uint)count,
                                     programs, NULL, NULL, ret);
}

cl_int native_program_link(struct backend *b, unsigned domain, const unsigned *devices,
                           size_t device_count, struct backend_program *const *inputs,
                           size_t input_count, const char *options, struct buf *info,
                           struct backend_program **ret)
{
        if (domain >= b->domain_count)
                return CL_INVALID_CONTEXT;
        struct native_domain *d = &b->domains[domain];
        if (!d->api->clLinkProgram)
                return CL_LINKER_NOT_AVAILABLE;
        if (atomic_load(&d->broken))
                return CL_OUT_OF_RESOURCES;
        cl_device_id *ids = mem_alloc(device_count * sizeof(*ids));
        cl_program *programs = mem_alloc(input_count * sizeof(cl_program));
        struct backend_program *p = mem_zalloc(sizeof(*p));
        cl_int r = ids && programs && p ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
        if (!r && !take_devices(d, b, devices, device_count, ids))
                r = CL_INVALID_DEVICE;
        cl_program made = NULL;
        if (!r) {
                for (size_t i = 0; i < input_count; i++)
                        programs[i] = inputs[i]->program;
                struct lock *turn = take_turn(b, d);
                made = link_programs(d, ids, device_count, programs, input_count, options, &r);
                if (was_disturbed(d, made, r, false)) {
                        if (made)
                                d->api->clReleaseProgram(made);
                        made = link_programs(d, ids, device_count, programs, input_count, options,
                                             &r);
                }
                end_turn(turn);
        }
        mem_free(ids);
        mem_free(programs);
        if (!made) {
                mem_free(p);
                return r ? r : CL_OUT_OF_RESOURCES;
        }
        start(p, b, d, made, LINKED);
        struct emit e = { .out = info };
        for (size_t i = 0; i < device_count; i++)
                emit_build(&e, p, devices[i], r);
        if (r == CL_SUCCESS && is_executable(p, devices, device_count))
                emit_kernels(&e, p, devices, device_count);
        if (e.status < 0)
                r = CL_OUT_OF_HOST_MEMORY;
        if (r == CL_SUCCESS)
                *ret = p;
        else
                native_program_release(p);
        return r;
}

/* ---- binaries ------------------------------------------------------------------------------- */

bool native_binary_is_dear(struct backend *b, unsigned domain)
{
        return domain < b->domain_count && b->domains[domain].quirks->binary == BINARY_COMPILES;
}

/* The binary of the program's device number `which` of `count`. All are fetched: a NULL pointer for those that
 * are not wanted (clGetProgramInfo, CL_PROGRAM_BINARIES) is written to by NVIDIA's driver and refused by Intel's. */
static cl_int ask_binary(struct backend_program *p, size_t which, size_t count, const size_t *sizes,
                         struct buf *out)
{
        size_t list = count * sizeof(unsigned char *), total = 0;
        for (size_t i = 0; i < count; i++)
                total += sizes[i];
        unsigned char **pointers = mem_zalloc(list), *all = mem_alloc(total);
        cl_int r = pointers && all ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
        for (size_t i = 0, at = 0; !r && i < count; at += sizes[i++])
                pointers[i] = all + at;
        if (!r && total)
                r = p->domain->api->clGetProgramInfo(p->program, CL_PROGRAM_BINARIES, list,
                                                     pointers, NULL);
        if (!r && info_put(out, INFO_PART, pointers[which], sizes[which]) < 0)
                r = CL_OUT_OF_HOST_MEMORY;
        mem_free(all);
        mem_free(pointers);
        return r;
}

cl_int native_program_binary(struct backend_program *p, unsigned device, struct buf *out)
{
        if (device >= p->backend->device_count)
                return CL_INVALID_DEVICE;
        if (p->failed)
                return info_put(out, INFO_PART, NULL, 0) < 0 ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
        cl_device_id id = p->backend->devices[device].context_id;
        __typeof__(clGetProgramInfo) *ask = p->domain->api->clGetProgramInfo;
        cl_uint count = 0;
        op_enter();
        /* PoCL compiles for it, and reads its cache on disk. */
        struct lock *turn = take_turn(p->backend, p->domain);
        lock_take(&p->binaries_turn);
        cl_int r = ask(p->program, CL_PROGRAM_NUM_DEVICES, sizeof(count), &count, NULL);
        cl_device_id *ids = mem_alloc(count * sizeof(cl_device_id));
        size_t *sizes = mem_alloc(count * sizeof(*sizes));
        if (r == CL_SUCCESS && (!ids || !sizes))
                r = CL_OUT_OF_HOST_MEMORY;
        if (r == CL_SUCCESS)
                r = ask(p->program, CL_PROGRAM_DEVICES, count * sizeof(cl_device_id), ids, NULL);
        if (r == CL_SUCCESS)
                r = ask(p->program, CL_PROGRAM_BINARY_SIZES, count * sizeof(*sizes), sizes, NULL);
        if (r == CL_SUCCESS) {
                size_t which = 0;
                while (which < count && ids[which] != id)
                        which++;
                r = which < count ? ask_binary(p, which, count, sizes, out) : CL_INVALID_DEVICE;
        }
        lock_release(&p->binaries_turn);
        end_turn(turn);
        op_leave();
        mem_free(ids);
        mem_free(sizes);
        return r;
}
