/* Sorts points by their distance, the farthest first, on a device. */
#ifndef AR_SORT_H
#define AR_SORT_H

#include "scan.h"

struct sort {
        struct device *device;
        struct scan scan;
        cl_kernel keys, count, move, last, arrange;
        cl_mem pairs[2], histogram;
        cl_mem index;       /* cl_uint for each point */
        cl_mem index_bytes; /* cl_ulong: how many bytes of `index` are meaningful */
        cl_mem arranged;    /* points in the order of the index */
        cl_mem arranged_bytes;
};

void sort_open(struct sort *s, struct machine *m, struct device *d, size_t capacity);
void sort_close(struct sort *s);

/* `pose`: a buffer of POSE_WORDS. */
void sort_run(struct sort *s, cl_mem points, cl_mem bytes, cl_mem pose);
void sort_arrange(struct sort *s, cl_mem points);

/* Compare with the host's sort of `count` keys, of several kinds. Ends the program if they differ. */
void sort_verify(struct machine *m, struct device *d, size_t count);

#endif
