#include <CL/cl.h>

#include "api/mem_flags.h"
#include "api/reply.h"
#include "core/memory/content_size.h"
#include "core/memory/image.h"

/* At most one of the bits in `mask`? */
static bool at_most_one(cl_mem_flags flags, cl_mem_flags mask)
{
        flags &= mask;
        return !(flags & (flags - 1));
}

/* "CL_INVALID_VALUE if values specified in flags are not valid." */
bool mem_flags_are_valid(cl_mem_flags flags)
{
        if (flags & ~(cl_mem_flags)(MEM_ACCESS | MEM_HOST_PTR | MEM_HOST_ACCESS))
                return false;
        /* "CL_MEM_USE_HOST_PTR and CL_MEM_ALLOC_HOST_PTR are mutually exclusive"; the same for
         * CL_MEM_COPY_HOST_PTR and CL_MEM_USE_HOST_PTR, and for the others. */
        if (flags & CL_MEM_USE_HOST_PTR && flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR))
                return false;
        return at_most_one(flags, MEM_ACCESS) && at_most_one(flags, MEM_HOST_ACCESS);
}

static size_t largest_buffer(const struct _cl_context *x)
{
        cl_ulong max = 0;
        for (cl_uint i = 0; i < x->device_count; i++)
                if (x->devices[i]->max_buffer_size > max)
                        max = x->devices[i]->max_buffer_size;
        return max > SIZE_MAX ? SIZE_MAX : (size_t)max;
}

static cl_mem create_buffer(cl_context context, struct buffer_params params, cl_int *errcode_ret)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        if (!mem_flags_are_valid(params.flags))
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        /* "CL_INVALID_BUFFER_SIZE if size is 0 or if size is greater than CL_DEVICE_MAX_MEM_ALLOC_SIZE
         * for all devices in context." */
        if (!params.size || params.size > largest_buffer(context))
                return reply_error(errcode_ret, CL_INVALID_BUFFER_SIZE);
        /* "CL_INVALID_HOST_PTR if host_ptr is NULL and CL_MEM_USE_HOST_PTR or CL_MEM_COPY_HOST_PTR are
         * set in flags or if host_ptr is not NULL but CL_MEM_COPY_HOST_PTR or CL_MEM_USE_HOST_PTR are
         * not set in flags." */
        bool needs = params.flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
        if (needs != (params.host_ptr != NULL))
                return reply_error(errcode_ret, CL_INVALID_HOST_PTR);
        /* "This flag [CL_MEM_READ_WRITE] is the default." */
        if (!(params.flags & MEM_ACCESS))
                params.flags |= CL_MEM_READ_WRITE;
        cl_mem m = NULL;
        client_lock(context->client);
        int r = mem_new_buffer(context, &params, &m);
        client_unlock(context->client);
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return m;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                               void *host_ptr, cl_int *errcode_ret)
{
        return create_buffer(
                context,
                (struct buffer_params){ .flags = flags, .size = size, .host_ptr = host_ptr },
                errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateBufferWithProperties(cl_context context,
                                                             const cl_mem_properties *properties,
                                                             cl_mem_flags flags, size_t size,
                                                             void *host_ptr, cl_int *errcode_ret)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        /* "CL_INVALID_PROPERTY if a property name in properties is not a supported property name": none
         * is defined. */
        if (properties && properties[0])
                return reply_error(errcode_ret, CL_INVALID_PROPERTY);
        return create_buffer(context,
                             (struct buffer_params){ .flags = flags,
                                                     .size = size,
                                                     .host_ptr = host_ptr,
                                                     .properties = properties,
                                                     .property_count = properties ? 1 : 0 },
                             errcode_ret);
}

static bool is_buffer(const struct _cl_mem *m)
{
        return !mem_is_image(m) && !mem_is_pipe(m);
}

/* cl_pocl_content_size */
CL_API_ENTRY cl_int CL_API_CALL clSetContentSizeBufferPoCL(cl_mem buffer,
                                                           cl_mem content_size_buffer)
{
        /* "CL_INVALID_MEM_OBJECT if buffer or content_size_buffer are not a valid mem objects." */
        if (!handle_is(buffer, HANDLE_MEM) || !handle_is(content_size_buffer, HANDLE_MEM))
                return CL_INVALID_MEM_OBJECT;
        /* "CL_INVALID_VALUE if buffer or content_size_buffer are not of CL_MEM_OBJECT_BUFFER type, or
         * content_size_buffer is too small": "must be at least 64bits large". */
        if (!is_buffer(buffer) || !is_buffer(content_size_buffer) || content_size_buffer->size < 8)
                return CL_INVALID_VALUE;
        /* "CL_INVALID_CONTEXT if buffer and content_size_buffer are not in the same context." */
        if (buffer->context != content_size_buffer->context)
                return CL_INVALID_CONTEXT;
        client_lock(buffer->context->client);
        content_size_set(buffer, content_size_buffer);
        client_unlock(buffer->context->client);
        return CL_SUCCESS;
}

bool mem_flags_inherit(cl_mem_flags parent, cl_mem_flags flags, cl_mem_flags *ret)
{
        /* CL_INVALID_VALUE: flags may not widen the buffer's access. A CL_MEM_WRITE_ONLY buffer
         * excludes CL_MEM_READ_WRITE and CL_MEM_READ_ONLY; a CL_MEM_READ_ONLY buffer excludes
         * CL_MEM_READ_WRITE and CL_MEM_WRITE_ONLY. CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR and
         * CL_MEM_COPY_HOST_PTR are never allowed. */
        if (!mem_flags_are_valid(flags) || flags & MEM_HOST_PTR)
                return false;
        if (parent & CL_MEM_WRITE_ONLY && flags & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY))
                return false;
        if (parent & CL_MEM_READ_ONLY && flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY))
                return false;
        /* CL_INVALID_VALUE, likewise for the host: a CL_MEM_HOST_WRITE_ONLY buffer excludes
         * CL_MEM_HOST_READ_ONLY, and the other way round. A CL_MEM_HOST_NO_ACCESS buffer excludes
         * both. */
        if (parent & CL_MEM_HOST_WRITE_ONLY && flags & CL_MEM_HOST_READ_ONLY)
                return false;
        if (parent & CL_MEM_HOST_READ_ONLY && flags & CL_MEM_HOST_WRITE_ONLY)
                return false;
        if (parent & CL_MEM_HOST_NO_ACCESS &&
            flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY))
                return false;
        if (!(flags & MEM_ACCESS))
                flags |= parent & MEM_ACCESS;
        if (!(flags & MEM_HOST_ACCESS))
                flags |= parent & MEM_HOST_ACCESS;
        *ret = flags | (parent & MEM_HOST_PTR);
        return true;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags,
                                                  cl_buffer_create_type buffer_create_type,
                                                  const void *buffer_create_info,
                                                  cl_int *errcode_ret)
{
        /* "CL_INVALID_MEM_OBJECT if buffer is not a valid buffer object or is a sub-buffer object." */
        if (!handle_is(buffer, HANDLE_MEM) || mem_parent(buffer) || mem_is_image(buffer) ||
            mem_is_pipe(buffer))
                return reply_error(errcode_ret, CL_INVALID_MEM_OBJECT);
        cl_mem_flags all;
        if (!mem_flags_inherit(buffer->flags, flags, &all))
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        /* "CL_INVALID_VALUE if the value specified in buffer_create_type is not valid", "[...] if
         * value(s) specified in buffer_create_info [...] is not valid or if buffer_create_info is
         * NULL." */
        const cl_buffer_region *region = buffer_create_info;
        if (buffer_create_type != CL_BUFFER_CREATE_TYPE_REGION || !region)
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        /* "CL_INVALID_BUFFER_SIZE if size is 0"; "CL_INVALID_VALUE if the region specified by the
         * cl_buffer_region structure [...] is out of bounds in buffer." */
        if (!region->size)
                return reply_error(errcode_ret, CL_INVALID_BUFFER_SIZE);
        if (region->origin > buffer->size || region->size > buffer->size - region->origin)
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        /* "CL_MISALIGNED_SUB_BUFFER_OFFSET if there are no devices in context associated with buffer
         * for which the origin field [...] is aligned to the CL_DEVICE_MEM_BASE_ADDR_ALIGN value." */
        cl_context x = buffer->context;
        bool aligned = false;
        for (cl_uint i = 0; i < x->device_count; i++)
                aligned |= region->origin % x->devices[i]->sub_buffer_align == 0;
        if (!aligned)
                return reply_error(errcode_ret, CL_MISALIGNED_SUB_BUFFER_OFFSET);
        cl_mem m = NULL;
        client_lock(x->client);
        int r = mem_new_sub_buffer(buffer, all, region->origin, region->size, &m);
        client_unlock(x->client);
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return m;
}

CL_API_ENTRY cl_int CL_API_CALL clRetainMemObject(cl_mem memobj)
{
        if (!handle_is(memobj, HANDLE_MEM))
                return CL_INVALID_MEM_OBJECT;
        handle_retain(&memobj->h);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseMemObject(cl_mem memobj)
{
        if (!handle_is(memobj, HANDLE_MEM))
                return CL_INVALID_MEM_OBJECT;
        struct client *c = memobj->context->client;
        client_lock(c);
        int last = handle_release(&memobj->h);
        if (last > 0)
                mem_release(memobj);
        client_unlock(c);
        return last < 0 ? CL_INVALID_MEM_OBJECT : CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clSetMemObjectDestructorCallback(
        cl_mem memobj, void(CL_CALLBACK *pfn_notify)(cl_mem, void *), void *user_data)
{
        if (!handle_is(memobj, HANDLE_MEM))
                return CL_INVALID_MEM_OBJECT;
        /* "CL_INVALID_VALUE if pfn_notify is NULL." */
        if (!pfn_notify)
                return CL_INVALID_VALUE;
        client_lock(memobj->context->client);
        int r = mem_on_destroy(memobj, pfn_notify, user_data);
        client_unlock(memobj->context->client);
        return status_to_cl(r);
}

CL_API_ENTRY cl_int CL_API_CALL clGetMemObjectInfo(cl_mem memobj, cl_mem_info param_name,
                                                   size_t param_value_size, void *param_value,
                                                   size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(memobj, HANDLE_MEM))
                return CL_INVALID_MEM_OBJECT;
        switch (param_name) {
        case CL_MEM_TYPE:
                if (mem_is_pipe(memobj))
                        return reply_value(reply, cl_mem_object_type, CL_MEM_OBJECT_PIPE);
                return reply_value(reply, cl_mem_object_type,
                                   mem_is_image(memobj) ? memobj->image.type
                                                        : CL_MEM_OBJECT_BUFFER);
        case CL_MEM_FLAGS:
                return reply_value(reply, cl_mem_flags, memobj->flags);
        case CL_MEM_SIZE:
                return reply_value(reply, size_t,
                                   mem_is_image(memobj) ? image_store_size(memobj) : memobj->size);
        /* "If memobj is created with CL_MEM_USE_HOST_PTR, the host_ptr argument value [...], for a
         * sub-buffer host_ptr + origin; otherwise NULL." */
        case CL_MEM_HOST_PTR:
                return reply_value(reply, void *, memobj->host_ptr);
        case CL_MEM_MAP_COUNT: {
                client_lock(memobj->context->client);
                cl_uint count = memobj->map_count;
                client_unlock(memobj->context->client);
                return reply_value(reply, cl_uint, count);
        }
        case CL_MEM_REFERENCE_COUNT:
                return reply_value(reply, cl_uint, atomic_load(&memobj->h.refs));
        case CL_MEM_CONTEXT:
                return reply_value(reply, cl_context, memobj->context);
        case CL_MEM_ASSOCIATED_MEMOBJECT:
                return reply_value(reply, cl_mem, mem_parent(memobj));
        case CL_MEM_OFFSET:
                return reply_value(reply, size_t, mem_parent(memobj) ? memobj->origin : 0);
        case CL_MEM_USES_SVM_POINTER:
                return reply_value(reply, cl_bool,
                                   mem_root(memobj)->chunk && !mem_is_image(memobj));
        case CL_MEM_PROPERTIES:
                return reply_bytes(reply, memobj->properties,
                                   memobj->property_count * sizeof(*memobj->properties));
        default:
                return CL_INVALID_VALUE;
        }
}
