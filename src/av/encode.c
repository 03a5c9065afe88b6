/* Encoders: pictures to packets, each at once. */
#include "av/stream.h"

#include <libavcodec/avcodec.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>

#include "base/mem.h"

enum {
        KEY_S = 2, /* at least so often comes a key frame */
        DEFAULT_QUALITY = 60,
        CRF_WORST = 50, /* of x264 and x265, at quality 0; */
        CRF_RANGE =
                40, /* the best one is that much less: lossless streams are of profiles of their own */
        SCALE_WORST = 31, /* of MJPEG */
        SCALE_RANGE = 29,
};

static const struct {
        const char *names[2]; /* of encoders, the preferred one first */
        enum AVPixelFormat pixels;
} encoders[AV_ENCODERS] = {
        [AV_ENCODE_MJPEG] = { { "mjpeg" }, AV_PIX_FMT_YUVJ420P },
        [AV_ENCODE_H264] = { { "libx264", "libopenh264" }, AV_PIX_FMT_YUV420P },
        [AV_ENCODE_HEVC] = { { "libx265" }, AV_PIX_FMT_YUV420P },
};

static const enum AVPixelFormat formats[AV_PIXELS] = {
        [AV_I420] = AV_PIX_FMT_YUV420P,
        [AV_NV12] = AV_PIX_FMT_NV12,
        [AV_RGBA] = AV_PIX_FMT_RGBA,
};

struct encoder {
        struct av_stream stream;
        struct av_request open;
        AVCodecContext *context;
        struct SwsContext *scaler;
        AVFrame *frame;
        AVPacket *packet;
        bool flushed;
};

static const AVCodec *find(unsigned which)
{
        const AVCodec *c = NULL;
        for (size_t i = 0; i < array_size(encoders[which].names) && !c; i++)
                if (encoders[which].names[i])
                        c = avcodec_find_encoder_by_name(encoders[which].names[i]);
        return c;
}

uint32_t av_encoders(void)
{
        uint32_t found = 0;
        av_log_set_level(AV_LOG_QUIET);
        for (unsigned i = 0; i < AV_ENCODERS; i++)
                if (find(i))
                        found |= 1u << i;
        return found;
}

static enum codec_result result_of(int error)
{
        if (error >= 0)
                return CODEC_OK;
        if (error == AVERROR(EAGAIN) || error == AVERROR_EOF)
                return CODEC_NONE;
        return error == AVERROR(ENOMEM) ? CODEC_NO_MEMORY : CODEC_FORMAT;
}

/* Convert the picture, and encode it. */
static enum codec_result encode(struct encoder *e, bool key, const uint8_t *data)
{
        const struct av_request *o = &e->open;
        size_t width = o->width, half = (width + 1) / 2, luma = width * o->height;
        size_t chroma = half * (((size_t)o->height + 1) / 2);
        const uint8_t *planes[4] = { data, data + luma, data + luma + chroma };
        int strides[4] = { (int)width, (int)half, (int)half };
        if (o->pixels == AV_NV12)
                strides[1] = (int)(2 * half);
        else if (o->pixels == AV_RGBA)
                strides[0] = (int)(4 * width);
        int r = av_frame_make_writable(e->frame);
        if (r < 0)
                return result_of(r);
        (void)sws_scale(e->scaler, planes, strides, 0, (int)o->height, e->frame->data,
                        e->frame->linesize);
        e->frame->pts++;
        e->frame->pict_type = key ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
        return result_of(avcodec_send_frame(e->context, e->frame));
}

static enum codec_result feed(struct av_stream *s, const struct av_request *r, const uint8_t *data)
{
        struct encoder *e = container_of(s, struct encoder, stream);
        if (e->flushed || r->size != av_picture_size(e->open.width, e->open.height,
                                                     (enum av_pixels)e->open.pixels))
                return CODEC_DAMAGED;
        enum codec_result result = encode(e, r->flags & AV_KEY, data);
        return result == CODEC_NONE ? CODEC_NO_MEMORY : result; /* packets wait */
}

static enum codec_result next(struct av_stream *s, uint8_t *to, uint64_t room, struct av_reply *ret)
{
        struct encoder *e = container_of(s, struct encoder, stream);
        enum codec_result r = result_of(avcodec_receive_packet(e->context, e->packet));
        if (r != CODEC_OK)
                return r;
        ret->size = (uint64_t)e->packet->size;
        ret->flags = e->packet->flags & AV_PKT_FLAG_KEY ? AV_KEY : 0;
        r = !ret->size || ret->size > room ? CODEC_TOO_LARGE : CODEC_OK;
        if (r == CODEC_OK)
                memcpy(to, e->packet->data, (size_t)ret->size);
        av_packet_unref(e->packet);
        return r;
}

static enum codec_result flush(struct av_stream *s)
{
        struct encoder *e = container_of(s, struct encoder, stream);
        e->flushed = true;
        return result_of(avcodec_send_frame(e->context, NULL)) < 0 ? CODEC_DAMAGED : CODEC_OK;
}

static enum codec_result reset(struct av_stream *s)
{
        (void)s;
        return CODEC_DAMAGED;
}

static void set_up(AVCodecContext *c, const struct av_request *r)
{
        unsigned quality = r->quality ? r->quality : DEFAULT_QUALITY;
        c->width = (int)r->width;
        c->height = (int)r->height;
        c->time_base = (AVRational){ 1, (int)r->rate };
        c->framerate = (AVRational){ (int)r->rate, 1 };
        c->pix_fmt = encoders[r->codec].pixels;
        c->gop_size = (int)(KEY_S * r->rate);
        c->max_b_frames = 0;
        c->thread_count = (int)r->threads;
        c->thread_type = FF_THREAD_SLICE;
        if (r->codec == AV_ENCODE_MJPEG) {
                c->color_range = AVCOL_RANGE_JPEG;
                c->flags |= AV_CODEC_FLAG_QSCALE;
                c->global_quality =
                        (int)(SCALE_WORST - quality * SCALE_RANGE / AV_QUALITY_MAX) * FF_QP2LAMBDA;
                return;
        }
        c->color_range = AVCOL_RANGE_MPEG;
        if (r->kbits) {
                c->bit_rate = c->rc_max_rate = (int64_t)r->kbits * 1000;
                c->rc_buffer_size =
                        (int)(c->bit_rate / 2 < INT32_MAX ? c->bit_rate / 2 : INT32_MAX);
        }
}

/* Options that only some encoders have. */
static void set_options(AVDictionary **options, const struct av_request *r)
{
        char text[64];
        unsigned quality = r->quality ? r->quality : DEFAULT_QUALITY;
        av_dict_set(options, "preset", r->codec == AV_ENCODE_HEVC ? "ultrafast" : "veryfast", 0);
        av_dict_set(options, "tune", "zerolatency", 0);
        av_dict_set(options, "forced-idr", "1", 0);
        if (!r->kbits)
                av_dict_set_int(options, "crf",
                                CRF_WORST - (int)(quality * CRF_RANGE / AV_QUALITY_MAX), 0);
        snprintf(text, sizeof(text), "log-level=none:pools=%u:frame-threads=1", r->threads);
        if (r->codec == AV_ENCODE_HEVC)
                av_dict_set(options, "x265-params", text, 0);
}

static enum codec_result open_codec(struct encoder *e, const AVCodec *codec)
{
        const struct av_request *r = &e->open;
        e->context = avcodec_alloc_context3(codec);
        e->packet = av_packet_alloc();
        e->frame = av_frame_alloc();
        if (!e->context || !e->packet || !e->frame)
                return CODEC_NO_MEMORY;
        AVDictionary *options = NULL;
        set_up(e->context, r);
        if (r->codec != AV_ENCODE_MJPEG)
                set_options(&options, r);
        int error = avcodec_open2(e->context, codec, &options);
        av_dict_free(&options);
        if (error < 0)
                return error == AVERROR(ENOMEM) ? CODEC_NO_MEMORY : CODEC_FORMAT;
        e->frame->format = e->context->pix_fmt;
        e->frame->width = (int)r->width;
        e->frame->height = (int)r->height;
        e->frame->color_range = e->context->color_range;
        e->frame->quality = e->context->global_quality;
        e->frame->pts = -1;
        if (av_frame_get_buffer(e->frame, 0) < 0)
                return CODEC_NO_MEMORY;
        e->scaler = sws_getContext((int)r->width, (int)r->height, formats[r->pixels], (int)r->width,
                                   (int)r->height, e->context->pix_fmt,
                                   SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP, NULL, NULL,
                                   NULL);
        return e->scaler ? CODEC_OK : CODEC_FORMAT;
}

enum codec_result av_encoder_open(const struct av_request *r, struct av_stream **ret)
{
        static const struct av_stream_ops ops = { feed, next, flush, reset };
        const AVCodec *codec = find(r->codec);
        struct encoder *e = codec ? mem_zalloc(sizeof(*e)) : NULL;
        if (!e)
                return codec ? CODEC_NO_MEMORY : CODEC_FORMAT;
        e->stream.ops = &ops;
        e->open = *r;
        enum codec_result result = open_codec(e, codec);
        if (result < 0)
                mem_free(
                        e); /* the process ends with its first stream, so libavcodec's parts stay */
        else
                *ret = &e->stream;
        return result;
}
