/* See xrt_device.h. */
#ifndef SPANCL_TESTS_XRT_KERNEL_H
#define SPANCL_TESTS_XRT_KERNEL_H

#include <stdint.h>

#include "xrt/xrt_device.h"

typedef void *xrtKernelHandle;

xrtKernelHandle xrtPLKernelOpenExclusive(xrtDeviceHandle device, const xuid_t id, const char *name);
int xrtKernelClose(xrtKernelHandle kernel);
int xrtKernelReadRegister(xrtKernelHandle kernel, uint32_t offset, uint32_t *ret);
int xrtKernelWriteRegister(xrtKernelHandle kernel, uint32_t offset, uint32_t value);

#endif
