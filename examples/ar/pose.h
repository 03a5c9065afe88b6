/* A camera's pose: on the path of the example's camera, and from the corners of a marker in its picture. */
#ifndef AR_POSE_H
#define AR_POSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared.h"

struct pose {
        int32_t words[POSE_WORDS];
};

struct view {
        int width, height;
        int voxels; /* side of the figure's cube */
};

int view_focal(const struct view *v);
int view_marker(const struct view *v); /* its side, in voxels */

/* Return the pose of the example's camera, which walks around the figure. */
struct pose pose_on_path(const struct view *v, size_t frame);

/* Compute the pose from the corners of the marker in the picture, clockwise, the first one beside the white cell.
 * Coordinates count from the middle of the picture. False: no view of a square has these corners. */
bool pose_from_corners(const struct view *v, const double corners[4][2], struct pose *ret);

/* Return the largest distance, in pixels, between a corner of the figure's cube in one pose and in the other. */
double pose_distance(const struct view *v, const struct pose *a, const struct pose *b);

#endif
