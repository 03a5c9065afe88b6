/* Decoders: packets to pictures. */
#include "av/stream.h"

#include <libavcodec/avcodec.h>
#include <libavutil/log.h>
#include <libavutil/pixdesc.h>

#include "av/hardware.h"
#include "av/picture.h"
#include "av/pool.h"
#include "base/mem.h"
#include "media/nal.h"

enum { WAITING_MAX = 16, BITS_MAX = 16 };

static const enum AVCodecID ids[AV_DECODER_KINDS] = {
        [AV_DECODE_H264] = AV_CODEC_ID_H264,        [AV_DECODE_HEVC] = AV_CODEC_ID_HEVC,
        [AV_DECODE_MPEG2] = AV_CODEC_ID_MPEG2VIDEO, [AV_DECODE_MPEG4] = AV_CODEC_ID_MPEG4,
        [AV_DECODE_VP8] = AV_CODEC_ID_VP8,          [AV_DECODE_VP9] = AV_CODEC_ID_VP9,
        [AV_DECODE_MJPEG] = AV_CODEC_ID_MJPEG,
};

struct decoder {
        struct av_stream stream;
        enum av_decoder which;
        uint64_t pixels; /* limit of a picture */
        int threads;
        bool taken; /* a packet of this stream was decoded */
        AVCodecContext *context;
        AVPacket *packet;
        struct pool pool;              /* of pictures, in the memory that the session reads */
        AVFrame *shown;                /* the session reads it until its next request */
        AVFrame *waiting[WAITING_MAX]; /* in the order of output */
        unsigned count;
};

uint32_t av_decoders(void)
{
        uint32_t found = 0;
        av_log_set_level(AV_LOG_QUIET);
        for (unsigned i = 0; i < AV_DECODER_KINDS; i++)
                if (avcodec_find_decoder(ids[i]))
                        found |= 1u << (AV_DECODERS + i);
        return found;
}

static enum codec_result result_of(int error)
{
        if (error >= 0)
                return CODEC_OK;
        if (error == AVERROR(ENOMEM))
                return CODEC_NO_MEMORY;
        if (error == AVERROR(EINVAL)) /* max_pixels */
                return CODEC_TOO_LARGE;
        return error == AVERROR_PATCHWELCOME || error == AVERROR(ENOSYS) ? CODEC_FORMAT
                                                                         : CODEC_DAMAGED;
}

/* Take pictures until the decoder wants a packet. */
static enum codec_result take_all(struct decoder *d)
{
        for (;;) {
                if (d->count == WAITING_MAX)
                        return CODEC_NO_MEMORY;
                AVFrame *f = av_frame_alloc();
                if (!f)
                        return CODEC_NO_MEMORY;
                int r = avcodec_receive_frame(d->context, f);
                if (r >= 0) /* at once, because a device has few places for pictures */
                        r = hardware_fetch(d->context, &d->pool, f);
                if (r < 0) {
                        av_frame_free(&f);
                        return r == AVERROR(EAGAIN) || r == AVERROR_EOF ? CODEC_OK : result_of(r);
                }
                d->waiting[d->count++] = f;
        }
}

static enum codec_result open_context(struct decoder *d, bool on_device, AVCodecContext **ret)
{
        const AVCodec *codec = avcodec_find_decoder(ids[d->which]);
        AVCodecContext *c = codec ? avcodec_alloc_context3(codec) : NULL;
        if (!c)
                return codec ? CODEC_NO_MEMORY : CODEC_FORMAT;
        c->opaque = &d->pool;
        c->get_buffer2 = pool_get_buffer;
        c->max_pixels = (int64_t)d->pixels;
        c->thread_count = d->threads;
        c->thread_type = FF_THREAD_SLICE;    /* threads for frames would delay pictures */
        c->flags |= AV_CODEC_FLAG_UNALIGNED; /* the left edge is cut exactly */
        if (on_device)
                hardware_use(c);
        if (avcodec_open2(c, codec, NULL) < 0) {
                avcodec_free_context(&c);
                return CODEC_NO_MEMORY;
        }
        *ret = c;
        return CODEC_OK;
}

/* The bits of a sample of the stream; 0: it is of a format that this device lacks. */
static unsigned bits_of(const AVCodecContext *c)
{
        /* A device has a format of its own. */
        bool there = c->pix_fmt != AV_PIX_FMT_NONE &&
                     av_pix_fmt_desc_get(c->pix_fmt)->flags & AV_PIX_FMT_FLAG_HWACCEL;
        return picture_bits(there ? c->sw_pix_fmt : c->pix_fmt);
}

/* Tell large pictures from damage, which libavcodec does not for these codecs. */
static bool is_too_large(const struct decoder *d, const uint8_t *data, size_t size)
{
        const struct codec_limits limits = { .pixels = d->pixels };
        struct nal n;
        bool found = false;
        if (d->which != AV_DECODE_H264 && d->which != AV_DECODE_HEVC)
                return false;
        while (!found && nal_next(&data, &size, &n))
                found = (d->which == AV_DECODE_H264
                                 ? nal_check_h264(&n, &limits, BITS_MAX)
                                 : nal_check_hevc(&n, &limits, BITS_MAX)) == CODEC_TOO_LARGE;
        return found;
}

/* Have the packet decoded. */
static enum codec_result decode(struct decoder *d)
{
        enum codec_result result = result_of(avcodec_send_packet(d->context, d->packet));
        return result == CODEC_OK ? take_all(d) : result;
}

/* Decode the first packet once more, on the processor. A device may take a stream, and then decode nothing of it: NVDEC
 * does so with MPEG-4. A packet that is damaged changes nothing. */
static enum codec_result leave_device(struct decoder *d)
{
        AVCodecContext *before = d->context;
        if (open_context(d, false, &d->context) != CODEC_OK)
                return CODEC_DAMAGED;
        if (decode(d) != CODEC_OK) {
                avcodec_free_context(&d->context);
                d->context = before;
                return CODEC_DAMAGED;
        }
        hardware_left(d->context);
        avcodec_free_context(&before);
        return CODEC_OK;
}

/* Decode a copy of the packet: the other process can change its bytes, and the library reads beyond them. */
static enum codec_result feed(struct av_stream *s, const struct av_request *r, const uint8_t *data)
{
        struct decoder *d = container_of(s, struct decoder, stream);
        av_frame_free(&d->shown);
        if (r->size > INT32_MAX - AV_INPUT_BUFFER_PADDING_SIZE)
                return CODEC_DAMAGED;
        if (av_new_packet(d->packet, (int)r->size) < 0)
                return CODEC_NO_MEMORY;
        memcpy(d->packet->data, data, (size_t)r->size);
        enum codec_result result =
                is_too_large(d, d->packet->data, (size_t)r->size) ? CODEC_TOO_LARGE : take_all(d);
        if (result == CODEC_OK)
                result = decode(d);
        if (result == CODEC_DAMAGED && d->context->hw_device_ctx && !d->taken)
                result = leave_device(d);
        d->taken |= result == CODEC_OK;
        av_packet_unref(d->packet);
        /* The first packet tells, though its picture may come later. */
        bool known = d->context->pix_fmt != AV_PIX_FMT_NONE;
        return result == CODEC_OK && known && !bits_of(d->context) ? CODEC_FORMAT : result;
}

static enum codec_result put(struct decoder *d, const AVFrame *f, uint8_t *to, uint64_t room,
                             struct av_reply *ret)
{
        if (f->decode_error_flags || f->flags & AV_FRAME_FLAG_CORRUPT)
                return CODEC_DAMAGED;
        /* A device's formats: the stream may have got another one meanwhile. */
        unsigned bits = f->format == AV_PIX_FMT_NV12     ? 8
                        : f->format == AV_PIX_FMT_P010LE ? 10
                                                         : picture_bits(f->format);
        return picture_put(f, bits ? bits : bits_of(d->context), d->pixels, to, room, ret);
}

static enum codec_result next(struct av_stream *s, uint8_t *to, uint64_t room, struct av_reply *ret)
{
        struct decoder *d = container_of(s, struct decoder, stream);
        av_frame_free(&d->shown);
        if (!d->count)
                return CODEC_NONE;
        d->shown = d->waiting[0];
        d->count--;
        memmove(d->waiting, d->waiting + 1, d->count * sizeof(d->waiting[0]));
        return put(d, d->shown, to, room, ret);
}

static enum codec_result flush(struct av_stream *s)
{
        struct decoder *d = container_of(s, struct decoder, stream);
        av_frame_free(&d->shown);
        int r = avcodec_send_packet(d->context, NULL);
        return r < 0 && r != AVERROR_EOF ? result_of(r) : take_all(d);
}

static enum codec_result reset(struct av_stream *s)
{
        struct decoder *d = container_of(s, struct decoder, stream);
        av_frame_free(&d->shown);
        while (d->count)
                av_frame_free(&d->waiting[--d->count]);
        /* avcodec_flush_buffers would keep what the context has learned about the encoder. */
        AVCodecContext *c;
        enum codec_result r = open_context(d, true, &c);
        if (r != CODEC_OK)
                return r;
        avcodec_free_context(&d->context);
        d->context = c;
        d->taken = false;
        return CODEC_OK;
}

enum codec_result av_decoder_open(const struct av_request *r, uint8_t *out, struct av_stream **ret)
{
        static const struct av_stream_ops ops = { feed, next, flush, reset };
        struct decoder *d = mem_zalloc(sizeof(*d));
        if (!d)
                return CODEC_NO_MEMORY;
        d->stream.ops = &ops;
        d->which = (enum av_decoder)r->codec;
        d->pixels = r->limit_pixels;
        d->threads = (int)r->threads;
        pool_init(&d->pool, out, r->out_room - av_decoded_max(d->pixels));
        d->packet = av_packet_alloc();
        enum codec_result result = d->packet ? open_context(d, true, &d->context) : CODEC_NO_MEMORY;
        /* The process ends with its first stream, so libavcodec's parts stay. */
        if (result < 0)
                mem_free(d);
        else
                *ret = &d->stream;
        return result;
}
