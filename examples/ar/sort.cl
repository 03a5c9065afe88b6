/* A stable radix sort of pairs of key and index. Each work-item owns a chunk of the pairs and a column of the
 * histogram, [digit][chunk], so that no two write to the same counter. `count` is on the device: the host does not
 * know how many points a frame has. */
#include "shared.h"

static uint digit_of(uint key, uint shift)
{
        return key >> shift & (DIGITS - 1);
}

static uint chunk_start(__global const ulong *bytes, uint unit, uint chunk, uint chunks)
{
        return (uint)(*bytes / unit * chunk / chunks);
}

/* Make the keys of points: far points have small keys. `bytes` are those of the points. */
__kernel void keys(__global const uint2 *points, __global const ulong *bytes, __constant int *pose,
                   __global uint2 *pairs, __global ulong *index_bytes)
{
        uint chunk = get_global_id(0), chunks = get_global_size(0);
        uint end = chunk_start(bytes, 8, chunk + 1, chunks);
        for (uint i = chunk_start(bytes, 8, chunk, chunks); i < end; i++) {
                uint p = points[i].x;
                int x = p & 1023, y = p >> POINT_BITS & 1023, z = p >> 2 * POINT_BITS & 1023;
                int depth = ((pose[6] * x + pose[7] * y + pose[8] * z) >> 10) + pose[POSE_TRANSLATION + 2];
                uint far = (1 << KEY_BITS) - 1;
                pairs[i] = (uint2)(far - (uint)clamp(depth, 0, (int)far), i);
        }
        if (chunk == 0)
                *index_bytes = *bytes / 8 * 4;
}

__kernel void sort_count(__global const uint2 *pairs, __global const ulong *index_bytes, uint shift,
                         __global uint *histogram)
{
        uint chunk = get_global_id(0), chunks = get_global_size(0);
        uint end = chunk_start(index_bytes, 4, chunk + 1, chunks);
        for (uint d = 0; d < DIGITS; d++)
                histogram[d * chunks + chunk] = 0;
        for (uint i = chunk_start(index_bytes, 4, chunk, chunks); i < end; i++)
                histogram[digit_of(pairs[i].x, shift) * chunks + chunk]++;
}

/* `histogram` has become prefix sums: the place of the next pair of each digit and chunk. */
__kernel void sort_move(__global const uint2 *pairs, __global const ulong *index_bytes, uint shift,
                        __global uint *histogram, __global uint2 *sorted)
{
        uint chunk = get_global_id(0), chunks = get_global_size(0);
        uint end = chunk_start(index_bytes, 4, chunk + 1, chunks);
        for (uint i = chunk_start(index_bytes, 4, chunk, chunks); i < end; i++) {
                uint2 pair = pairs[i];
                sorted[histogram[digit_of(pair.x, shift) * chunks + chunk]++] = pair;
        }
}

/* The last pass writes indices alone. */
__kernel void sort_last(__global const uint2 *pairs, __global const ulong *index_bytes, uint shift,
                        __global uint *histogram, __global uint *index)
{
        uint chunk = get_global_id(0), chunks = get_global_size(0);
        uint end = chunk_start(index_bytes, 4, chunk + 1, chunks);
        for (uint i = chunk_start(index_bytes, 4, chunk, chunks); i < end; i++) {
                uint2 pair = pairs[i];
                index[histogram[digit_of(pair.x, shift) * chunks + chunk]++] = pair.y;
        }
}

/* Put the points into the order of the index list, for a device that only draws. */
__kernel void arrange(__global const uint2 *points, __global const uint *index, __global const ulong *index_bytes,
                      __global uint2 *arranged, __global ulong *arranged_bytes)
{
        uint chunk = get_global_id(0), chunks = get_global_size(0);
        uint end = chunk_start(index_bytes, 4, chunk + 1, chunks);
        for (uint i = chunk_start(index_bytes, 4, chunk, chunks); i < end; i++)
                arranged[i] = points[index[i]];
        if (chunk == 0)
                *arranged_bytes = *index_bytes * 2;
}
