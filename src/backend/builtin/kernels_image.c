/* Reference implementations of the registry's image kernels. A launch's first dimension is x, its
 * second y. An image's row y begins at element y * width, where the width is that of the whole
 * launch (offset and size). A pixel beyond an edge has the value of the nearest pixel inside. */
#include <math.h>
#include <string.h>

#include "backend/builtin/kernels.h"
#include "base/mem.h"

struct area {
        size_t x0, x1, y0, y1; /* work-items */
        size_t width, height;  /* of the image */
};

static struct area area_of(const struct registry_launch *l)
{
        struct area a = { .x0 = l->offset[0],
                          .x1 = l->offset[0] + l->global[0],
                          .y0 = l->offset[1],
                          .y1 = l->offset[1] + l->global[1] };
        a.width = a.x1;
        a.height = a.y1;
        return a;
}

/* A product that fits, or more than any buffer has. */
static size_t times(size_t a, size_t b)
{
        size_t n;
        return __builtin_mul_overflow(a, b, &n) ? SIZE_MAX : n;
}

static size_t pixels(const struct area *a)
{
        return times(a->width, a->height);
}

static uint8_t u8_at(const struct registry_launch *l, unsigned arg, size_t i)
{
        return ((const uint8_t *)l->args[arg].data)[i];
}

static void put_u8(const struct registry_launch *l, unsigned arg, size_t i, uint8_t v)
{
        ((uint8_t *)l->args[arg].data)[i] = v;
}

static uint16_t u16_at(const struct registry_launch *l, unsigned arg, size_t i)
{
        uint16_t v;
        memcpy(&v, (const uint8_t *)l->args[arg].data + i * 2, sizeof(v));
        return v;
}

static void put_u16(const struct registry_launch *l, unsigned arg, size_t i, uint16_t v)
{
        memcpy((uint8_t *)l->args[arg].data + i * 2, &v, sizeof(v));
}

static size_t clamp(double v, size_t end)
{
        return v < 0 ? 0 : v >= (double)end ? end - 1 : (size_t)v;
}

/* ---- scaling -------------------------------------------------------------------------------- */

struct scaling {
        float x_scale, y_scale;
        int32_t width, height; /* of the input */
        size_t plane;          /* bytes of one */
};

/* False: a buffer is too small for it, or the input has no pixels. */
static bool scaling_of(const struct registry_launch *l, struct scaling *s)
{
        memcpy(&s->x_scale, l->args[2].data, 4);
        memcpy(&s->y_scale, l->args[3].data, 4);
        memcpy(&s->width, l->args[4].data, 4);
        memcpy(&s->height, l->args[5].data, 4);
        size_t planes = l->offset[2] + l->global[2];
        struct area a = area_of(l);
        if (s->width <= 0 || s->height <= 0)
                return false;
        s->plane = (size_t)s->width * (size_t)s->height;
        return kernel_covers(l, 0, 1, 0, times(s->plane, planes)) &&
               kernel_covers(l, 1, 1, 0, times(pixels(&a), planes));
}

static uint8_t nearest(const struct registry_launch *l, const struct scaling *s, size_t plane,
                       double x, double y)
{
        size_t ix = clamp(floor(x + 0.5), (size_t)s->width);
        size_t iy = clamp(floor(y + 0.5), (size_t)s->height);
        return u8_at(l, 0, plane * s->plane + iy * (size_t)s->width + ix);
}

static uint8_t bilinear(const struct registry_launch *l, const struct scaling *s, size_t plane,
                        double x, double y)
{
        double x0 = floor(x), y0 = floor(y), fx = x - x0, fy = y - y0, sum = 0;
        for (unsigned i = 0; i < 4; i++) {
                size_t ix = clamp(x0 + (i & 1), (size_t)s->width);
                size_t iy = clamp(y0 + (i >> 1), (size_t)s->height);
                sum += (i & 1 ? fx : 1 - fx) * (i >> 1 ? fy : 1 - fy) *
                       u8_at(l, 0, plane * s->plane + iy * (size_t)s->width + ix);
        }
        return (uint8_t)sum;
}

static cl_int scale(const struct registry_launch *l,
                    uint8_t (*sample)(const struct registry_launch *l, const struct scaling *s,
                                      size_t plane, double x, double y))
{
        struct area a = area_of(l);
        struct scaling s;
        if (!scaling_of(l, &s))
                return CL_OUT_OF_RESOURCES;
        for (size_t z = l->offset[2]; z < l->offset[2] + l->global[2]; z++)
                for (size_t y = a.y0; y < a.y1; y++)
                        for (size_t x = a.x0; x < a.x1; x++)
                                put_u8(l, 1, (z * a.height + y) * a.width + x,
                                       sample(l, &s, z, ((double)x + 0.5) * s.x_scale - 0.5,
                                              ((double)y + 0.5) * s.y_scale - 0.5));
        return CL_SUCCESS;
}

cl_int kernel_scale_nn_u8(const struct registry_launch *l)
{
        return scale(l, nearest);
}

cl_int kernel_scale_bl_u8(const struct registry_launch *l)
{
        return scale(l, bilinear);
}

/* ---- of each pixel -------------------------------------------------------------------------- */

cl_int kernel_convert_u8_f32(const struct registry_launch *l)
{
        size_t first = l->offset[0], count = kernel_items(l);
        float norm, offset;
        if (!kernel_covers(l, 0, 1, first, count) || !kernel_covers(l, 1, 4, first, count))
                return CL_OUT_OF_RESOURCES;
        memcpy(&norm, l->args[2].data, 4);
        memcpy(&offset, l->args[3].data, 4);
        for (size_t i = first; i < first + count; i++) {
                float v = ((float)u8_at(l, 0, i) - offset) / norm;
                memcpy((uint8_t *)l->args[1].data + i * 4, &v, sizeof(v));
        }
        return CL_SUCCESS;
}

cl_int kernel_minmaxloc_u8(const struct registry_launch *l)
{
        struct area a = area_of(l);
        if (!kernel_covers(l, 0, 1, 0, pixels(&a)) || !kernel_covers(l, 1, 1, 0, 1) ||
            !kernel_covers(l, 2, 1, 0, 1) || !kernel_covers(l, 3, 4, 0, 2) ||
            !kernel_covers(l, 4, 4, 0, 2) || !kernel_items(l))
                return CL_OUT_OF_RESOURCES;
        uint8_t low = UINT8_MAX, high = 0;
        uint32_t low_at[2] = { (uint32_t)a.x0, (uint32_t)a.y0 };
        uint32_t high_at[2] = { (uint32_t)a.x0, (uint32_t)a.y0 };
        for (size_t y = a.y0; y < a.y1; y++) {
                for (size_t x = a.x0; x < a.x1; x++) {
                        uint8_t v = u8_at(l, 0, y * a.width + x);
                        uint32_t here[2] = { (uint32_t)x, (uint32_t)y };
                        if (v < low)
                                memcpy(low_at, here, sizeof(here));
                        if (v > high)
                                memcpy(high_at, here, sizeof(here));
                        low = v < low ? v : low;
                        high = v > high ? v : high;
                }
        }
        put_u8(l, 1, 0, low);
        put_u8(l, 2, 0, high);
        memcpy(l->args[3].data, low_at, sizeof(low_at));
        memcpy(l->args[4].data, high_at, sizeof(high_at));
        return CL_SUCCESS;
}

/* An angle in 256 steps of a full turn. */
static uint8_t phase(int x, int y)
{
        double turn = atan2(y, x) / (2 * M_PI);
        return (uint8_t)(int)floor((turn < 0 ? turn + 1 : turn) * 256 + 0.5);
}

static uint16_t magnitude(int x, int y)
{
        double v = floor(sqrt((double)x * x + (double)y * y) + 0.5);
        return v > UINT16_MAX ? UINT16_MAX : (uint16_t)v;
}

/* Both gradients are two's complement in 16 bits. */
static cl_int of_gradients(const struct registry_launch *l, size_t element,
                           void (*put)(const struct registry_launch *l, size_t i, int x, int y))
{
        size_t first = l->offset[0], count = kernel_items(l);
        if (!kernel_covers(l, 0, 2, first, count) || !kernel_covers(l, 1, 2, first, count) ||
            !kernel_covers(l, 2, element, first, count))
                return CL_OUT_OF_RESOURCES;
        for (size_t i = first; i < first + count; i++)
                put(l, i, (int16_t)u16_at(l, 0, i), (int16_t)u16_at(l, 1, i));
        return CL_SUCCESS;
}

static void put_phase(const struct registry_launch *l, size_t i, int x, int y)
{
        put_u8(l, 2, i, phase(x, y));
}

static void put_magnitude(const struct registry_launch *l, size_t i, int x, int y)
{
        put_u16(l, 2, i, magnitude(x, y));
}

cl_int kernel_phase_u8(const struct registry_launch *l)
{
        return of_gradients(l, 1, put_phase);
}

cl_int kernel_magnitude_u16(const struct registry_launch *l)
{
        return of_gradients(l, 2, put_magnitude);
}

/* ---- edges ---------------------------------------------------------------------------------- */

enum { EDGE_NONE = 0, EDGE_WEAK = 127, EDGE_STRONG = 255 };

static int pixel(const struct registry_launch *l, const struct area *a, size_t x, size_t y, int dx,
                 int dy)
{
        size_t ix = clamp((double)x + dx, a->width), iy = clamp((double)y + dy, a->height);
        return u8_at(l, 0, iy * a->width + ix);
}

static void sobel(const struct registry_launch *l, const struct area *a, size_t x, size_t y,
                  int ret[2])
{
        ret[0] = ret[1] = 0;
        for (int d = -1; d <= 1; d++) {
                int weight = d ? 1 : 2;
                ret[0] += weight * (pixel(l, a, x, y, 1, d) - pixel(l, a, x, y, -1, d));
                ret[1] += weight * (pixel(l, a, x, y, d, 1) - pixel(l, a, x, y, d, -1));
        }
}

cl_int kernel_sobel3x3_u8(const struct registry_launch *l)
{
        struct area a = area_of(l);
        if (!kernel_covers(l, 0, 1, 0, pixels(&a)) || !kernel_covers(l, 1, 2, 0, pixels(&a)) ||
            !kernel_covers(l, 2, 2, 0, pixels(&a)))
                return CL_OUT_OF_RESOURCES;
        for (size_t y = a.y0; y < a.y1; y++) {
                for (size_t x = a.x0; x < a.x1; x++) {
                        int g[2];
                        sobel(l, &a, x, y, g);
                        put_u16(l, 1, y * a.width + x, (uint16_t)g[0]);
                        put_u16(l, 2, y * a.width + x, (uint16_t)g[1]);
                }
        }
        return CL_SUCCESS;
}

/* Across the edge at that phase: the step to one neighbour, the other is opposite. */
static void across(uint8_t at, int step[2])
{
        static const int steps[4][2] = { { 1, 0 }, { 1, 1 }, { 0, 1 }, { -1, 1 } };
        memcpy(step, steps[(at + 16) / 32 % 4], 2 * sizeof(int));
}

/* Not smaller than the one before it across the edge, larger than the one behind: one of equal ones stays. */
static uint8_t thinned(const uint16_t *strength, uint8_t at, const struct area *a, size_t x,
                       size_t y, uint16_t low, uint16_t high)
{
        int step[2];
        across(at, step);
        uint16_t here = strength[y * a->width + x], before = 0, behind = 0;
        size_t bx = x - (size_t)(long)step[0], by = y - (size_t)(long)step[1];
        size_t ax = x + (size_t)(long)step[0], ay = y + (size_t)(long)step[1];
        if (bx < a->width && by < a->height)
                before = strength[by * a->width + bx];
        if (ax < a->width && ay < a->height)
                behind = strength[ay * a->width + ax];
        if (here < before || here <= behind || here <= low)
                return EDGE_NONE;
        return here > high ? EDGE_STRONG : EDGE_WEAK;
}

static uint16_t value_u16(const struct registry_launch *l, unsigned arg)
{
        uint16_t v;
        memcpy(&v, l->args[arg].data, sizeof(v));
        return v;
}

cl_int kernel_nonmax_u16(const struct registry_launch *l)
{
        struct area a = area_of(l);
        if (!kernel_covers(l, 0, 2, 0, pixels(&a)) || !kernel_covers(l, 1, 1, 0, pixels(&a)) ||
            !kernel_covers(l, 2, 1, 0, pixels(&a)))
                return CL_OUT_OF_RESOURCES;
        uint16_t *strength = mem_alloc(pixels(&a) * sizeof(*strength));
        if (!strength)
                return CL_OUT_OF_RESOURCES;
        memcpy(strength, l->args[0].data, pixels(&a) * sizeof(*strength));
        for (size_t y = a.y0; y < a.y1; y++)
                for (size_t x = a.x0; x < a.x1; x++)
                        put_u8(l, 2, y * a.width + x,
                               thinned(strength, u8_at(l, 1, y * a.width + x), &a, x, y,
                                       value_u16(l, 3), value_u16(l, 4)));
        mem_free(strength);
        return CL_SUCCESS;
}

/* Weak pixels that touch strong ones, at once or over others, become strong; `todo` has room for all. */
static void follow(uint8_t *edges, size_t *todo, const struct area *a)
{
        size_t count = 0;
        for (size_t i = 0; i < pixels(a); i++)
                if (edges[i] == EDGE_STRONG)
                        todo[count++] = i;
        while (count) {
                size_t i = todo[--count], x = i % a->width, y = i / a->width;
                for (size_t ny = y ? y - 1 : 0; ny <= y + 1 && ny < a->height; ny++) {
                        for (size_t nx = x ? x - 1 : 0; nx <= x + 1 && nx < a->width; nx++) {
                                uint8_t *e = &edges[ny * a->width + nx];
                                if (*e == EDGE_WEAK) {
                                        *e = EDGE_STRONG;
                                        todo[count++] = ny * a->width + nx;
                                }
                        }
                }
        }
}

cl_int kernel_canny_u8(const struct registry_launch *l)
{
        struct area a = area_of(l);
        if (!kernel_covers(l, 0, 1, 0, pixels(&a)) || !kernel_covers(l, 1, 1, 0, pixels(&a)))
                return CL_OUT_OF_RESOURCES;
        size_t n = pixels(&a);
        uint16_t *strength = mem_alloc(n * sizeof(*strength));
        uint8_t *angle = mem_alloc(n), *edges = mem_alloc(n);
        size_t *todo = mem_alloc(n * sizeof(*todo));
        bool ok = strength && angle && edges && todo;
        for (size_t i = 0; ok && i < n; i++) {
                int g[2];
                sobel(l, &a, i % a.width, i / a.width, g);
                strength[i] = magnitude(g[0], g[1]);
                angle[i] = phase(g[0], g[1]);
        }
        for (size_t i = 0; ok && i < n; i++)
                edges[i] = thinned(strength, angle[i], &a, i % a.width, i / a.width,
                                   value_u16(l, 2), value_u16(l, 3));
        if (ok)
                follow(edges, todo, &a);
        for (size_t y = a.y0; ok && y < a.y1; y++)
                for (size_t x = a.x0; x < a.x1; x++)
                        put_u8(l, 1, y * a.width + x,
                               edges[y * a.width + x] == EDGE_STRONG ? 255 : 0);
        mem_free(strength);
        mem_free(angle);
        mem_free(edges);
        mem_free(todo);
        return ok ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}
