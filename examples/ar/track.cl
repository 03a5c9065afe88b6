/* The camera and its marker. Kernels make the camera's picture of a known scene, and find the marker in it: first the
 * corners of the dark square, then its edges, to a fraction of a pixel. Each work-item has a chunk of rows. */
#include "shared.h"

#define DARK 75 /* darker pixels are the marker's */

static uint noise(uint x)
{
        x ^= x >> 16;
        x *= 0x7feb352du;
        x ^= x >> 15;
        x *= 0x846ca68bu;
        return x ^ (x >> 16);
}

/* Return the brightness where the ray through a point of the picture ends: on the marker, its paper, the table or the
 * wall. */
static float look(__constant int *pose, float marker, float middle, float x, float y)
{
        float d[3] = { x / pose[POSE_FOCAL], y / pose[POSE_FOCAL], 1.0f }, o[3], ray[3];
        for (int i = 0; i < 3; i++) {
                o[i] = ray[i] = 0;
                for (int k = 0; k < 3; k++) {
                        o[i] -= pose[3 * k + i] * (1.0f / 16384) * pose[POSE_TRANSLATION + k] * (1.0f / 16);
                        ray[i] += pose[3 * k + i] * (1.0f / 16384) * d[k];
                }
        }
        if (ray[1] >= -0.02f)
                return 190.0f - 60.0f * ray[1];
        float s = -o[1] / ray[1];
        float u = (o[0] + s * ray[0] - middle) / marker + 0.5f, v = (o[2] + s * ray[2] - middle) / marker + 0.5f;
        if (u >= 0 && u < 1 && v >= 0 && v < 1) {
                int a = (int)(u * MARKER_CELLS), b = (int)(v * MARKER_CELLS);
                return a >= 1 && a <= 2 && b >= 1 && b <= 2 ? 225.0f : 25.0f;
        }
        if (u >= -0.15f && u < 1.15f && v >= -0.15f && v < 1.15f)
                return 230.0f;
        return ((int)floor(u * 3) + (int)floor(v * 3)) & 1 ? 150.0f : 165.0f;
}

__kernel void camera(__global uchar *picture, __constant int *pose, int marker, int voxels, uint seed)
{
        int x = get_global_id(0), y = get_global_id(1), width = pose[POSE_WIDTH];
        float sum = 0, left = x - width / 2, top = y - pose[POSE_HEIGHT] / 2;
        for (int i = 0; i < 4; i++)
                sum += look(pose, marker, voxels / 2, left + 0.25f + 0.5f * (i & 1), top + 0.25f + 0.5f * (i >> 1));
        int grain = (int)(noise((uint)(y * width + x) + seed * 0x9e3779b9u) & 15) - 8;
        picture[y * width + x] = convert_uchar_sat((int)(sum * 0.25f) + grain);
}

/* Return twice the area of the triangle of two corners and a pixel. Below 0: the pixel is to the left of the line from
 * the first corner to the second. */
static int area(__global const int *found, int from, int to, int x, int y)
{
        int dx = found[2 * to] - found[2 * from], dy = found[2 * to + 1] - found[2 * from + 1];
        return dx * (y - found[2 * from + 1]) - dy * (x - found[2 * from]);
}

/* Return the side of the triangle of three corners beyond which a pixel is farthest, and how far, as twice an area.
 * Inside of the triangle the distance is below 0. */
static int2 beyond(__global const int *found, int x, int y)
{
        int2 most = (int2)(0, -area(found, 0, 1, x, y));
        for (int side = 1; side < 3; side++) {
                int far = -area(found, side, (side + 1) % 3, x, y);
                if (far > most.y)
                        most = (int2)(side, far);
        }
        return most;
}

static float distance_from(__global const int *found, int corner, int x, int y)
{
        float dx = x - found[2 * corner], dy = y - found[2 * corner + 1];
        return sqrt(dx * dx + dy * dy);
}

/* Return a pixel's distance, which depends on the step. 0: from the middle, 1: from the first corner, 2: from two
 * corners together, 3: from the triangle of three. In each step the largest distance is at a corner, and not along an
 * edge. */
static int score(__global const int *found, int step, int width, int height, int x, int y)
{
        int dx = x - width / 2, dy = y - height / 2;
        switch (step) {
        case 0:
                return dx * dx + dy * dy;
        case 1:
                return (int)(64 * distance_from(found, 0, x, y));
        case 2:
                return (int)(64 * (distance_from(found, 0, x, y) + distance_from(found, 1, x, y)));
        default:
                return beyond(found, x, y).y;
        }
}

__kernel void find_corner(__global const uchar *picture, int width, int height, __global const int *found, int step,
                          __global int2 *best)
{
        int chunk = get_global_id(0), chunks = get_global_size(0);
        int2 top = (int2)(-1, -1);
        for (int y = height * chunk / chunks; y < height * (chunk + 1) / chunks; y++)
                for (int x = 0; x < width; x++) {
                        if (picture[y * width + x] >= DARK)
                                continue;
                        int s = score(found, step, width, height, x, y);
                        if (s > top.x)
                                top = (int2)(s, y * width + x);
                }
        best[chunk] = top;
}

/* Insert the next corner into `found`, which is clockwise. -1: there is none. */
__kernel void choose_corner(__global const int2 *best, int chunks, int width, int step, __global int *found)
{
        int2 top = (int2)(-1, -1);
        for (int i = 0; i < chunks; i++)
                if (best[i].x > top.x)
                        top = best[i];
        int x = top.x < 0 ? -1 : top.y % width, y = top.x < 0 ? -1 : top.y / width, place = step;
        if (step == 2 && area(found, 0, 1, x, y) < 0)
                place = 1;
        if (step == 3)
                place = beyond(found, x, y).x + 1;
        for (int i = step; i > place; i--) {
                found[2 * i] = found[2 * i - 2];
                found[2 * i + 1] = found[2 * i - 1];
        }
        found[2 * place] = x;
        found[2 * place + 1] = y;
}

/* Add a point of the edge, in sixteenths of a pixel from the first corner, to the sums of the side that it is near. */
static void add_point(__global const int *found, long *sums, int x, int y)
{
        for (int side = 0; side < 4; side++) {
                int ax = (found[2 * side] - found[0]) * 16, ay = (found[2 * side + 1] - found[1]) * 16;
                int next = (side + 1) % 4;
                int dx = (found[2 * next] - found[0]) * 16 - ax, dy = (found[2 * next + 1] - found[1]) * 16 - ay;
                long along = (long)dx * (x - ax) + (long)dy * (y - ay), all = (long)dx * dx + (long)dy * dy;
                long across = (long)dx * (y - ay) - (long)dy * (x - ax);
                /* Not more than two pixels away, nor near the corners. */
                if (along * 12 < all || along * 12 > all * 11 || across * (across / 1024) > all)
                        continue;
                sums[side * 6] += 1;
                sums[side * 6 + 1] += x;
                sums[side * 6 + 2] += y;
                sums[side * 6 + 3] += (long)x * x;
                sums[side * 6 + 4] += (long)x * y;
                sums[side * 6 + 5] += (long)y * y;
        }
}

__kernel void side_sums(__global const uchar *picture, int width, int height, __global const int *found,
                        __global long *chunk_sums)
{
        int chunk = get_global_id(0), chunks = get_global_size(0);
        long sums[24];
        for (int i = 0; i < 24; i++)
                sums[i] = 0;
        for (int y = max(height * chunk / chunks, 1); y < min(height * (chunk + 1) / chunks, height - 1); y++)
                for (int x = 1; x < width - 1; x++) {
                        int v = picture[y * width + x], part;
                        if (v >= DARK)
                                continue;
                        for (int k = 0; k < 4; k++) {
                                int dx = k == 0 ? 1 : k == 1 ? -1 : 0, dy = k == 2 ? 1 : k == 3 ? -1 : 0;
                                int other = picture[(y + dy) * width + x + dx];
                                if (other < DARK)
                                        continue;
                                /* Where the brightness passes the middle between dark and light. */
                                part = clamp(16 * (128 - v) / (other - v), 0, 31);
                                add_point(found, sums, (x - found[0]) * 16 + dx * part,
                                          (y - found[1]) * 16 + dy * part);
                        }
                }
        for (int i = 0; i < 24; i++)
                chunk_sums[chunk * 24 + i] = sums[i];
}

/* Needs 24 work-items. `marks` gets 8 coordinates of corners, and 4 brightnesses: at each corner that of the place
 * where the white cell may be. */
__kernel void add_sums(__global const uchar *picture, int width, __global const int *found,
                       __global const long *chunk_sums, int chunks, __global long *sums, __global int *marks)
{
        int i = get_global_id(0);
        long sum = 0;
        for (int k = 0; k < chunks; k++)
                sum += chunk_sums[k * 24 + i];
        sums[i] = sum;
        if (i < 8)
                marks[i] = found[i];
        if (i < 4) {
                int at[2];
                for (int k = 0; k < 2; k++)
                        at[k] = (4 * found[2 * i + k] + 2 * found[(2 * i + 2 + k) % 8] + found[(2 * i + 4 + k) % 8] +
                                 2 * found[(2 * i + 6 + k) % 8]) / 9;
                marks[8 + i] = found[0] < 0 ? 0 : picture[at[1] * width + at[0]];
        }
}
