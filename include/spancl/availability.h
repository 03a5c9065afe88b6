/* cl_spancl_device_availability: an application is told that a device can't be reached any more, or can be
 * again.
 *
 * A device of a server whose connection is lost is not available (CL_DEVICE_AVAILABLE is CL_FALSE, and calls
 * that need it return CL_DEVICE_NOT_AVAILABLE) until the connection is made again; then everything goes on where
 * it was. If the server's session is over instead, the device becomes available when there is a new one: what
 * was made before goes on returning errors, and a context that is made from then on works.
 *
 * The function has no slot in an ICD loader's table: ask for it by name.
 *
 *     spancl_set_availability_callback_fn set = (spancl_set_availability_callback_fn)
 *             clGetExtensionFunctionAddressForPlatform(platform,
 *                     "clSetDeviceAvailabilityCallbackSPANCL");
 *
 * The platform's CL_PLATFORM_EXTENSIONS has CL_SPANCL_DEVICE_AVAILABILITY_EXTENSION_NAME. */
#ifndef SPANCL_AVAILABILITY_H
#define SPANCL_AVAILABILITY_H

#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CL_SPANCL_DEVICE_AVAILABILITY_EXTENSION_NAME "cl_spancl_device_availability"

/* The callback; `available` is the device's state now, always the opposite of the last call's. It
 * runs on SpanCL's thread for event and context callbacks, without any lock. It may call OpenCL,
 * but a wait in it holds up other callbacks.
 * Several outages in quick succession may be notified as one. An outage that is already over is
 * still notified, by two calls: after a call failed for it, the application always hears that the
 * device is there again. */
typedef void(CL_CALLBACK *spancl_availability_fn)(cl_device_id device, cl_bool available,
                                                  void *user_data);

/* Call pfn_notify whenever the device becomes available or stops being so, from now on. A device has one such
 * callback: another one takes its place, and NULL ends it. `user_data` stays the application's; when this
 * returns, the callback that was there before does not run any more and will not be called again (but when it is
 * that one that calls this: then it is the last time). Thread-safe. Costs nothing while nothing is lost but that a
 * thread sleeps on the connections when no other does.
 *
 * device NULL: devices that join the platform later (servers that are found or added) get this callback, as if
 * it had been set for each. Its first call for such a device says that it is available. Only devices that
 * clGetDeviceIDs shows count. NULL as pfn_notify: further devices get none; devices that have it keep it.
 *
 * CL_INVALID_DEVICE     device is neither NULL nor a valid device of SpanCL's.
 * CL_INVALID_VALUE      pfn_notify is NULL and user_data is not. */
CL_API_ENTRY cl_int CL_API_CALL clSetDeviceAvailabilityCallbackSPANCL(
        cl_device_id device, spancl_availability_fn pfn_notify, void *user_data);

typedef cl_int(CL_API_CALL *spancl_set_availability_callback_fn)(cl_device_id device,
                                                                 spancl_availability_fn pfn_notify,
                                                                 void *user_data);

#ifdef __cplusplus
}
#endif

#endif
