/* The answers about a native device. */
#ifndef SPANCL_BACKEND_NATIVE_DEVINFO_H
#define SPANCL_BACKEND_NATIVE_DEVINFO_H

#include "backend/native/native.h"

int native_device_info(struct backend *b, unsigned device, struct buf *out);

#endif
