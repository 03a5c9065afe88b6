/* Program binaries as the application gets them: the native binary of one device in a container that
 * tells whose it is and whether it is whole, so that a foreign or truncated one is refused at once and
 * not by a driver.
 *
 *   0  "SPANCLPB"
 *   8  u32 version (1)
 *  12  u32 CL_PROGRAM_BINARY_TYPE
 *  16  u64 hash of the device: name, vendor, version, driver version
 *  24  u64 size of the native binary
 *  32  u64 hash of the native binary
 *  40  the native binary */
#ifndef SPANCL_CORE_BINARY_H
#define SPANCL_CORE_BINARY_H

#include "core/object.h"

enum { BINARY_HEADER = 40 };

/* Append the container. SP_E_NOMEM. */
SP_NODISCARD int binary_wrap(cl_device_id d, cl_program_binary_type type, struct bytes native,
                             struct buf *out);

/* The native binary in `container`; borrowed. SP_E_INVAL: it is none, not whole, or another device's. */
SP_NODISCARD int binary_unwrap(cl_device_id d, struct bytes container, struct bytes *ret,
                               cl_program_binary_type *ret_type);

#endif
