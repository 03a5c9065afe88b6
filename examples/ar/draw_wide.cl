/* Drawing on a GPU. A work-group has a chunk of the points, and GROUP of them at a time. Or it has a tile, and each
 * work-item has one of the tile's pixels. */

__kernel void place_squares(__global const uint2 *points, __global const uint *index, __global const ulong *bytes,
                            uint unit, __constant int *pose, __global int4 *squares, __global uint *counts,
                            uint capacity)
{
        uint chunk = get_group_id(0), chunks = get_num_groups(0), item = get_local_id(0);
        int columns = (pose[POSE_WIDTH] + TILE - 1) / TILE, rows = (pose[POSE_HEIGHT] + TILE - 1) / TILE;
        for (int t = item; t < columns * rows; t += GROUP)
                counts[t * chunks + chunk] = 0;
        if (chunk == 0 && item == 0)
                counts[columns * rows * chunks] = 0;
        barrier(CLK_GLOBAL_MEM_FENCE);
        uint end = part_start(bytes, unit, capacity, chunk + 1, chunks);
        for (uint i = part_start(bytes, unit, capacity, chunk, chunks) + item; i < end; i += GROUP) {
                int4 square = project(points[index ? min(index[i], capacity - 1) : i], pose);
                int4 t = tiles_of(square, pose);
                squares[i] = square;
                for (int y = t.y; y <= t.w; y++)
                        for (int x = t.x; x <= t.z; x++)
                                atomic_inc(&counts[(y * columns + x) * chunks + chunk]);
        }
}

/* A square's place in the list of a tile: behind the batch's earlier squares in this tile. The last one of them moves
 * the tile's place on. */
__kernel void list_squares(__global const int4 *squares, __global const ulong *bytes, uint unit, __constant int *pose,
                           __global uint *places, __global uint *lists, uint capacity)
{
        __local short4 batch[GROUP];
        uint chunk = get_group_id(0), chunks = get_num_groups(0), item = get_local_id(0);
        int columns = (pose[POSE_WIDTH] + TILE - 1) / TILE;
        uint end = part_start(bytes, unit, capacity, chunk + 1, chunks);
        for (uint begin = part_start(bytes, unit, capacity, chunk, chunks); begin < end; begin += GROUP) {
                uint i = begin + item, count = min(end - begin, (uint)GROUP), places_after[4], n = 0, last = 0;
                int4 t = i < end ? tiles_of(squares[i], pose) : (int4)(0, 0, -1, -1);
                batch[item] = convert_short4(t);
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int y = t.y; y <= t.w; y++)
                        for (int x = t.x; x <= t.z; x++, n++) {
                                uint before = 0, after = 0;
                                for (uint k = 0; k < count; k++) {
                                        short4 other = batch[k];
                                        bool shares = x >= other.x && x <= other.z && y >= other.y && y <= other.w;
                                        before += shares && k < item;
                                        after += shares && k > item;
                                }
                                places_after[n] = places[(y * columns + x) * chunks + chunk] + before;
                                lists[places_after[n]++] = i;
                                last |= after ? 0 : 1u << n;
                        }
                barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
                n = 0;
                for (int y = t.y; y <= t.w; y++)
                        for (int x = t.x; x <= t.z; x++, n++)
                                if (last >> n & 1)
                                        places[(y * columns + x) * chunks + chunk] = places_after[n];
                barrier(CLK_GLOBAL_MEM_FENCE);
        }
}

__kernel void blend(__global const int4 *squares, __global const uint *places, uint chunks,
                    __global const uint *lists, __constant int *pose, int opacity, __global uchar4 *layer)
{
        __local int4 batch[GROUP];
        int tile = get_group_id(0), columns = (pose[POSE_WIDTH] + TILE - 1) / TILE, item = get_local_id(0);
        int x = tile % columns * TILE + item % TILE, y = tile / columns * TILE + item / TILE;
        int4 pixel = CLEAR;
        uint end = list_end(places, chunks, tile);
        for (uint begin = list_begin(places, chunks, tile); begin < end; begin += GROUP) {
                if (begin + item < end)
                        batch[item] = squares[lists[begin + item]];
                barrier(CLK_LOCAL_MEM_FENCE);
                for (uint k = 0; k < min(end - begin, (uint)GROUP); k++) {
                        int4 s = batch[k];
                        if ((uint)(x - s.x) < (uint)s.z && (uint)(y - s.y) < (uint)s.z)
                                pixel = blend_over(pixel, colour_of(s), opacity);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (x < pose[POSE_WIDTH] && y < pose[POSE_HEIGHT])
                layer[y * pose[POSE_WIDTH] + x] = convert_uchar4(pixel >> 8);
}
