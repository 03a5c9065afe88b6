/* Alpha-blended points. The sorted points are projected to squares of pixels, put into lists of the picture's tiles
 * without a change of order, and blended, tile by tile. The result is a layer: colours multiplied by their coverage,
 * and the part of the background that shows through. */
#include "shared.h"

/* `bytes` and the index list may come from a server, so kernels bound both by `capacity` points. */
static uint part_start(__global const ulong *bytes, uint unit, uint capacity, uint chunk, uint chunks)
{
        return (uint)(min(*bytes / unit, (ulong)capacity) * chunk / chunks);
}

static int4 project(uint2 point, __constant int *pose)
{
        int x = point.x & 1023, y = point.x >> POINT_BITS & 1023, z = point.x >> 2 * POINT_BITS & 1023, c[3];
        for (int i = 0; i < 3; i++)
                c[i] = ((pose[3 * i] * x + pose[3 * i + 1] * y + pose[3 * i + 2] * z) >> 10) +
                       pose[POSE_TRANSLATION + i];
        if (c[2] < 16)
                return (int4)(0, 0, 0, 0);
        int focal = pose[POSE_FOCAL], size = clamp((focal * pose[POSE_POINT] + c[2] - 1) / c[2], 1, TILE);
        /* Round towards minus infinity: towards 0, the pixels in the middle would get twice as many points. */
        int px = (int)(((long)focal * c[0] + ((long)c[2] << 16)) / c[2]) - (1 << 16);
        int py = (int)(((long)focal * c[1] + ((long)c[2] << 16)) / c[2]) - (1 << 16);
        return (int4)(pose[POSE_WIDTH] / 2 + px - size / 2, pose[POSE_HEIGHT] / 2 + py - size / 2, size,
                      (int)point.y);
}

/* The tiles that a square covers: left, top, right, bottom; right < left: none. In scalars, because with vectors of two
 * NVIDIA's driver 580 found no tiles. */
static int4 tiles_of(int4 square, __constant int *pose)
{
        int left = max(square.x, 0), right = min(square.x + square.z, pose[POSE_WIDTH]) - 1;
        int top = max(square.y, 0), bottom = min(square.y + square.z, pose[POSE_HEIGHT]) - 1;
        if (square.z == 0 || right < left || bottom < top)
                return (int4)(0, 0, -1, -1);
        return (int4)(left / TILE, top / TILE, right / TILE, bottom / TILE);
}

/* After list_squares the last place of a tile's chunks is the end of its list. */
static uint list_end(__global const uint *places, uint chunks, int tile)
{
        return places[(tile + 1) * chunks - 1];
}

static uint list_begin(__global const uint *places, uint chunks, int tile)
{
        return tile ? places[tile * chunks - 1] : 0;
}

/* Components of a layer's pixel before the first square, and those of a square, have 16 bits. */
#define CLEAR (int4)(0, 0, 0, 65535)

static int4 colour_of(int4 square)
{
        return (int4)((square.w & 255) * 257, (square.w >> 8 & 255) * 257, (square.w >> 16 & 255) * 257, 0);
}

static int4 blend_over(int4 old, int4 colour, int opacity)
{
        return old + ((colour - old) * opacity >> 8);
}

/* Put the layer over the camera's picture. */
__kernel void compose(__global const uchar4 *layer, __global const uchar *camera, __global uchar4 *picture)
{
        int i = get_global_id(0);
        int4 l = convert_int4(layer[i]);
        int behind = (camera[i] * l.w + 127) / 255;
        picture[i] = convert_uchar4_sat((int4)(l.x + behind, l.y + behind, l.z + behind, 255));
}

/* Stack the colours and the fourth component, for a video encoder, which has three components. */
__kernel void stack_layer(__global const uchar4 *layer, __global uchar4 *stacked)
{
        int i = get_global_id(0), n = get_global_size(0);
        uchar4 l = layer[i];
        stacked[i] = (uchar4)(l.xyz, 255);
        stacked[n + i] = (uchar4)(l.w, l.w, l.w, 255);
}

__kernel void unstack_layer(__global const uchar4 *stacked, __global uchar4 *layer)
{
        int i = get_global_id(0), n = get_global_size(0);
        layer[i] = (uchar4)(stacked[i].xyz, stacked[n + i].y);
}

#if !WIDE
/* A work-item projects and lists a chunk of the points. */

/* Project the points, and count the entries of each tile, [tile][chunk]. `index` NULL: the points are in order. */
__kernel void place_squares(__global const uint2 *points, __global const uint *index, __global const ulong *bytes,
                            uint unit, __constant int *pose, __global int4 *squares, __global uint *counts,
                            uint capacity)
{
        uint chunk = get_global_id(0), chunks = get_global_size(0);
        int columns = (pose[POSE_WIDTH] + TILE - 1) / TILE, rows = (pose[POSE_HEIGHT] + TILE - 1) / TILE;
        for (int t = 0; t < columns * rows; t++)
                counts[t * chunks + chunk] = 0;
        if (chunk == 0)
                counts[columns * rows * chunks] = 0;
        uint end = part_start(bytes, unit, capacity, chunk + 1, chunks);
        for (uint i = part_start(bytes, unit, capacity, chunk, chunks); i < end; i++) {
                int4 square = project(points[index ? min(index[i], capacity - 1) : i], pose);
                int4 t = tiles_of(square, pose);
                squares[i] = square;
                for (int y = t.y; y <= t.w; y++)
                        for (int x = t.x; x <= t.z; x++)
                                counts[(y * columns + x) * chunks + chunk]++;
        }
}

/* `places` are the prefix sums of the counts. */
__kernel void list_squares(__global const int4 *squares, __global const ulong *bytes, uint unit, __constant int *pose,
                           __global uint *places, __global uint *lists, uint capacity)
{
        uint chunk = get_global_id(0), chunks = get_global_size(0);
        int columns = (pose[POSE_WIDTH] + TILE - 1) / TILE;
        uint end = part_start(bytes, unit, capacity, chunk + 1, chunks);
        for (uint i = part_start(bytes, unit, capacity, chunk, chunks); i < end; i++) {
                int4 t = tiles_of(squares[i], pose);
                for (int y = t.y; y <= t.w; y++)
                        for (int x = t.x; x <= t.z; x++)
                                lists[places[(y * columns + x) * chunks + chunk]++] = i;
        }
}

/* A work-item has a tile. */
__kernel void blend(__global const int4 *squares, __global const uint *places, uint chunks,
                    __global const uint *lists, __constant int *pose, int opacity, __global uchar4 *layer)
{
        int tile = get_global_id(0), columns = (pose[POSE_WIDTH] + TILE - 1) / TILE, width = pose[POSE_WIDTH];
        int left = tile % columns * TILE, top = tile / columns * TILE;
        int right = min(left + TILE, width), bottom = min(top + TILE, pose[POSE_HEIGHT]);
        int4 pixels[TILE * TILE];
        for (int i = 0; i < TILE * TILE; i++)
                pixels[i] = CLEAR;

        uint end = list_end(places, chunks, tile);
        for (uint k = list_begin(places, chunks, tile); k < end; k++) {
                int4 s = squares[lists[k]], colour = colour_of(s);
                for (int y = max(s.y, top); y < min(s.y + s.z, bottom); y++)
                        for (int x = max(s.x, left); x < min(s.x + s.z, right); x++) {
                                int i = (y - top) * TILE + x - left;
                                pixels[i] = blend_over(pixels[i], colour, opacity);
                        }
        }
        for (int y = top; y < bottom; y++)
                for (int x = left; x < right; x++)
                        layer[y * width + x] = convert_uchar4(pixels[(y - top) * TILE + x - left] >> 8);
}
#endif
