/* Layouts that the kernels and the program share: arrays of int. Included by the kernels with -I, and by C. */
#ifndef AR_SHARED_H
#define AR_SHARED_H

/* A camera's pose: camera = (rotation * point >> 10) + translation, in sixteenths of a voxel; x to the right, y down,
 * z forward. The pixel is the centre plus FOCAL * x / z. All in integers, so that every device computes the same. */
#define POSE_ROTATION    0 /* 9 values in rows, 1.0 is 16384 */
#define POSE_TRANSLATION 9 /* 3 values */
#define POSE_FOCAL       12
#define POSE_WIDTH       13
#define POSE_HEIGHT      14
#define POSE_POINT       15 /* side of a point, in sixteenths of a voxel */
#define POSE_WORDS       16

/* The pictures of a frame. Samples have 1 or 2 bytes, the low one first; planes of chroma have half the width and
 * height, rounded up. An occupancy sample covers PRECISION x PRECISION pixels of the other pictures. */
#define ATLAS_WIDTH           0 /* of geometry and attributes */
#define ATLAS_HEIGHT          1
#define ATLAS_OCCUPANCY_WIDTH 2
#define ATLAS_PRECISION       3
#define ATLAS_THRESHOLD       4 /* larger samples mean that there is a point */
#define ATLAS_OCCUPANCY_BITS  5 /* of a sample */
#define ATLAS_GEOMETRY_BITS   6
#define ATLAS_ATTRIBUTE_BITS  7
#define ATLAS_MAPS            8  /* 1, or 2: a second point for each pixel */
#define ATLAS_DISTINCT        9  /* 1: a second point that equals the first is left out */
#define ATLAS_BLOCK           10 /* side of a block of the block map, in pixels */
#define ATLAS_BLOCKS          11 /* blocks in a row of the block map */
#define ATLAS_VOXELS          12 /* side of the cube of points */
#define ATLAS_MATRIX \
        13 /* 0: BT.601, 1: BT.709, both from 16 to 235; 2 and 3: the same, full range */
#define ATLAS_WORDS 16

/* A patch is struct v3c_patch (v3c.h), read as int[16]. */
#define PATCH_X         0
#define PATCH_Y         1
#define PATCH_WIDTH     2
#define PATCH_HEIGHT    3
#define PATCH_AXIS      4 /* 3 words */
#define PATCH_TANGENT   7
#define PATCH_BITANGENT 10
#define PATCH_DEPTH     13
#define PATCH_WORDS     16

/* Points are uint2: x | y << 10 | z << 20, and the colour R | G << 8 | B << 16. */
#define POINT_BITS 10

/* Keys of distance: 24 bits, the farthest first. */
#define KEY_BITS 24
#define DIGIT    8 /* bits that one pass of the sort looks at */
#define DIGITS   (1 << DIGIT)

#define TILE 16 /* side of a tile of the picture */

/* Work-items of a work-group of the kernels for GPUs: one for each digit, and for each pixel of a tile. */
#define GROUP 256

/* The camera's marker: its side is MARKER_SIDE; cells in a row, and the place of the white cell that tells its
 * directions. The figure stands on it. */
#define MARKER_CELLS 6

#endif
