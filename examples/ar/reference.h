/* The reconstruction of a frame's points on the CPU, in plain C: tests compare the kernels with it. */
#ifndef AR_REFERENCE_H
#define AR_REFERENCE_H

#include "v3c.h"

struct reference_point {
        uint16_t at[3];   /* x, y, z */
        uint8_t color[3]; /* red, green, blue */
};

/* The decoded pictures of a frame, each in I420 without gaps. Of the occupancy and the geometry only luma is read. */
struct reference_pictures {
        const uint8_t *occupancy;
        const uint8_t *geometry[V3C_MAPS_MAX];
        const uint8_t *attribute[V3C_MAPS_MAX];
};

/* Write the points of a frame: pixel by pixel, row by row, and of each pixel map by map. `blocks` comes from
 * v3c_blocks(). Return the number of points, which may be more than `capacity`; those are not written. */
size_t reference_points(const struct v3c_frame *frame, const struct v3c_patch *patches,
                        const uint16_t *blocks, const struct reference_pictures *pictures,
                        struct reference_point *points, size_t capacity);

/* Convert a colour of full range with the matrix of BT.709, in 16 bits behind the binary point. */
void reference_color(uint8_t y, uint8_t cb, uint8_t cr, uint8_t ret_rgb[3]);

#endif
