/* Reconstruction: pictures of occupancy, depth and colour, and patches, become points. A work-item has a block of the
 * pictures; the points of a block stand together, in rows. `step`: only each `step`th pixel gives points. */
#include "shared.h"

static int sample(__global const uchar *plane, int at, int bits)
{
        return bits > 8 ? plane[2 * at] | plane[2 * at + 1] << 8 : plane[at];
}

static bool is_occupied(__global const uchar *occupancy, __constant int *atlas, int x, int y)
{
        int cell = atlas[ATLAS_PRECISION];
        return sample(occupancy, y / cell * atlas[ATLAS_OCCUPANCY_WIDTH] + x / cell, atlas[ATLAS_OCCUPANCY_BITS]) >
               atlas[ATLAS_THRESHOLD];
}

/* Return x | y << 10 | z << 20; all ones: the point is outside of the cube. */
static uint point_at(__global const int *p, __constant int *atlas, int x, int y, int depth)
{
        __global const int *t = p + PATCH_TANGENT, *b = p + PATCH_BITANGENT, *axis = p + PATCH_AXIS;
        uint at[3], side = atlas[ATLAS_VOXELS];
        at[0] = t[0] * x + t[1] * y + t[2];
        at[1] = b[0] * x + b[1] * y + b[2];
        at[2] = max(0, p[PATCH_DEPTH] * depth + p[PATCH_DEPTH + 1]);
        if (at[0] >= side || at[1] >= side || at[2] >= side)
                return ~0u;
        return at[0] << POINT_BITS * axis[0] | at[1] << POINT_BITS * axis[1] | at[2] << POINT_BITS * axis[2];
}

/* Compute the points of a pixel, one for each map. Returns how many. */
static int points_at(__global const uchar *occupancy, __global const uchar *first, __global const uchar *second,
                     __constant int *atlas, __global const int *patch, int x, int y, uint *ret)
{
        if (!is_occupied(occupancy, atlas, x, y))
                return 0;
        int at = y * atlas[ATLAS_WIDTH] + x, bits = atlas[ATLAS_GEOMETRY_BITS], n = 0;
        int depth = sample(first, at, bits);
        ret[0] = point_at(patch, atlas, x, y, depth);
        n += ret[0] != ~0u;
        if (atlas[ATLAS_MAPS] < 2)
                return n;
        ret[n] = point_at(patch, atlas, x, y, sample(second, at, bits));
        if (ret[n] == ~0u || (n && atlas[ATLAS_DISTINCT] && ret[1] == ret[0]))
                return n;
        return n + 1;
}

static uint colour_at(__global const uchar *attribute, __constant int *atlas, int x, int y)
{
        int w = atlas[ATLAS_WIDTH], h = atlas[ATLAS_HEIGHT], cw = (w + 1) / 2, ch = (h + 1) / 2;
        int bits = atlas[ATLAS_ATTRIBUTE_BITS], down = bits - 8, matrix = atlas[ATLAS_MATRIX];
        int c = w * h + (y / 2) * cw + x / 2;
        int l = sample(attribute, y * w + x, bits) >> down;
        int u = (sample(attribute, c, bits) >> down) - 128, v = (sample(attribute, c + cw * ch, bits) >> down) - 128;
        int r, g, b; /* 1.0 is 65536 */
        bool hd = matrix & 1;
        if (matrix < 2) {
                l = (l - 16) * 76309;
                r = hd ? 117504 * v : 104597 * v;
                g = hd ? -13954 * u - 34903 * v : -25675 * u - 53279 * v;
                b = hd ? 138453 * u : 132201 * u;
        } else {
                l *= 65536;
                r = hd ? 103206 * v : 91881 * v;
                g = hd ? -12276 * u - 30679 * v : -22554 * u - 46802 * v;
                b = hd ? 121609 * u : 116130 * u;
        }
        int4 rgb = clamp(((int4)(l + r, l + g, l + b, 0) + 32768) >> 16, 0, 255);
        return (uint)rgb.x | (uint)rgb.y << 8 | (uint)rgb.z << 16;
}

/* Return the pixels of a block: left, top, right, bottom. */
static int4 pixels_of(__constant int *atlas, int block)
{
        int side = atlas[ATLAS_BLOCK];
        int2 low = (int2)(block % atlas[ATLAS_BLOCKS], block / atlas[ATLAS_BLOCKS]) * side;
        return (int4)(low, min(low + side, (int2)(atlas[ATLAS_WIDTH], atlas[ATLAS_HEIGHT])));
}

/* Where rectangles of patches overlap, the last one owns the block. */
__kernel void map_blocks(__constant int *atlas, __global const int *patches, uint count, __global ushort *blocks)
{
        int block = get_global_id(0), side = atlas[ATLAS_BLOCK];
        int x = block % atlas[ATLAS_BLOCKS] * side, y = block / atlas[ATLAS_BLOCKS] * side;
        uint owner = count;
        for (; owner; owner--) {
                __global const int *p = patches + (owner - 1) * PATCH_WORDS;
                if (x >= p[PATCH_X] && x < p[PATCH_X] + p[PATCH_WIDTH] && y >= p[PATCH_Y] &&
                    y < p[PATCH_Y] + p[PATCH_HEIGHT])
                        break;
        }
        blocks[block] = owner;
}

/* `blocks` has the number of each block's patch, from 1 on; 0: none. */
__kernel void count_points(__global const uchar *occupancy, __global const uchar *first,
                           __global const uchar *second, __constant int *atlas, __global const int *patches,
                           __global const ushort *blocks, __global uint *counts, int step)
{
        int block = get_global_id(0);
        int4 at = pixels_of(atlas, block);
        uint n = 0, patch = blocks[block], two[2];
        for (int y = at.y; patch && y < at.w; y += step)
                for (int x = at.x; x < at.z; x += step)
                        n += points_at(occupancy, first, second, atlas, patches + (patch - 1) * PATCH_WORDS, x, y,
                                       two);
        counts[block] = n;
        if (block == 0)
                counts[get_global_size(0)] = 0;
}

/* `places` are the prefix sums of the counts. The points beyond `capacity` are left out. */
__kernel void write_points(__global const uchar *occupancy, __global const uchar *first,
                           __global const uchar *second, __constant int *atlas, __global const int *patches,
                           __global const ushort *blocks, __global const uint *places,
                           __global const uchar *attribute, __global const uchar *second_attribute,
                           __global uint2 *points, __global ulong *bytes, uint capacity, int step)
{
        int block = get_global_id(0);
        int4 at = pixels_of(atlas, block);
        uint place = places[block], patch = blocks[block], two[2];
        for (int y = at.y; patch && y < at.w; y += step)
                for (int x = at.x; x < at.z; x += step) {
                        int n = points_at(occupancy, first, second, atlas, patches + (patch - 1) * PATCH_WORDS, x, y,
                                          two);
                        for (int i = 0; i < n && place < capacity; i++)
                                points[place++] =
                                        (uint2)(two[i], colour_at(i ? second_attribute : attribute, atlas, x, y));
                }
        if (block == 0)
                *bytes = min(places[get_global_size(0)], capacity) * 8ul;
}
