/* The pictures of a frame on a device. */
#ifndef AR_FEED_H
#define AR_FEED_H

#include "opencl.h"
#include "source.h"

#define FEED_DECODER "org.spancl.decode.hevc" /* the kernel that decodes a stream */

struct pictures {
        cl_mem occupancy, geometry[V3C_MAPS_MAX], attribute[V3C_MAPS_MAX];
};

struct feed {
        const struct source *source;
        struct device *device; /* makes the pictures: a media device if there is a stream */
        struct pictures pictures;
        cl_kernel figure;
        cl_mem atlas;
        /* Of a stream. */
        cl_kernel decode;
        cl_mem streams[VIDEOS], status[VIDEOS];
        cl_mem packets[VIDEOS][V3C_MAPS_MAX], sizes[VIDEOS][V3C_MAPS_MAX];
        struct feed *first; /* the feed whose decoders, `streams`, this one uses */
        size_t next; /* of the first feed: the frame that follows the last one; SIZE_MAX: none was decoded */
};

void pictures_new(struct machine *m, const struct source *s, struct pictures *ret);
void pictures_free(struct pictures *p);

/* `device` computes the figure's pictures. Those of a stream come from a media device: the client's own if `near`.
 * Feeds whose frames alternate share the decoders of the `first` one. It is NULL for the first one itself. */
void feed_open(struct feed *f, struct machine *m, struct device *device, bool near,
               const struct source *s, struct feed *first);
void feed_close(struct feed *f);

/* Enqueue the commands that make the pictures of a frame. A stream's frames come one after the other. */
void feed_frame(struct feed *f, size_t frame);

/* Let the next frame be any key frame. */
void feed_restart(struct feed *f);

/* End the program if a decoder delivered no picture. */
void feed_check(struct feed *f);

#endif
