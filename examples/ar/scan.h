/* Prefix sums of arrays of 32-bit words on a device. */
#ifndef AR_SCAN_H
#define AR_SCAN_H

#include "opencl.h"

struct scan {
        struct device *device;
        cl_kernel sums, top, values;
        cl_mem chunk_sums;
        size_t chunks;
};

void scan_open(struct scan *s, struct machine *m, struct device *d);
void scan_close(struct scan *s);

/* Each of the `count` values becomes the sum of those before it. */
void scan_run(struct scan *s, cl_mem values, size_t count);

#endif
