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

/* A plane of a picture: bytes of a row, and rows. */
struct extent {
        uint64_t row, rows;
};

/* Describe the plane if it lies in the memory. */
static bool describe(const AVFrame *f, unsigned plane, struct extent e, const uint8_t *memory,
                     uint64_t room, struct av_reply *ret)
{
        uintptr_t at = (uintptr_t)f->data[plane] - (uintptr_t)memory; /* huge if it lies before */
        if (f->linesize[plane] < 0 || (uint64_t)f->linesize[plane] < e.row)
                return false;
        uint64_t size = (uint64_t)f->linesize[plane] * (e.rows - 1) + e.row;
        if (size > room || at > room - size)
                return false;
        ret->planes[plane] = at;
        ret->strides[plane] = (uint32_t)f->linesize[plane];
        return true;
}

/* Copy the plane to `at` in the memory. Returns the end. */
static uint64_t copy(const AVFrame *f, unsigned plane, struct extent e, uint8_t *memory,
                     uint64_t at, struct av_reply *ret)
{
        ret->planes[plane] = at;
        ret->strides[plane] = (uint32_t)e.row;
        for (uint64_t y = 0; y < e.rows; y++, at += e.row)
                memcpy(memory + at, f->data[plane] + (ptrdiff_t)y * f->linesize[plane],
                       (size_t)e.row);
        return at;
}

enum codec_result picture_put(const AVFrame *f, unsigned bits, uint64_t pixels, uint8_t *memory,
                              uint64_t room, struct av_reply *ret)
{
        if (f->width <= 0 || f->height <= 0)
                return CODEC_DAMAGED;
        uint64_t width = (uint64_t)f->width, height = (uint64_t)f->height,
                 sample = bits > 8 ? 2 : 1;
        bool planes = picture_bits(f->format) != 0, interleaved = is_interleaved(f->format);
        if (width > AV_SIDE_MAX || height > AV_SIDE_MAX || width * height > pixels)
                return CODEC_TOO_LARGE;
        if (!bits || (!planes && !interleaved) || (planes && picture_bits(f->format) != bits) ||
            (interleaved && (f->format == AV_PIX_FMT_NV12) != (sample == 1)))
                return CODEC_FORMAT;
        ret->width = (uint32_t)width;
        ret->height = (uint32_t)height;
        ret->bits = bits;
        ret->shift = interleaved && sample == 2 ? 16 - bits : 0;
        ret->flags |= interleaved ? AV_INTERLEAVED : 0;
        ret->size = media_picture_size(ret->width, ret->height, bits);
        const struct extent chroma = { (width + 1) / 2 * sample * (interleaved ? 2 : 1),
                                       (height + 1) / 2 };
        const struct extent extents[] = { { width * sample, height }, chroma, chroma };
        unsigned count = interleaved ? 2 : 3, there = 0;
        while (there < count && describe(f, there, extents[there], memory, room, ret))
                there++;
        uint64_t at = room - av_decoded_max(pixels);
        for (unsigned i = 0; i < count && there < count; i++)
                at = copy(f, i, extents[i], memory, at, ret);
        return CODEC_OK;
}
