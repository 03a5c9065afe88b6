/* Programs that are compiled for a unit (isa=rv32im), and their kernels; such a unit is alone in its domain. */

#include "backend/almaif/program.h"

#include "backend/almaif/code.h"
#include "backend/almaif/launch.h"
#include "backend/almaif/memory.h"
#include "base/mem.h"
#include "os/elf.h"

enum { KIND_SOURCE, KIND_BINARY };

/* The signature of a file's kind: a program to be run, or an object to be linked. */
static bool is_object(const struct buf *b)
{
        return b->size > 18 && bytes_get_u16(b->data + 16) == ET_REL;
}

static cl_int of_text(int r)
{
        return r < 0 ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
}

static cl_int take_binary(struct backend_program *p, struct bytes binary)
{
        char error[RISCV_ERROR_SIZE];
        struct buf copy = { 0 };
        if (buf_put(&copy, binary.data, binary.size) < 0)
                return CL_OUT_OF_HOST_MEMORY;
        if (binary.size > SELFMAG && !memcmp(binary.data, ELFMAG, SELFMAG) && is_object(&copy)) {
                p->object = copy;
                return CL_SUCCESS;
        }
        int r = riscv_program_new(&copy, &p->code, error);
        if (r < 0)
                buf_fini(&copy);
        return r == SP_E_NOMEM ? CL_OUT_OF_HOST_MEMORY : r < 0 ? CL_INVALID_BINARY : CL_SUCCESS;
}

bool code_program_is(const struct domain *d, unsigned kind)
{
        return d->units[0]->code.riscv && kind <= KIND_BINARY;
}

cl_int code_program_init(struct backend_program *p, unsigned kind, struct bytes parts)
{
        struct bytes part;
        p->compiled = true;
        p->from_source = kind == KIND_SOURCE;
        if (!info_find(parts, INFO_PART, &part))
                return CL_INVALID_VALUE;
        if (kind == KIND_SOURCE)
                return of_text(buf_put(&p->source, part.data, part.size));
        return take_binary(p, part);
}

void code_program_fini(struct backend_program *p)
{
        riscv_program_unref(p->code);
        buf_fini(&p->source);
        buf_fini(&p->object);
}

/* ---- building ------------------------------------------------------------------------------- */

static cl_int notify(const struct backend_program *p, cl_int status, const unsigned *devices,
                     size_t device_count, struct buf *log, struct buf *info)
{
        struct emit e = { .out = info };
        cl_program_binary_type type = p && p->code ? CL_PROGRAM_BINARY_TYPE_EXECUTABLE
                                      : p && p->object.size
                                              ? p->library ? CL_PROGRAM_BINARY_TYPE_LIBRARY
                                                           : CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT
                                              : CL_PROGRAM_BINARY_TYPE_NONE;
        if (buf_put(log, "", 1) < 0)
                return CL_OUT_OF_HOST_MEMORY;
        for (size_t i = 0; i < device_count; i++) {
                cl_int built = status == CL_SUCCESS ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
                size_t globals = 0, mark = emit_begin(&e, INFO_BUILD);
                emit_u64(&e, INFO_BUILD_DEVICE, devices[i]);
                emit_data(&e, CL_PROGRAM_BUILD_STATUS, &built, sizeof(built));
                emit_data(&e, CL_PROGRAM_BUILD_LOG, log->data, log->size);
                emit_uint(&e, CL_PROGRAM_BINARY_TYPE,
                          status == CL_SUCCESS ? type : CL_PROGRAM_BINARY_TYPE_NONE);
                emit_data(&e, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE, &globals,
                          sizeof(globals));
                emit_end(&e, mark);
        }
        if (status == CL_SUCCESS && p->code)
                riscv_program_describe(&e, p->code, devices, device_count,
                                       p->domain->units[0]->code.group_max);
        return e.status < 0 ? CL_OUT_OF_HOST_MEMORY : status;
}

static cl_int finish(const struct backend_program *p, cl_int status, const unsigned *devices,
                     size_t device_count, struct buf *log, struct buf *info)
{
        if (info && (status == CL_SUCCESS || log->size))
                status = notify(p, status, devices, device_count, log, info);
        buf_fini(log);
        return status;
}

static cl_int no_compiler(struct buf *log)
{
        static const char text[] =
                "There is no compiler: neither clang in PATH, nor another by the option clang=.\n";
        return buf_put(log, text, sizeof(text) - 1) < 0 ? CL_OUT_OF_HOST_MEMORY
                                                        : CL_COMPILER_NOT_AVAILABLE;
}

static cl_int link_objects(const struct riscv_compiler *c, const struct bytes *objects,
                           size_t count, bool library, struct backend_program *ret, struct buf *log)
{
        struct buf out = { 0 };
        char error[RISCV_ERROR_SIZE];
        cl_int status = riscv_link(c, objects, count, library, &out, log);
        if (status == CL_SUCCESS && library) {
                buf_fini(&ret->object);
                ret->object = out;
                ret->library = true;
                return CL_SUCCESS;
        }
        if (status == CL_SUCCESS) {
                struct riscv_program *code;
                int r = riscv_program_new(&out, &code, error);
                if (!r) {
                        riscv_program_unref(ret->code);
                        ret->code = code;
                } else {
                        status = r == SP_E_NOMEM || buf_put(log, error, strlen(error)) < 0
                                         ? CL_OUT_OF_HOST_MEMORY
                                         : CL_LINK_PROGRAM_FAILURE;
                }
        }
        buf_fini(&out);
        return status;
}

static cl_int compile_source(struct backend_program *p, const char *options, struct buf *log)
{
        struct buf object = { 0 };
        const struct riscv_compiler *c = p->domain->units[0]->code.compiler;
        if (!c)
                return no_compiler(log);
        cl_int status =
                riscv_compile(c, bytes_of(p->source.data, p->source.size), options, &object, log);
        if (status == CL_SUCCESS) {
                buf_fini(&p->object);
                p->object = object;
        } else {
                buf_fini(&object);
        }
        return status;
}

cl_int code_program_build(struct backend_program *p, const unsigned *devices, size_t device_count,
                          const char *options, struct buf *info)
{
        struct buf log = { 0 };
        cl_int status = CL_SUCCESS;
        if (!p->from_source && !p->code)
                return CL_INVALID_BINARY; /* an object, which is to be linked */
        if (p->from_source) {
                status = compile_source(p, options, &log);
                struct bytes object = bytes_of(p->object.data, p->object.size);
                if (status == CL_SUCCESS)
                        status = link_objects(p->domain->units[0]->code.compiler, &object, 1, false,
                                              p, &log);
                buf_fini(&p->object);
        }
        if (status == CL_COMPILE_PROGRAM_FAILURE || status == CL_LINK_PROGRAM_FAILURE)
                status = CL_BUILD_PROGRAM_FAILURE;
        if (status == CL_INVALID_COMPILER_OPTIONS)
                status = CL_INVALID_BUILD_OPTIONS;
        return finish(p, status, devices, device_count, &log, info);
}

cl_int code_program_compile(struct backend_program *p, const unsigned *devices, size_t device_count,
                            const char *options, struct buf *info)
{
        struct buf log = { 0 };
        if (!p->from_source)
                return CL_INVALID_OPERATION;
        cl_int status = compile_source(p, options, &log);
        if (status == CL_SUCCESS) {
                riscv_program_unref(p->code);
                p->code = NULL;
        }
        return finish(p, status, devices, device_count, &log, info);
}

/* OpenCL 3.0, 5.8.5.2: of these, only what makes a library means something here. */
static bool link_options(const char *options, bool *library)
{
        static const char *const known[] = {
                "-enable-link-options", "-cl-denorms-are-zero",
                "-cl-no-signed-zeros",  "-cl-unsafe-math-optimizations",
                "-cl-finite-math-only", "-cl-fast-relaxed-math",
                "-cl-no-subgroup-ifp"
        };
        *library = false;
        for (const char *p = options ? options : ""; *p;) {
                size_t n = strcspn(p, " "), i = 0;
                bool good = !n;
                if (n == 15 && !memcmp(p, "-create-library", n))
                        good = *library = true;
                for (; n && i < array_size(known); i++)
                        good |= strlen(known[i]) == n && !memcmp(p, known[i], n);
                if (!good)
                        return false;
                p += n + (p[n] != 0);
        }
        return true;
}

cl_int code_program_link(struct domain *d, const unsigned *devices, size_t device_count,
                         struct backend_program *const *inputs, size_t input_count,
                         const char *options, struct buf *info, struct backend_program *ret)
{
        struct buf log = { 0 };
        bool library;
        if (!link_options(options, &library))
                return CL_INVALID_LINKER_OPTIONS;
        ret->compiled = true;
        struct bytes *objects = mem_alloc(input_count * sizeof(*objects) + 1);
        cl_int status = objects ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
        for (size_t i = 0; status == CL_SUCCESS && i < input_count; i++) {
                if (!inputs[i]->compiled || !inputs[i]->object.size)
                        status = CL_INVALID_OPERATION;
                else
                        objects[i] = bytes_of(inputs[i]->object.data, inputs[i]->object.size);
        }
        if (status == CL_SUCCESS)
                status = d->units[0]->code.compiler
                                 ? link_objects(d->units[0]->code.compiler, objects, input_count,
                                                library, ret, &log)
                                 : CL_LINKER_NOT_AVAILABLE;
        mem_free(objects);
        return finish(ret, status, devices, device_count, &log, info);
}

cl_int code_program_binary(struct backend_program *p, struct buf *out)
{
        const struct buf *b = p->code ? &p->code->elf : &p->object;
        return of_text(info_put(out, INFO_PART, b->data, b->size));
}

/* ---- kernels -------------------------------------------------------------------------------- */

static void kernel_free(struct code_kernel *k)
{
        for (unsigned i = 0; k->args && i < k->kernel->arg_count; i++)
                buffer_unref(k->args[i].buffer);
        riscv_program_unref(k->program);
        mem_free(k->args);
        mem_free(k->block);
        mem_free(k);
}

cl_int code_kernel_new(struct backend_program *p, const char *name, struct code_kernel **ret)
{
        const struct riscv_kernel *found = p->code ? riscv_program_find(p->code, name) : NULL;
        if (!p->code)
                return CL_INVALID_PROGRAM_EXECUTABLE;
        if (!found)
                return CL_INVALID_KERNEL_NAME;
        struct code_kernel *k = mem_zalloc(sizeof(*k));
        if (!k)
                return CL_OUT_OF_HOST_MEMORY;
        k->kernel = found;
        k->program = riscv_program_ref(p->code);
        k->args = mem_zalloc((found->arg_count + 1) * sizeof(*k->args));
        k->block = mem_zalloc(found->args_size + 1);
        if (!k->args || !k->block) {
                kernel_free(k);
                return CL_OUT_OF_HOST_MEMORY;
        }
        *ret = k;
        return CL_SUCCESS;
}

void code_kernel_release(struct code_kernel *k)
{
        if (k)
                kernel_free(k);
}

cl_int code_kernel_set_arg(struct code_kernel *k, const struct domain *d, const struct arg *a,
                           struct backend_buffer *buffer)
{
        if (a->index >= k->kernel->arg_count)
                return CL_INVALID_ARG_INDEX;
        const struct riscv_arg *want = &k->kernel->args[a->index];
        struct code_arg *arg = &k->args[a->index];
        if (want->kind == ARG_BUFFER) {
                if (a->kind != ARG_BUFFER)
                        return a->kind == ARG_SVM ? CL_INVALID_ARG_VALUE : CL_INVALID_ARG_SIZE;
                if (buffer && buffer->domain != d)
                        return CL_INVALID_MEM_OBJECT;
                buffer_ref(buffer);
                buffer_unref(arg->buffer);
                arg->buffer = buffer;
        } else if (want->kind == ARG_LOCAL) {
                if (a->kind != ARG_LOCAL || !a->size)
                        return CL_INVALID_ARG_SIZE;
                arg->local_size = a->size;
        } else {
                if (a->kind != ARG_VALUE || a->size != want->size)
                        return CL_INVALID_ARG_SIZE;
                memcpy(k->block + want->at, a->value, a->size);
        }
        arg->set = true;
        return CL_SUCCESS;
}

/* ---- launches ------------------------------------------------------------------------------- */

enum { LOCAL_ALIGN = 128, GROUP_WANTED = 64 };

static uint64_t local_aligned(uint64_t n)
{
        return (n + LOCAL_ALIGN - 1) / LOCAL_ALIGN * LOCAL_ALIGN;
}

cl_int code_launch_check(const struct unit *u, const struct code_kernel *k,
                         const struct backend_command *c)
{
        uint64_t local = 0, group = 1;
        for (unsigned i = 0; i < c->dims; i++) {
                if (c->offset && c->offset[i] + c->global[i] > UINT32_MAX)
                        return CL_INVALID_GLOBAL_OFFSET;
                group *= c->local ? c->local[i] : 1;
        }
        if (group > u->code.group_max)
                return CL_INVALID_WORK_GROUP_SIZE;
        for (unsigned i = 0; i < 3 && k->kernel->required[0]; i++) {
                size_t size = c->local && i < c->dims ? c->local[i] : 1;
                if (c->local && size != k->kernel->required[i])
                        return CL_INVALID_WORK_GROUP_SIZE;
        }
        for (unsigned i = 0; i < k->kernel->arg_count; i++) {
                if (!k->args[i].set)
                        return CL_INVALID_KERNEL_ARGS;
                if (k->args[i].local_size > RISCV_LOCAL_SIZE)
                        return CL_OUT_OF_RESOURCES;
                local += local_aligned(k->args[i].local_size);
        }
        return local > RISCV_LOCAL_SIZE ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

/* The largest divisors that make a group of not more than wanted. */
static void choose_group(const struct unit *u, const struct riscv_kernel *k,
                         const struct backend_command *c, uint16_t ret[3])
{
        size_t left = u->code.group_max < GROUP_WANTED ? u->code.group_max : GROUP_WANTED;
        for (unsigned i = 0; i < 3; i++) {
                ret[i] = 1;
                if (k->required[0])
                        ret[i] = (uint16_t)k->required[i];
                else if (c->local && i < c->dims)
                        ret[i] = (uint16_t)c->local[i];
                else if (!c->local && i < c->dims)
                        for (size_t n = 1; n <= left && n <= c->global[i]; n++)
                                if (c->global[i] % n == 0)
                                        ret[i] = (uint16_t)n;
                left /= ret[i] < left ? ret[i] : left;
        }
}

cl_int code_launch_prepare(struct command *k, const struct code_kernel *kernel)
{
        struct unit *u = k->queue->unit;
        const struct riscv_kernel *r = kernel->kernel;
        uint64_t local = 0, at = 0;
        uint16_t group[3];
        k->code = riscv_program_ref(kernel->program);
        cl_int status = code_place(u, kernel->program, &at);
        if (status != CL_SUCCESS)
                return status;
        choose_group(u, r, &k->c, group);
        k->packet.group_x = bytes_le16(group[0]);
        k->packet.group_y = bytes_le16(group[1]);
        k->packet.group_z = bytes_le16(group[2]);
        k->packet.kernel = bytes_le64(at + r->entry);
        k->args_size = sizeof(struct riscv_arguments) + r->args_size;
        k->args = mem_zalloc(k->args_size + 8);
        k->held = mem_zalloc((r->arg_count + 1) * sizeof(struct backend_buffer *));
        if (!k->args || !k->held)
                return CL_OUT_OF_HOST_MEMORY;
        for (unsigned i = 0; i < k->c.dims; i++)
                bytes_put_u32(k->args + 4 * i, k->c.offset ? (uint32_t)k->c.offset[i] : 0);
        uint8_t *block = k->args + sizeof(struct riscv_arguments);
        memcpy(block, kernel->block, r->args_size);
        for (unsigned i = 0; i < r->arg_count; i++) {
                const struct code_arg *a = &kernel->args[i];
                if (r->args[i].kind == ARG_BUFFER) {
                        bytes_put_u64(block + r->args[i].at, buffer_address(a->buffer));
                        k->held[k->held_count++] = buffer_ref(a->buffer);
                } else if (r->args[i].kind == ARG_LOCAL) {
                        bytes_put_u64(block + r->args[i].at, local);
                        local += local_aligned(a->local_size);
                }
        }
        return CL_SUCCESS;
}
