/* A figure made of balls, as the pictures of a V-PCC frame: six patches, each the view of the figure from
 * one side of its cube. It takes the place of a decoder where there is no stream. */
#include "shared.h"

/* Centre and radius, in thousandths of the cube's side; the last one is the colour. */
#define BALLS 12
static void ball(int i, int time, int *x, int *y, int *z, int *r, int *colour)
{
        /* Triangle waves, because devices differ in the last bits of a sine. */
        int wave = abs(time % 60 - 30) - 15, slow = abs(time % 120 - 60) - 30;
        int side = i & 1 ? 1 : -1, pair = i / 2;
        *colour = pair;
        switch (pair) {
        case 0: /* body, head */
                *x = 500 + slow, *y = i ? 850 : 560, *z = 500, *r = i ? 110 : 200;
                *colour = i ? 6 : 0;
                break;
        case 1: /* arms */
                *x = 500 + slow + side * 240, *y = 640 + side * wave * 4, *z = 540, *r = 85;
                break;
        case 2: /* hands */
                *x = 500 + slow + side * 330, *y = 640 + side * wave * 12, *z = 590, *r = 60;
                break;
        case 3: /* hips */
                *x = 500 + slow / 2 + side * 95, *y = 340, *z = 500 + side * wave * 2, *r = 110;
                break;
        case 4: /* knees */
                *x = 500 + side * 105, *y = 190, *z = 510 + side * wave * 4, *r = 85;
                break;
        default: /* feet */
                *x = 500 + side * 110, *y = 65, *z = 530 + side * wave * 3, *r = 65;
                break;
        }
}

static int root(int v)
{
        int r = (int)sqrt((float)v);
        while (r * r > v)
                r--;
        while ((r + 1) * (r + 1) <= v)
                r++;
        return r;
}

/* The patches are those of open_figure() in source.c: 0 to 2 see from the low end of axis 0 to 2, 3 to 5 from the
 * high end. A work-item has a block of 2 x 2 pixels. */
__kernel void figure(__global uchar *occupancy, __global uchar *geometry, __global uchar *attribute,
                     __constant int *atlas, int time)
{
        int side = atlas[ATLAS_VOXELS], width = atlas[ATLAS_WIDTH], height = atlas[ATLAS_HEIGHT];
        int cx = get_global_id(0), cy = get_global_id(1);
        int patch = cx * 2 / side + 3 * (cy * 2 / side), axis = patch % 3;
        int lit[3] = { 0, 0, 0 }, seen = 0;
        for (int k = 0; k < 4; k++) {
                int x = cx * 2 + (k & 1), y = cy * 2 + (k >> 1), at = y * width + x;
                int u = x % side, v = y % side, best = side, kind = -1;
                for (int i = 0; i < BALLS; i++) {
                        int c[3], r, colour;
                        ball(i, time, c, c + 1, c + 2, &r, &colour);
                        r = r * side / 1000;
                        int du = u - c[(axis + 1) % 3] * side / 1000, dv = v - c[(axis + 2) % 3] * side / 1000;
                        int rest = r * r - du * du - dv * dv, n = c[axis] * side / 1000;
                        if (rest < 0)
                                continue;
                        int depth = patch < 3 ? n - root(rest) : side - 1 - n - root(rest);
                        if (depth < best) {
                                best = depth;
                                kind = colour;
                        }
                }
                bool on = kind >= 0 && best >= 0;
                occupancy[at] = on;
                geometry[2 * at] = on ? best & 255 : 0;
                geometry[2 * at + 1] = on ? best >> 8 : 0;
                int stripe = (u * 24 / side + v * 24 / side) & 1;
                attribute[at] = on ? clamp(210 - best * 120 / side + 24 * stripe, 16, 235) : 16;
                if (on) {
                        lit[0] = 128 + (kind * 53 + 20) % 90 - 45;
                        lit[1] = 128 + (kind * 37 + 80) % 100 - 50;
                        seen++;
                }
        }
        int c = width * height + cy * (width / 2) + cx;
        attribute[c] = seen ? lit[0] : 128;
        attribute[c + width / 2 * (height / 2)] = seen ? lit[1] : 128;
}
