#include "backend/builtin/program.h"

#include "backend/builtin/devinfo.h"
#include "base/mem.h"

void builtin_program_fini(struct builtin_program *p)
{
        mem_free(p->kernels);
        *p = (struct builtin_program){ 0 };
}

static const struct registry_kernel *find(const struct registry_kernel *const *have, size_t count,
                                          const char *name, size_t size)
{
        for (size_t i = 0; i < count; i++)
                if (strlen(have[i]->name) == size && !memcmp(have[i]->name, name, size))
                        return have[i];
        return NULL;
}

/* Kernel names, separated by semicolons. */
static cl_int parse_names(struct builtin_program *p, const char *names, size_t size,
                          const struct registry_kernel *const *have, size_t have_count)
{
        size_t count = 1;
        for (size_t i = 0; i < size; i++)
                count += names[i] == ';';
        p->kernels = mem_alloc(count * sizeof(*p->kernels));
        if (!p->kernels)
                return CL_OUT_OF_HOST_MEMORY;
        for (size_t begin = 0, end; begin <= size; begin = end + 1) {
                for (end = begin; end < size && names[end] != ';';)
                        end++;
                const struct registry_kernel *k =
                        find(have, have_count, names + begin, end - begin);
                if (!k)
                        return CL_INVALID_VALUE;
                p->kernels[p->kernel_count++] = k;
        }
        return CL_SUCCESS;
}

cl_int builtin_program_init(struct builtin_program *p, unsigned kind, struct bytes parts,
                            const struct registry_kernel *const *have, size_t have_count)
{
        if (kind == 1)
                return CL_INVALID_BINARY;
        if (kind == 2)
                return CL_INVALID_OPERATION;
        if (kind > 3)
                return CL_INVALID_VALUE;
        *p = (struct builtin_program){ .built_in = kind == 3 };
        if (!p->built_in)
                return CL_SUCCESS;
        struct bytes names;
        cl_int r = CL_INVALID_VALUE;
        if (info_find(parts, INFO_PART, &names)) {
                size_t size = names.size;
                if (size && ((const char *)names.data)[size - 1] == '\0')
                        size--;
                r = parse_names(p, names.data, size, have, have_count);
        }
        if (r != CL_SUCCESS)
                builtin_program_fini(p);
        return r;
}

cl_int builtin_program_build(const struct builtin_program *p, const unsigned *devices,
                             size_t device_count, struct buf *info)
{
        if (!info)
                return p->built_in ? CL_SUCCESS : CL_COMPILER_NOT_AVAILABLE;
        struct emit e = { .out = info };
        for (size_t i = 0; i < device_count; i++) {
                cl_int status = p->built_in ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
                size_t globals = 0, mark = emit_begin(&e, INFO_BUILD);
                emit_u64(&e, INFO_BUILD_DEVICE, devices[i]);
                emit_data(&e, CL_PROGRAM_BUILD_STATUS, &status, sizeof(status));
                emit_str(&e, CL_PROGRAM_BUILD_LOG,
                         p->built_in ? "" : "This device has built-in kernels only.\n");
                emit_uint(&e, CL_PROGRAM_BINARY_TYPE,
                          p->built_in ? CL_PROGRAM_BINARY_TYPE_EXECUTABLE
                                      : CL_PROGRAM_BINARY_TYPE_NONE);
                emit_data(&e, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE, &globals,
                          sizeof(globals));
                emit_end(&e, mark);
        }
        for (size_t i = 0; i < p->kernel_count; i++)
                devinfo_kernel(&e, p->kernels[i], devices, device_count);
        if (e.status < 0)
                return CL_OUT_OF_HOST_MEMORY;
        return p->built_in ? CL_SUCCESS : CL_COMPILER_NOT_AVAILABLE;
}

cl_int builtin_program_find(const struct builtin_program *p, const char *name,
                            const struct registry_kernel **ret)
{
        if (!p->built_in)
                return CL_INVALID_PROGRAM_EXECUTABLE;
        const struct registry_kernel *k = find(p->kernels, p->kernel_count, name, strlen(name));
        if (!k)
                return CL_INVALID_KERNEL_NAME;
        *ret = k;
        return CL_SUCCESS;
}

cl_int builtin_check_arg(const struct registry_kernel *k, const struct arg *a)
{
        if (a->index >= registry_arg_count(k))
                return CL_INVALID_ARG_INDEX;
        const struct registry_arg *want = &k->args[a->index];
        if (want->buffer)
                return a->kind == ARG_BUFFER || a->kind == ARG_SVM ? CL_SUCCESS
                                                                   : CL_INVALID_ARG_SIZE;
        return a->kind == ARG_VALUE && a->size == want->size ? CL_SUCCESS : CL_INVALID_ARG_SIZE;
}

cl_int builtin_check_launch(const struct backend_command *c)
{
        if (c->dims < 1 || c->dims > 3)
                return CL_INVALID_WORK_DIMENSION;
        if (!c->global)
                return CL_INVALID_GLOBAL_WORK_SIZE;
        size_t items = 1, group = 1, end;
        for (unsigned i = 0; i < c->dims; i++) {
                if (__builtin_mul_overflow(items, c->global[i], &items))
                        return CL_INVALID_GLOBAL_WORK_SIZE;
                if (c->offset && __builtin_add_overflow(c->offset[i], c->global[i], &end))
                        return CL_INVALID_GLOBAL_OFFSET;
                if (!c->local)
                        continue;
                if (!c->local[i])
                        return CL_INVALID_WORK_GROUP_SIZE;
                if (c->local[i] > DEVINFO_GROUP_MAX)
                        return CL_INVALID_WORK_ITEM_SIZE;
                group *= c->local[i];
        }
        return group > DEVINFO_GROUP_MAX ? CL_INVALID_WORK_GROUP_SIZE : CL_SUCCESS;
}

/* ---- what there is none of ------------------------------------------------------------------ */

cl_int builtin_image_create(struct backend *b, unsigned domain, cl_mem_flags flags,
                            const struct image_desc *d, struct backend_buffer *parent,
                            struct backend_buffer **ret)
{
        return CL_INVALID_OPERATION;
}

cl_int builtin_sampler_create(struct backend *b, unsigned domain, const struct sampler_desc *d,
                              struct backend_sampler **ret)
{
        return CL_INVALID_OPERATION;
}

void builtin_sampler_release(struct backend_sampler *s)
{
}

/* There is neither compiler nor linker (CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_LINKER_AVAILABLE). */
cl_int builtin_program_compile(struct backend_program *p, const unsigned *devices,
                               size_t device_count, const char *options, struct buf *info)
{
        return CL_COMPILER_NOT_AVAILABLE;
}

cl_int builtin_program_link(struct backend *b, unsigned domain, const unsigned *devices,
                            size_t device_count, struct backend_program *const *inputs,
                            size_t input_count, const char *options, struct buf *info,
                            struct backend_program **ret)
{
        return CL_LINKER_NOT_AVAILABLE;
}

cl_int builtin_program_constant(struct backend_program *p, cl_uint id, struct bytes value)
{
        return CL_INVALID_OPERATION;
}

/* Built-in kernels have no binary: the part is empty, as CL_PROGRAM_BINARY_SIZES says 0. */
cl_int builtin_program_binary(struct backend_program *p, unsigned device, struct buf *out)
{
        return info_put(out, INFO_PART, NULL, 0) < 0 ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
}

/* No sub-groups. */
cl_int builtin_kernel_query(struct backend_kernel *k, unsigned device, uint32_t name,
                            const size_t *input, size_t input_count, size_t size, void *ret)
{
        return CL_INVALID_OPERATION;
}
