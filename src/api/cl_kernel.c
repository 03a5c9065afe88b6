#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "api/dispatch.h"
#include "api/enqueue.h"
#include "api/reply.h"
#include "base/mem.h"
#include "core/command/queue.h"
#include "core/device.h"
#include "core/memory/svm.h"
#include "core/program/build.h"
#include "core/program/job.h"
#include "core/program/kernel.h"
#include "core/program/program.h"
#include "proto/info.h"

/* ---- making --------------------------------------------------------------------------------- */

CL_API_ENTRY cl_kernel CL_API_CALL clCreateKernel(cl_program program, const char *kernel_name,
                                                  cl_int *errcode_ret)
{
        if (!handle_is(program, HANDLE_PROGRAM))
                return reply_error(errcode_ret, CL_INVALID_PROGRAM);
        /* CL_INVALID_VALUE if kernel_name is NULL. */
        if (!kernel_name)
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        int r = program_ready(program);
        if (r < 0)
                return reply_error(errcode_ret, status_to_cl(r));

        struct client *c = program->context->client;
        cl_kernel k = NULL;
        client_lock(c);
        if (!program_is_built(program)) {
                /* CL_INVALID_PROGRAM_EXECUTABLE if there is no successfully built executable. */
                r = CL_INVALID_PROGRAM_EXECUTABLE;
        } else {
                const struct program_build *b = program->build;
                struct kernel_info *info = NULL;
                for (size_t i = 0; i < b->kernel_count && !info; i++) {
                        if (!strcmp(b->kernels[i]->name, kernel_name))
                                info = b->kernels[i];
                }
                /* CL_INVALID_KERNEL_NAME if kernel_name is not found; CL_INVALID_KERNEL_DEFINITION if
                 * its definition is not the same for all devices. */
                if (!info)
                        r = CL_INVALID_KERNEL_NAME;
                else if (info->differs)
                        r = CL_INVALID_KERNEL_DEFINITION;
                else
                        r = kernel_new(program, info, &k);
        }
        client_unlock(c);
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return k;
}

/* Make all kernels, at most `most`; only count them if !ret. The caller frees *ret. */
static int create_all(cl_program p, cl_uint most, cl_kernel **ret, cl_uint *ret_count)
        REQUIRES(client_held)
{
        if (!program_is_built(p))
                return CL_INVALID_PROGRAM_EXECUTABLE;
        /* Kernels that are not the same on all devices are left out. */
        cl_uint count = 0;
        for (size_t i = 0; i < p->build->kernel_count; i++)
                count += !p->build->kernels[i]->differs;
        /* CL_INVALID_VALUE if kernels is not NULL and num_kernels is less than their number. */
        if (ret && most < count)
                return CL_INVALID_VALUE;
        cl_kernel *kernels = ret ? mem_alloc((count + 1) * sizeof(*kernels)) : NULL;
        if (ret && !kernels)
                return SP_E_NOMEM;
        cl_uint made = 0;
        for (size_t i = 0; kernels && i < p->build->kernel_count; i++) {
                if (p->build->kernels[i]->differs)
                        continue;
                int r = kernel_new(p, p->build->kernels[i], &kernels[made]);
                if (r < 0) {
                        while (made)
                                kernel_release(kernels[--made]);
                        mem_free(kernels);
                        return r;
                }
                made++;
        }
        if (ret)
                *ret = kernels;
        *ret_count = count;
        return 0;
}

CL_API_ENTRY cl_int CL_API_CALL clCreateKernelsInProgram(cl_program program, cl_uint num_kernels,
                                                         cl_kernel *kernels,
                                                         cl_uint *num_kernels_ret)
{
        if (!handle_is(program, HANDLE_PROGRAM))
                return CL_INVALID_PROGRAM;
        int r = program_ready(program);
        if (r < 0)
                return status_to_cl(r);
        struct client *c = program->context->client;
        cl_kernel *made = NULL;
        cl_uint count = 0;
        client_lock(c);
        r = create_all(program, num_kernels, kernels ? &made : NULL, &count);
        client_unlock(c);
        if (r < 0)
                return status_to_cl(r);
        for (cl_uint i = 0; i < count && kernels; i++)
                kernels[i] = made[i];
        mem_free(made);
        if (num_kernels_ret)
                *num_kernels_ret = count;
        return CL_SUCCESS;
}

CL_API_ENTRY cl_kernel CL_API_CALL clCloneKernel(cl_kernel source_kernel, cl_int *errcode_ret)
{
        if (!handle_is(source_kernel, HANDLE_KERNEL))
                return reply_error(errcode_ret, CL_INVALID_KERNEL);
        struct client *c = source_kernel->program->context->client;
        cl_kernel k = NULL;
        client_lock(c);
        int r = kernel_clone(source_kernel, &k);
        client_unlock(c);
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return k;
}

CL_API_ENTRY cl_int CL_API_CALL clRetainKernel(cl_kernel kernel)
{
        if (!handle_is(kernel, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        handle_retain(&kernel->h);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseKernel(cl_kernel kernel)
{
        if (!handle_is(kernel, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        struct client *c = kernel->program->context->client;
        client_lock(c);
        int last = handle_release(&kernel->h);
        if (last > 0)
                kernel_release(kernel);
        client_unlock(c);
        return last < 0 ? CL_INVALID_KERNEL : CL_SUCCESS;
}

int do_set_arg(cl_kernel kernel, cl_uint arg_index, size_t arg_size, const void *arg_value)
{
        struct client *c = kernel->program->context->client;
        struct svm_borrowed value;
        /* Bytes of a value that is too large are not read. */
        int r = svm_borrow(&value, arg_value,
                           kernel_arg_fits(kernel, arg_index, arg_size) ? arg_size : 0);
        if (r == 0) {
                client_lock(c);
                r = kernel_set_arg(kernel, arg_index, arg_size, value.at);
                client_unlock(c);
        }
        svm_give_back(&value);
        return r;
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint arg_index, size_t arg_size,
                                               const void *arg_value)
{
        if (!handle_is(kernel, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        return status_to_cl(do_set_arg(kernel, arg_index, arg_size, arg_value));
}

/* ---- queries -------------------------------------------------------------------------------- */

CL_API_ENTRY cl_int CL_API_CALL clGetKernelInfo(cl_kernel kernel, cl_kernel_info param_name,
                                                size_t param_value_size, void *param_value,
                                                size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(kernel, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        switch (param_name) {
        case CL_KERNEL_FUNCTION_NAME:
                return reply_string(reply, kernel->info->name);
        case CL_KERNEL_NUM_ARGS:
                return reply_value(reply, cl_uint, kernel->info->arg_count);
        case CL_KERNEL_REFERENCE_COUNT:
                return reply_value(reply, cl_uint, atomic_load(&kernel->h.refs));
        case CL_KERNEL_CONTEXT:
                return reply_value(reply, cl_context, kernel->program->context);
        case CL_KERNEL_PROGRAM:
                return reply_value(reply, cl_program, kernel->program);
        case CL_KERNEL_ATTRIBUTES:
                return reply_string(reply, kernel->info->attributes);
        default:
                return CL_INVALID_VALUE;
        }
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelArgInfo(cl_kernel kernel, cl_uint arg_index,
                                                   cl_kernel_arg_info param_name,
                                                   size_t param_value_size, void *param_value,
                                                   size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(kernel, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        /* CL_INVALID_ARG_INDEX if arg_index is not a valid argument index. */
        if (arg_index >= kernel->info->arg_count)
                return CL_INVALID_ARG_INDEX;
        if (param_name < CL_KERNEL_ARG_ADDRESS_QUALIFIER || param_name > CL_KERNEL_ARG_NAME)
                return CL_INVALID_VALUE;
        /* CL_KERNEL_ARG_INFO_NOT_AVAILABLE if the argument information is not available for
         * kernel. */
        const struct kernel_arg_info *a = &kernel->info->args[arg_index];
        if (!kernel->info->arg_info)
                return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
        switch (param_name) {
        case CL_KERNEL_ARG_ADDRESS_QUALIFIER:
                return reply_value(reply, cl_kernel_arg_address_qualifier, a->address);
        case CL_KERNEL_ARG_ACCESS_QUALIFIER:
                return reply_value(reply, cl_kernel_arg_access_qualifier, a->access);
        case CL_KERNEL_ARG_TYPE_QUALIFIER:
                return reply_value(reply, cl_kernel_arg_type_qualifier, a->type_qualifier);
        case CL_KERNEL_ARG_TYPE_NAME:
                return a->type_name ? reply_string(reply, a->type_name)
                                    : CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
        default:
                return a->name ? reply_string(reply, a->name) : CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
        }
}

/* Get the block that the build gave for the kernel on `device`. CL_INVALID_DEVICE: the device is
 * not one of the kernel's, or the kernel was not built for it. The same if device is NULL and the
 * program has several devices. */
static cl_int find_device(cl_kernel k, cl_device_id device, struct bytes *ret)
{
        const struct _cl_program *p = k->program;
        int i = 0;
        if (device)
                i = handle_is(device, HANDLE_DEVICE) ? program_device(p, device) : -1;
        else if (p->device_count > 1)
                i = -1;
        if (i < 0)
                return CL_INVALID_DEVICE;
        *ret = k->info->devices[i].info;
        return ret->size ? CL_SUCCESS : CL_INVALID_DEVICE;
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                                         cl_kernel_work_group_info param_name,
                                                         size_t param_value_size, void *param_value,
                                                         size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(kernel, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        struct bytes block, v;
        cl_int e = find_device(kernel, device, &block);
        if (e != CL_SUCCESS)
                return e;
        switch (param_name) {
        case CL_KERNEL_WORK_GROUP_SIZE:
        case CL_KERNEL_COMPILE_WORK_GROUP_SIZE:
        case CL_KERNEL_LOCAL_MEM_SIZE:
        case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
        case CL_KERNEL_PRIVATE_MEM_SIZE:
        /* CL_INVALID_VALUE if param_name is CL_KERNEL_GLOBAL_WORK_SIZE, device is not a custom device
         * and kernel is not a built-in kernel: then the native side did not answer it. */
        case CL_KERNEL_GLOBAL_WORK_SIZE:
                break;
        default:
                return CL_INVALID_VALUE;
        }
        if (!info_find(block, param_name, &v))
                return CL_INVALID_VALUE;
        if (param_name != CL_KERNEL_LOCAL_MEM_SIZE || v.size != sizeof(cl_ulong))
                return reply_info(reply, param_name, v);
        /* The native side computed the size before arguments were set; their local memory counts,
         * too. */
        struct client *c = kernel->program->context->client;
        client_lock(c);
        cl_ulong size = bytes_get_u64(v.data) + kernel_local_args(kernel);
        client_unlock(c);
        return reply_value(reply, cl_ulong, size);
}

/* Ask the device's server. */
static cl_int query(cl_kernel k, cl_device_id device, uint32_t name, const size_t *input,
                    size_t input_count, size_t answers, size_t *ret)
{
        struct client *c = k->program->context->client;
        int i = device ? program_device(k->program, device) : 0;
        client_lock(c);
        int r = i < 0 ? CL_INVALID_DEVICE
                      : kernel_query(k, (cl_uint)i, name, input, input_count, answers, ret);
        client_unlock(c);
        return status_to_cl(r);
}

static bool has_sub_groups(cl_kernel k, cl_device_id device)
{
        struct bytes v;
        cl_uint most = 0;
        cl_device_id d = device ? device : k->program->devices[0];
        const char *names = device_text(d, CL_DEVICE_EXTENSIONS);
        if (device_info(d, CL_DEVICE_MAX_NUM_SUB_GROUPS, &v) && v.size == sizeof(most))
                memcpy(&most, v.data, sizeof(most));
        return most || device_list_has(names, ' ', "cl_khr_subgroups", 16) ||
               device_list_has(names, ' ', "cl_intel_subgroups", 18);
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelSubGroupInfo(cl_kernel kernel, cl_device_id device,
                                                        cl_kernel_sub_group_info param_name,
                                                        size_t input_value_size,
                                                        const void *input_value,
                                                        size_t param_value_size, void *param_value,
                                                        size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(kernel, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        struct bytes block, v;
        cl_int e = find_device(kernel, device, &block);
        if (e != CL_SUCCESS)
                return e;
        /* CL_INVALID_OPERATION if device does not support subgroups. */
        if (!has_sub_groups(kernel, device))
                return CL_INVALID_OPERATION;
        size_t count = input_value_size / sizeof(size_t), values[3] = { 0 };
        size_t input[3] = { 0 }, answers = 1;
        switch (param_name) {
        case CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE:
        case CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE:
        case CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT:
                break;
        case CL_KERNEL_MAX_NUM_SUB_GROUPS:
        case CL_KERNEL_COMPILE_NUM_SUB_GROUPS:
        case 0x410A: /* CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL */
                return info_find(block, param_name, &v) ? reply_info(reply, param_name, v)
                                                        : CL_INVALID_VALUE;
        default:
                return CL_INVALID_VALUE;
        }
        /* CL_INVALID_VALUE if the input value is missing or its size is not right: a local size of up to
         * three dimensions, or one number of sub-groups; the answer to that is a local size, of as many
         * dimensions as there is room for. */
        bool wants_size = param_name == CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT;
        if (!input_value || !count || input_value_size % sizeof(size_t) ||
            count > (wants_size ? 1 : 3))
                return CL_INVALID_VALUE;
        if (wants_size)
                answers = param_value ? param_value_size / sizeof(size_t) : 3;
        if (!answers)
                return CL_INVALID_VALUE;
        answers = answers > 3 ? 3 : answers;
        memcpy(input, input_value, input_value_size);
        if (param_value) {
                e = query(kernel, device, param_name, input, count, answers, values);
                if (e != CL_SUCCESS)
                        return e;
        }
        return reply_bytes(reply, values, answers * sizeof(size_t));
}

/* "CL_INVALID_GLOBAL_WORK_SIZE if global_work_size is NULL", or any of its values "are 0 or exceed
 * the maximum value representable by size_t on the device". CL_INVALID_GLOBAL_OFFSET: the sum of
 * global size and global offset exceeds that maximum in a dimension. */
static cl_int check_global(cl_device_id d, cl_uint dims, const size_t *offset, const size_t *global)
{
        struct bytes v;
        cl_uint bits = 64;
        if (device_info(d, CL_DEVICE_ADDRESS_BITS, &v) && v.size == sizeof(bits))
                memcpy(&bits, v.data, sizeof(bits));
        size_t most = bits < 8 * sizeof(most) ? ((size_t)1 << bits) - 1 : SIZE_MAX;
        for (cl_uint i = 0; i < dims; i++) {
                if (!global || !global[i] || global[i] > most)
                        return CL_INVALID_GLOBAL_WORK_SIZE;
                if (offset && offset[i] > most - global[i])
                        return CL_INVALID_GLOBAL_OFFSET;
        }
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelSuggestedLocalWorkSizeKHR(
        cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim,
        const size_t *global_work_offset, const size_t *global_work_size,
        size_t *suggested_local_work_size)
{
        if (!queue_is_host(command_queue))
                return CL_INVALID_COMMAND_QUEUE;
        if (!handle_is(kernel, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        if (command_queue->context != kernel->program->context)
                return CL_INVALID_CONTEXT;
        /* "CL_INVALID_PROGRAM_EXECUTABLE if there is no successfully built program executable
         * available for kernel for the device associated with command_queue." */
        cl_device_id d = command_queue->device;
        struct bytes block;
        if (program_device(kernel->program, d) < 0 ||
            find_device(kernel, d, &block) != CL_SUCCESS || !block.size)
                return CL_INVALID_PROGRAM_EXECUTABLE;
        /* "CL_INVALID_WORK_DIMENSION if work_dim is not a valid value (i.e. a value between 1 and
         * CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS)." */
        if (!work_dim || work_dim > 3 || work_dim > d->max_work_item_dimensions)
                return CL_INVALID_WORK_DIMENSION;
        cl_int e = check_global(d, work_dim, global_work_offset, global_work_size);
        if (e != CL_SUCCESS)
                return e;
        if (!suggested_local_work_size)
                return CL_INVALID_VALUE;
        /* "These error conditions are consistent with error conditions for clEnqueueNDRangeKernel." */
        e = check_launch_args(d, kernel, false);
        if (e != CL_SUCCESS)
                return e;
        size_t input[6] = { 0 }, local[3] = { 0 };
        for (cl_uint i = 0; i < work_dim; i++) {
                input[i] = global_work_offset ? global_work_offset[i] : 0;
                input[work_dim + i] = global_work_size[i];
        }
        e = query(kernel, d, INFO_LOCAL_SIZE, input, 2 * (size_t)work_dim, work_dim, local);
        if (e == CL_SUCCESS)
                memcpy(suggested_local_work_size, local, work_dim * sizeof(size_t));
        return e;
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelSubGroupInfoKHR(
        cl_kernel in_kernel, cl_device_id in_device, cl_kernel_sub_group_info param_name,
        size_t input_value_size, const void *input_value, size_t param_value_size,
        void *param_value, size_t *param_value_size_ret)
{
        return clGetKernelSubGroupInfo(in_kernel, in_device, param_name, input_value_size,
                                       input_value, param_value_size, param_value,
                                       param_value_size_ret);
}
