#include "av/picture.h"

#include <string.h>

#include <libavutil/pixfmt.h>

#include "backend/media/kernels.h"

unsigned picture_bits(int format)
{
        switch (format) {
        case AV_PIX_FMT_YUV420P:
        case AV_PIX_FMT_YUVJ420P:
                return 8;
        case AV_PIX_FMT_YUV420P9LE:
                return 9;
        case AV_PIX_FMT_YUV420P10LE:
                return 10;
        case AV_PIX_FMT_YUV420P12LE:
                return 12;
        case AV_PIX_FMT_YUV420P14LE:
                return 14;
        default:
                return 0;
        }
}

/* Return true if devices give pictures of this format: NV12, or its kin of two bytes a sample. */
static bool is_interleaved(int format)
{
        return format == AV_PIX_FMT_NV12 || format == AV_PIX_FMT_P010LE ||
               format == AV_PIX_FMT_P016LE;
}

static const uint8_t *row_of(const AVFrame *f, unsigned plane, size_t y)
{
        return f->data[plane] + (ptrdiff_t)y * f->linesize[plane];
}

static uint8_t *put_plane(uint8_t *to, const AVFrame *f, unsigned plane, size_t row, size_t rows)
{
        for (size_t y = 0; y < rows; y++, to += row)
                memcpy(to, row_of(f, plane, y), row);
        return to;
}

/* Write one row of Cb and Cr, which alternate, to a row each. */
static void part_bytes(uint8_t *restrict cb, uint8_t *restrict cr, const uint8_t *restrict from,
                       size_t count)
{
        for (size_t x = 0; x < count; x++) {
                cb[x] = from[2 * x];
                cr[x] = from[2 * x + 1];
        }
}

/* The same of each `step`th sample of two bytes. `shift`: the unused bits below those of a sample. */
static void shift_samples(uint8_t *restrict to, const uint8_t *restrict from, size_t step,
                          size_t count, unsigned shift)
{
        for (size_t x = 0; x < count; x++, from += 2 * step) {
                unsigned sample = (from[0] | (unsigned)from[1] << 8) >> shift;
                to[2 * x] = (uint8_t)sample;
                to[2 * x + 1] = (uint8_t)(sample >> 8);
        }
}

/* Write the planes of a picture whose chroma alternates. */
static void put_interleaved(uint8_t *to, const AVFrame *f, unsigned bits, size_t width,
                            size_t height)
{
        size_t half = (width + 1) / 2, rows = (height + 1) / 2, sample = bits > 8 ? 2 : 1;
        unsigned shift = 16 - bits;
        if (sample == 1)
                to = put_plane(to, f, 0, width, height);
        for (size_t y = 0; y < height && sample == 2; y++, to += width * sample)
                shift_samples(to, row_of(f, 0, y), 1, width, shift);
        uint8_t *cr = to + half * rows * sample;
        for (size_t y = 0; y < rows; y++, to += half * sample, cr += half * sample) {
                const uint8_t *from = row_of(f, 1, y);
                if (sample == 1) {
                        part_bytes(to, cr, from, half);
                        continue;
                }
                shift_samples(to, from, 2, half, shift);
                shift_samples(cr, from + 2, 2, half, shift);
        }
}

enum codec_result picture_write(const AVFrame *f, unsigned bits, uint64_t pixels, uint8_t *to,
                                uint64_t room, struct av_reply *ret)
{
        if (f->width <= 0 || f->height <= 0)
                return CODEC_DAMAGED;
        size_t width = (size_t)f->width, height = (size_t)f->height, sample = bits > 8 ? 2 : 1;
        size_t half = (width + 1) / 2, rows = (height + 1) / 2;
        bool planes = picture_bits(f->format) != 0, interleaved = is_interleaved(f->format);
        if (width > AV_SIDE_MAX || height > AV_SIDE_MAX || width * height > pixels)
                return CODEC_TOO_LARGE;
        if (!bits || (!planes && !interleaved) || (planes && picture_bits(f->format) != bits) ||
            (interleaved && (f->format == AV_PIX_FMT_NV12) != (sample == 1)))
                return CODEC_FORMAT;
        ret->width = (uint32_t)width;
        ret->height = (uint32_t)height;
        ret->bits = bits;
        ret->size = media_picture_size(ret->width, ret->height, bits);
        if (ret->size > room)
                return CODEC_TOO_LARGE;
        if (interleaved) {
                put_interleaved(to, f, bits, width, height);
                return CODEC_OK;
        }
        to = put_plane(to, f, 0, width * sample, height);
        to = put_plane(to, f, 1, half * sample, rows);
        (void)put_plane(to, f, 2, half * sample, rows);
        return CODEC_OK;
}
