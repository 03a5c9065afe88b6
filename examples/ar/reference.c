#include "reference.h"

#include <string.h>

static uint8_t clip(int32_t value)
{
        value = (value + 32768) >> 16;
        return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

void reference_color(uint8_t y, uint8_t cb, uint8_t cr, uint8_t ret_rgb[3])
{
        int32_t luma = y * 65536, u = cb - 128, v = cr - 128;
        ret_rgb[0] = clip(luma + 103206 * v);
        ret_rgb[1] = clip(luma - 12276 * u - 30679 * v);
        ret_rgb[2] = clip(luma + 121609 * u);
}

static struct reference_point point_of(const struct v3c_frame *f, const struct v3c_patch *p,
                                       const struct reference_pictures *pictures, uint32_t map,
                                       uint32_t x, uint32_t y)
{
        size_t pixel = (size_t)y * f->width + x, luma = (size_t)f->width * f->height;
        uint32_t chroma_width = (f->width + 1) / 2, chroma_height = (f->height + 1) / 2;
        size_t chroma = (size_t)(y / 2) * chroma_width + x / 2;
        const uint8_t *texture = pictures->attribute[map];
        const uint8_t *cb = texture + luma, *cr = cb + (size_t)chroma_width * chroma_height;
        int32_t column = (int32_t)x, row = (int32_t)y;
        int32_t normal = p->depth[0] * pictures->geometry[map][pixel] + p->depth[1];
        struct reference_point point;
        point.at[p->axis[0]] =
                (uint16_t)(p->tangent[0] * column + p->tangent[1] * row + p->tangent[2]);
        point.at[p->axis[1]] =
                (uint16_t)(p->bitangent[0] * column + p->bitangent[1] * row + p->bitangent[2]);
        point.at[p->axis[2]] = (uint16_t)(normal < 0 ? 0 : normal);
        reference_color(texture[pixel], cb[chroma], cr[chroma], point.color);
        return point;
}

size_t reference_points(const struct v3c_frame *frame, const struct v3c_patch *patches,
                        const uint16_t *blocks, const struct reference_pictures *pictures,
                        struct reference_point *points, size_t capacity)
{
        size_t count = 0;
        for (uint32_t y = 0; y < frame->height; y++) {
                for (uint32_t x = 0; x < frame->width; x++) {
                        size_t sample = (size_t)(y / frame->precision) * frame->occupancy_width +
                                        x / frame->precision;
                        uint32_t owner = blocks[y / frame->block * (frame->width / frame->block) +
                                                x / frame->block];
                        if (owner == 0 || pictures->occupancy[sample] <= frame->threshold)
                                continue;
                        struct reference_point first = { .at = { 0 } };
                        for (uint32_t map = 0; map < frame->maps; map++) {
                                struct reference_point q =
                                        point_of(frame, &patches[owner - 1], pictures, map, x, y);
                                if (map == 0)
                                        first = q;
                                else if (frame->distinct && !memcmp(q.at, first.at, sizeof(q.at)))
                                        continue;
                                if (count < capacity)
                                        points[count] = q;
                                count++;
                        }
                }
        }
        return count;
}
