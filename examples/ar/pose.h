/* The pose of a camera: the path that ours takes, and the pose that corners of a marker tell. */
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

/* Where our camera is: a walk around the figure. */
struct pose pose_on_path(const struct view *v, size_t frame);

/* From the corners of the marker in the picture, clockwise, the first one beside the white cell. Coordinates count from
 * the middle of the picture. False: no camera sees a square like this. */
bool pose_from_corners(const struct view *v, const double corners[4][2], struct pose *ret);

/* How far the farthest of the cube's corners is from where it should be, in pixels. */
double pose_distance(const struct view *v, const struct pose *a, const struct pose *b);

#endif
