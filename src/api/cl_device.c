#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "api/dispatch.h"
#include "api/reply.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/command/command_buffer.h"
#include "core/device.h"
#include "core/link/availability.h"
#include "core/link/idle.h"
#include "core/link/remote_info.h"
#include "os/clock.h"

static const cl_device_type types_known = CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU |
                                          CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR |
                                          CL_DEVICE_TYPE_CUSTOM;

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type device_type,
                                               cl_uint num_entries, cl_device_id *devices,
                                               cl_uint *num_devices)
{
        /* CL_INVALID_PLATFORM if platform is not valid; NULL means the only one there is. */
        if (platform && !handle_is(platform, HANDLE_PLATFORM))
                return CL_INVALID_PLATFORM;
        /* CL_INVALID_DEVICE_TYPE if device_type is not a valid value. Bits that nobody knows are ignored beside others, as
         * other implementations do: programs pass CL_DEVICE_TYPE_ALL with its sign extended to 64 bits. */
        device_type &= CL_DEVICE_TYPE_ALL;
        if (!(device_type & types_known))
                return CL_INVALID_DEVICE_TYPE;
        /* CL_INVALID_VALUE if there are no entries but a place for them, or if nothing is asked
         * for. */
        if ((!num_entries && devices) || (!devices && !num_devices))
                return CL_INVALID_VALUE;

        struct client *c = platform ? icd_client(platform) : client_get();
        if (!c)
                return CL_OUT_OF_HOST_MEMORY;
        cl_device_id const *all;
        cl_uint count, found = 0;
        client_lock(c);
        client_devices(c, &all, &count);
        for (cl_uint i = 0; i < count; i++) {
                /* ALL and DEFAULT leave custom devices out; the default device is the first that is
                 * not custom. */
                cl_device_type type = all[i]->type & ~(cl_device_type)CL_DEVICE_TYPE_DEFAULT;
                bool custom = type & CL_DEVICE_TYPE_CUSTOM;
                bool wanted;
                if (device_type == CL_DEVICE_TYPE_ALL) {
                        wanted = !custom;
                } else {
                        wanted = type & device_type;
                        if ((device_type & CL_DEVICE_TYPE_DEFAULT) && !custom && !found)
                                wanted = true;
                }
                if (!wanted)
                        continue;
                if (devices && found < num_entries)
                        devices[found] = all[i];
                found++;
                if ((device_type & types_known) == CL_DEVICE_TYPE_DEFAULT)
                        break;
        }
        client_unlock(c);
        /* num_devices, where given, tells how many there are, also if there are none. */
        if (num_devices)
                *num_devices = found;
        return found ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

/* cl_khr_spirv_queries, whose names older headers lack. */
enum { DEVICE_SPIRV_EXTENDED_INSTRUCTION_SETS = 0x12B9, DEVICE_SPIRV_EXTENSIONS = 0x12BA };

/* An array of pointers to texts that live as long as the device; `texts` has them one behind the other. */
static cl_int reply_texts(struct reply reply, struct bytes texts)
{
        const char *begin = texts.data, *end = begin + texts.size;
        size_t count = 0;
        for (const char *p = begin; p < end; p += strlen(p) + 1)
                count++;
        if (reply.size_ret)
                *reply.size_ret = count * sizeof(char *);
        if (!reply.value)
                return CL_SUCCESS;
        if (reply.size < count * sizeof(char *))
                return CL_INVALID_VALUE;
        const char **out = reply.value;
        for (const char *p = begin; p < end; p += strlen(p) + 1)
                *out++ = p;
        return CL_SUCCESS;
}

/* "Return the list of root devices device can use device-side synchronization with", or their number. */
static cl_int sync_devices(cl_device_id device, cl_device_info name, struct reply reply)
{
        const cl_device_id *all;
        cl_uint count, found = 0;
        client_lock(device->client);
        client_devices(device->client, &all, &count);
        cl_device_id *list = mem_alloc((count + 1) * sizeof(*list));
        for (cl_uint i = 0; i < count && list; i++)
                if (command_buffer_can_sync(device, all[i]))
                        list[found++] = all[i];
        client_unlock(device->client);
        if (!list)
                return CL_OUT_OF_HOST_MEMORY;
        cl_int e = name == CL_DEVICE_COMMAND_BUFFER_NUM_SYNC_DEVICES_KHR
                           ? reply_value(reply, cl_uint, found)
                           : reply_bytes(reply, list, found * sizeof(*list));
        mem_free(list);
        return e;
}

/* About the device's server. CL_INVALID_VALUE if it is in this process, or has no such value. */
static cl_int reply_remote(cl_device_id device, cl_device_info name, struct reply reply)
{
        auto_clean(buf_fini) struct buf value = { 0 };
        client_lock(device->client);
        int r = remote_info_put(device, name, clock_wall_ns(), &value);
        client_unlock(device->client);
        if (r < 0)
                return r == SP_E_NOENT ? CL_INVALID_VALUE : CL_OUT_OF_HOST_MEMORY;
        return reply_bytes(reply, value.data, value.size);
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info param_name,
                                                size_t param_value_size, void *param_value,
                                                size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(device, HANDLE_DEVICE))
                return CL_INVALID_DEVICE;

        bool available;
        switch (param_name) {
        /* Execution information is about SVM alone. */
        case CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR:
                return reply_value(reply, cl_mutable_dispatch_fields_khr,
                                   CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR |
                                           CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR |
                                           CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR |
                                           CL_MUTABLE_DISPATCH_ARGUMENTS_KHR |
                                           (device->svm ? CL_MUTABLE_DISPATCH_EXEC_INFO_KHR : 0));
        case CL_DEVICE_COMMAND_BUFFER_NUM_SYNC_DEVICES_KHR:
        case CL_DEVICE_COMMAND_BUFFER_SYNC_DEVICES_KHR:
                return sync_devices(device, param_name, reply);
        case CL_DEVICE_PLATFORM:
                return reply_value(reply, cl_platform_id, icd_platform(device->client));
        case CL_DEVICE_PARENT_DEVICE:
                return reply_value(reply, cl_device_id,
                                   device->parent ? device->parent->shown : NULL);
        /* "If the device is a root-level device, a reference count of one is returned." */
        case CL_DEVICE_REFERENCE_COUNT:
                return reply_value(reply, cl_uint, atomic_load(&device->h.refs));
        case CL_DEVICE_AVAILABLE:
                client_lock(device->client);
                available = device_is_available(device);
                device_polled(device);
                client_unlock(device->client);
                return reply_value(reply, cl_bool, available ? CL_TRUE : CL_FALSE);
        default:
                break;
        }
        if (remote_info_has(param_name))
                return reply_remote(device, param_name, reply);
        struct bytes v;
        if (param_name == DEVICE_SPIRV_EXTENDED_INSTRUCTION_SETS ||
            param_name == DEVICE_SPIRV_EXTENSIONS)
                return device_info(device, param_name, &v) ? reply_texts(reply, v)
                                                           : CL_INVALID_VALUE;
        /* CL_INVALID_VALUE if param_name is not one of the supported values; those of versions that
         * the device does not have are not. */
        return device_info(device, param_name, &v) ? reply_bytes(reply, v.data, v.size)
                                                   : CL_INVALID_VALUE;
}

/* "Increments the device reference count if device is a valid sub-device [...] If device is a root level
 * device [...] the device reference count remains unchanged." */
CL_API_ENTRY cl_int CL_API_CALL clRetainDevice(cl_device_id device)
{
        if (!handle_is(device, HANDLE_DEVICE))
                return CL_INVALID_DEVICE;
        if (device->parent)
                handle_retain(&device->h);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseDevice(cl_device_id device)
{
        if (!handle_is(device, HANDLE_DEVICE))
                return CL_INVALID_DEVICE;
        if (!device->parent)
                return CL_SUCCESS;
        struct client *c = device->client;
        client_lock(c);
        int last = handle_release(&device->h);
        if (last > 0)
                device_unhold(device);
        client_unlock(c);
        return last < 0 ? CL_INVALID_DEVICE : CL_SUCCESS;
}

/* Is it one of CL_DEVICE_PARTITION_PROPERTIES? */
static bool partition_offered(cl_device_id d, cl_device_partition_property name)
{
        struct bytes v;
        cl_device_partition_property p;
        if (!name || !device_info(d, CL_DEVICE_PARTITION_PROPERTIES, &v))
                return false;
        for (size_t i = 0; i + sizeof(p) <= v.size; i += sizeof(p)) {
                memcpy(&p, (const char *)v.data + i, sizeof(p));
                if (p == name)
                        return true;
        }
        return false;
}

/* CL_INVALID_DEVICE_PARTITION_COUNT, for CL_DEVICE_PARTITION_BY_COUNTS: "the number of sub-devices
 * requested exceeds CL_DEVICE_PARTITION_MAX_SUB_DEVICES"; "the total number of compute units
 * requested exceeds CL_DEVICE_MAX_COMPUTE_UNITS for in_device"; or the units of a sub-device are
 * "less than zero". *ret_count is the number of the property's values, its name included. */
static cl_int check_counts(cl_device_id d, const cl_device_partition_property *properties,
                           size_t *ret_count)
{
        cl_ulong units = device_number(d, CL_DEVICE_MAX_COMPUTE_UNITS);
        cl_ulong devices = device_number(d, CL_DEVICE_PARTITION_MAX_SUB_DEVICES);
        size_t n = 1;
        for (; properties[n] != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END; n++) {
                if (properties[n] < 0 || (cl_ulong)properties[n] > units || n > devices)
                        return CL_INVALID_DEVICE_PARTITION_COUNT;
                units -= (cl_ulong)properties[n];
        }
        *ret_count = n + 1;
        return n > 1 ? CL_SUCCESS : CL_INVALID_VALUE;
}

/* "CL_INVALID_VALUE if values specified in properties are not valid or if values specified in
 * properties are valid but not supported by the device." */
static cl_int check_partition(cl_device_id d, const cl_device_partition_property *properties,
                              size_t *ret_count)
{
        if (!properties || !partition_offered(d, properties[0]))
                return CL_INVALID_VALUE;
        *ret_count = 2;
        switch (properties[0]) {
        case CL_DEVICE_PARTITION_BY_COUNTS:
                /* CL_DEVICE_PARTITION_BY_COUNTS_LIST_END is 0, and so ends the properties, too. Intel's SYCL
                 * runtime passes no second 0: this check must not read behind the first. */
                return check_counts(d, properties, ret_count);
        case CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN:
                if (!((cl_ulong)properties[1] &
                      device_number(d, CL_DEVICE_PARTITION_AFFINITY_DOMAIN)))
                        return CL_INVALID_VALUE;
                break;
        default:
                if (properties[1] <= 0)
                        return CL_INVALID_VALUE;
                /* "CL_INVALID_DEVICE_PARTITION_COUNT if the total number of compute units requested
                 * exceeds CL_DEVICE_MAX_COMPUTE_UNITS for in_device". A single sub-device with all of them is
                 * the server's to judge, because native implementations differ there. */
                if ((cl_ulong)properties[1] > device_number(d, CL_DEVICE_MAX_COMPUTE_UNITS))
                        return CL_INVALID_DEVICE_PARTITION_COUNT;
        }
        return properties[2] ? CL_INVALID_VALUE : CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clCreateSubDevices(cl_device_id in_device,
                                                   const cl_device_partition_property *properties,
                                                   cl_uint num_devices, cl_device_id *out_devices,
                                                   cl_uint *num_devices_ret)
{
        if (!handle_is(in_device, HANDLE_DEVICE))
                return CL_INVALID_DEVICE;
        size_t property_count;
        cl_int e = check_partition(in_device, properties, &property_count);
        if (e != CL_SUCCESS)
                return e;
        struct client *c = in_device->client;
        cl_device_id *made = NULL;
        cl_uint count = 0;
        client_lock(c);
        e = device_partition(in_device, properties, property_count, &made, &count);
        /* "CL_INVALID_VALUE if out_devices is not NULL and num_devices is less than the number of
         * sub-devices created by the partition scheme." */
        bool keep = out_devices && num_devices >= count;
        for (cl_uint i = 0; i < count && !keep; i++)
                device_unhold(made[i]);
        client_unlock(c);
        for (cl_uint i = 0; i < count && keep; i++)
                out_devices[i] = made[i];
        mem_free(made);
        if (e != CL_SUCCESS)
                return e;
        if (out_devices && !keep)
                return CL_INVALID_VALUE;
        if (num_devices_ret)
                *num_devices_ret = count;
        return CL_SUCCESS;
}

/* Profiling times of all devices are on the client's clock (core/link/server.h), so that is both the device's
 * clock and the host's. */
CL_API_ENTRY cl_int CL_API_CALL clGetDeviceAndHostTimer(cl_device_id device,
                                                        cl_ulong *device_timestamp,
                                                        cl_ulong *host_timestamp)
{
        if (!handle_is(device, HANDLE_DEVICE))
                return CL_INVALID_DEVICE;
        /* "CL_INVALID_VALUE if host_timestamp or device_timestamp is NULL." */
        if (!device_timestamp || !host_timestamp)
                return CL_INVALID_VALUE;
        *device_timestamp = *host_timestamp = client_now_ns(device->client);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetHostTimer(cl_device_id device, cl_ulong *host_timestamp)
{
        if (!handle_is(device, HANDLE_DEVICE))
                return CL_INVALID_DEVICE;
        if (!host_timestamp)
                return CL_INVALID_VALUE;
        *host_timestamp = client_now_ns(device->client);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clSetDeviceAvailabilityCallbackSPANCL(
        cl_device_id device, spancl_availability_fn pfn_notify, void *user_data)
{
        if (device && !handle_is(device, HANDLE_DEVICE))
                return CL_INVALID_DEVICE;
        if (!pfn_notify && user_data)
                return CL_INVALID_VALUE;
        struct client *c = device ? device->client : client_get();
        if (!c)
                return CL_OUT_OF_HOST_MEMORY;
        client_lock(c);
        if (device)
                device_watch(device, pfn_notify, user_data);
        else
                devices_watch_new(c, pfn_notify, user_data);
        client_unlock(c);
        return CL_SUCCESS;
}
