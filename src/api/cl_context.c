#include <CL/cl.h>
#include <CL/cl_gl.h>
#include <spancl/finish.h>

#include "api/dispatch.h"
#include "api/reply.h"
#include "base/mem.h"
#include "core/command/ahead.h"
#include "core/context.h"
#include "core/device.h"
#include "core/link/idle.h"

/* CL_INVALID_PROPERTY if a name is not supported, its value is not valid, or a name comes twice;
 * CL_INVALID_PLATFORM if the platform is not valid. *ret_platform is NULL if none is named. */
static cl_int check_properties(const cl_context_properties *properties, size_t *ret_count,
                               cl_platform_id *ret_platform)
{
        bool have_platform = false, have_sync = false, have_finish = false;
        size_t n = 0;
        *ret_platform = NULL;
        *ret_count = 0;
        if (!properties)
                return CL_SUCCESS;
        for (; properties[n]; n += 2) {
                cl_context_properties value = properties[n + 1];
                switch (properties[n]) {
                case CL_CONTEXT_PLATFORM:
                        if (have_platform)
                                return CL_INVALID_PROPERTY;
                        have_platform = true;
                        *ret_platform = (cl_platform_id)value;
                        if (!handle_is(*ret_platform, HANDLE_PLATFORM))
                                return CL_INVALID_PLATFORM;
                        break;
                /* About sharing with other APIs, of which there is none; the value is a cl_bool. */
                case CL_CONTEXT_INTEROP_USER_SYNC:
                        if (have_sync || (value != CL_TRUE && value != CL_FALSE))
                                return CL_INVALID_PROPERTY;
                        have_sync = true;
                        break;
                /* cl_spancl_finish. */
                case CL_CONTEXT_FINISH_SPANCL:
                        if (have_finish || (value != CL_FINISH_WAIT_SPANCL &&
                                            value != CL_FINISH_OPTIMISTIC_SPANCL))
                                return CL_INVALID_PROPERTY;
                        have_finish = true;
                        break;
                /* No context or display of another API: the default. */
                case CL_GL_CONTEXT_KHR:
                case CL_EGL_DISPLAY_KHR:
                case CL_GLX_DISPLAY_KHR:
                        if (value)
                                return CL_INVALID_PROPERTY;
                        break;
                default:
                        return CL_INVALID_PROPERTY;
                }
        }
        *ret_count = n + 1;
        return CL_SUCCESS;
}

/* May waits return early in a context with these properties? */
static bool finishes_ahead(const struct client *c, const cl_context_properties *properties)
        REQUIRES(client_held)
{
        for (; properties && properties[0]; properties += 2)
                if (properties[0] == CL_CONTEXT_FINISH_SPANCL)
                        return properties[1] == CL_FINISH_OPTIMISTIC_SPANCL;
        return c->events.ahead;
}

CL_API_ENTRY cl_context CL_API_CALL clCreateContext(
        const cl_context_properties *properties, cl_uint num_devices, const cl_device_id *devices,
        void(CL_CALLBACK *pfn_notify)(const char *, const void *, size_t, void *), void *user_data,
        cl_int *errcode_ret)
{
        size_t property_count;
        cl_platform_id platform;
        cl_int e = check_properties(properties, &property_count, &platform);
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);
        /* CL_INVALID_VALUE if devices is NULL or num_devices is zero, or if there is data for a
         * callback but no callback. */
        if (!devices || !num_devices || (!pfn_notify && user_data))
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        /* CL_INVALID_DEVICE if devices contains an invalid device. */
        for (cl_uint i = 0; i < num_devices; i++) {
                if (!handle_is(devices[i], HANDLE_DEVICE) ||
                    devices[i]->client != devices[0]->client)
                        return reply_error(errcode_ret, CL_INVALID_DEVICE);
        }
        struct client *c = devices[0]->client;
        if (platform && icd_client(platform) != c)
                return reply_error(errcode_ret, CL_INVALID_DEVICE);

        /* Duplicate devices are ignored. */
        cl_device_id *unique = mem_alloc(num_devices * sizeof(*unique));
        if (!unique)
                return reply_error(errcode_ret, CL_OUT_OF_HOST_MEMORY);
        cl_uint count = 0;
        for (cl_uint i = 0; i < num_devices; i++) {
                cl_uint j = 0;
                while (j < count && unique[j] != devices[i])
                        j++;
                if (j == count)
                        unique[count++] = devices[i];
        }

        cl_context x = NULL;
        client_lock(c);
        devices_begin_use(c, unique, count);
        /* CL_DEVICE_NOT_AVAILABLE if a device is currently not available. */
        for (cl_uint i = 0; i < count; i++) {
                if (!device_is_available(unique[i]))
                        e = CL_DEVICE_NOT_AVAILABLE;
        }
        if (e == CL_SUCCESS) {
                int r = context_new(c,
                                    &(struct context_params){
                                            .devices = unique,
                                            .device_count = count,
                                            .properties = properties,
                                            .property_count = property_count,
                                            .finish_ahead = finishes_ahead(c, properties),
                                            .notify = pfn_notify,
                                            .notify_data = user_data,
                                    },
                                    &x);
                if (r < 0)
                        e = status_to_cl(r);
        }
        client_unlock(c);
        mem_free(unique);
        if (errcode_ret)
                *errcode_ret = e;
        return x;
}

CL_API_ENTRY cl_context CL_API_CALL
clCreateContextFromType(const cl_context_properties *properties, cl_device_type device_type,
                        void(CL_CALLBACK *pfn_notify)(const char *, const void *, size_t, void *),
                        void *user_data, cl_int *errcode_ret)
{
        size_t property_count;
        cl_platform_id platform;
        cl_int e = check_properties(properties, &property_count, &platform);
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);
        if (!pfn_notify && user_data)
                return reply_error(errcode_ret, CL_INVALID_VALUE);

        /* CL_INVALID_DEVICE_TYPE if device_type is not valid; CL_DEVICE_NOT_FOUND if no device
         * matches: as clGetDeviceIDs. */
        cl_uint count = 0;
        e = clGetDeviceIDs(platform, device_type, 0, NULL, &count);
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);
        cl_device_id *devices = mem_alloc(count * sizeof(*devices));
        if (!devices)
                return reply_error(errcode_ret, CL_OUT_OF_HOST_MEMORY);
        e = clGetDeviceIDs(platform, device_type, count, devices, NULL);

        /* Keep the devices that are available now; CL_DEVICE_NOT_AVAILABLE if none of them is. */
        cl_uint available = 0;
        if (e == CL_SUCCESS) {
                struct client *c = devices[0]->client;
                client_lock(c);
                devices_begin_use(c, devices, count);
                for (cl_uint i = 0; i < count; i++) {
                        if (device_is_available(devices[i]))
                                devices[available++] = devices[i];
                }
                client_unlock(c);
                if (!available)
                        e = CL_DEVICE_NOT_AVAILABLE;
        }
        cl_context x = NULL;
        if (e == CL_SUCCESS)
                x = clCreateContext(properties, available, devices, pfn_notify, user_data, &e);
        mem_free(devices);
        if (errcode_ret)
                *errcode_ret = e;
        return x;
}

CL_API_ENTRY cl_int CL_API_CALL clRetainContext(cl_context context)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return CL_INVALID_CONTEXT;
        handle_retain(&context->h);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseContext(cl_context context)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return CL_INVALID_CONTEXT;
        struct client *c = context->client;
        client_lock(c);
        int last = handle_release(&context->h);
        if (last > 0) {
                ahead_settle(context); /* nobody might receive their completions later */
                context_unhold(context);
        }
        client_unlock(c);
        return last < 0 ? CL_INVALID_CONTEXT : CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetContextInfo(cl_context context, cl_context_info param_name,
                                                 size_t param_value_size, void *param_value,
                                                 size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(context, HANDLE_CONTEXT))
                return CL_INVALID_CONTEXT;
        switch (param_name) {
        case CL_CONTEXT_REFERENCE_COUNT:
                return reply_value(reply, cl_uint, atomic_load(&context->h.refs));
        case CL_CONTEXT_NUM_DEVICES:
                return reply_value(reply, cl_uint, context->device_count);
        case CL_CONTEXT_DEVICES:
                return reply_devices(reply, context->devices, context->device_count);
        /* As given to clCreateContext; nothing, of size 0, if that was NULL. */
        case CL_CONTEXT_PROPERTIES:
                return reply_bytes(reply, context->properties,
                                   context->property_count * sizeof(*context->properties));
        default:
                return CL_INVALID_VALUE;
        }
}

CL_API_ENTRY cl_int CL_API_CALL clSetContextDestructorCallback(
        cl_context context, void(CL_CALLBACK *pfn_notify)(cl_context, void *), void *user_data)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return CL_INVALID_CONTEXT;
        if (!pfn_notify)
                return CL_INVALID_VALUE;
        client_lock(context->client);
        int r = context_on_destroy(context, pfn_notify, user_data);
        client_unlock(context->client);
        return r < 0 ? status_to_cl(r) : CL_SUCCESS;
}
