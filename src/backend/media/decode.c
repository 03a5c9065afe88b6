/* The kernels org.spancl.decode.*. A stream is what they attach to the client's stream buffer. */
#include <string.h>

#include "backend/media/av_codec.h"
#include "backend/media/picture.h"
#include "backend/media/stream.h"
#include "base/mem.h"

enum { PACKET, PACKET_SIZE, PICTURE, PICTURE_SIZE, STATUS, STREAM, FORMAT, FLAGS };

enum { KNOWN_FLAGS = MEDIA_RESET | MEDIA_FLUSH | MEDIA_OTHER };

/* A kernel's decoders: that of the module with the kernel's name, and that of libavcodec. */
static const struct {
        const char *name;
        bool has_av; /* Debian's libavcodec decodes AV1 by libdav1d, as the module does */
        enum av_decoder av;
} codecs[MEDIA_CODECS_MAX] = {
        [MEDIA_H264] = { "h264", true, AV_DECODE_H264 },
        [MEDIA_HEVC] = { "hevc", true, AV_DECODE_HEVC },
        [MEDIA_AV1] = { "av1", false, 0 },
        [MEDIA_MPEG2] = { "mpeg2", true, AV_DECODE_MPEG2 },
        [MEDIA_MPEG4] = { "mpeg4", true, AV_DECODE_MPEG4 },
        [MEDIA_VP8] = { "vp8", true, AV_DECODE_VP8 },
        [MEDIA_VP9] = { "vp9", true, AV_DECODE_VP9 },
        [MEDIA_MJPEG] = { "mjpeg", true, AV_DECODE_MJPEG },
};

/* Commands of one stream run one after the other. */
struct stream {
        struct media_stream common;
        unsigned which;                /* kernel */
        const struct codec *codec;     /* that of `decoder` */
        struct codec_decoder *decoder; /* NULL: not needed yet, or not any more */
        bool fresh;                    /* it has had no packet */
        bool flushed;
        bool flush_due; /* the decoder does not know yet: a call could end the held picture */
        bool held;      /* `picture` did not fit into a buffer */
        struct codec_picture picture;
        uint32_t pictures;
};

/* ---- streams -------------------------------------------------------------------------------- */

static void stream_end(struct stream *s)
{
        if (s->decoder) {
                s->codec->close(s->decoder);
                media_stream_uncount(s->common.media);
        }
        s->decoder = NULL;
        s->flushed = s->flush_due = s->held = false;
        s->pictures = 0;
}

static void stream_free(void *data)
{
        struct stream *s = data;
        stream_end(s);
        media_detach(&s->common);
}

static bool has_av(const struct media *media, unsigned which)
{
        return media->av && codecs[which].has_av &&
               media->av_codecs & 1u << (AV_DECODERS + codecs[which].av);
}

/* Open a decoder of the module, or of libavcodec (`av`). */
static cl_int stream_begin(struct stream *s, bool av)
{
        struct media *media = s->common.media;
        struct codec_limits limits = media->settings.limits;
        if (!media_stream_count(media))
                return CL_OUT_OF_RESOURCES;
        enum codec_result r;
        limits.other = has_av(media, s->which);
        s->codec = av ? &av_codec : media->codecs[s->which];
        if (av)
                r = av_codec_open(media->av, codecs[s->which].av, &limits, &s->decoder);
        else
                r = s->codec->open(&limits, &s->decoder);
        s->fresh = true;
        if (r < 0) {
                s->decoder = NULL;
                media_stream_uncount(media);
        }
        return media_status(r);
}

/* Choose the decoder of a stream that begins: the module's, unless there is none, or `av`. */
static cl_int stream_choose(struct stream *s, bool av)
{
        const struct media *media = s->common.media;
        if (av && !has_av(media, s->which))
                return CL_IMAGE_FORMAT_NOT_SUPPORTED;
        return stream_begin(s, av || !media->codecs[s->which]);
}

/* Have the decoder forget the stream, and with it a picture that was held. */
static enum codec_result stream_forget(struct stream *s)
{
        s->fresh = true;
        s->flushed = s->flush_due = s->held = false;
        s->pictures = 0;
        return s->codec->reset(s->decoder);
}

/* Forget the stream. A process that would decode the next one, too, stays, because a start takes long, above all with a
 * device. */
static void stream_reset(struct stream *s, unsigned which, bool av)
{
        bool stays = s->decoder && s->codec == &av_codec && s->which == which &&
                     (av || !s->common.media->codecs[which]);
        if (!stays || stream_forget(s) != CODEC_OK)
                stream_end(s);
}

/* The status of a command of the stream. If its process is lost, the next packet begins a stream in another one. */
static cl_int stream_status(struct stream *s, enum codec_result r)
{
        if (r == CODEC_LOST)
                stream_end(s);
        return media_status(r);
}

/* Decode the packet. If the module's decoder refuses the first one of a stream, libavcodec gets it. */
static cl_int stream_decode(struct stream *s, const uint8_t *packet, size_t size)
{
        enum codec_result r = s->codec->feed(s->decoder, packet, size);
        if (r == CODEC_FORMAT && s->fresh && s->codec != &av_codec &&
            has_av(s->common.media, s->which)) {
                stream_end(s);
                cl_int status = stream_begin(s, true);
                if (status < 0)
                        return status;
                r = s->codec->feed(s->decoder, packet, size);
        }
        s->fresh &= r < 0;
        return stream_status(s, r);
}

/* Decode a copy of the packet, which a client cannot change meanwhile. */
static cl_int stream_feed(struct stream *s, const uint8_t *packet, size_t size, bool av)
{
        cl_int status = CL_SUCCESS;
        if (!s->decoder) {
                status = stream_choose(s, av);
        } else if (s->flushed) {
                status = media_status(stream_forget(s));
                if (status < 0)
                        stream_end(s);
        }
        if (status < 0)
                return status;
        s->flushed = s->flush_due = s->held = false;
        uint8_t *copy = mem_alloc(size);
        if (!copy)
                return CL_OUT_OF_HOST_MEMORY;
        memcpy(copy, packet, size);
        status = stream_decode(s, copy, size);
        mem_free(copy);
        return status;
}

/* ---- pictures ------------------------------------------------------------------------------- */

/* Deliver the next picture, if there is one. */
static cl_int stream_deliver(struct stream *s, const struct registry_value *out, uint32_t format,
                             uint32_t status[MEDIA_STATUS_WORDS_MAX], uint64_t *ret_size)
{
        if (!s->held) {
                enum codec_result r = CODEC_OK;
                if (s->decoder && s->flush_due)
                        r = s->codec->flush(s->decoder);
                s->flush_due = false;
                if (r == CODEC_OK)
                        r = s->decoder ? s->codec->next(s->decoder, &s->picture) : CODEC_NONE;
                if (r != CODEC_OK) {
                        status[MEDIA_RESULT] = s->flushed ? MEDIA_END : MEDIA_AGAIN;
                        return stream_status(s, r);
                }
        }
        const struct codec_picture *p = &s->picture;
        size_t size = media_picture_size(p->width, p->height, p->bits);
        status[MEDIA_WIDTH] = p->width;
        status[MEDIA_HEIGHT] = p->height;
        status[MEDIA_FORMAT] = format;
        status[MEDIA_BITS] = p->bits;
        status[MEDIA_BYTES] = (uint32_t)size;
        s->held = !out->data || out->size < size;
        if (s->held)
                return CL_INVALID_BUFFER_SIZE;
        media_picture_write(out->data, p, (enum media_format)format);
        s->pictures++;
        status[MEDIA_RESULT] = MEDIA_PICTURE;
        *ret_size = size;
        return CL_SUCCESS;
}

/* ---- kernels -------------------------------------------------------------------------------- */

static cl_int run_stream(const struct registry_launch *l, struct media_stream *stream,
                         unsigned which, uint32_t words[MEDIA_STATUS_WORDS_MAX], uint64_t *ret_size)
{
        struct stream *s = container_of(stream, struct stream, common);
        uint32_t format = media_value(l, FORMAT), flags = media_value(l, FLAGS);
        if (flags & ~(uint32_t)KNOWN_FLAGS || format > MEDIA_NV12)
                return CL_INVALID_VALUE;
        size_t size = 0;
        cl_int status = media_given(&l->args[PACKET], &l->args[PACKET_SIZE], &size);
        if (status < 0)
                return status;
        bool av = flags & MEDIA_OTHER;
        if (flags & MEDIA_RESET)
                stream_reset(s, which, av);
        if (s->decoder && (s->which != which || (av && s->codec != &av_codec)))
                return CL_INVALID_VALUE;
        s->which = which;
        if (size)
                status = stream_feed(s, l->args[PACKET].data, size, av);
        if (status == CL_SUCCESS && flags & MEDIA_FLUSH && !s->flushed)
                s->flushed = s->flush_due = true;
        if (status == CL_SUCCESS)
                status = stream_deliver(s, &l->args[PICTURE], format, words, ret_size);
        words[MEDIA_PICTURES] = s->pictures;
        return status;
}

static const struct media_kind decoders = {
        .size = sizeof(struct stream),
        .status = STATUS,
        .bytes = PICTURE_SIZE,
        .stream = STREAM,
        .free = stream_free,
        .run = run_stream,
};

#define RUN(codec, which)                                             \
        static cl_int decode_##codec(const struct registry_launch *l) \
        {                                                             \
                return media_command(l, &decoders, which);            \
        }
RUN(h264, MEDIA_H264)
RUN(hevc, MEDIA_HEVC)
RUN(av1, MEDIA_AV1)
RUN(mpeg2, MEDIA_MPEG2)
RUN(mpeg4, MEDIA_MPEG4)
RUN(vp8, MEDIA_VP8)
RUN(vp9, MEDIA_VP9)
RUN(mjpeg, MEDIA_MJPEG)

#define DECODER(codec)                                                                        \
        {                                                                                     \
                .name = "org.spancl.decode." #codec,                                          \
                .doc = "Decode one access unit, and deliver the next picture.",               \
                .run = decode_##codec,                                                        \
                .args = {                                                                     \
                        [PACKET] = { "packet", "uchar*", 1, true, REGISTRY_IN },              \
                        [PACKET_SIZE] = { "packet_size", "ulong*", 8, true, REGISTRY_IN },    \
                        [PICTURE] = { "picture", "uchar*", 1, true, REGISTRY_OUT },           \
                        [PICTURE_SIZE] = { "picture_size", "ulong*", 8, true, REGISTRY_OUT }, \
                        [STATUS] = { "status", "uint*", 4, true, REGISTRY_OUT },              \
                        [STREAM] = { "stream", "uchar*", 1, true, REGISTRY_INOUT },           \
                        [FORMAT] = { "format", "uint", 4, false, REGISTRY_IN },               \
                        [FLAGS] = { "flags", "uint", 4, false, REGISTRY_IN },                 \
                },                                                                            \
        }

const struct registry_kernel *media_decode_kernel(size_t i, const char **ret_codec)
{
        static const struct registry_kernel kernels[MEDIA_CODECS_MAX] = {
                [MEDIA_H264] = DECODER(h264),   [MEDIA_HEVC] = DECODER(hevc),
                [MEDIA_AV1] = DECODER(av1),     [MEDIA_MPEG2] = DECODER(mpeg2),
                [MEDIA_MPEG4] = DECODER(mpeg4), [MEDIA_VP8] = DECODER(vp8),
                [MEDIA_VP9] = DECODER(vp9),     [MEDIA_MJPEG] = DECODER(mjpeg),
        };
        if (i >= MEDIA_CODECS_MAX)
                return NULL;
        *ret_codec = codecs[i].name;
        return &kernels[i];
}

bool media_decodes(const struct media *media, size_t i)
{
        return media->codecs[i] || has_av(media, (unsigned)i);
}
