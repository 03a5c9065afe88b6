/* Contexts, queues, devices, queries, events. */
#include "refusals.h"

/* ---- contexts ------------------------------------------------------------------------------- */

static void CL_CALLBACK on_error(const char *text, const void *info, size_t size, void *data)
{
        (void)text, (void)info, (void)size, (void)data;
}

static void CL_CALLBACK on_context(cl_context context, void *data)
{
        (void)context, (void)data;
}

void group_context(struct world *w)
{
        cl_platform_id p = w->platform;
        cl_device_id d = w->device, two[2] = { d, d }, with_null[2] = { d, NULL };
        cl_context_properties empty[] = { 0 },
                              plain[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)p, 0 },
                              twice[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)p,
                                          CL_CONTEXT_PLATFORM, (cl_context_properties)p, 0 },
                              null[] = { CL_CONTEXT_PLATFORM, 0, 0 },
                              sync[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)p,
                                         CL_CONTEXT_INTEROP_USER_SYNC, CL_TRUE, 0 },
                              sync_false[] = { CL_CONTEXT_INTEROP_USER_SYNC, CL_FALSE, 0 },
                              sync_bad[] = { CL_CONTEXT_INTEROP_USER_SYNC, 7, 0 },
                              unknown[] = { 0x7777, 1, 0 },
                              gl[] = { 0x2008, 0, CL_CONTEXT_PLATFORM, (cl_context_properties)p,
                                       0 };
        int data = 0;
        MAKE("empty_properties", clReleaseContext,
             clCreateContext(empty, 1, &d, NULL, NULL, &w->err));
        MAKE("platform", clReleaseContext, clCreateContext(plain, 1, &d, NULL, NULL, &w->err));
        MAKE("platform_twice", clReleaseContext,
             clCreateContext(twice, 1, &d, NULL, NULL, &w->err));
        MAKE("platform_null", clReleaseContext, clCreateContext(null, 1, &d, NULL, NULL, &w->err));
        MAKE("user_sync", clReleaseContext, clCreateContext(sync, 1, &d, NULL, NULL, &w->err));
        MAKE("user_sync_false", clReleaseContext,
             clCreateContext(sync_false, 1, &d, NULL, NULL, &w->err));
        MAKE("user_sync_bad", clReleaseContext,
             clCreateContext(sync_bad, 1, &d, NULL, NULL, &w->err));
        MAKE("unknown_property", clReleaseContext,
             clCreateContext(unknown, 1, &d, NULL, NULL, &w->err));
        MAKE("gl_context_null", clReleaseContext, clCreateContext(gl, 1, &d, NULL, NULL, &w->err));
        MAKE("data_without_callback", clReleaseContext,
             clCreateContext(plain, 1, &d, NULL, &data, &w->err));
        MAKE("callback_without_data", clReleaseContext,
             clCreateContext(plain, 1, &d, on_error, NULL, &w->err));
        MAKE("device_twice", clReleaseContext, clCreateContext(plain, 2, two, NULL, NULL, &w->err));
        MAKE("no_devices", clReleaseContext, clCreateContext(plain, 0, &d, NULL, NULL, &w->err));
        MAKE("null_devices", clReleaseContext,
             clCreateContext(plain, 1, NULL, NULL, NULL, &w->err));
        MAKE("from_type_all", clReleaseContext,
             clCreateContextFromType(plain, CL_DEVICE_TYPE_ALL, NULL, NULL, &w->err));
        MAKE("from_type_default", clReleaseContext,
             clCreateContextFromType(plain, CL_DEVICE_TYPE_DEFAULT, NULL, NULL, &w->err));
        MAKE("from_type_none", clReleaseContext,
             clCreateContextFromType(plain, 0, NULL, NULL, &w->err));
        MAKE("from_type_unknown", clReleaseContext,
             clCreateContextFromType(plain, 1u << 20, NULL, NULL, &w->err));
        MAKE("from_type_custom", clReleaseContext,
             clCreateContextFromType(plain, CL_DEVICE_TYPE_CUSTOM, NULL, NULL, &w->err));
        MAKE("from_type_data", clReleaseContext,
             clCreateContextFromType(plain, CL_DEVICE_TYPE_ALL, NULL, &data, &w->err));
        MAKE("from_type_unknown_property", clReleaseContext,
             clCreateContextFromType(unknown, CL_DEVICE_TYPE_ALL, NULL, NULL, &w->err));
        CALL("destructor_null", clSetContextDestructorCallback(w->context, NULL, NULL));
        CALL("destructor", clSetContextDestructorCallback(w->context, on_context, NULL));
        CALL("retain_null", clRetainContext(NULL));
        CALL("release_null", clReleaseContext(NULL));
        MAKE("null_device", clReleaseContext,
             clCreateContext(plain, 2, with_null, NULL, NULL, &w->err));
}

/* ---- queues --------------------------------------------------------------------------------- */

void group_queue(struct world *w)
{
        cl_context x = w->context;
        cl_device_id d = w->device;
        cl_queue_properties empty[] = { 0 }, none[] = { CL_QUEUE_PROPERTIES, 0, 0 },
                            profiling[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0 },
                            out_of_order[] = { CL_QUEUE_PROPERTIES,
                                               CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0 },
                            twice[] = { CL_QUEUE_PROPERTIES, 0, CL_QUEUE_PROPERTIES, 0, 0 },
                            unknown[] = { 0x7777, 1, 0 },
                            unknown_bits[] = { CL_QUEUE_PROPERTIES, 1u << 20, 0 },
                            size[] = { CL_QUEUE_SIZE, 1024, 0 },
                            device_default[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE_DEFAULT,
                                                 0 },
                            on_device[] = { CL_QUEUE_PROPERTIES,
                                            CL_QUEUE_ON_DEVICE |
                                                    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
                                            0 },
                            on_device_in_order[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE, 0 },
                            priority[] = { 0x1096, 1 << 1, 0 }, throttle[] = { 0x1097, 1 << 1, 0 };
        const struct {
                const char *name;
                const cl_queue_properties *list;
        } lists[] = {
                { "null", NULL },
                { "empty", empty },
                { "none", none },
                { "profiling", profiling },
                { "out_of_order", out_of_order },
                { "twice", twice },
                { "unknown", unknown },
                { "unknown_bits", unknown_bits },
                { "size", size },
                { "on_device_default", device_default },
                { "on_device", on_device },
                { "on_device_in_order", on_device_in_order },
                { "priority", priority },
                { "throttle", throttle },
        };
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
                char name[64];
                snprintf(name, sizeof(name), "with_properties_%s", lists[i].name);
                MAKE(name, clReleaseCommandQueue,
                     clCreateCommandQueueWithProperties(x, d, lists[i].list, &w->err));
        }
        MAKE("bits_out_of_order", clReleaseCommandQueue,
             clCreateCommandQueue(x, d, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &w->err));
        MAKE("bits_on_device", clReleaseCommandQueue,
             clCreateCommandQueue(x, d, CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
                                  &w->err));
        MAKE("bits_unknown", clReleaseCommandQueue, clCreateCommandQueue(x, d, 1u << 20, &w->err));
        MAKE("null_context", clReleaseCommandQueue, clCreateCommandQueue(NULL, d, 0, &w->err));
        MAKE("null_device", clReleaseCommandQueue, clCreateCommandQueue(x, NULL, 0, &w->err));

        cl_command_queue_properties old;
        CALL("set_property",
             clSetCommandQueueProperty(w->queue, CL_QUEUE_PROFILING_ENABLE, CL_TRUE, &old));
        CALL("set_property_unknown", clSetCommandQueueProperty(w->queue, 1u << 20, CL_TRUE, NULL));
        CALL("set_default_host", clSetDefaultDeviceCommandQueue(x, d, w->queue));
        CALL("flush", clFlush(w->queue));
        CALL("flush_null", clFlush(NULL));
        CALL("finish_null", clFinish(NULL));
        CALL("retain_null", clRetainCommandQueue(NULL));
        CALL("release_null", clReleaseCommandQueue(NULL));
        cl_uint number;
        CALL("info_size", clGetCommandQueueInfo(w->queue, CL_QUEUE_SIZE, 4, &number, NULL));
        CALL("info_default",
             clGetCommandQueueInfo(w->queue, CL_QUEUE_DEVICE_DEFAULT, 0, NULL, NULL));
}

/* ---- devices -------------------------------------------------------------------------------- */

static void partition(struct world *w, const char *name, const cl_device_partition_property *list)
{
        cl_uint count = 0;
        cl_device_id out[64];
        if (!wanted(w, name))
                return;
        cl_int e = clCreateSubDevices(w->device, list, 64, out, &count);
        say(w, name, e);
        for (cl_uint i = 0; e == CL_SUCCESS && i < count && i < 64; i++)
                clReleaseDevice(out[i]);
}

static void sub_devices(struct world *w)
{
        cl_device_partition_property units = (cl_device_partition_property)device_number(
                                                     w, CL_DEVICE_MAX_COMPUTE_UNITS) &
                                             UINT32_MAX,
                                     equally[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 },
                                     none[] = { CL_DEVICE_PARTITION_EQUALLY, 0, 0 },
                                     all[] = { CL_DEVICE_PARTITION_EQUALLY, units, 0 },
                                     more[] = { CL_DEVICE_PARTITION_EQUALLY, units + 1, 0 },
                                     negative[] = { CL_DEVICE_PARTITION_EQUALLY, -1, 0 },
                                     counts[] = { CL_DEVICE_PARTITION_BY_COUNTS, 1,
                                                  CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0 },
                                     counts_all[] = { CL_DEVICE_PARTITION_BY_COUNTS, units,
                                                      CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0 },
                                     counts_none[] = { CL_DEVICE_PARTITION_BY_COUNTS,
                                                       CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0 },
                                     counts_more[] = { CL_DEVICE_PARTITION_BY_COUNTS, units, 1,
                                                       CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0 },
                                     domain[] = { CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN,
                                                  CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE, 0 },
                                     numa[] = { CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN,
                                                CL_DEVICE_AFFINITY_DOMAIN_NUMA, 0 },
                                     two[] = { CL_DEVICE_PARTITION_EQUALLY, 1,
                                               CL_DEVICE_PARTITION_EQUALLY, 1, 0 },
                                     unknown[] = { 0x7777, 1, 0 };
        cl_uint count;
        cl_device_id one;
        partition(w, "partition_equally", equally);
        partition(w, "partition_equally_all", all);
        partition(w, "partition_equally_more", more);
        partition(w, "partition_equally_negative", negative);
        partition(w, "partition_counts", counts);
        partition(w, "partition_counts_all", counts_all);
        partition(w, "partition_counts_more", counts_more);
        partition(w, "partition_domain", domain);
        partition(w, "partition_numa", numa);
        partition(w, "partition_two", two);
        partition(w, "partition_unknown", unknown);
        partition(w, "partition_null", NULL);
        CALL("partition_count", clCreateSubDevices(w->device, equally, 0, NULL, &count));
        if (units > 1)
                CALL("partition_too_few", clCreateSubDevices(w->device, equally, 1, &one, &count));
        CALL("partition_nothing", clCreateSubDevices(w->device, equally, 0, NULL, NULL));
        partition(w, "partition_equally_none", none);
        partition(w, "partition_counts_none", counts_none);
}

void group_devices(struct world *w)
{
        cl_uint count;
        cl_device_id d;
        cl_ulong time;
        char text[4096];
        CALL("ids_cpu_gpu",
             clGetDeviceIDs(w->platform, CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU, 1, &d, NULL));
        CALL("ids_none", clGetDeviceIDs(w->platform, 0, 1, &d, NULL));
        CALL("ids_unknown", clGetDeviceIDs(w->platform, 1u << 20, 1, &d, NULL));
        CALL("ids_no_entries", clGetDeviceIDs(w->platform, CL_DEVICE_TYPE_ALL, 0, &d, NULL));
        CALL("ids_nothing", clGetDeviceIDs(w->platform, CL_DEVICE_TYPE_ALL, 1, NULL, NULL));
        CALL("ids_entries_count", clGetDeviceIDs(w->platform, CL_DEVICE_TYPE_ALL, 1, NULL, &count));
        CALL("ids_custom", clGetDeviceIDs(w->platform, CL_DEVICE_TYPE_CUSTOM, 1, &d, NULL));
        CALL("info_small", clGetDeviceInfo(w->device, CL_DEVICE_NAME, 1, text, NULL));
        CALL("info_unknown", clGetDeviceInfo(w->device, 0x7777, sizeof(text), text, NULL));
        CALL("info_nothing", clGetDeviceInfo(w->device, CL_DEVICE_NAME, 0, NULL, NULL));
        CALL("info_large", clGetDeviceInfo(w->device, CL_DEVICE_TYPE, sizeof(text), text, NULL));
        CALL("platform_small", clGetPlatformInfo(w->platform, CL_PLATFORM_NAME, 1, text, NULL));
        CALL("platform_unknown", clGetPlatformInfo(w->platform, 0x7777, 64, text, NULL));
        CALL("retain_root", clRetainDevice(w->device));
        CALL("release_root", clReleaseDevice(w->device));
        CALL("host_timer", clGetHostTimer(w->device, &time));
        CALL("host_timer_null", clGetHostTimer(w->device, NULL));
        CALL("device_timer_null", clGetDeviceAndHostTimer(w->device, NULL, &time));
        CALL("unload", clUnloadPlatformCompiler(w->platform));
        CALL("unload_null", clUnloadPlatformCompiler(NULL));
        sub_devices(w);
}

/* ---- queries -------------------------------------------------------------------------------- */

void group_queries(struct world *w)
{
        char text[4096];
        size_t size;
        cl_sampler s = w->sampler;
        CALL("context_small", clGetContextInfo(w->context, CL_CONTEXT_DEVICES, 1, text, NULL));
        CALL("context_unknown", clGetContextInfo(w->context, 0x7777, 64, text, NULL));
        CALL("context_nothing", clGetContextInfo(w->context, CL_CONTEXT_DEVICES, 0, NULL, NULL));
        CALL("context_properties",
             clGetContextInfo(w->context, CL_CONTEXT_PROPERTIES, 0, NULL, &size));
        CALL("context_properties_small",
             clGetContextInfo(w->context, CL_CONTEXT_PROPERTIES, 0, text, NULL));
        CALL("queue_small", clGetCommandQueueInfo(w->queue, CL_QUEUE_CONTEXT, 1, text, NULL));
        CALL("queue_unknown", clGetCommandQueueInfo(w->queue, 0x7777, 64, text, NULL));
        CALL("queue_array_small",
             clGetCommandQueueInfo(w->queue, CL_QUEUE_PROPERTIES_ARRAY, 0, text, NULL));
        CALL("mem_small", clGetMemObjectInfo(w->a, CL_MEM_SIZE, 1, text, NULL));
        CALL("mem_unknown", clGetMemObjectInfo(w->a, 0x7777, 64, text, NULL));
        CALL("mem_properties", clGetMemObjectInfo(w->a, CL_MEM_PROPERTIES, 0, NULL, &size));
        CALL("image_of_buffer", clGetImageInfo(w->a, CL_IMAGE_WIDTH, 8, text, NULL));
        CALL("pipe_of_buffer", clGetPipeInfo(w->a, CL_PIPE_PACKET_SIZE, 4, text, NULL));
        if (w->images) {
                CALL("image_small", clGetImageInfo(w->image, CL_IMAGE_WIDTH, 1, text, NULL));
                CALL("image_unknown", clGetImageInfo(w->image, 0x7777, 64, text, NULL));
                CALL("image_depth", clGetImageInfo(w->image, CL_IMAGE_DEPTH, 8, text, NULL));
                CALL("sampler_small", clGetSamplerInfo(s, CL_SAMPLER_CONTEXT, 1, text, NULL));
                CALL("sampler_unknown", clGetSamplerInfo(s, 0x7777, 64, text, NULL));
        }
        cl_event e = clCreateUserEvent(w->context, &w->err);
        NEED(w->err);
        CALL("event_small", clGetEventInfo(e, CL_EVENT_CONTEXT, 1, text, NULL));
        CALL("event_unknown", clGetEventInfo(e, 0x7777, 64, text, NULL));
        CALL("event_queue", clGetEventInfo(e, CL_EVENT_COMMAND_QUEUE, 8, text, NULL));
        NEED(clReleaseEvent(e));

        cl_program p = program_new(w, "kernel void f(global int *a, local int *b, int c) { a[0] = "
                                      "c; }");
        CALL("program_small", clGetProgramInfo(p, CL_PROGRAM_SOURCE, 1, text, NULL));
        CALL("program_unknown", clGetProgramInfo(p, 0x7777, 64, text, NULL));
        CALL("program_kernels_unbuilt", clGetProgramInfo(p, CL_PROGRAM_NUM_KERNELS, 8, text, NULL));
        CALL("program_names_unbuilt",
             clGetProgramInfo(p, CL_PROGRAM_KERNEL_NAMES, sizeof(text), text, NULL));
        CALL("program_sizes_unbuilt", clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, 64, text, NULL));
        CALL("program_il", clGetProgramInfo(p, CL_PROGRAM_IL, 0, NULL, &size));
        CALL("build_unknown", clGetProgramBuildInfo(p, w->device, 0x7777, 64, text, NULL));
        CALL("build_log_unbuilt",
             clGetProgramBuildInfo(p, w->device, CL_PROGRAM_BUILD_LOG, 64, text, NULL));
        CALL("build_null_device",
             clGetProgramBuildInfo(p, NULL, CL_PROGRAM_BUILD_STATUS, 64, text, NULL));
        NEED(clBuildProgram(p, 0, NULL, NULL, NULL, NULL));
        CALL("build_small",
             clGetProgramBuildInfo(p, w->device, CL_PROGRAM_BUILD_STATUS, 1, text, NULL));
        CALL("program_sizes_small", clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, 1, text, NULL));
        CALL("program_binaries_small", clGetProgramInfo(p, CL_PROGRAM_BINARIES, 1, text, NULL));
        CALL("program_names_small", clGetProgramInfo(p, CL_PROGRAM_KERNEL_NAMES, 1, text, NULL));
        cl_kernel k = kernel_new(p, "f");
        CALL("kernel_small", clGetKernelInfo(k, CL_KERNEL_FUNCTION_NAME, 1, text, NULL));
        CALL("kernel_unknown", clGetKernelInfo(k, 0x7777, 64, text, NULL));
        CALL("arg_info_name",
             clGetKernelArgInfo(k, 0, CL_KERNEL_ARG_NAME, sizeof(text), text, NULL));
        CALL("arg_info_index", clGetKernelArgInfo(k, 3, CL_KERNEL_ARG_NAME, 64, text, NULL));
        CALL("arg_info_unknown", clGetKernelArgInfo(k, 0, 0x7777, 64, text, NULL));
        CALL("arg_info_small", clGetKernelArgInfo(k, 0, CL_KERNEL_ARG_TYPE_NAME, 1, text, NULL));
        CALL("group_null_device",
             clGetKernelWorkGroupInfo(k, NULL, CL_KERNEL_WORK_GROUP_SIZE, 8, text, NULL));
        CALL("group_small",
             clGetKernelWorkGroupInfo(k, w->device, CL_KERNEL_WORK_GROUP_SIZE, 1, text, NULL));
        CALL("group_unknown", clGetKernelWorkGroupInfo(k, w->device, 0x7777, 64, text, NULL));
        CALL("group_global",
             clGetKernelWorkGroupInfo(k, w->device, CL_KERNEL_GLOBAL_WORK_SIZE, 24, text, NULL));
        size_t local[4] = { 4, 1, 1, 1 };
        CALL("sub_group_size",
             clGetKernelSubGroupInfo(k, w->device, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 8,
                                     local, 8, text, NULL));
        CALL("sub_group_no_input",
             clGetKernelSubGroupInfo(k, w->device, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 0,
                                     NULL, 8, text, NULL));
        CALL("sub_group_input_odd",
             clGetKernelSubGroupInfo(k, w->device, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 5,
                                     local, 8, text, NULL));
        CALL("sub_group_unknown",
             clGetKernelSubGroupInfo(k, w->device, 0x7777, 8, local, 8, text, NULL));
        CALL("sub_group_max", clGetKernelSubGroupInfo(k, w->device, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0,
                                                      NULL, 8, text, NULL));
        NEED(clReleaseKernel(k));
        NEED(clReleaseProgram(p));
}

/* ---- events --------------------------------------------------------------------------------- */

static void CL_CALLBACK on_event(cl_event event, cl_int status, void *data)
{
        (void)event, (void)status, (void)data;
}

static void profiling(struct world *w)
{
        cl_ulong time;
        cl_event e, user = clCreateUserEvent(w->context, &w->err), waiting;
        NEED(w->err);
        NEED(clEnqueueReadBuffer(w->queue, w->a, CL_TRUE, 0, 16, w->host, 0, NULL, &e));
        CALL("profiling_without",
             clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, 8, &time, NULL));
        NEED(clReleaseEvent(e));
        CALL("profiling_user",
             clGetEventProfilingInfo(user, CL_PROFILING_COMMAND_END, 8, &time, NULL));
        NEED(clEnqueueReadBuffer(w->profiling_queue, w->a, CL_FALSE, 0, 16, w->host, 1, &user,
                                 &waiting));
        CALL("profiling_early",
             clGetEventProfilingInfo(waiting, CL_PROFILING_COMMAND_END, 8, &time, NULL));
        CALL("profiling_queued_early",
             clGetEventProfilingInfo(waiting, CL_PROFILING_COMMAND_QUEUED, 8, &time, NULL));
        NEED(clSetUserEventStatus(user, CL_COMPLETE));
        NEED(clFinish(w->profiling_queue));
        CALL("profiling",
             clGetEventProfilingInfo(waiting, CL_PROFILING_COMMAND_END, 8, &time, NULL));
        CALL("profiling_complete",
             clGetEventProfilingInfo(waiting, CL_PROFILING_COMMAND_COMPLETE, 8, &time, NULL));
        CALL("profiling_unknown", clGetEventProfilingInfo(waiting, 0x7777, 8, &time, NULL));
        CALL("profiling_small",
             clGetEventProfilingInfo(waiting, CL_PROFILING_COMMAND_END, 4, &time, NULL));
        NEED(clReleaseEvent(waiting));
        NEED(clReleaseEvent(user));
}

void group_events(struct world *w)
{
        cl_event user = clCreateUserEvent(w->context, &w->err), e,
                 two[2] = { user, w->foreign_event }, null = NULL;
        NEED(w->err);
        CALL("callback_null", clSetEventCallback(user, CL_COMPLETE, NULL, NULL));
        CALL("callback_queued", clSetEventCallback(user, CL_QUEUED, on_event, NULL));
        CALL("callback_submitted", clSetEventCallback(user, CL_SUBMITTED, on_event, NULL));
        CALL("callback_running", clSetEventCallback(user, CL_RUNNING, on_event, NULL));
        CALL("callback_complete", clSetEventCallback(user, CL_COMPLETE, on_event, NULL));
        CALL("callback_unknown", clSetEventCallback(user, 17, on_event, NULL));
        CALL("callback_negative", clSetEventCallback(user, -5, on_event, NULL));
        CALL("user_status_running", clSetUserEventStatus(user, CL_RUNNING));
        CALL("user_status_queued", clSetUserEventStatus(user, CL_QUEUED));
        CALL("user_status", clSetUserEventStatus(user, CL_COMPLETE));
        CALL("user_status_again", clSetUserEventStatus(user, CL_COMPLETE));
        CALL("wait_user", clWaitForEvents(1, &user));
        CALL("wait_none", clWaitForEvents(0, &user));
        CALL("wait_null", clWaitForEvents(1, NULL));
        CALL("wait_null_event", clWaitForEvents(1, &null));
        CALL("wait_two_contexts", clWaitForEvents(2, two));
        NEED(clEnqueueReadBuffer(w->queue, w->a, CL_TRUE, 0, 16, w->host, 0, NULL, &e));
        CALL("user_status_of_command", clSetUserEventStatus(e, CL_COMPLETE));
        NEED(clReleaseEvent(e));
        profiling(w);
        RUN("marker_list", clEnqueueMarkerWithWaitList(w->queue, 1, &user, &w->event));
        RUN("marker_null_list", clEnqueueMarkerWithWaitList(w->queue, 1, NULL, &w->event));
        RUN("marker_empty_list", clEnqueueMarkerWithWaitList(w->queue, 0, &user, &w->event));
        RUN("marker_foreign",
            clEnqueueMarkerWithWaitList(w->queue, 1, &w->foreign_event, &w->event));
        RUN("marker_no_event", clEnqueueMarker(w->queue, NULL));
        RUN("marker", clEnqueueMarker(w->queue, &w->event));
        RUN("barrier", clEnqueueBarrier(w->queue));
        RUN("barrier_null_list", clEnqueueBarrierWithWaitList(w->queue, 1, NULL, &w->event));
        RUN("barrier_empty_list", clEnqueueBarrierWithWaitList(w->queue, 0, &user, &w->event));
        RUN("wait_list", clEnqueueWaitForEvents(w->queue, 1, &user));
        RUN("wait_list_none", clEnqueueWaitForEvents(w->queue, 0, &user));
        RUN("wait_list_null", clEnqueueWaitForEvents(w->queue, 1, NULL));
        RUN("wait_list_foreign", clEnqueueWaitForEvents(w->queue, 1, &w->foreign_event));
        RUN("read_null_list",
            clEnqueueReadBuffer(w->queue, w->a, CL_TRUE, 0, 16, w->host, 1, NULL, &w->event));
        RUN("read_empty_list",
            clEnqueueReadBuffer(w->queue, w->a, CL_TRUE, 0, 16, w->host, 0, &user, &w->event));
        RUN("read_foreign_list", clEnqueueReadBuffer(w->queue, w->a, CL_TRUE, 0, 16, w->host, 1,
                                                     &w->foreign_event, &w->event));
        RUN("read_two_lists",
            clEnqueueReadBuffer(w->queue, w->a, CL_TRUE, 0, 16, w->host, 2, two, &w->event));
        cl_event failed = clCreateUserEvent(w->context, &w->err);
        NEED(w->err);
        CALL("user_status_failed", clSetUserEventStatus(failed, -5));
        CALL("wait_failed", clWaitForEvents(1, &failed));
        NEED(clReleaseEvent(failed));
        NEED(clReleaseEvent(user));
        MAKE("user_null_context", clReleaseEvent, clCreateUserEvent(NULL, &w->err));
        RUN("marker_null_in_list", clEnqueueMarkerWithWaitList(w->queue, 1, &null, &w->event));
}
