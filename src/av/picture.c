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

/* Write each `step`th sample of a plane from the one `first` on. `shift`: unused bits below those of a sample of two
 * bytes; -1: samples have one byte. */
static uint8_t *put_samples(uint8_t *to, const AVFrame *f, unsigned plane, size_t first,
                            size_t step, size_t count, size_t rows, int shift)
{
        for (size_t y = 0; y < rows; y++) {
                const uint8_t *from = row_of(f, plane, y);
                for (size_t x = 0, at = first; x < count; x++, at += step) {
                        if (shift < 0) {
                                *to++ = from[at];
                                continue;
                        }
                        unsigned sample = (from[2 * at] | (unsigned)from[2 * at + 1] << 8) >> shift;
                        *to++ = (uint8_t)sample;
                        *to++ = (uint8_t)(sample >> 8);
                }
        }
        return to;
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
                int shift = sample == 1 ? -1 : 16 - (int)bits;
                to = put_samples(to, f, 0, 0, 1, width, height, shift);
                to = put_samples(to, f, 1, 0, 2, half, rows, shift);
                (void)put_samples(to, f, 1, 1, 2, half, rows, shift);
                return CODEC_OK;
        }
        to = put_plane(to, f, 0, width * sample, height);
        to = put_plane(to, f, 1, half * sample, rows);
        (void)put_plane(to, f, 2, half * sample, rows);
        return CODEC_OK;
}
