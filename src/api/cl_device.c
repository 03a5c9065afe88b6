#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "api/dispatch.h"
#include "api/reply.h"
#include "core/client.h"
#include "core/device.h"

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
        /* CL_INVALID_DEVICE_TYPE if device_type is not a valid value. */
        if (device_type != CL_DEVICE_TYPE_ALL && (!device_type || (device_type & ~types_known)))
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
        client_unlock(c);
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
                if (device_type == CL_DEVICE_TYPE_DEFAULT)
                        break;
        }
        /* num_devices, where given, tells how many there are, also if there are none. */
        if (num_devices)
                *num_devices = found;
        return found ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
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
        case CL_DEVICE_PLATFORM:
                return reply_value(reply, cl_platform_id, icd_platform(device->client));
        case CL_DEVICE_PARENT_DEVICE:
                return reply_value(reply, cl_device_id, NULL);
        /* A root device's reference count is one whatever is retained and released. */
        case CL_DEVICE_REFERENCE_COUNT:
                return reply_value(reply, cl_uint, 1);
        case CL_DEVICE_AVAILABLE:
                client_lock(device->client);
                available = device->available;
                client_unlock(device->client);
                return reply_value(reply, cl_bool, available ? CL_TRUE : CL_FALSE);
        case CL_DEVICE_SVM_CAPABILITIES:
                /* What the servers can't have together, none of them but one has (core/svm.h). */
                if (!device->svm && device_info(device, param_name, &(struct bytes){ 0 }))
                        return reply_value(reply, cl_device_svm_capabilities, 0);
                break;
        default:
                break;
        }
        struct bytes v;
        /* CL_INVALID_VALUE if param_name is not one of the supported values; those of versions that
         * the device does not have are not. */
        return device_info(device, param_name, &v) ? reply_bytes(reply, v.data, v.size)
                                                   : CL_INVALID_VALUE;
}

/* Retaining and releasing a root device does nothing but check it. */
CL_API_ENTRY cl_int CL_API_CALL clRetainDevice(cl_device_id device)
{
        return handle_is(device, HANDLE_DEVICE) ? CL_SUCCESS : CL_INVALID_DEVICE;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseDevice(cl_device_id device)
{
        return handle_is(device, HANDLE_DEVICE) ? CL_SUCCESS : CL_INVALID_DEVICE;
}

CL_API_ENTRY cl_int CL_API_CALL clCreateSubDevices(cl_device_id in_device,
                                                   const cl_device_partition_property *properties,
                                                   cl_uint num_devices, cl_device_id *out_devices,
                                                   cl_uint *num_devices_ret)
{
        if (!handle_is(in_device, HANDLE_DEVICE))
                return CL_INVALID_DEVICE;
        /* CL_INVALID_VALUE if values specified in properties are not valid or not supported by the
         * device: CL_DEVICE_PARTITION_PROPERTIES supports none. */
        return CL_INVALID_VALUE;
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceAndHostTimer(cl_device_id device,
                                                        cl_ulong *device_timestamp,
                                                        cl_ulong *host_timestamp)
{
        if (!handle_is(device, HANDLE_DEVICE))
                return CL_INVALID_DEVICE;
        /* CL_INVALID_VALUE if a place is missing. */
        if (!device_timestamp || !host_timestamp)
                return CL_INVALID_VALUE;
        /* CL_INVALID_OPERATION if the platform does not support timer synchronisation
         * (CL_PLATFORM_HOST_TIMER_RESOLUTION is 0). */
        return CL_INVALID_OPERATION;
}

CL_API_ENTRY cl_int CL_API_CALL clGetHostTimer(cl_device_id device, cl_ulong *host_timestamp)
{
        if (!handle_is(device, HANDLE_DEVICE))
                return CL_INVALID_DEVICE;
        if (!host_timestamp)
                return CL_INVALID_VALUE;
        return CL_INVALID_OPERATION;
}
