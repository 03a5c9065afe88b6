/* The pictures of a frame on a device. */
#ifndef AR_FEED_H
#define AR_FEED_H

#include "opencl.h"
#include "source.h"

struct pictures {
        cl_mem occupancy, geometry[V3C_MAPS_MAX], attribute[V3C_MAPS_MAX];
};

struct feed {
        const struct source *source;
        struct device *device;
        struct pictures pictures;
        cl_kernel figure;
        cl_mem atlas;
};

void pictures_new(struct machine *m, const struct source *s, struct pictures *ret);
void pictures_free(struct pictures *p);

/* `device` computes the figure's pictures. */
void feed_open(struct feed *f, struct machine *m, struct device *device, const struct source *s);
void feed_close(struct feed *f);

/* Enqueue all that makes the pictures of a frame. Frames are asked for one after the other. */
void feed_frame(struct feed *f, size_t frame);

#endif
