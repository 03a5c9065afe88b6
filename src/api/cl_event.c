#include <CL/cl.h>

#include "api/reply.h"
#include "core/command/event.h"

CL_API_ENTRY cl_int CL_API_CALL clWaitForEvents(cl_uint num_events, const cl_event *event_list)
{
        /* "CL_INVALID_VALUE if num_events is zero or event_list is NULL." */
        if (!num_events || !event_list)
                return CL_INVALID_VALUE;
        /* "CL_INVALID_EVENT if event objects specified in event_list are not valid event objects." */
        for (cl_uint i = 0; i < num_events; i++)
                if (!handle_is(event_list[i], HANDLE_EVENT))
                        return CL_INVALID_EVENT;
        /* "CL_INVALID_CONTEXT if events specified in event_list do not belong to the same context." */
        for (cl_uint i = 1; i < num_events; i++)
                if (event_list[i]->context != event_list[0]->context)
                        return CL_INVALID_CONTEXT;
        struct client *c = event_list[0]->context->client;
        client_lock(c);
        cl_int status = events_wait(c, num_events, event_list);
        client_unlock(c);
        return status;
}

CL_API_ENTRY cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info param_name,
                                               size_t param_value_size, void *param_value,
                                               size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(event, HANDLE_EVENT))
                return CL_INVALID_EVENT;
        switch (param_name) {
        /* "For user event objects, a NULL value is returned." */
        case CL_EVENT_COMMAND_QUEUE:
                /* "for events returned by a command-buffer enqueue operation to multiple command-queues,
                 * NULL is returned." */
                return reply_value(reply, cl_command_queue,
                                   event->many_queues ? NULL : event->queue);
        case CL_EVENT_CONTEXT:
                return reply_value(reply, cl_context, event->context);
        case CL_EVENT_COMMAND_TYPE:
                return reply_value(reply, cl_command_type, event->command);
        case CL_EVENT_COMMAND_EXECUTION_STATUS: {
                client_lock(event->context->client);
                cl_int status = event_status(event);
                client_unlock(event->context->client);
                return reply_value(reply, cl_int, status);
        }
        case CL_EVENT_REFERENCE_COUNT:
                return reply_value(reply, cl_uint, atomic_load(&event->h.refs));
        default:
                return CL_INVALID_VALUE;
        }
}

CL_API_ENTRY cl_int CL_API_CALL clRetainEvent(cl_event event)
{
        if (!handle_is(event, HANDLE_EVENT))
                return CL_INVALID_EVENT;
        handle_retain(&event->h);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseEvent(cl_event event)
{
        if (!handle_is(event, HANDLE_EVENT))
                return CL_INVALID_EVENT;
        struct client *c = event->context->client;
        client_lock(c);
        int last = handle_release(&event->h);
        if (last > 0)
                event_unhold(event);
        client_unlock(c);
        return last < 0 ? CL_INVALID_EVENT : CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetEventProfilingInfo(cl_event event,
                                                        cl_profiling_info param_name,
                                                        size_t param_value_size, void *param_value,
                                                        size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(event, HANDLE_EVENT))
                return CL_INVALID_EVENT;
        /* CL_PROFILING_INFO_NOT_AVAILABLE: "the CL_QUEUE_PROFILING_ENABLE flag is not set for the
         * command-queue"; "the execution status of the command identified by event is not
         * CL_COMPLETE"; or "event is a user event object". */
        if (!event->queue || !(event->queue->properties & CL_QUEUE_PROFILING_ENABLE))
                return CL_PROFILING_INFO_NOT_AVAILABLE;
        client_lock(event->context->client);
        cl_int status = event_status(event);
        cl_ulong queued = event->queued_ns, submit = event->submit_ns;
        cl_ulong start = event->start_ns, end = event->end_ns;
        client_unlock(event->context->client);
        if (status != CL_COMPLETE)
                return CL_PROFILING_INFO_NOT_AVAILABLE;
        switch (param_name) {
        case CL_PROFILING_COMMAND_QUEUED:
                return reply_value(reply, cl_ulong, queued);
        case CL_PROFILING_COMMAND_SUBMIT:
                return reply_value(reply, cl_ulong, submit);
        case CL_PROFILING_COMMAND_START:
                return reply_value(reply, cl_ulong, start);
        /* Without device-side enqueue both are the same. */
        case CL_PROFILING_COMMAND_END:
        case CL_PROFILING_COMMAND_COMPLETE:
                return reply_value(reply, cl_ulong, end);
        default:
                return CL_INVALID_VALUE;
        }
}

CL_API_ENTRY cl_event CL_API_CALL clCreateUserEvent(cl_context context, cl_int *errcode_ret)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        cl_event event = NULL;
        client_lock(context->client);
        int r = event_new_user(context, &event);
        client_unlock(context->client);
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return event;
}

CL_API_ENTRY cl_int CL_API_CALL clSetUserEventStatus(cl_event event, cl_int execution_status)
{
        /* "CL_INVALID_EVENT if event is not a valid user event object." */
        if (!handle_is(event, HANDLE_EVENT) || event->queue)
                return CL_INVALID_EVENT;
        /* "CL_INVALID_VALUE if the execution_status is not CL_COMPLETE or a negative integer value." */
        if (execution_status > CL_COMPLETE)
                return CL_INVALID_VALUE;
        client_lock(event->context->client);
        int r = event_set_user(event, execution_status);
        client_unlock(event->context->client);
        /* "CL_INVALID_OPERATION if the execution_status for event has already been changed by a
         * previous call to clSetUserEventStatus." */
        return r == SP_E_BUSY ? CL_INVALID_OPERATION : status_to_cl(r);
}

CL_API_ENTRY cl_int CL_API_CALL
clSetEventCallback(cl_event event, cl_int command_exec_callback_type,
                   void(CL_CALLBACK *pfn_notify)(cl_event, cl_int, void *), void *user_data)
{
        if (!handle_is(event, HANDLE_EVENT))
                return CL_INVALID_EVENT;
        /* "CL_INVALID_VALUE if pfn_event_notify is NULL or if command_exec_callback_type is not
         * CL_SUBMITTED, CL_RUNNING, or CL_COMPLETE." */
        if (!pfn_notify ||
            (command_exec_callback_type != CL_SUBMITTED &&
             command_exec_callback_type != CL_RUNNING && command_exec_callback_type != CL_COMPLETE))
                return CL_INVALID_VALUE;
        client_lock(event->context->client);
        int r = event_on(event, command_exec_callback_type, pfn_notify, user_data);
        client_unlock(event->context->client);
        return status_to_cl(r);
}
