#include "backend/media/av_message.h"

#include <stddef.h>
#include <string.h>

#include "backend/media/kernels.h"

_Static_assert(sizeof(struct av_request) == offsetof(struct av_request, reserved) + 4 &&
                       sizeof(struct av_reply) == offsetof(struct av_reply, reserved) + 4,
               "neither has padding");

static enum codec_result check_encoder(const struct av_request *r)
{
        if (r->codec >= AV_ENCODERS || r->pixels >= AV_PIXELS || !r->rate ||
            r->rate > AV_RATE_MAX || r->kbits > AV_KBITS_MAX || r->quality > AV_QUALITY_MAX)
                return CODEC_DAMAGED;
        if (!r->width || !r->height)
                return CODEC_DAMAGED;
        if (r->width > AV_SIDE_MAX || r->height > AV_SIDE_MAX ||
            (uint64_t)r->width * r->height > r->limit_pixels)
                return CODEC_TOO_LARGE;
        return r->in_room < av_picture_size(r->width, r->height, (enum av_pixels)r->pixels)
                       ? CODEC_DAMAGED
                       : CODEC_OK;
}

static enum codec_result check_sink(const struct av_request *r)
{
        bool raw = r->codec == AV_RAW;
        if ((!raw && (!r->codec || r->codec > MEDIA_CODECS_MAX)) || r->rate > AV_RATE_MAX)
                return CODEC_DAMAGED;
        if (raw && (!r->width || !r->height))
                return CODEC_DAMAGED;
        if (r->width > AV_SIDE_MAX || r->height > AV_SIDE_MAX ||
            (uint64_t)r->width * r->height > r->limit_pixels)
                return CODEC_TOO_LARGE;
        return raw && r->in_room < av_picture_size(r->width, r->height, AV_I420) ? CODEC_DAMAGED
                                                                                 : CODEC_OK;
}

static enum codec_result check_open(const struct av_request *r)
{
        if (!r->threads || r->threads > AV_THREADS_MAX || !r->limit_pixels ||
            r->limit_pixels > AV_PIXELS_MAX)
                return CODEC_DAMAGED;
        if (!r->in_room || r->in_room > av_packet_max(AV_PIXELS_MAX) || !r->out_room ||
            r->out_room > av_decoder_room(AV_PIXELS_MAX))
                return CODEC_DAMAGED;
        if ((r->kind == AV_SOURCE || r->kind == AV_SINK) &&
            (!memchr(r->name, 0, sizeof(r->name)) || !*r->name))
                return CODEC_DAMAGED;
        if (r->kind == AV_SOURCE)
                return CODEC_OK;
        if (r->kind == AV_SINK)
                return check_sink(r);
        if (r->kind == AV_ENCODER)
                return check_encoder(r);
        return r->codec < AV_DECODER_KINDS && r->out_room >= av_decoded_max(r->limit_pixels)
                       ? CODEC_OK
                       : CODEC_DAMAGED;
}

enum codec_result av_request_check(const struct av_request *r, bool open)
{
        switch (r->kind) {
        case AV_HELLO:
                return CODEC_OK;
        case AV_ENCODER:
        case AV_DECODER:
        case AV_SOURCE:
        case AV_SINK:
                return open ? CODEC_DAMAGED : check_open(r);
        case AV_FEED:
        case AV_NEXT:
        case AV_FLUSH:
        case AV_RESET:
                return open ? CODEC_OK : CODEC_DAMAGED;
        default:
                return CODEC_DAMAGED;
        }
}

/* Does the plane lie in `room` bytes? Width and height are at most AV_SIDE_MAX, so no product overflows. */
static bool has_plane(const struct av_reply *r, unsigned plane, uint64_t room)
{
        bool pairs = r->flags & AV_INTERLEAVED;
        uint64_t width = r->width, rows = r->height;
        if (plane) {
                width = (width + 1) / 2 * (pairs ? 2 : 1);
                rows = (rows + 1) / 2;
        }
        uint64_t row = width * (r->bits > 8 ? 2 : 1), stride = r->strides[plane];
        uint64_t size = (rows - 1) * stride + row;
        return stride >= row && size <= room && r->planes[plane] <= room - size;
}

static bool has_picture(const struct av_reply *r, uint64_t pixels, uint64_t room)
{
        if (!r->width || !r->height || r->width > AV_SIDE_MAX || r->height > AV_SIDE_MAX ||
            (uint64_t)r->width * r->height > pixels || r->bits < 8 || r->bits > 16)
                return false;
        if (r->shift > (r->bits > 8 ? 16 - r->bits : 0))
                return false;
        return r->size == media_picture_size(r->width, r->height, r->bits) &&
               has_plane(r, 0, room) && has_plane(r, 1, room) &&
               (r->flags & AV_INTERLEAVED || has_plane(r, 2, room));
}

enum codec_result av_reply_check(const struct av_reply *r, enum av_kind kind,
                                 const struct av_request *open)
{
        if (kind != AV_NEXT || r->result != CODEC_OK)
                return r->size ? CODEC_LOST : CODEC_OK;
        if (!r->size || r->size > open->out_room)
                return CODEC_LOST;
        if (open->kind != AV_DECODER)
                return CODEC_OK;
        return has_picture(r, open->limit_pixels, open->out_room) ? CODEC_OK : CODEC_LOST;
}

struct codec_picture av_reply_picture(const struct av_reply *r, const uint8_t *out)
{
        struct codec_picture p = { .width = r->width,
                                   .height = r->height,
                                   .bits = r->bits,
                                   .shift = r->shift,
                                   .interleaved = r->flags & AV_INTERLEAVED };
        for (unsigned i = 0; i < (p.interleaved ? 2 : 3); i++) {
                p.planes[i] = out + r->planes[i];
                p.strides[i] = r->strides[i];
        }
        return p;
}
