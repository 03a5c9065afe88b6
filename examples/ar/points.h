/* Reconstruction of points from pictures on a device. */
#ifndef AR_POINTS_H
#define AR_POINTS_H

#include "feed.h"
#include "scan.h"

struct points {
        const struct source *source;
        struct device *device;
        struct scan scan;
        cl_kernel map, count, write;
        cl_mem atlas, patches, blocks, places;
        size_t described; /* the frame that these describe; SIZE_MAX: none */
        cl_mem points;    /* 8 bytes each */
        cl_mem bytes;     /* cl_ulong: how many bytes of `points` are meaningful */
};

/* Only every `step`th pixel of a block, in both directions, gives points. */
void points_open(struct points *p, struct machine *m, struct device *d, const struct source *s,
                 int step);
void points_close(struct points *p);
void points_run(struct points *p, const struct pictures *pictures, size_t frame);

/* Compare the last run's points with the reference's, which come from the same pictures. Ends the program if they
 * differ, or if there is no stream. */
void points_verify(struct points *p, struct device *feeder, const struct pictures *pictures,
                   size_t frame);

#endif
