/* The kernels org.spancl.encode.*. Each stream has a process of its own (av_process.h). */
#include <string.h>

#include "backend/media/av_process.h"
#include "backend/media/stream.h"
#include "base/mem.h"

enum {
        PICTURE,
        PACKET,
        PACKET_SIZE,
        STATUS,
        STREAM,
        WIDTH,
        HEIGHT,
        FORMAT,
        RATE,
        KBITS,
        QUALITY,
        FLAGS
};

enum { KNOWN_FLAGS = MEDIA_RESET | MEDIA_FLUSH | MEDIA_KEY };

struct encoder {
        struct media_stream common;
        bool open, flushed;
        bool held; /* the packet of `reply` did not fit into a buffer */
        struct av_process process;
        struct av_reply reply;
        uint32_t packets;
};

static void encoder_end(struct encoder *e)
{
        if (e->open) {
                av_process_end(&e->process);
                media_stream_uncount(e->common.media);
        }
        e->open = e->flushed = e->held = false;
        e->packets = 0;
}

static void encoder_free(void *data)
{
        struct encoder *e = data;
        encoder_end(e);
        media_detach(&e->common);
}

/* The request that opens the encoder of these arguments. CL_INVALID_VALUE, CL_INVALID_IMAGE_SIZE. */
static cl_int make_request(const struct registry_launch *l, const struct media *media,
                           unsigned which, struct av_request *ret)
{
        const struct codec_limits *limits = &media->settings.limits;
        uint32_t rate = media_value(l, RATE);
        *ret = (struct av_request){
                .kind = AV_ENCODER,
                .codec = which,
                .width = media_value(l, WIDTH),
                .height = media_value(l, HEIGHT),
                .pixels = media_value(l, FORMAT),
                .rate = rate ? rate : MEDIA_RATE,
                .kbits = media_value(l, KBITS),
                .quality = media_value(l, QUALITY),
                .threads = limits->threads,
                .limit_pixels = (uint32_t)limits->pixels,
        };
        if (ret->pixels > MEDIA_RGBA || (which == AV_ENCODE_MJPEG && ret->kbits))
                return CL_INVALID_VALUE;
        if (ret->width > AV_SIDE_MAX || ret->height > AV_SIDE_MAX)
                return CL_INVALID_IMAGE_SIZE;
        uint64_t pixels = (uint64_t)ret->width * ret->height;
        ret->in_room = av_picture_size(ret->width, ret->height, (enum av_pixels)ret->pixels);
        ret->out_room = av_packet_max(pixels);
        return media_status(av_request_check(ret, false));
}

static cl_int encoder_begin(struct encoder *e, const struct av_request *r)
{
        struct media *media = e->common.media;
        if (!media_stream_count(media))
                return CL_OUT_OF_RESOURCES;
        enum codec_result result = av_process_start(media->av, r, &e->process);
        e->open = result == CODEC_OK;
        if (!e->open)
                media_stream_uncount(media);
        return media_status(result);
}

/* Make a request whose answer has no bytes: `reply` is that of a packet that may be held. */
static cl_int encoder_call(struct encoder *e, enum av_kind kind, uint64_t size, uint32_t flags)
{
        const struct av_request r = { .kind = kind, .size = size, .flags = flags };
        struct av_reply unused;
        return media_status(av_process_call(&e->process, &r, &unused));
}

/* Encode the picture, which has the size that the request of the stream says. */
static cl_int encoder_feed(struct encoder *e, const struct av_request *r,
                           const struct registry_value *picture, bool key)
{
        cl_int status = CL_SUCCESS;
        if (picture->size < r->in_room)
                return CL_INVALID_BUFFER_SIZE;
        if (e->open && e->flushed)
                encoder_end(e);
        if (!e->open)
                status = encoder_begin(e, r);
        else if (memcmp(&e->process.open, r, sizeof(*r)) != 0)
                status = CL_INVALID_VALUE;
        if (status < 0)
                return status;
        e->held = false;
        memcpy(av_process_in(&e->process), picture->data, (size_t)r->in_room);
        return encoder_call(e, AV_FEED, r->in_room, key ? AV_KEY : 0);
}

/* Deliver the next packet, if there is one. */
static cl_int encoder_deliver(struct encoder *e, const struct registry_value *out,
                              uint32_t words[MEDIA_STATUS_WORDS_MAX], uint64_t *ret_size)
{
        if (!e->held) {
                const struct av_request next = { .kind = AV_NEXT };
                enum codec_result r =
                        e->open ? av_process_call(&e->process, &next, &e->reply) : CODEC_NONE;
                if (r != CODEC_OK) {
                        words[MEDIA_RESULT] = e->flushed ? MEDIA_END : MEDIA_AGAIN;
                        return media_status(r);
                }
        }
        uint64_t size = e->reply.size;
        words[MEDIA_IS_KEY] = e->reply.flags & AV_KEY ? 1 : 0;
        words[MEDIA_BYTES] = (uint32_t)size;
        e->held = !out->data || out->size < size;
        if (e->held)
                return CL_INVALID_BUFFER_SIZE;
        memcpy(out->data, av_process_out(&e->process), (size_t)size);
        e->packets++;
        words[MEDIA_RESULT] = MEDIA_PICTURE;
        *ret_size = size;
        return CL_SUCCESS;
}

static cl_int run_stream(const struct registry_launch *l, struct media_stream *stream,
                         unsigned which, uint32_t words[MEDIA_STATUS_WORDS_MAX], uint64_t *ret_size)
{
        struct encoder *e = container_of(stream, struct encoder, common);
        const struct registry_value *picture = &l->args[PICTURE];
        uint32_t flags = media_value(l, FLAGS);
        struct av_request r;
        if (flags & ~(uint32_t)KNOWN_FLAGS)
                return CL_INVALID_VALUE;
        cl_int status = make_request(l, e->common.media, which, &r);
        if (status < 0)
                return status;
        words[MEDIA_WIDTH] = r.width;
        words[MEDIA_HEIGHT] = r.height;
        words[MEDIA_FORMAT] = r.pixels;
        if (flags & MEDIA_RESET)
                encoder_end(e);
        if (picture->data)
                status = encoder_feed(e, &r, picture, flags & MEDIA_KEY);
        if (status == CL_SUCCESS && flags & MEDIA_FLUSH && !e->flushed) {
                e->flushed = true;
                if (e->open)
                        status = encoder_call(e, AV_FLUSH, 0, 0);
        }
        if (status == CL_SUCCESS)
                status = encoder_deliver(e, &l->args[PACKET], words, ret_size);
        words[MEDIA_PICTURES] = e->packets;
        if (e->open && e->process.socket < 0)
                encoder_end(e); /* the next picture begins a stream in a new process */
        return status;
}

static const struct media_kind encoders = {
        .size = sizeof(struct encoder),
        .status = STATUS,
        .bytes = PACKET_SIZE,
        .stream = STREAM,
        .free = encoder_free,
        .run = run_stream,
};

static cl_int encode_mjpeg(const struct registry_launch *l)
{
        return media_command(l, &encoders, AV_ENCODE_MJPEG);
}

static cl_int encode_h264(const struct registry_launch *l)
{
        return media_command(l, &encoders, AV_ENCODE_H264);
}

static cl_int encode_hevc(const struct registry_launch *l)
{
        return media_command(l, &encoders, AV_ENCODE_HEVC);
}

#define ENCODER(codec)                                                                          \
        {                                                                                       \
                .name = "org.spancl.encode." #codec,                                            \
                .doc = "Encode a picture, and deliver the next packet.", .run = encode_##codec, \
                .args = {                                                                       \
                        [PICTURE] = { "picture", "uchar*", 1, true, REGISTRY_IN },              \
                        [PACKET] = { "packet", "uchar*", 1, true, REGISTRY_OUT },               \
                        [PACKET_SIZE] = { "packet_size", "ulong*", 8, true, REGISTRY_OUT },     \
                        [STATUS] = { "status", "uint*", 4, true, REGISTRY_OUT },                \
                        [STREAM] = { "stream", "uchar*", 1, true, REGISTRY_INOUT },             \
                        [WIDTH] = { "width", "uint", 4, false, REGISTRY_IN },                   \
                        [HEIGHT] = { "height", "uint", 4, false, REGISTRY_IN },                 \
                        [FORMAT] = { "format", "uint", 4, false, REGISTRY_IN },                 \
                        [RATE] = { "rate", "uint", 4, false, REGISTRY_IN },                     \
                        [KBITS] = { "kbits", "uint", 4, false, REGISTRY_IN },                   \
                        [QUALITY] = { "quality", "uint", 4, false, REGISTRY_IN },               \
                        [FLAGS] = { "flags", "uint", 4, false, REGISTRY_IN },                   \
                },                                                                              \
        }

const struct registry_kernel *media_encode_kernel(size_t i)
{
        static const struct registry_kernel kernels[MEDIA_ENCODERS_MAX] = {
                [AV_ENCODE_MJPEG] = ENCODER(mjpeg),
                [AV_ENCODE_H264] = ENCODER(h264),
                [AV_ENCODE_HEVC] = ENCODER(hevc),
        };
        return i < MEDIA_ENCODERS_MAX ? &kernels[i] : NULL;
}
