/* Times of native devices on this host's CLOCK_MONOTONIC. */
#ifndef SPANCL_BACKEND_NATIVE_CLOCK_H
#define SPANCL_BACKEND_NATIVE_CLOCK_H

#include "backend/native/native.h"

/* Read the device's timer (clGetDeviceAndHostTimer) and store its offset. False: the device has no
 * such query; then the offset is learnt from the commands alone. */
bool clock_sync(struct native_device *d);

/* The times of a complete command; zeros if the native side does not report them. Any thread. */
struct backend_times clock_times(struct backend_event *e);

#endif
