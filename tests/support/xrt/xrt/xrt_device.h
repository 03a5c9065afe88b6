/* The part of Xilinx XRT's C interface that src/backend/almaif/window_xrt.c uses, for hosts without it: tests
 * compile that file against this, over a card that is a file (tests/support/xrt/card.c). */
#ifndef SPANCL_TESTS_XRT_DEVICE_H
#define SPANCL_TESTS_XRT_DEVICE_H

typedef void *xrtDeviceHandle;
typedef unsigned char xuid_t[16];

xrtDeviceHandle xrtDeviceOpen(unsigned int index);
int xrtDeviceClose(xrtDeviceHandle device);
int xrtDeviceLoadXclbinFile(xrtDeviceHandle device, const char *path);
int xrtDeviceGetXclbinUUID(xrtDeviceHandle device, xuid_t ret);

#endif
