/* Prefix sums on a GPU: the same three steps, but a work-group has a chunk, and neighbours read neighbouring words. */

/* Return the sum of the values of the work-items before this one. `sums` has two words for each work-item. */
static uint group_scan(uint value, __local uint *sums, uint *ret_all)
{
        uint item = get_local_id(0), sum = value;
        __local uint *from = sums, *to = sums + GROUP;
        from[item] = value;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint step = 1; step < GROUP; step *= 2) {
                __local uint *swap = from;
                sum += item >= step ? from[item - step] : 0;
                to[item] = sum;
                from = to;
                to = swap;
                barrier(CLK_LOCAL_MEM_FENCE);
        }
        *ret_all = from[GROUP - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
        return sum - value;
}

/* Each word from `begin` to `end` becomes `sum` and the sum of the words before it. */
static void scan_range(__global uint *values, uint begin, uint end, uint sum, __local uint *sums)
{
        uint item = get_local_id(0), all;
        for (; begin < end; begin += GROUP) {
                uint i = begin + item;
                uint before = group_scan(i < end ? values[i] : 0, sums, &all);
                if (i < end)
                        values[i] = sum + before;
                sum += all;
        }
}

__kernel void scan_sums(__global const uint *values, uint n, __global uint *sums)
{
        __local uint places[2 * GROUP];
        uint chunk = get_group_id(0), chunks = get_num_groups(0), item = get_local_id(0), sum = 0, all;
        uint end = chunk_begin(n, chunk + 1, chunks);
        for (uint i = chunk_begin(n, chunk, chunks) + item; i < end; i += GROUP)
                sum += values[i];
        group_scan(sum, places, &all);
        if (item == 0)
                sums[chunk] = all;
}

/* One work-group. */
__kernel void scan_top(__global uint *sums, uint n)
{
        __local uint places[2 * GROUP];
        scan_range(sums, 0, n, 0, places);
}

__kernel void scan_values(__global uint *values, uint n, __global const uint *sums)
{
        __local uint places[2 * GROUP];
        uint chunk = get_group_id(0), chunks = get_num_groups(0);
        scan_range(values, chunk_begin(n, chunk, chunks), chunk_begin(n, chunk + 1, chunks), sums[chunk], places);
}
