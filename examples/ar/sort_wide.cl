/* The passes of the radix sort on a GPU. A work-group sorts GROUP pairs at a time by their digit, in local memory. So
 * neighbours with the same digit go to neighbouring places. */

__kernel void sort_count(__global const uint2 *pairs, __global const ulong *index_bytes, uint shift,
                         __global uint *histogram)
{
        __local uint counts[DIGITS];
        uint chunk = get_group_id(0), chunks = get_num_groups(0), item = get_local_id(0);
        uint end = chunk_start(index_bytes, 4, chunk + 1, chunks);
        counts[item] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = chunk_start(index_bytes, 4, chunk, chunks) + item; i < end; i += GROUP)
                atomic_inc(&counts[digit_of(pairs[i].x, shift)]);
        barrier(CLK_LOCAL_MEM_FENCE);
        histogram[item * chunks + chunk] = counts[item];
}

/* Sort the pairs of the work-items by their digit, two bits at a time: a word has the counters of three values, and the
 * other pairs have the fourth value. The sorted pairs stay in `batch`, too. */
static uint2 sort_batch(uint2 pair, uint shift, __local uint2 *batch, __local uint *sums)
{
        uint item = get_local_id(0), all;
        for (uint bit = shift; bit < shift + DIGIT; bit += 2) {
                uint value = pair.x >> bit & 3;
                uint before = group_scan(value < 3 ? 1u << 10 * value : 0, sums, &all);
                uint place = 0, smaller = 0, others = 0;
                for (uint v = 0; v < 3; v++) {
                        uint same = before >> 10 * v & 1023;
                        place = v == value ? smaller + same : place;
                        smaller += all >> 10 * v & 1023;
                        others += same;
                }
                batch[value < 3 ? place : smaller + item - others] = pair;
                barrier(CLK_LOCAL_MEM_FENCE);
                pair = batch[item];
                barrier(CLK_LOCAL_MEM_FENCE);
        }
        return pair;
}

/* Move the pairs of a chunk to `sorted`, or their indices to `index`. */
static void move_chunk(__global const uint2 *pairs, __global const ulong *index_bytes, uint shift,
                       __global const uint *histogram, __global uint2 *sorted, __global uint *index,
                       __local uint2 *batch, __local uint *sums, __local uint *next, __local uint *starts)
{
        uint chunk = get_group_id(0), chunks = get_num_groups(0), item = get_local_id(0);
        uint end = chunk_start(index_bytes, 4, chunk + 1, chunks);
        next[item] = histogram[item * chunks + chunk];
        for (uint begin = chunk_start(index_bytes, 4, chunk, chunks); begin < end; begin += GROUP) {
                /* Behind the last pair all bits are set, so these stay behind it. */
                uint2 pair = begin + item < end ? pairs[begin + item] : (uint2)(~0u, 0);
                pair = sort_batch(pair, shift, batch, sums);
                uint digit = digit_of(pair.x, shift), count = min(end - begin, (uint)GROUP);
                if (item == 0 || digit_of(batch[item - 1].x, shift) != digit)
                        starts[digit] = item;
                barrier(CLK_LOCAL_MEM_FENCE);
                uint place = next[digit] + item - starts[digit];
                if (item < count && index)
                        index[place] = pair.y;
                else if (item < count)
                        sorted[place] = pair;
                barrier(CLK_LOCAL_MEM_FENCE);
                if (item + 1 == count || (item < count && digit_of(batch[item + 1].x, shift) != digit))
                        next[digit] = place + 1;
                barrier(CLK_LOCAL_MEM_FENCE);
        }
}

__kernel void sort_move(__global const uint2 *pairs, __global const ulong *index_bytes, uint shift,
                        __global uint *histogram, __global uint2 *sorted)
{
        __local uint2 batch[GROUP];
        __local uint sums[2 * GROUP], next[DIGITS], starts[DIGITS];
        move_chunk(pairs, index_bytes, shift, histogram, sorted, 0, batch, sums, next, starts);
}

__kernel void sort_last(__global const uint2 *pairs, __global const ulong *index_bytes, uint shift,
                        __global uint *histogram, __global uint *index)
{
        __local uint2 batch[GROUP];
        __local uint sums[2 * GROUP], next[DIGITS], starts[DIGITS];
        move_chunk(pairs, index_bytes, shift, histogram, 0, index, batch, sums, next, starts);
}
