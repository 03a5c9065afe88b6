/* Devices. clGetDeviceInfo answers what the physical device answered, except for values that are
 * not true over a network or not implemented (the masks in device.c).
 * A device is immutable once it is made, and needs no lock. Sub-devices are made by their server
 * and are a domain of their own there, because a native context has only the devices that it was
 * made with. */
#ifndef SPANCL_CORE_DEVICE_H
#define SPANCL_CORE_DEVICE_H

#include "core/client.h"
#include "core/handle.h"

/* The value of a query; 1 found, 0: the device doesn't have it (CL_INVALID_VALUE). Not for
 * CL_DEVICE_PLATFORM, _PARENT_DEVICE, _REFERENCE_COUNT and _AVAILABLE: api answers these. */
int device_info(cl_device_id d, cl_device_info name, struct bytes *ret);

/* A number, of four or eight bytes; 0 when the device doesn't have it. */
cl_ulong device_number(cl_device_id d, cl_device_info name);

/* A text value; "" when the device doesn't have it. */
const char *device_text(cl_device_id d, cl_device_info name);

/* The driver's own name or vendor, whatever the application sees: a DEVICE_OWN_* (core/device_place.h). */
const char *device_own_text(const struct _cl_device_id *d, unsigned key);

/* Does the device accept such calls, a DEVICE_ACCEPTS_* (proto/info.h)? */
static inline bool device_accepts(const struct _cl_device_id *d, enum device_accepts what)
{
        return d->accepts & what;
}

/* Do all devices of the context? */
static inline bool context_accepts(const struct _cl_context *x, enum device_accepts what)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (!device_accepts(x->devices[i], what))
                        return false;
        return true;
}

/* Is `name` one of the names in a list of names, as in CL_DEVICE_EXTENSIONS (separator ' ') or
 * CL_DEVICE_BUILT_IN_KERNELS (';')? */
bool device_list_has(const char *list, char separator, const char *name, size_t name_size);

/* Is the device available, as far as its server has said up to now? */
bool device_is_available(const struct _cl_device_id *d) REQUIRES(client_held);

/* The device that stands for this one now: objects made from now on use it. */
cl_device_id device_present(const struct _cl_device_id *d) REQUIRES(client_held);

/* Call fn(d, available, user_data) when that changes; NULL: not any more. When this returns, the
 * earlier callback is not called any more, unless this call comes from within it. May release
 * the lock meanwhile. */
void device_watch(cl_device_id d, spancl_availability_fn fn, void *user_data) REQUIRES(client_held);

/* The end of such calls for a device that is about to be freed. */
void device_unwatch(cl_device_id d) REQUIRES(client_held);

/* Is it the same physical device, as far as can be told? */
bool device_is_same(const struct _cl_device_id *a, const struct _cl_device_id *b);

/* Divide a device: `properties` is one valid property without the final 0. *ret are all devices that the
 * server made, each with a reference of the application; mem_free it. A cl_int. */
cl_int device_partition(cl_device_id d, const cl_device_partition_property *properties,
                        size_t property_count, cl_device_id **ret, cl_uint *ret_count)
        REQUIRES(client_held);

/* Apply the masks to an INFO_DEVICE block: append the values that remain, changed where they must
 * be. For device_new and tests. SP_E_NOMEM. */
SP_NODISCARD int device_mask(struct bytes native, struct buf *out);

/* One device from its INFO_DEVICE block, which is copied.
 * SP_E_NOMEM, SP_E_PROTO (the block lacks what a device must have). device_free takes NULL. */
SP_NODISCARD int device_new(struct client *c, struct server *s, struct bytes info,
                            cl_device_id *ret);
void device_free(cl_device_id d);

void device_hold(cl_device_id d) REQUIRES(client_held);
void device_unhold(cl_device_id d) REQUIRES(client_held);

#endif
