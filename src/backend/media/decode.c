/* The kernels org.spancl.decode.*. A stream is what they attach to the client's stream buffer. */
#include <string.h>

#include "backend/media/stream.h"
#include "base/mem.h"

enum { PACKET, PACKET_SIZE, PICTURE, PICTURE_SIZE, STATUS, STREAM, FORMAT, FLAGS };

enum { KNOWN_FLAGS = MEDIA_RESET | MEDIA_FLUSH };

/* Commands of one stream run one after the other. */
struct stream {
        struct media_stream common;
        const struct codec *codec;
        struct codec_decoder *decoder; /* NULL: not needed yet, or not any more */
        bool flushed;
        bool held; /* `picture` did not fit into a buffer */
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
        s->flushed = s->held = false;
        s->pictures = 0;
}

static void stream_free(void *data)
{
        struct stream *s = data;
        stream_end(s);
        media_detach(&s->common);
}

static cl_int stream_begin(struct stream *s)
{
        struct media *media = s->common.media;
        if (!media_stream_count(media))
                return CL_OUT_OF_RESOURCES;
        enum codec_result r = s->codec->open(&media->settings.limits, &s->decoder);
        if (r < 0) {
                s->decoder = NULL;
                media_stream_uncount(media);
        }
        return media_status(r);
}

/* Decode a copy of the packet, which a client cannot change meanwhile. */
static cl_int stream_feed(struct stream *s, const uint8_t *packet, size_t size)
{
        cl_int status = CL_SUCCESS;
        if (!s->decoder)
                status = stream_begin(s);
        else if (s->flushed)
                status = media_status(s->codec->reset(s->decoder));
        if (status < 0)
                return status;
        s->flushed = s->held = false;
        uint8_t *copy = mem_alloc(size);
        if (!copy)
                return CL_OUT_OF_HOST_MEMORY;
        memcpy(copy, packet, size);
        status = media_status(s->codec->feed(s->decoder, copy, size));
        mem_free(copy);
        return status;
}

/* ---- pictures ------------------------------------------------------------------------------- */

static void copy_plane(uint8_t *to, const struct codec_picture *p, unsigned plane, size_t row,
                       size_t rows)
{
        for (size_t y = 0; y < rows; y++)
                memcpy(to + y * row, p->planes[plane] + y * p->strides[plane], row);
}

/* Write the two planes of chroma as one, sample by sample in turn. */
static void copy_pairs(uint8_t *to, const struct codec_picture *p, size_t width, size_t rows)
{
        for (size_t y = 0; y < rows; y++) {
                const uint8_t *u = p->planes[1] + y * p->strides[1];
                const uint8_t *v = p->planes[2] + y * p->strides[2];
                for (size_t x = 0; x < width; x++) {
                        if (p->bits <= 8) {
                                to[2 * x] = u[x];
                                to[2 * x + 1] = v[x];
                        } else {
                                memcpy(to + 4 * x, u + 2 * x, 2);
                                memcpy(to + 4 * x + 2, v + 2 * x, 2);
                        }
                }
                to += 2 * width * (p->bits > 8 ? 2 : 1);
        }
}

static void copy_picture(uint8_t *to, const struct codec_picture *p, uint32_t format)
{
        size_t sample = p->bits > 8 ? 2 : 1, width = (p->width + 1) / 2, rows = (p->height + 1) / 2;
        copy_plane(to, p, 0, p->width * sample, p->height);
        to += p->width * sample * p->height;
        if (format == MEDIA_NV12) {
                copy_pairs(to, p, width, rows);
        } else {
                copy_plane(to, p, 1, width * sample, rows);
                copy_plane(to + width * sample * rows, p, 2, width * sample, rows);
        }
}

/* Deliver the next picture, if there is one. */
static cl_int stream_deliver(struct stream *s, const struct registry_value *out, uint32_t format,
                             uint32_t status[MEDIA_STATUS_WORDS], size_t *ret_size)
{
        if (!s->held) {
                enum codec_result r =
                        s->decoder ? s->codec->next(s->decoder, &s->picture) : CODEC_NONE;
                if (r != CODEC_OK) {
                        status[MEDIA_RESULT] = s->flushed ? MEDIA_END : MEDIA_AGAIN;
                        return media_status(r);
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
        copy_picture(out->data, p, format);
        s->pictures++;
        status[MEDIA_RESULT] = MEDIA_PICTURE;
        *ret_size = size;
        return CL_SUCCESS;
}

/* ---- kernels -------------------------------------------------------------------------------- */

static cl_int run_stream(const struct registry_launch *l, struct stream *s,
                         const struct codec *codec, uint32_t words[MEDIA_STATUS_WORDS],
                         size_t *ret_size)
{
        uint32_t format = media_value(l, FORMAT), flags = media_value(l, FLAGS);
        if (flags & ~(uint32_t)KNOWN_FLAGS || format > MEDIA_NV12)
                return CL_INVALID_VALUE;
        size_t size = 0;
        cl_int status = media_given(&l->args[PACKET], &l->args[PACKET_SIZE], &size);
        if (status < 0)
                return status;
        if (flags & MEDIA_RESET)
                stream_end(s);
        if (s->decoder && s->codec != codec)
                return CL_INVALID_VALUE;
        s->codec = codec;
        if (size)
                status = stream_feed(s, l->args[PACKET].data, size);
        if (status == CL_SUCCESS && flags & MEDIA_FLUSH && !s->flushed) {
                s->flushed = true;
                if (s->decoder)
                        status = media_status(codec->flush(s->decoder));
        }
        if (status == CL_SUCCESS)
                status = stream_deliver(s, &l->args[PICTURE], format, words, ret_size);
        words[MEDIA_PICTURES] = s->pictures;
        return status;
}

static cl_int decode(const struct registry_launch *l, unsigned which)
{
        struct media *media = l->user;
        const struct registry_value *status = &l->args[STATUS], *size = &l->args[PICTURE_SIZE];
        uint32_t words[MEDIA_STATUS_WORDS] = { 0 };
        if (l->global[0] * l->global[1] * l->global[2] != 1)
                return CL_INVALID_GLOBAL_WORK_SIZE;
        if (!l->args[STREAM].data || !l->args[STREAM].attachment)
                return CL_INVALID_MEM_OBJECT;
        if (!status->data || status->size < sizeof(words) ||
            (size->data && size->size < sizeof(uint64_t)))
                return CL_INVALID_BUFFER_SIZE;
        struct media_stream *found;
        cl_int r = media_attach(l->args[STREAM].attachment, sizeof(struct stream), stream_free,
                                media, &found);
        if (r < 0)
                return r;
        size_t bytes = 0;
        lock_take(&found->lock);
        r = run_stream(l, container_of(found, struct stream, common), media->codecs[which], words,
                       &bytes);
        lock_release(&found->lock);
        return media_finish(status, size, words, bytes, r);
}

static cl_int decode_h264(const struct registry_launch *l)
{
        return decode(l, 0);
}

static cl_int decode_hevc(const struct registry_launch *l)
{
        return decode(l, 1);
}

static cl_int decode_av1(const struct registry_launch *l)
{
        return decode(l, 2);
}

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
        static const char *const names[MEDIA_CODECS_MAX] = { "h264", "hevc", "av1" };
        static const struct registry_kernel kernels[MEDIA_CODECS_MAX] = { DECODER(h264),
                                                                          DECODER(hevc),
                                                                          DECODER(av1) };
        if (i >= MEDIA_CODECS_MAX)
                return NULL;
        *ret_codec = names[i];
        return &kernels[i];
}
