#include "backend/media/picture.h"

#include <string.h>

#include "base/bytes.h"

/* ---- rows: compilers make vector instructions of these loops --------------------------------- */

/* `shift`: the unused bits below those of a sample. */
static void shift_words(uint8_t *restrict to, const uint8_t *restrict from, size_t count,
                        unsigned shift)
{
        for (size_t x = 0; x < count; x++)
                bytes_put_u16(to + 2 * x, (uint16_t)(bytes_get_u16(from + 2 * x) >> shift));
}

/* Write one row of Cb and Cr, which alternate, to a row each. */
static void part_bytes(uint8_t *restrict cb, uint8_t *restrict cr, const uint8_t *restrict from,
                       size_t count)
{
        for (size_t x = 0; x < count; x++) {
                uint16_t both = bytes_get_u16(from + 2 * x);
                cb[x] = (uint8_t)both;
                cr[x] = (uint8_t)(both >> 8);
        }
}

static void part_words(uint8_t *restrict cb, uint8_t *restrict cr, const uint8_t *restrict from,
                       size_t count, unsigned shift)
{
        for (size_t x = 0; x < count; x++) {
                uint32_t both = bytes_get_u32(from + 4 * x);
                bytes_put_u16(cb + 2 * x, (uint16_t)((both & UINT16_MAX) >> shift));
                bytes_put_u16(cr + 2 * x, (uint16_t)(both >> 16 >> shift));
        }
}

/* The reverse. */
static void join_bytes(uint8_t *restrict to, const uint8_t *restrict cb, const uint8_t *restrict cr,
                       size_t count)
{
        for (size_t x = 0; x < count; x++) {
                to[2 * x] = cb[x];
                to[2 * x + 1] = cr[x];
        }
}

static void join_words(uint8_t *restrict to, const uint8_t *restrict cb, const uint8_t *restrict cr,
                       size_t count, unsigned shift)
{
        for (size_t x = 0; x < count; x++) {
                uint32_t low = (uint32_t)bytes_get_u16(cb + 2 * x) >> shift;
                uint32_t high = (uint32_t)bytes_get_u16(cr + 2 * x) >> shift;
                bytes_put_u32(to + 4 * x, low | high << 16);
        }
}

/* ---- planes ---------------------------------------------------------------------------------- */

static size_t sample_size(const struct codec_picture *p)
{
        return p->bits > 8 ? 2 : 1;
}

static const uint8_t *row_of(const struct codec_picture *p, unsigned plane, size_t y)
{
        return p->planes[plane] + y * p->strides[plane];
}

/* Write a plane as it is; `count`: samples of a row. Returns the end. */
static uint8_t *put_plane(uint8_t *to, const struct codec_picture *p, unsigned plane, size_t count,
                          size_t rows)
{
        size_t row = count * sample_size(p);
        if (!p->shift && p->strides[plane] == row) {
                memcpy(to, p->planes[plane], row * rows);
                return to + row * rows;
        }
        for (size_t y = 0; y < rows; y++, to += row) {
                if (p->shift)
                        shift_words(to, row_of(p, plane, y), count, p->shift);
                else
                        memcpy(to, row_of(p, plane, y), row);
        }
        return to;
}

/* Write the interleaved plane of chroma as two; `count`: samples of each in a row. */
static void part_plane(uint8_t *to, const struct codec_picture *p, size_t count, size_t rows)
{
        size_t row = count * sample_size(p);
        uint8_t *other = to + row * rows;
        for (size_t y = 0; y < rows; y++, to += row, other += row) {
                if (p->bits > 8)
                        part_words(to, other, row_of(p, 1, y), count, p->shift);
                else
                        part_bytes(to, other, row_of(p, 1, y), count);
        }
}

/* Write the two planes of chroma as one. */
static void join_planes(uint8_t *to, const struct codec_picture *p, size_t count, size_t rows)
{
        size_t row = 2 * count * sample_size(p);
        for (size_t y = 0; y < rows; y++, to += row) {
                if (p->bits > 8)
                        join_words(to, row_of(p, 1, y), row_of(p, 2, y), count, p->shift);
                else
                        join_bytes(to, row_of(p, 1, y), row_of(p, 2, y), count);
        }
}

void media_picture_write(uint8_t *to, const struct codec_picture *p, enum media_format format)
{
        size_t half = ((size_t)p->width + 1) / 2, rows = ((size_t)p->height + 1) / 2;
        bool pairs = format == MEDIA_NV12;
        to = put_plane(to, p, 0, p->width, p->height);
        if (pairs && p->interleaved) {
                (void)put_plane(to, p, 1, 2 * half, rows);
        } else if (pairs) {
                join_planes(to, p, half, rows);
        } else if (p->interleaved) {
                part_plane(to, p, half, rows);
        } else {
                to = put_plane(to, p, 1, half, rows);
                (void)put_plane(to, p, 2, half, rows);
        }
}
