/* Exclusive prefix sums in place, in three steps: sums of chunks, sums of these, values. The last value becomes the
 * total if the array had a zero there. */

#include "shared.h"

static uint chunk_begin(uint n, uint chunk, uint chunks)
{
        return (uint)((ulong)n * chunk / chunks);
}

#if !WIDE
__kernel void scan_sums(__global const uint *values, uint n, __global uint *sums)
{
        uint chunk = get_global_id(0), chunks = get_global_size(0), sum = 0;
        uint end = chunk_begin(n, chunk + 1, chunks);
        for (uint i = chunk_begin(n, chunk, chunks); i < end; i++)
                sum += values[i];
        sums[chunk] = sum;
}

__kernel void scan_top(__global uint *sums, uint n)
{
        uint sum = 0;
        for (uint i = 0; i < n; i++) {
                uint v = sums[i];
                sums[i] = sum;
                sum += v;
        }
}

__kernel void scan_values(__global uint *values, uint n, __global const uint *sums)
{
        uint chunk = get_global_id(0), chunks = get_global_size(0), sum = sums[chunk];
        uint end = chunk_begin(n, chunk + 1, chunks);
        for (uint i = chunk_begin(n, chunk, chunks); i < end; i++) {
                uint v = values[i];
                values[i] = sum;
                sum += v;
        }
}
#endif
