/* A stable radix sort of pairs of key and index. Each chunk of the pairs has a column of the histogram,
 * [digit][chunk], so that no two chunks write to the same counter. On a CPU a work-item has a chunk. On a GPU a
 * work-group has one (sort_wide.cl). The number of points is on the device: the host does not know it. */
#include "shared.h"

static uint digit_of(uint key, uint shift)
{
        return key >> shift & (DIGITS - 1);
}

static uint chunk_start(__global const ulong *bytes, uint unit, uint chunk, uint chunks)
{
        return (uint)(*bytes / unit * chunk / chunks);
}

/* The points that a work-item takes when their order has no meaning: a CPU reads neighbours one after the other, the
 * work-items of a GPU read them together. */
#if WIDE
#define EACH(i, n) uint i = get_global_id(0), end = n; i < end; i += get_global_size(0)
#else
#define EACH(i, n)                                                                                         \
        uint i = (uint)((ulong)(n)*get_global_id(0) / get_global_size(0)),                                  \
             end = (uint)((ulong)(n) * (get_global_id(0) + 1) / get_global_size(0));                         \
        i < end;                                                                                           \
        i++
#endif

/* Make the keys of points: far points have small keys. `bytes` are those of the points. */
__kernel void keys(__global const uint2 *points, __global const ulong *bytes, __constant int *pose,
                   __global uint2 *pairs, __global ulong *index_bytes)
{
        for (EACH(i, (uint)(*bytes / 8))) {
                uint p = points[i].x;
                int x = p & 1023, y = p >> POINT_BITS & 1023, z = p >> 2 * POINT_BITS & 1023;
                int depth = ((pose[6] * x + pose[7] * y + pose[8] * z) >> 10) + pose[POSE_TRANSLATION + 2];
                uint far = (1 << KEY_BITS) - 1;
                pairs[i] = (uint2)(far - (uint)clamp(depth, 0, (int)far), i);
        }
        if (get_global_id(0) == 0)
                *index_bytes = *bytes / 8 * 4;
}

/* Put the points into the order of the index list, for a device that only draws. */
__kernel void arrange(__global const uint2 *points, __global const uint *index, __global const ulong *index_bytes,
                      __global uint2 *arranged, __global ulong *arranged_bytes)
{
        for (EACH(i, (uint)(*index_bytes / 4)))
                arranged[i] = points[index[i]];
        if (get_global_id(0) == 0)
                *arranged_bytes = *index_bytes * 2;
}

#if !WIDE
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
#endif
