/* cl_khr_command_buffer, _multi_device, _mutable_dispatch. The functions are found by name alone, so here they
 * have names of their own: headers declare them differently, or not (core/command/khr_command_buffer.h). */
#include "api/check.h"
#include "api/dispatch.h"
#include "api/enqueue.h"
#include "api/reply.h"
#include "base/mem.h"
#include "core/command/command_buffer.h"
#include "core/command/queue.h"
#include "core/program/kernel.h"

/* ---- making --------------------------------------------------------------------------------- */

/* "CL_INVALID_VALUE if values specified in properties are not valid, or if the same property name is
 * specified more than once." */
static cl_int take_properties(struct command_buffer_params *p)
{
        bool have_flags = false, have_asserts = false;
        for (size_t i = 0; p->properties && p->properties[i]; i += 2) {
                cl_command_buffer_properties_khr name = p->properties[i];
                bool *have = name == CL_COMMAND_BUFFER_FLAGS_KHR ? &have_flags
                             : name == CL_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS_KHR
                                     ? &have_asserts
                                     : NULL;
                if (!have || *have)
                        return CL_INVALID_VALUE;
                *have = true;
                if (have == &have_flags)
                        p->flags = p->properties[i + 1];
                else
                        p->asserts = p->properties[i + 1];
        }
        cl_bitfield flags = CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR | CL_COMMAND_BUFFER_MUTABLE_KHR |
                            CL_COMMAND_BUFFER_DEVICE_SIDE_SYNC_KHR;
        cl_bitfield asserts = CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR;
        return p->flags & ~flags || p->asserts & ~asserts ? CL_INVALID_VALUE : CL_SUCCESS;
}

static cl_int check_queues(const struct command_buffer_params *p)
{
        for (cl_uint i = 0; i < p->queue_count; i++)
                if (!queue_is_host(p->queues[i]))
                        return CL_INVALID_COMMAND_QUEUE;
        /* "CL_INVALID_CONTEXT if all the command-queues in queues do not have the same OpenCL context." */
        for (cl_uint i = 1; i < p->queue_count; i++)
                if (p->queues[i]->context != p->queues[0]->context)
                        return CL_INVALID_CONTEXT;
        return CL_SUCCESS;
}

/* Can the device of each queue synchronize with that of the first? */
static bool can_sync(const struct command_buffer_params *p)
{
        struct client *c = p->queues[0]->context->client;
        cl_device_id first = p->queues[0]->device;
        bool r = true;
        client_lock(c);
        for (cl_uint i = 1; i < p->queue_count && r; i++)
                r = p->queues[i]->device == first ||
                    command_buffer_can_sync(first, p->queues[i]->device);
        client_unlock(c);
        return r;
}

static cl_command_buffer_khr create(cl_uint num_queues, const cl_command_queue *queues,
                                    const cl_command_buffer_properties_khr *properties,
                                    cl_int *errcode_ret)
{
        struct command_buffer_params p = { queues, num_queues, properties };
        cl_command_buffer_khr b = NULL;
        /* "CL_INVALID_VALUE if [...] num_queues is zero"; "CL_INVALID_VALUE if queues is NULL." */
        cl_int e = num_queues && queues ? check_queues(&p) : CL_INVALID_VALUE;
        if (e == CL_SUCCESS)
                e = take_properties(&p);
        /* "CL_INCOMPATIBLE_COMMAND_QUEUE_KHR if the platform does not support the
         * CL_COMMAND_BUFFER_PLATFORM_UNIVERSAL_SYNC_KHR capability, and any device associated with a
         * command-queue in queues cannot natively synchronize with the other devices." */
        if (e == CL_SUCCESS && !can_sync(&p))
                e = CL_INCOMPATIBLE_COMMAND_QUEUE_KHR;
        /* "CL_INVALID_PROPERTY if values specified in properties are valid but are not supported by
         * all the devices associated with command-queues in queues". A recording contains the
         * migrations between domains, so a command buffer with several domains can't be mutable.
         */
        for (cl_uint i = 1; i < num_queues && e == CL_SUCCESS; i++)
                if (queues[0]->device->domain != queues[i]->device->domain &&
                    p.flags & CL_COMMAND_BUFFER_MUTABLE_KHR)
                        e = CL_INVALID_PROPERTY;
        if (e == CL_SUCCESS) {
                struct client *c = queues[0]->context->client;
                client_lock(c);
                e = status_to_cl(command_buffer_new(&p, &b));
                client_unlock(c);
        }
        if (errcode_ret)
                *errcode_ret = e;
        return b;
}

static cl_int retain(cl_command_buffer_khr b)
{
        if (!handle_is(b, HANDLE_COMMAND_BUFFER))
                return CL_INVALID_COMMAND_BUFFER_KHR;
        handle_retain(&b->h);
        return CL_SUCCESS;
}

static cl_int release(cl_command_buffer_khr b)
{
        if (!handle_is(b, HANDLE_COMMAND_BUFFER))
                return CL_INVALID_COMMAND_BUFFER_KHR;
        struct client *c = b->context->client;
        client_lock(c);
        int last = handle_release(&b->h);
        if (last > 0)
                command_buffer_unhold(b);
        client_unlock(c);
        return last < 0 ? CL_INVALID_COMMAND_BUFFER_KHR : CL_SUCCESS;
}

static cl_int finalize(cl_command_buffer_khr b)
{
        if (!handle_is(b, HANDLE_COMMAND_BUFFER))
                return CL_INVALID_COMMAND_BUFFER_KHR;
        /* "CL_INVALID_OPERATION if command_buffer is not in the Recording state." */
        if (b->finalized)
                return CL_INVALID_OPERATION;
        client_lock(b->context->client);
        cl_int e = status_to_cl(command_buffer_finalize(b));
        client_unlock(b->context->client);
        return e;
}

/* ---- running -------------------------------------------------------------------------------- */

static cl_int check_substitute(cl_command_buffer_khr b, const cl_command_queue *queues)
{
        for (cl_uint i = 0; i < b->queue_count; i++)
                if (!queue_is_host(queues[i]))
                        return CL_INVALID_COMMAND_QUEUE;
        /* "CL_INVALID_DEVICE if any element of queues does not have the same device as the command-queue set
         * on command_buffer creation at the same list index." */
        for (cl_uint i = 0; i < b->queue_count; i++)
                if (queues[i]->device != b->queues[i]->device)
                        return CL_INVALID_DEVICE;
        for (cl_uint i = 0; i < b->queue_count; i++)
                if (queues[i]->context != b->context)
                        return CL_INVALID_CONTEXT;
        return CL_SUCCESS;
}

static cl_int enqueue(cl_uint num_queues, cl_command_queue *queues, cl_command_buffer_khr b,
                      cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
                      cl_event *event)
{
        if (!handle_is(b, HANDLE_COMMAND_BUFFER))
                return CL_INVALID_COMMAND_BUFFER_KHR;
        /* "CL_INVALID_OPERATION if command_buffer is not in the Executable state." */
        if (command_buffer_state(b) != CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR)
                return CL_INVALID_OPERATION;
        /* "CL_INVALID_VALUE if queues is NULL and num_queues is > 0, or queues is not NULL and num_queues is
         * 0"; "CL_INVALID_VALUE if num_queues is > 0 and not the same value as num_queues set on
         * command_buffer creation." */
        if (!queues != !num_queues || (num_queues && num_queues != b->queue_count))
                return CL_INVALID_VALUE;
        cl_int e = queues ? check_substitute(b, queues) : CL_SUCCESS;
        if (e == CL_SUCCESS)
                e = check_wait_list(b->context, num_events_in_wait_list, event_wait_list);
        if (e != CL_SUCCESS)
                return e;
        const cl_command_queue *on = queues ? queues : b->queues;
        struct enqueue q = { on[0],
                             CL_COMMAND_COMMAND_BUFFER_KHR,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return enqueue_command_buffer(&q, b, on);
}

/* ---- recording ------------------------------------------------------------------------------ */

/* The common parameters of all clCommand* functions. */
struct record {
        cl_command_buffer_khr buffer;
        cl_command_queue queue;
        const command_property *properties;
        cl_uint sync_count;
        const cl_sync_point_khr *syncs;
        cl_sync_point_khr *sync_point;
        cl_mutable_command_khr *handle;
        bool launch;
        struct recorder recorder;
        struct enqueue q;
};

/* CL_INVALID_COMMAND_QUEUE: "command_queue is NULL and command_buffer was created with more than
 * one queue"; or command_queue is "not a command-queue listed on command_buffer creation".
 * "CL_INVALID_CONTEXT if command_queue is not NULL, and the context associated with command_queue
 * and command_buffer is not the same". */
static cl_int find_slot(const struct record *r, unsigned *ret)
{
        const struct _cl_command_buffer_khr *b = r->buffer;
        if (!r->queue) {
                *ret = 0;
                return b->queue_count == 1 ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
        }
        for (unsigned i = 0; i < b->queue_count; i++) {
                if (b->queues[i] == r->queue) {
                        *ret = i;
                        return CL_SUCCESS;
                }
        }
        return handle_is(r->queue, HANDLE_QUEUE) && r->queue->context != b->context
                       ? CL_INVALID_CONTEXT
                       : CL_INVALID_COMMAND_QUEUE;
}

/* CL_INVALID_SYNC_POINT_WAIT_LIST_KHR: "sync_point_wait_list is NULL and
 * num_sync_points_in_wait_list is > 0"; or it "is not NULL and num_sync_points_in_wait_list is 0";
 * or its objects "are not valid synchronization-points". */
static cl_int check_syncs(const struct record *r)
{
        if (!r->syncs != !r->sync_count)
                return CL_INVALID_SYNC_POINT_WAIT_LIST_KHR;
        for (cl_uint i = 0; i < r->sync_count; i++)
                if (!r->syncs[i] || r->syncs[i] > r->buffer->count)
                        return CL_INVALID_SYNC_POINT_WAIT_LIST_KHR;
        return CL_SUCCESS;
}

static cl_mutable_dispatch_fields_khr updatable(cl_device_id d)
{
        cl_mutable_dispatch_fields_khr fields = 0;
        clGetDeviceInfo(d, CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR, sizeof(fields), &fields,
                        NULL);
        return fields;
}

/* "CL_INVALID_VALUE if values specified in properties are not valid." Only launches have any. */
static cl_int check_properties(struct record *r, cl_device_id d)
{
        const cl_mutable_dispatch_fields_khr all =
                CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR | CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR |
                CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR | CL_MUTABLE_DISPATCH_ARGUMENTS_KHR |
                CL_MUTABLE_DISPATCH_EXEC_INFO_KHR;
        bool have_fields = false, have_asserts = false;
        const command_property *p = r->properties;
        r->recorder.fields = r->launch ? updatable(d) : 0;
        for (; p && *p; p += 2) {
                if (r->launch && p[0] == CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR && !have_fields) {
                        have_fields = true;
                        if (p[1] & ~all)
                                return CL_INVALID_VALUE;
                        /* "CL_INVALID_OPERATION if the requested CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR
                         * properties are not reported by CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR for
                         * the device associated with command_queue." */
                        if (p[1] & ~updatable(d))
                                return CL_INVALID_OPERATION;
                        r->recorder.fields = p[1];
                        r->recorder.may_be_incomplete = p[1] & CL_MUTABLE_DISPATCH_ARGUMENTS_KHR;
                } else if (r->launch && p[0] == CL_MUTABLE_DISPATCH_ASSERTS_KHR && !have_asserts) {
                        have_asserts = true;
                        if (p[1] &
                            ~(cl_bitfield)CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR)
                                return CL_INVALID_VALUE;
                } else {
                        return CL_INVALID_VALUE;
                }
        }
        return CL_SUCCESS;
}

/* Everything that does not depend on the command; fills in r->q, to be handed to its do_* function. */
static cl_int record_check(struct record *r, cl_command_type type)
{
        cl_command_buffer_khr b = r->buffer;
        unsigned slot;
        if (!handle_is(b, HANDLE_COMMAND_BUFFER))
                return CL_INVALID_COMMAND_BUFFER_KHR;
        /* "CL_INVALID_OPERATION if command_buffer has been finalized." */
        if (b->finalized)
                return CL_INVALID_OPERATION;
        cl_int e = find_slot(r, &slot);
        if (e == CL_SUCCESS)
                e = check_properties(r, b->queues[slot]->device);
        /* "CL_INVALID_VALUE if mutable_handle is not NULL": of all but launches. */
        if (e == CL_SUCCESS && r->handle && !r->launch)
                e = CL_INVALID_VALUE;
        if (e == CL_SUCCESS)
                e = check_syncs(r);
        if (e != CL_SUCCESS)
                return e;
        r->recorder.buffer = b;
        r->recorder.slot = slot;
        r->recorder.sync_count = r->sync_count;
        r->recorder.syncs = r->syncs;
        r->recorder.properties = r->properties;
        r->q = (struct enqueue){ .queue = b->queues[slot], .type = type, .record = &r->recorder };
        return CL_SUCCESS;
}

static cl_int record_done(const struct record *r, cl_int e)
{
        if (e == CL_SUCCESS && r->sync_point)
                *r->sync_point = (cl_sync_point_khr)r->recorder.command->number;
        if (e == CL_SUCCESS && r->handle)
                *r->handle = r->recorder.command;
        return e;
}

/* The parameters that all have, and the arguments behind them that all end with. */
#define RECORD_HEAD \
        cl_command_buffer_khr buffer, cl_command_queue queue, const command_property *properties
#define RECORD_TAIL                                                                        \
        cl_uint sync_count, const cl_sync_point_khr *syncs, cl_sync_point_khr *sync_point, \
                cl_mutable_command_khr *handle
#define RECORD(type, ...)                                                              \
        do {                                                                           \
                struct record r = { buffer,     queue,                                 \
                                    properties, sync_count,                            \
                                    syncs,      sync_point,                            \
                                    handle,     (type) == CL_COMMAND_NDRANGE_KERNEL }; \
                cl_int e = record_check(&r, type);                                     \
                return e != CL_SUCCESS ? e : record_done(&r, __VA_ARGS__);             \
        } while (0)

static cl_int barrier(RECORD_HEAD, RECORD_TAIL)
{
        RECORD(CL_COMMAND_BARRIER, enqueue_marker(&r.q, true));
}

static cl_int copy_buffer(RECORD_HEAD, cl_mem src, cl_mem dst, size_t src_offset, size_t dst_offset,
                          size_t size, RECORD_TAIL)
{
        RECORD(CL_COMMAND_COPY_BUFFER,
               do_copy_buffer(&r.q, src, dst, src_offset, dst_offset, size));
}

static cl_int copy_buffer_rect(RECORD_HEAD, cl_mem src, cl_mem dst, const size_t *src_origin,
                               const size_t *dst_origin, const size_t *region, size_t src_row_pitch,
                               size_t src_slice_pitch, size_t dst_row_pitch, size_t dst_slice_pitch,
                               RECORD_TAIL)
{
        RECORD(CL_COMMAND_COPY_BUFFER_RECT,
               do_copy_buffer_rect(&r.q, src, dst, src_origin, dst_origin, region, src_row_pitch,
                                   src_slice_pitch, dst_row_pitch, dst_slice_pitch));
}

static cl_int copy_buffer_to_image(RECORD_HEAD, cl_mem src, cl_mem dst, size_t src_offset,
                                   const size_t *dst_origin, const size_t *region, RECORD_TAIL)
{
        RECORD(CL_COMMAND_COPY_BUFFER_TO_IMAGE,
               do_copy_buffer_to_image(&r.q, src, dst, src_offset, dst_origin, region));
}

static cl_int copy_image(RECORD_HEAD, cl_mem src, cl_mem dst, const size_t *src_origin,
                         const size_t *dst_origin, const size_t *region, RECORD_TAIL)
{
        RECORD(CL_COMMAND_COPY_IMAGE,
               do_copy_image(&r.q, src, dst, src_origin, dst_origin, region));
}

static cl_int copy_image_to_buffer(RECORD_HEAD, cl_mem src, cl_mem dst, const size_t *src_origin,
                                   const size_t *region, size_t dst_offset, RECORD_TAIL)
{
        RECORD(CL_COMMAND_COPY_IMAGE_TO_BUFFER,
               do_copy_image_to_buffer(&r.q, src, dst, src_origin, region, dst_offset));
}

static cl_int fill_buffer(RECORD_HEAD, cl_mem mem, const void *pattern, size_t pattern_size,
                          size_t offset, size_t size, RECORD_TAIL)
{
        RECORD(CL_COMMAND_FILL_BUFFER,
               do_fill_buffer(&r.q, mem, pattern, pattern_size, offset, size));
}

static cl_int fill_image(RECORD_HEAD, cl_mem image, const void *fill_color, const size_t *origin,
                         const size_t *region, RECORD_TAIL)
{
        RECORD(CL_COMMAND_FILL_IMAGE, do_fill_image(&r.q, image, fill_color, origin, region));
}

static bool no_more_groups(const struct record *r)
{
        const command_property *p = r->properties;
        cl_mutable_dispatch_asserts_khr asserts = r->buffer->asserts;
        for (; p && *p; p += 2)
                asserts |= *p == CL_MUTABLE_DISPATCH_ASSERTS_KHR ? p[1] : 0;
        return asserts & CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR;
}

static cl_int ndrange_kernel(RECORD_HEAD, cl_kernel kernel, cl_uint work_dim,
                             const size_t *global_work_offset, const size_t *global_work_size,
                             const size_t *local_work_size, RECORD_TAIL)
{
        /* "CL_INVALID_VALUE if command_buffer was created with [...] or if properties includes [...]
         * CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR and local_work_size is NULL." */
        RECORD(CL_COMMAND_NDRANGE_KERNEL,
               no_more_groups(&r) && !local_work_size
                       ? CL_INVALID_VALUE
                       : do_launch(&r.q, kernel, work_dim, global_work_offset, global_work_size,
                                   local_work_size));
}

static cl_int svm_memcpy(RECORD_HEAD, void *dst_ptr, const void *src_ptr, size_t size, RECORD_TAIL)
{
        RECORD(CL_COMMAND_SVM_MEMCPY, do_svm_memcpy(&r.q, dst_ptr, src_ptr, size, false));
}

static cl_int svm_mem_fill(RECORD_HEAD, void *svm_ptr, const void *pattern, size_t pattern_size,
                           size_t size, RECORD_TAIL)
{
        RECORD(CL_COMMAND_SVM_MEMFILL, do_svm_mem_fill(&r.q, svm_ptr, pattern, pattern_size, size));
}

/* ---- changes -------------------------------------------------------------------------------- */

static bool is_uniform(const struct launch *l)
{
        for (cl_uint i = 0; i < l->dims; i++)
                if (l->global[i] % l->local[i])
                        return false;
        return true;
}

/* Is the change of the sizes one that may be? */
static cl_int check_sizes(cl_mutable_command_khr c)
{
        const struct launch *l = &c->next;
        for (cl_uint i = 0; i < l->dims; i++) {
                if (l->has_local && !l->local[i])
                        return CL_INVALID_WORK_GROUP_SIZE;
                if (!l->global[i])
                        return CL_INVALID_GLOBAL_WORK_SIZE;
        }
        /* "CL_INVALID_OPERATION if the values of local_work_size and/or global_work_size result in a change
         * to work-group uniformity." */
        if (l->has_local && c->now.has_local && is_uniform(l) != is_uniform(&c->now))
                return CL_INVALID_OPERATION;
        cl_device_id d = c->queue->device;
        const size_t *local = launch_local_size(c->kernel, d, l->has_local ? l->local : NULL);
        return check_launch_sizes(c->kernel, d, l->dims, l->offset, l->global, local);
}

/* Check one config: its command, its fields against the recorded command, and its counts. */
static cl_int check_config(cl_command_buffer_khr b, const struct mutable_dispatch_config *m)
{
        cl_mutable_command_khr c = m->command;
        /* "CL_INVALID_MUTABLE_COMMAND_KHR if command is not a valid mutable command object returned from
         * clCommandNDRangeKernelKHR, or created from command_buffer." */
        if (!handle_is(c, HANDLE_MUTABLE_COMMAND) || c->buffer != b || !c->kernel)
                return CL_INVALID_MUTABLE_COMMAND_KHR;
        /* "CL_INVALID_OPERATION if work_dim is not zero and different from the work_dim set on
         * command recording"; also if a field is given whose "CL_MUTABLE_DISPATCH_* property was
         * not set on command recording". */
        if ((m->work_dim && m->work_dim != c->now.dims) ||
            (m->global_work_offset && !(c->fields & CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR)) ||
            (m->global_work_size && !(c->fields & CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR)) ||
            (m->local_work_size && !(c->fields & CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR)) ||
            ((m->num_args || m->num_svm_args) &&
             !(c->fields & CL_MUTABLE_DISPATCH_ARGUMENTS_KHR)) ||
            (m->num_exec_infos && !(c->fields & CL_MUTABLE_DISPATCH_EXEC_INFO_KHR)))
                return CL_INVALID_OPERATION;
        /* "CL_INVALID_VALUE if arg_list is NULL and num_args > 0, or arg_list is not NULL and num_args is
         * 0", and so on. */
        if (!m->arg_list != !m->num_args || !m->arg_svm_list != !m->num_svm_args ||
            !m->exec_info_list != !m->num_exec_infos)
                return CL_INVALID_VALUE;
        return CL_SUCCESS;
}

static int change_kernel(cl_kernel k, const struct mutable_dispatch_config *m)
{
        int r = 0;
        for (cl_uint i = 0; i < m->num_args && !r; i++)
                r = do_set_arg(k, m->arg_list[i].arg_index, m->arg_list[i].arg_size,
                               m->arg_list[i].arg_value);
        for (cl_uint i = 0; i < m->num_svm_args && !r; i++)
                r = do_set_svm_arg(k, m->arg_svm_list[i].arg_index, m->arg_svm_list[i].arg_value);
        for (cl_uint i = 0; i < m->num_exec_infos && !r; i++)
                r = do_set_exec_info(k, m->exec_info_list[i].param_name,
                                     m->exec_info_list[i].param_value_size,
                                     m->exec_info_list[i].param_value);
        return r;
}

static cl_int change(const struct mutable_dispatch_config *m)
{
        cl_mutable_command_khr c = m->command;
        struct client *client = c->buffer->context->client;
        size_t size = c->now.dims * sizeof(size_t);
        client_lock(client);
        int r = command_change(c);
        client_unlock(client);
        if (!r)
                r = change_kernel(c->next.args, m);
        if (r < 0)
                return status_to_cl(r);
        if (m->global_work_offset)
                memcpy(c->next.offset, m->global_work_offset, size);
        if (m->global_work_size)
                memcpy(c->next.global, m->global_work_size, size);
        if (m->local_work_size)
                memcpy(c->next.local, m->local_work_size, size);
        c->next.has_local |= m->local_work_size != NULL;
        cl_int e = CL_SUCCESS;
        if (m->global_work_offset || m->global_work_size || m->local_work_size)
                e = check_sizes(c);
        return e != CL_SUCCESS ? e : check_launch_args(c->queue->device, c->next.args, true);
}

static cl_int update(cl_command_buffer_khr b, cl_uint num_configs, const cl_uint *config_types,
                     const void **configs)
{
        if (!handle_is(b, HANDLE_COMMAND_BUFFER))
                return CL_INVALID_COMMAND_BUFFER_KHR;
        /* "CL_INVALID_OPERATION if command_buffer has not been finalized"; "[...] if command_buffer was not
         * created with the CL_COMMAND_BUFFER_MUTABLE_KHR flag." */
        if (!b->finalized || !(b->flags & CL_COMMAND_BUFFER_MUTABLE_KHR))
                return CL_INVALID_OPERATION;
        /* "CL_INVALID_VALUE if config_types is NULL and num_configs > 0, or config_types is not NULL and
         * num_configs is 0"; the same of configs. */
        if (!config_types != !num_configs || !configs != !num_configs)
                return CL_INVALID_VALUE;
        cl_int e = CL_SUCCESS;
        for (cl_uint i = 0; i < num_configs; i++)
                if (config_types[i] != CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR || !configs[i])
                        return CL_INVALID_VALUE;
        for (cl_uint i = 0; i < num_configs && e == CL_SUCCESS; i++) {
                e = check_config(b, configs[i]);
                if (e == CL_SUCCESS)
                        e = change(configs[i]);
        }
        client_lock(b->context->client);
        if (e == CL_SUCCESS)
                e = status_to_cl(command_buffer_commit(b));
        else
                command_buffer_abort(b);
        client_unlock(b->context->client);
        return e;
}

/* No platform has to: CL_PLATFORM_COMMAND_BUFFER_CAPABILITIES_KHR does not name
 * CL_COMMAND_BUFFER_PLATFORM_REMAP_QUEUES_KHR. */
static cl_command_buffer_khr remap(cl_command_buffer_khr b, cl_bool automatic, cl_uint num_queues,
                                   const cl_command_queue *queues, cl_uint num_handles,
                                   const cl_mutable_command_khr *handles,
                                   cl_mutable_command_khr *handles_ret, cl_int *errcode_ret)
{
        struct command_buffer_params p = { queues, num_queues };
        if (!handle_is(b, HANDLE_COMMAND_BUFFER))
                return reply_error(errcode_ret, CL_INVALID_COMMAND_BUFFER_KHR);
        if (!num_queues || !queues || (!automatic && num_queues != b->queue_count) ||
            !handles != !num_handles || !handles_ret != !num_handles)
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        for (cl_uint i = 0; i < num_handles; i++)
                if (!handle_is(handles[i], HANDLE_MUTABLE_COMMAND) || handles[i]->buffer != b)
                        return reply_error(errcode_ret, CL_INVALID_VALUE);
        cl_int e = check_queues(&p);
        if (e == CL_SUCCESS && queues[0]->context != b->context)
                e = CL_INVALID_CONTEXT;
        /* "CL_INVALID_OPERATION if the platform does not support the
         * CL_COMMAND_BUFFER_PLATFORM_REMAP_QUEUES_KHR flag." */
        return reply_error(errcode_ret, e != CL_SUCCESS ? e : CL_INVALID_OPERATION);
}

/* ---- queries -------------------------------------------------------------------------------- */

static cl_int get_info(cl_command_buffer_khr b, cl_command_buffer_info_khr name, size_t size,
                       void *value, size_t *size_ret)
{
        struct reply reply = { size, value, size_ret };
        if (!handle_is(b, HANDLE_COMMAND_BUFFER))
                return CL_INVALID_COMMAND_BUFFER_KHR;
        switch (name) {
        case CL_COMMAND_BUFFER_NUM_QUEUES_KHR:
                return reply_value(reply, cl_uint, b->queue_count);
        case CL_COMMAND_BUFFER_QUEUES_KHR:
                return reply_bytes(reply, b->queues, b->queue_count * sizeof(*b->queues));
        case CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR:
                return reply_value(reply, cl_uint, atomic_load(&b->h.refs));
        case CL_COMMAND_BUFFER_STATE_KHR:
                return reply_value(reply, cl_command_buffer_state_khr, command_buffer_state(b));
        case CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR:
                return reply_bytes(reply, b->properties,
                                   b->property_count * sizeof(*b->properties));
        case CL_COMMAND_BUFFER_CONTEXT_KHR:
                return reply_value(reply, cl_context, b->context);
        }
        return CL_INVALID_VALUE;
}

static cl_int get_command_info(cl_mutable_command_khr c, cl_mutable_command_info_khr name,
                               size_t size, void *value, size_t *size_ret)
{
        struct reply reply = { size, value, size_ret };
        if (!handle_is(c, HANDLE_MUTABLE_COMMAND))
                return CL_INVALID_MUTABLE_COMMAND_KHR;
        /* "If command was not recorded from a clCommandNDRangeKernelKHR command, the implementation must
         * return param_value_size_ret equal to 0." */
        size_t sizes = c->kernel ? c->now.dims * sizeof(size_t) : 0;
        switch (name) {
        case CL_MUTABLE_COMMAND_COMMAND_QUEUE_KHR:
                return reply_value(reply, cl_command_queue, c->queue);
        case CL_MUTABLE_COMMAND_COMMAND_BUFFER_KHR:
                return reply_value(reply, cl_command_buffer_khr, c->buffer);
        case CL_MUTABLE_COMMAND_COMMAND_TYPE_KHR:
                return reply_value(reply, cl_command_type, c->type);
        case CL_MUTABLE_COMMAND_PROPERTIES_ARRAY_KHR:
                return reply_bytes(reply, c->properties,
                                   c->property_count * sizeof(*c->properties));
        case CL_MUTABLE_DISPATCH_KERNEL_KHR:
                return reply_bytes(reply, &c->kernel, c->kernel ? sizeof(c->kernel) : 0);
        case CL_MUTABLE_DISPATCH_DIMENSIONS_KHR:
                return reply_bytes(reply, &c->now.dims, c->kernel ? sizeof(c->now.dims) : 0);
        case CL_MUTABLE_DISPATCH_GLOBAL_WORK_OFFSET_KHR:
                return reply_bytes(reply, c->now.offset, sizes);
        case CL_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE_KHR:
                return reply_bytes(reply, c->now.global, sizes);
        case CL_MUTABLE_DISPATCH_LOCAL_WORK_SIZE_KHR:
                return reply_bytes(reply, c->now.local, sizes);
        }
        return CL_INVALID_VALUE;
}

/* ---- names ---------------------------------------------------------------------------------- */

void *command_buffer_find(const char *name)
{
        static const struct {
                const char *name;
                void *address;
        } entries[] = {
                { "clCreateCommandBufferKHR", (void *)create },
                { "clRetainCommandBufferKHR", (void *)retain },
                { "clReleaseCommandBufferKHR", (void *)release },
                { "clFinalizeCommandBufferKHR", (void *)finalize },
                { "clEnqueueCommandBufferKHR", (void *)enqueue },
                { "clCommandBarrierWithWaitListKHR", (void *)barrier },
                { "clCommandCopyBufferKHR", (void *)copy_buffer },
                { "clCommandCopyBufferRectKHR", (void *)copy_buffer_rect },
                { "clCommandCopyBufferToImageKHR", (void *)copy_buffer_to_image },
                { "clCommandCopyImageKHR", (void *)copy_image },
                { "clCommandCopyImageToBufferKHR", (void *)copy_image_to_buffer },
                { "clCommandFillBufferKHR", (void *)fill_buffer },
                { "clCommandFillImageKHR", (void *)fill_image },
                { "clCommandNDRangeKernelKHR", (void *)ndrange_kernel },
                { "clCommandSVMMemcpyKHR", (void *)svm_memcpy },
                { "clCommandSVMMemFillKHR", (void *)svm_mem_fill },
                { "clGetCommandBufferInfoKHR", (void *)get_info },
                { "clUpdateMutableCommandsKHR", (void *)update },
                { "clGetMutableCommandInfoKHR", (void *)get_command_info },
                { "clRemapCommandBufferKHR", (void *)remap },
        };
        for (size_t i = 0; i < array_size(entries); i++)
                if (!strcmp(entries[i].name, name))
                        return entries[i].address;
        return NULL;
}
