/* The camera's pictures, and the marker in them, on the client's own device. */
#ifndef AR_TRACK_H
#define AR_TRACK_H

#include "opencl.h"
#include "pose.h"

struct track {
        struct device device; /* the near one, with a queue of its own */
        struct view view;
        cl_kernel camera, find, choose, sides, add;
        cl_mem *pictures; /* a byte for each pixel; they repeat */
        size_t picture_count;
        cl_mem found, best, chunk_sums, sums, marks;
        double worst; /* how far a tracked pose was from the camera's true one, in pixels */
};

/* Also makes `count` pictures. */
void track_open(struct track *t, struct machine *m, struct device *near, const struct view *v,
                size_t count);
void track_close(struct track *t);

cl_mem track_picture(const struct track *t, size_t frame);

/* Find the pose in the picture of a frame. Ends the program if there is no marker in it. */
struct pose track_run(struct track *t, size_t frame);

#endif
