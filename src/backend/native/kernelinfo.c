#include "backend/native/kernelinfo.h"

#include "backend/native/kernelquery.h"

#include <stdlib.h>

enum {
        TEXT_MAX = 4096,
        PROBE_EACH = 256, /* up to here every size is tried, */
        PROBE_MAX = 4352, /* up to here multiples of 4 */
};

/* ---- types by name -------------------------------------------------------------------------- */

size_t kernelinfo_type_size(const char *type)
{
        static const struct {
                const char *name;
                size_t size;
        } types[] = {
                { "char", 1 },         { "uchar", 1 },          { "unsigned char", 1 },
                { "signed char", 1 },  { "short", 2 },          { "ushort", 2 },
                { "signed short", 2 }, { "unsigned short", 2 }, { "half", 2 },
                { "int", 4 },          { "uint", 4 },           { "unsigned int", 4 },
                { "signed int", 4 },   { "unsigned", 4 },       { "signed", 4 },
                { "float", 4 },        { "long", 8 },           { "ulong", 8 },
                { "signed long", 8 },  { "unsigned long", 8 },  { "double", 8 },
        };
        for (size_t i = 0; i < array_size(types); i++) {
                size_t n = strlen(types[i].name);
                if (strncmp(type, types[i].name, n))
                        continue;
                const char *width = type + n;
                if (!*width)
                        return types[i].size;
                if (!strcmp(width, "2"))
                        return types[i].size * 2;
                if (!strcmp(width, "3") || !strcmp(width, "4"))
                        return types[i].size * 4;
                if (!strcmp(width, "8"))
                        return types[i].size * 8;
                if (!strcmp(width, "16"))
                        return types[i].size * 16;
        }
        return 0;
}

/* ---- probing -------------------------------------------------------------------------------- */

/* The one size of a value that is accepted. Implementations take three quarters of a size, too, where it
 * could be a vector of three. */
static size_t probe_size(const cl_icd_dispatch *api, cl_kernel kernel, cl_uint index)
{
        static const uint64_t zeros[PROBE_MAX / 8];
        size_t accepted[2] = { 0, 0 }, count = 0;
        for (size_t size = 1; size <= PROBE_MAX; size += size < PROBE_EACH ? 1 : 4) {
                if (api->clSetKernelArg(kernel, index, size, zeros) != CL_SUCCESS)
                        continue;
                if (count == 2)
                        return 0;
                accepted[count++] = size;
        }
        if (count == 2 && accepted[0] * 4 != accepted[1] * 3)
                return 0;
        return count ? accepted[count - 1] : 0;
}

struct kernelinfo_probe kernelinfo_probe_arg(const cl_icd_dispatch *api, cl_kernel kernel,
                                             cl_uint index, cl_mem buffer)
{
        static const uint8_t zero;
        cl_int r = api->clSetKernelArg(kernel, index, sizeof(cl_mem), &buffer);
        if (r == CL_INVALID_SAMPLER)
                return (struct kernelinfo_probe){ ARG_SAMPLER, 8 };
        if (r == CL_INVALID_MEM_OBJECT)
                return (struct kernelinfo_probe){ ARG_IMAGE, 8 };
        bool takes_buffer = r == CL_SUCCESS;
        /* clSetKernelArg: a NULL value is for local memory, of any size, or a null buffer, of the size of
         * a handle; for nothing else. Other sizes are not tried: NVIDIA's 580 takes them for a
         * buffer, too, and writes beyond its own memory. */
        bool takes_null = api->clSetKernelArg(kernel, index, sizeof(cl_mem), NULL) == CL_SUCCESS;
        if (!takes_null)
                return (struct kernelinfo_probe){ ARG_VALUE, probe_size(api, kernel, index) };
        if (!takes_buffer)
                return (struct kernelinfo_probe){ ARG_LOCAL, 0 };
        if (api->clSetKernelArg(kernel, index, sizeof(zero), &zero) == CL_SUCCESS)
                return (struct kernelinfo_probe){ 0, 0 }; /* it does not check */
        return (struct kernelinfo_probe){ ARG_BUFFER, 8 };
}

/* ---- one kernel ----------------------------------------------------------------------------- */

struct kernel_context {
        struct emit *e;
        struct backend_program *p;
        const cl_icd_dispatch *api;
        cl_kernel kernel;
        cl_mem buffer; /* for probing; made when first needed */
};

static struct kernelinfo_probe probe(struct kernel_context *k, cl_uint index)
{
        if (!k->buffer)
                k->buffer = k->api->clCreateBuffer(k->p->domain->context, CL_MEM_READ_WRITE, 64,
                                                   NULL, NULL);
        if (!k->buffer)
                return (struct kernelinfo_probe){ 0, 0 };
        return kernelinfo_probe_arg(k->api, k->kernel, index, k->buffer);
}

/* Text of a kernel query that may be of any length. False: it fails. */
static bool ask_text(struct kernel_context *k, cl_kernel_info name, struct buf *ret)
{
        size_t size = 0;
        if (k->api->clGetKernelInfo(k->kernel, name, 0, NULL, &size) != CL_SUCCESS || !size)
                return false;
        ret->size = 0;
        k->e->status = k->e->status < 0 ? k->e->status : buf_reserve(ret, size);
        if (k->e->status < 0)
                return false;
        ret->size = size;
        return k->api->clGetKernelInfo(k->kernel, name, size, ret->data, NULL) == CL_SUCCESS &&
               ret->data[size - 1] == '\0';
}

static bool ends_with(const char *s, const char *suffix)
{
        size_t n = strlen(s), m = strlen(suffix);
        return n >= m && !strcmp(s + n - m, suffix);
}

/* The kind of an argument by the answers of clGetKernelArgInfo. 0: not known. */
static uint32_t kind_by_info(cl_uint address, cl_uint access, cl_ulong qualifier, const char *type)
{
        if (qualifier & CL_KERNEL_ARG_TYPE_PIPE)
                return ARG_PIPE;
        if (access != CL_KERNEL_ARG_ACCESS_NONE ||
            (!strncmp(type, "image", 5) && ends_with(type, "_t")))
                return ARG_IMAGE;
        if (!strcmp(type, "sampler_t"))
                return ARG_SAMPLER;
        if (!strcmp(type, "queue_t"))
                return ARG_QUEUE;
        switch (address) {
        case CL_KERNEL_ARG_ADDRESS_LOCAL:
                return ARG_LOCAL;
        case CL_KERNEL_ARG_ADDRESS_GLOBAL:
        case CL_KERNEL_ARG_ADDRESS_CONSTANT:
                return ARG_BUFFER;
        case CL_KERNEL_ARG_ADDRESS_PRIVATE:
                return ends_with(type, "*") ? 0 : ARG_VALUE;
        default:
                return 0;
        }
}

/* Emit an argument that the native side does not describe; then one that it does. */
static void emit_probed_arg(struct kernel_context *k, cl_uint index)
{
        size_t mark = emit_begin(k->e, INFO_KERNEL_ARG);
        struct kernelinfo_probe found = probe(k, index);
        if (found.kind) {
                emit_u64(k->e, INFO_ARG_KIND, found.kind);
                emit_u64(k->e, INFO_ARG_SIZE, found.size);
        }
        emit_end(k->e, mark);
}

static bool emit_given_arg(struct kernel_context *k, cl_uint index)
{
        __typeof__(clGetKernelArgInfo) *ask = k->api->clGetKernelArgInfo;
        cl_uint address, access;
        cl_ulong qualifier = 0;
        char type[TEXT_MAX] = "", name[TEXT_MAX] = "";
        if (!ask ||
            ask(k->kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(address), &address,
                NULL) != CL_SUCCESS ||
            ask(k->kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(access), &access, NULL) !=
                    CL_SUCCESS ||
            ask(k->kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof(type) - 1, type, NULL) !=
                    CL_SUCCESS ||
            ask(k->kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof(qualifier), &qualifier,
                NULL) != CL_SUCCESS)
                return false;
        bool named = ask(k->kernel, index, CL_KERNEL_ARG_NAME, sizeof(name) - 1, name, NULL) ==
                     CL_SUCCESS;

        struct kernelinfo_probe found = { kind_by_info(address, access, qualifier, type), 0 };
        if (!found.kind)
                found = probe(k, index);
        else if (found.kind == ARG_VALUE && !(found.size = kernelinfo_type_size(type)))
                found.size = probe_size(k->api, k->kernel, index);
        else if (found.kind != ARG_VALUE && found.kind != ARG_LOCAL)
                found.size = 8;

        size_t mark = emit_begin(k->e, INFO_KERNEL_ARG);
        emit_uint(k->e, CL_KERNEL_ARG_ADDRESS_QUALIFIER, address);
        emit_uint(k->e, CL_KERNEL_ARG_ACCESS_QUALIFIER, access);
        emit_str(k->e, CL_KERNEL_ARG_TYPE_NAME, type);
        emit_data(k->e, CL_KERNEL_ARG_TYPE_QUALIFIER, &qualifier, sizeof(qualifier));
        if (named)
                emit_str(k->e, CL_KERNEL_ARG_NAME, name);
        if (found.kind) {
                emit_u64(k->e, INFO_ARG_KIND, found.kind);
                emit_u64(k->e, INFO_ARG_SIZE, found.size);
        }
        emit_end(k->e, mark);
        return true;
}

static void emit_args(struct kernel_context *k, cl_uint count)
{
        /* A block says for the whole kernel whether CL_KERNEL_ARG_* are the native side's, so all
         * or none: start again without if one argument fails. */
        if (k->e->status < 0)
                return;
        size_t before = k->e->out->size;
        emit_u64(k->e, INFO_ARG_NATIVE_INFO, 1);
        cl_uint i = 0;
        while (i < count && emit_given_arg(k, i))
                i++;
        if (i == count || k->e->status < 0)
                return;
        k->e->out->size = before;
        emit_u64(k->e, INFO_ARG_NATIVE_INFO, 0);
        for (i = 0; i < count; i++)
                emit_probed_arg(k, i);
}

/* Queries of clGetKernelSubGroupInfo without input. */
static void emit_sub_groups(struct kernel_context *k, cl_device_id id)
{
        static const cl_kernel_sub_group_info names[] = {
                CL_KERNEL_MAX_NUM_SUB_GROUPS, CL_KERNEL_COMPILE_NUM_SUB_GROUPS,
                0x410A, /* CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL */
        };
        native_sub_group_info_fn ask = native_sub_group_info(k->p->domain);
        for (size_t i = 0; ask && i < array_size(names); i++) {
                size_t value;
                if (ask(k->kernel, id, names[i], 0, NULL, sizeof(value), &value, NULL) ==
                    CL_SUCCESS)
                        emit_data(k->e, names[i], &value, sizeof(value));
        }
}

static void emit_device(struct kernel_context *k, unsigned number)
{
        static const struct {
                cl_kernel_work_group_info key;
                size_t size;
        } queries[] = {
                { CL_KERNEL_WORK_GROUP_SIZE, sizeof(size_t) },
                { CL_KERNEL_COMPILE_WORK_GROUP_SIZE, 3 * sizeof(size_t) },
                { CL_KERNEL_LOCAL_MEM_SIZE, sizeof(cl_ulong) },
                { CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof(size_t) },
                { CL_KERNEL_PRIVATE_MEM_SIZE, sizeof(cl_ulong) },
                { CL_KERNEL_GLOBAL_WORK_SIZE, 3 * sizeof(size_t) },
        };
        const struct native_device *d = &k->p->backend->devices[number];
        size_t mark = emit_begin(k->e, INFO_KERNEL_DEVICE);
        emit_u64(k->e, INFO_BUILD_DEVICE, number);
        for (size_t i = 0; i < array_size(queries); i++) {
                /* clGetKernelWorkGroupInfo: CL_KERNEL_GLOBAL_WORK_SIZE only for custom devices
                 * and built-in kernels. */
                if (queries[i].key == CL_KERNEL_GLOBAL_WORK_SIZE && k->p->kind != 3 &&
                    !(d->type & CL_DEVICE_TYPE_CUSTOM))
                        continue;
                size_t value[3];
                if (k->api->clGetKernelWorkGroupInfo(k->kernel, d->context_id, queries[i].key,
                                                     queries[i].size, value, NULL) == CL_SUCCESS)
                        emit_data(k->e, queries[i].key, value, queries[i].size);
        }
        emit_sub_groups(k, d->context_id);
        emit_end(k->e, mark);
}

void kernelinfo_emit(struct emit *e, struct backend_program *p, cl_kernel kernel,
                     const unsigned *devices, size_t device_count)
{
        struct kernel_context k = { .e = e, .p = p, .api = p->domain->api, .kernel = kernel };
        struct buf text = { 0 };
        cl_uint count = 0;
        if (!ask_text(&k, CL_KERNEL_FUNCTION_NAME, &text) ||
            k.api->clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL) !=
                    CL_SUCCESS ||
            count > ARG_INDEX_MAX) {
                buf_fini(&text);
                return;
        }
        size_t mark = emit_begin(e, INFO_KERNEL);
        emit_data(e, CL_KERNEL_FUNCTION_NAME, text.data, text.size);
        emit_uint(e, CL_KERNEL_NUM_ARGS, count);
        if (ask_text(&k, CL_KERNEL_ATTRIBUTES, &text))
                emit_data(e, CL_KERNEL_ATTRIBUTES, text.data, text.size);
        emit_args(&k, count);
        for (size_t i = 0; i < device_count; i++)
                emit_device(&k, devices[i]);
        emit_end(e, mark);
        if (k.buffer)
                k.api->clReleaseMemObject(k.buffer);
        buf_fini(&text);
}
