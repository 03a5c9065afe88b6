/* Programs and kernels. */
#include "base/mem.h"
#include "proto/args.h"
#include "proto/info.h"
#include "state.h"

enum { KIND_SOURCE = 0, KIND_BINARY = 1, KIND_BUILT_IN = 3 };

/* ---- programs --------------------------------------------------------------------------------- */

/* Encode program_create, whose `part` lies elsewhere and follows the byte at *ret_at. */
static int put_program(struct buf *b, const struct wire_program_create *m, size_t part,
                       size_t *ret_at)
{
        enum { DIGEST = 8 };
        const size_t begin = b->size, padding = bytes_pad8(part) - part;
        int r = part > WIRE_BLOB_MAX - 8 ? SP_E_LIMIT : wire_put_program_create(b, m);
        if (!r)
                r = buf_reserve(b, 8 + padding);
        if (r)
                return r;
        uint8_t *end = b->data + b->size - DIGEST; /* parts and digest are empty, and come last */
        bytes_put_u64(end - 8, 8 + bytes_pad8(part));
        bytes_put_u32(end, INFO_PART);
        bytes_put_u32(end + 4, (uint32_t)part);
        memset(end + 8, 0, padding + DIGEST);
        b->size += 8 + padding;
        *ret_at = (size_t)(end + 8 - b->data);
        bytes_put_u32(b->data + begin + 4, (uint32_t)(b->size - begin + part));
        return 0;
}

static int send_program(cl_program p, unsigned kind, struct bytes part)
{
        uint64_t numbers[NANO_DEVICES];
        for (unsigned i = 0; i < p->count; i++)
                numbers[i] = p->devices[i]->number;
        const struct wire_program_create m = { .program = p->object.id,
                                               .kind = kind,
                                               .devices = { numbers, p->count } };
        size_t at = 0;
        int r = nano_drain();
        if (!r)
                r = nano_room(0);
        if (r)
                return r;
        r = put_program(nano_outbox(), &m, part.size, &at);
        session_outbox(nano->session)->cap += NANO_OUT_KEPT;
        r = session_commit_lent(nano->session, r, at, part);
        return r ? r : nano_drain();
}

static cl_program new_program(cl_context context, unsigned count, const cl_device_id *devices,
                              unsigned kind, struct bytes part, cl_int *errcode_ret)
{
        cl_program p = nano_new(nano->programs, TAG_PROGRAM, OBJECT_PROGRAM);
        if (!p)
                return nano_fail(CL_OUT_OF_HOST_MEMORY, errcode_ret);
        p->count = count;
        memcpy(p->devices, devices, count * sizeof(*devices));
        p->status = CL_BUILD_NONE;
        int r = send_program(p, kind, part);
        (void)nano_fail(nano_status(r), errcode_ret);
        if (r) {
                nano_object_free(&p->object);
                return NULL;
        }
        p->context = context;
        context->object.refs++;
        return p;
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **strings,
                                     const size_t *lengths, cl_int *errcode_ret)
{
        if (!nano_object(context, TAG_CONTEXT))
                return nano_fail(CL_INVALID_CONTEXT, errcode_ret);
        if (!count || !strings || !strings[0])
                return nano_fail(CL_INVALID_VALUE, errcode_ret);
        if (count > 1)
                return nano_fail(CL_OUT_OF_HOST_MEMORY, errcode_ret);
        struct bytes source =
                lengths && lengths[0] ? bytes_of(strings[0], lengths[0]) : bytes_str(strings[0]);
        return new_program(context, context->count, context->devices, KIND_SOURCE, source,
                           errcode_ret);
}

static cl_int check_devices(cl_context context, cl_uint count, const cl_device_id *devices)
{
        if (!nano_object(context, TAG_CONTEXT))
                return CL_INVALID_CONTEXT;
        if (!count || !devices)
                return CL_INVALID_VALUE;
        for (cl_uint i = 0; i < count; i++)
                if (!nano_object(devices[i], TAG_DEVICE) || !nano_context_has(context, devices[i]))
                        return CL_INVALID_DEVICE;
        return count > NANO_DEVICES ? CL_INVALID_DEVICE : CL_SUCCESS;
}

cl_program clCreateProgramWithBinary(cl_context context, cl_uint num_devices,
                                     const cl_device_id *devices, const size_t *lengths,
                                     const unsigned char **binaries, cl_int *binary_status,
                                     cl_int *errcode_ret)
{
        cl_int status = check_devices(context, num_devices, devices);
        if (!status && (!lengths || !binaries || !lengths[0] || !binaries[0]))
                status = CL_INVALID_VALUE;
        if (!status && num_devices > 1)
                status = CL_OUT_OF_HOST_MEMORY;
        if (binary_status)
                *binary_status = status == CL_INVALID_VALUE ? status : CL_SUCCESS;
        if (status)
                return nano_fail(status, errcode_ret);
        return new_program(context, 1, devices, KIND_BINARY, bytes_of(binaries[0], lengths[0]),
                           errcode_ret);
}

cl_program clCreateProgramWithBuiltInKernels(cl_context context, cl_uint num_devices,
                                             const cl_device_id *devices, const char *kernel_names,
                                             cl_int *errcode_ret)
{
        cl_int status = check_devices(context, num_devices, devices);
        if (!status && !kernel_names)
                status = CL_INVALID_VALUE;
        if (status)
                return nano_fail(status, errcode_ret);
        return new_program(context, num_devices, devices, KIND_BUILT_IN, bytes_str(kernel_names),
                           errcode_ret);
}

cl_int clReleaseProgram(cl_program p)
{
        if (!nano_object(p, TAG_PROGRAM))
                return CL_INVALID_PROGRAM;
        if (--p->object.refs)
                return CL_SUCCESS;
        nano_release(p->object.id);
        for (size_t i = 0; i < NANO_DESCRIBED; i++)
                if (nano->described[i].program == p)
                        nano->described[i].program = NULL;
        if (nano->logged == p)
                nano->logged = NULL;
        (void)clReleaseContext(p->context);
        nano_object_free(&p->object);
        return CL_SUCCESS;
}

static bool has_device(cl_program p, cl_device_id d)
{
        for (unsigned i = 0; i < p->count; i++)
                if (p->devices[i] == d)
                        return true;
        return false;
}

static bool has_kernels(cl_program p)
{
        for (size_t i = 0; i < NANO_KERNELS; i++)
                if (nano->kernels[i].object.refs && nano->kernels[i].program == p)
                        return true;
        return false;
}

cl_int clBuildProgram(cl_program p, cl_uint num_devices, const cl_device_id *devices,
                      const char *options, void (*notify)(cl_program, void *), void *user)
{
        uint64_t numbers[NANO_DEVICES];
        if (!nano_object(p, TAG_PROGRAM))
                return CL_INVALID_PROGRAM;
        if (!num_devices != !devices || (!notify && user))
                return CL_INVALID_VALUE;
        if (has_kernels(p))
                return CL_INVALID_OPERATION;
        const cl_uint count = devices ? num_devices : p->count;
        devices = devices ? devices : p->devices;
        for (cl_uint i = 0; i < count; i++) {
                if (i == NANO_DEVICES || !nano_object(devices[i], TAG_DEVICE) ||
                    !has_device(p, devices[i]))
                        return CL_INVALID_DEVICE;
                numbers[i] = devices[i]->number;
        }
        const uint64_t id = nano_request_begin(WIRE_program_built, p);
        cl_int status = nano_request_wait(nano_send(
                program_build, .request = id, .program = p->object.id,
                .devices = { numbers, count }, .options = bytes_str(options ? options : "")));
        if (!status && nano->request.overflow)
                status = CL_OUT_OF_HOST_MEMORY;
        p->status = status ? CL_BUILD_ERROR : CL_BUILD_SUCCESS;
        if (status > 0)
                status = CL_BUILD_PROGRAM_FAILURE;
        if (notify)
                notify(p, user);
        return status;
}

cl_int clGetProgramBuildInfo(cl_program p, cl_device_id device, cl_program_build_info name,
                             size_t size, void *value, size_t *size_ret)
{
        if (!nano_object(p, TAG_PROGRAM))
                return CL_INVALID_PROGRAM;
        if (!nano_object(device, TAG_DEVICE) || !has_device(p, device))
                return CL_INVALID_DEVICE;
        const char *log = nano->logged == p ? nano->log : "";
        if (name == CL_PROGRAM_BUILD_STATUS)
                return nano_reply(&p->status, sizeof(p->status), size, value, size_ret);
        return name == CL_PROGRAM_BUILD_LOG
                       ? nano_reply(log, strlen(log) + 1, size, value, size_ret)
                       : CL_INVALID_VALUE;
}

/* ---- kernels ---------------------------------------------------------------------------------- */

static const struct described *find(cl_program p, const char *name)
{
        for (size_t i = 0; i < NANO_DESCRIBED; i++) {
                const struct described *d = &nano->described[i];
                if (d->program == p && d->name[0] && !strcmp(d->name, name))
                        return d;
        }
        return NULL;
}

cl_kernel clCreateKernel(cl_program p, const char *name, cl_int *errcode_ret)
{
        if (!nano_object(p, TAG_PROGRAM))
                return nano_fail(CL_INVALID_PROGRAM, errcode_ret);
        if (p->status != CL_BUILD_SUCCESS)
                return nano_fail(CL_INVALID_PROGRAM_EXECUTABLE, errcode_ret);
        if (!name)
                return nano_fail(CL_INVALID_VALUE, errcode_ret);
        const struct described *as = find(p, name);
        if (!as)
                return nano_fail(CL_INVALID_KERNEL_NAME, errcode_ret);
        cl_kernel k = as->arg_count > NANO_ARGS || as->args != as->arg_count
                              ? NULL
                              : nano_new(nano->kernels, TAG_KERNEL, OBJECT_KERNEL);
        if (!k)
                return nano_fail(CL_OUT_OF_HOST_MEMORY, errcode_ret);
        int r = nano_send(kernel_create, .kernel = k->object.id, .program = p->object.id,
                          .name = bytes_str(name));
        (void)nano_fail(nano_status(r), errcode_ret);
        if (r) {
                nano_object_free(&k->object);
                return NULL;
        }
        k->program = p;
        p->object.refs++;
        k->as = as;
        k->changed = (struct buf){ .data = (uint8_t *)k->bytes, .cap = sizeof(k->bytes) };
        return k;
}

cl_int clReleaseKernel(cl_kernel k)
{
        if (!nano_object(k, TAG_KERNEL))
                return CL_INVALID_KERNEL;
        if (--k->object.refs)
                return CL_SUCCESS;
        nano_release(k->object.id);
        (void)clReleaseProgram(k->program);
        nano_object_free(&k->object);
        return CL_SUCCESS;
}

/* Check the value, and give it the form that messages have. */
static cl_int make_arg(const struct described *as, size_t size, const void *value, struct arg *a)
{
        cl_mem m = NULL;
        a->kind = as->kinds[a->index];
        a->size = size;
        a->value = value;
        switch (a->kind) {
        case ARG_BUFFER:
                if (size != sizeof(cl_mem))
                        return CL_INVALID_ARG_SIZE;
                if (value)
                        memcpy(&m, value, sizeof(m));
                if (m && (!nano_object(m, TAG_MEM) || m->context != as->program->context))
                        return CL_INVALID_MEM_OBJECT;
                a->object = m ? m->object.id : 0;
                return CL_SUCCESS;
        case ARG_LOCAL:
                return value ? CL_INVALID_ARG_VALUE : size ? CL_SUCCESS : CL_INVALID_ARG_SIZE;
        case ARG_VALUE:
                if (!value)
                        return CL_INVALID_ARG_VALUE;
                if (!size || size > ARG_VALUE_MAX ||
                    (as->sizes[a->index] && size != as->sizes[a->index]))
                        return CL_INVALID_ARG_SIZE;
                return CL_SUCCESS;
        default:
                return CL_INVALID_ARG_VALUE; /* images, samplers and others */
        }
}

/* Remove the value that was set before. */
static void forget(struct buf *b, uint32_t index)
{
        struct bytes left = bytes_of(b->data, b->size), next = left;
        struct arg a;
        while (args_next(&next, &a)) {
                if (a.index == index) {
                        uint8_t *at = b->data + (b->size - left.size);
                        memmove(at, next.data, next.size);
                        b->size -= left.size - next.size;
                        return;
                }
                left = next;
        }
}

cl_int clSetKernelArg(cl_kernel k, cl_uint index, size_t size, const void *value)
{
        struct arg a = { .index = index };
        if (!nano_object(k, TAG_KERNEL))
                return CL_INVALID_KERNEL;
        if (index >= k->as->arg_count)
                return CL_INVALID_ARG_INDEX;
        cl_int status = make_arg(k->as, size, value, &a);
        if (status)
                return status;
        forget(&k->changed, index);
        if (args_put(&k->changed, &a) < 0) {
                k->set &= ~(1u << index);
                return CL_OUT_OF_RESOURCES;
        }
        k->set |= 1u << index;
        return CL_SUCCESS;
}
