/* Draws sorted points as a layer: colours, and in the fourth component how much of the background shows through. */
#ifndef AR_DRAW_H
#define AR_DRAW_H

#include "scan.h"

struct draw {
        struct device *device;
        struct scan scan;
        cl_kernel place, list, blend;
        cl_mem squares, places, lists;
        cl_mem layer;
        size_t tiles;
};

void draw_open(struct draw *w, struct machine *m, struct device *d, size_t capacity, size_t width,
               size_t height);
void draw_close(struct draw *w);

/* `index` NULL: the points are in order. `bytes` are those of the index, or of the points; `unit` is the size of one.
 * `opacity` of a point is from 1 to 256. */
void draw_run(struct draw *w, cl_mem points, cl_mem index, cl_mem bytes, int unit, cl_mem pose,
              int opacity);

#endif
