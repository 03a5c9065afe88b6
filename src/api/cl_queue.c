#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "api/reply.h"
#include "core/command/ahead.h"
#include "core/command/event.h"
#include "core/command/prefetch.h"
#include "core/command/queue.h"
#include "core/context.h"
#include "core/device.h"

enum {
        HOST_QUEUE = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE,
        ON_DEVICE = CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT,
};

static int device_queue(cl_context x, const struct queue_params *params, cl_command_queue *ret)
        REQUIRES(client_held)
{
        /* "If CL_QUEUE_ON_DEVICE_DEFAULT is specified [...] will return the default device queue that has
         * already been created and increment its retain count by 1." */
        cl_command_queue q = params->properties & CL_QUEUE_ON_DEVICE_DEFAULT
                                     ? queue_default(x, params->device)
                                     : NULL;
        if (q) {
                handle_retain(&q->h);
                *ret = q;
                return 0;
        }
        if (queue_count_on_device(params->device) >=
            device_number(params->device, CL_DEVICE_MAX_ON_DEVICE_QUEUES))
                return CL_OUT_OF_RESOURCES;
        struct queue_params all = *params;
        if (!all.size)
                all.size = (cl_uint)device_number(params->device,
                                                  CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE);
        return queue_new(x, &all, ret);
}

static cl_command_queue create(cl_context context, const struct queue_params *params,
                               cl_int *errcode_ret)
{
        /* "CL_INVALID_CONTEXT if context is not a valid context." */
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        /* "CL_INVALID_DEVICE if device is not a valid device or is not associated with context." */
        if (!handle_is(params->device, HANDLE_DEVICE) ||
            !context_has_device(context, params->device))
                return reply_error(errcode_ret, CL_INVALID_DEVICE);
        /* "CL_INVALID_QUEUE_PROPERTIES if values specified in properties are valid but are not
         * supported by the device." */
        bool on_device = params->properties & CL_QUEUE_ON_DEVICE;
        cl_command_queue_properties can =
                on_device ? device_number(params->device, CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES) |
                                    ON_DEVICE
                          : params->device->queue_properties;
        if (params->properties & ~can ||
            (on_device &&
             (!device_number(params->device, CL_DEVICE_MAX_ON_DEVICE_QUEUES) ||
              params->size > device_number(params->device, CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE))))
                return reply_error(errcode_ret, CL_INVALID_QUEUE_PROPERTIES);
        cl_command_queue q = NULL;
        client_lock(context->client);
        int r = on_device ? device_queue(context, params, &q) : queue_new(context, params, &q);
        client_unlock(context->client);
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return q;
}

/* "CL_INVALID_VALUE if values specified in properties are not valid." A queue on the device must be out of
 * order, the default one on the device. */
static cl_command_queue create_checked(cl_context context, const struct queue_params *params,
                                       cl_int *errcode_ret)
{
        if (params->properties & ~(cl_command_queue_properties)(HOST_QUEUE | ON_DEVICE) ||
            (params->properties & CL_QUEUE_ON_DEVICE &&
             !(params->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)) ||
            (params->properties & ON_DEVICE) == CL_QUEUE_ON_DEVICE_DEFAULT)
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        return create(context, params, errcode_ret);
}

CL_API_ENTRY cl_command_queue CL_API_CALL
clCreateCommandQueue(cl_context context, cl_device_id device,
                     cl_command_queue_properties properties, cl_int *errcode_ret)
{
        /* The specification has queues on the device for clCreateCommandQueueWithProperties only, but native
         * implementations make them here, too. */
        return create_checked(context,
                              &(struct queue_params){ .device = device, .properties = properties },
                              errcode_ret);
}

CL_API_ENTRY cl_command_queue CL_API_CALL
clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                   const cl_queue_properties *properties, cl_int *errcode_ret)
{
        struct queue_params params = { .device = device, .list = properties };
        bool have_properties = false, have_size = false;
        for (size_t i = 0; properties && properties[i]; i += 2) {
                /* "CL_INVALID_VALUE if values specified in properties are not valid." Also if the same
                 * name comes twice. */
                switch (properties[i]) {
                case CL_QUEUE_PROPERTIES:
                        if (have_properties)
                                return reply_error(errcode_ret, CL_INVALID_VALUE);
                        have_properties = true;
                        params.properties = properties[i + 1];
                        break;
                case CL_QUEUE_SIZE:
                        if (have_size)
                                return reply_error(errcode_ret, CL_INVALID_VALUE);
                        have_size = true;
                        /* "This is a cl_uint": the device's limit is one, too. */
                        params.size = properties[i + 1] > CL_UINT_MAX ? CL_UINT_MAX
                                                                      : (cl_uint)properties[i + 1];
                        break;
                default:
                        return reply_error(errcode_ret, CL_INVALID_VALUE);
                }
                params.list_count = i + 3;
        }
        if (properties && !params.list_count)
                params.list_count = 1;
        /* "CL_QUEUE_SIZE [...] can only be specified if CL_QUEUE_ON_DEVICE is set." */
        if (have_size && !(params.properties & CL_QUEUE_ON_DEVICE))
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        return create_checked(context, &params, errcode_ret);
}

/* cl_khr_create_command_queue */
CL_API_ENTRY cl_command_queue CL_API_CALL clCreateCommandQueueWithPropertiesKHR(
        cl_context context, cl_device_id device, const cl_queue_properties_khr *properties,
        cl_int *errcode_ret)
{
        return clCreateCommandQueueWithProperties(context, device, properties, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clRetainCommandQueue(cl_command_queue command_queue)
{
        if (!handle_is(command_queue, HANDLE_QUEUE))
                return CL_INVALID_COMMAND_QUEUE;
        handle_retain(&command_queue->h);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseCommandQueue(cl_command_queue command_queue)
{
        if (!handle_is(command_queue, HANDLE_QUEUE))
                return CL_INVALID_COMMAND_QUEUE;
        struct client *c = command_queue->context->client;
        client_lock(c);
        /* "clReleaseCommandQueue performs an implicit flush." */
        queue_flush(command_queue);
        if (command_queue->context->ahead.late == command_queue)
                (void)!ahead_catch_up(command_queue->context);
        int last = handle_release(&command_queue->h);
        if (last > 0) {
                if (command_queue->prefetch)
                        prefetch_stop(command_queue->prefetch);
                events_watch(command_queue); /* they hold it */
                queue_unhold(command_queue);
        }
        client_unlock(c);
        return last < 0 ? CL_INVALID_COMMAND_QUEUE : CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetCommandQueueInfo(cl_command_queue command_queue,
                                                      cl_command_queue_info param_name,
                                                      size_t param_value_size, void *param_value,
                                                      size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        cl_command_queue q = command_queue, found;
        if (!handle_is(q, HANDLE_QUEUE))
                return CL_INVALID_COMMAND_QUEUE;
        switch (param_name) {
        case CL_QUEUE_CONTEXT:
                return reply_value(reply, cl_context, q->context);
        case CL_QUEUE_DEVICE:
                return reply_value(reply, cl_device_id, q->device->shown);
        case CL_QUEUE_REFERENCE_COUNT:
                return reply_value(reply, cl_uint, atomic_load(&q->h.refs));
        case CL_QUEUE_PROPERTIES:
                return reply_value(reply, cl_command_queue_properties, q->properties);
        case CL_QUEUE_PROPERTIES_ARRAY:
                return reply_bytes(reply, q->property_list,
                                   q->property_count * sizeof(*q->property_list));
        /* "If command_queue is not a device command queue, CL_INVALID_COMMAND_QUEUE." */
        case CL_QUEUE_SIZE:
                return q->properties & CL_QUEUE_ON_DEVICE ? reply_value(reply, cl_uint, q->size)
                                                          : CL_INVALID_COMMAND_QUEUE;
        case CL_QUEUE_DEVICE_DEFAULT:
                client_lock(q->context->client);
                found = queue_default(q->context, q->device);
                client_unlock(q->context->client);
                return reply_value(reply, cl_command_queue, found);
        default:
                return CL_INVALID_VALUE;
        }
}

CL_API_ENTRY cl_int CL_API_CALL clSetCommandQueueProperty(cl_command_queue command_queue,
                                                          cl_command_queue_properties properties,
                                                          cl_bool enable,
                                                          cl_command_queue_properties *old)
{
        if (!handle_is(command_queue, HANDLE_QUEUE))
                return CL_INVALID_COMMAND_QUEUE;
        if (properties & ~(cl_command_queue_properties)HOST_QUEUE)
                return CL_INVALID_VALUE;
        if (old)
                *old = command_queue->properties;
        /* "CL_INVALID_OPERATION if no devices in the context associated with command_queue support the
         * modification of properties": it is of OpenCL 1.0, all devices are of later versions. */
        return CL_INVALID_OPERATION;
}

CL_API_ENTRY cl_int CL_API_CALL clFlush(cl_command_queue command_queue)
{
        if (!queue_is_host(command_queue))
                return CL_INVALID_COMMAND_QUEUE;
        struct client *c = command_queue->context->client;
        client_lock(c);
        cl_int status = queue_flush(command_queue);
        client_unlock(c);
        return status;
}

CL_API_ENTRY cl_int CL_API_CALL clFinish(cl_command_queue command_queue)
{
        if (!queue_is_host(command_queue))
                return CL_INVALID_COMMAND_QUEUE;
        struct client *c = command_queue->context->client;
        client_lock(c);
        cl_int status = queue_finish(command_queue);
        client_unlock(c);
        return status;
}

CL_API_ENTRY cl_int CL_API_CALL clSetDefaultDeviceCommandQueue(cl_context context,
                                                               cl_device_id device,
                                                               cl_command_queue command_queue)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return CL_INVALID_CONTEXT;
        /* "CL_INVALID_DEVICE if device is not a valid device or is not associated with context." */
        if (!handle_is(device, HANDLE_DEVICE) || !context_has_device(context, device))
                return CL_INVALID_DEVICE;
        /* "CL_INVALID_OPERATION if device does not support a replaceable default on-device queue." */
        if (!(device_number(device, CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES) &
              CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT))
                return CL_INVALID_OPERATION;
        /* "CL_INVALID_COMMAND_QUEUE if command_queue is not a valid command-queue for device." */
        if (!handle_is(command_queue, HANDLE_QUEUE) || queue_is_host(command_queue) ||
            command_queue->device->shown != device->shown || command_queue->context != context)
                return CL_INVALID_COMMAND_QUEUE;
        client_lock(context->client);
        int r = queue_set_default(command_queue);
        client_unlock(context->client);
        return status_to_cl(r);
}
