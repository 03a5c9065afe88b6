/* The messages between a media device and its processes media-av (src/av), which alone have libavcodec. A process has
 * one stream. It gets requests, one at a time, as packets of a socket, and answers each. Packets and pictures lie in
 * memory that both share: it comes with the request that opens the stream, and has two parts, one for each direction.
 * A decoder decodes into its part, and answers where a picture lies there. The picture stays until the next request.
 *
 * Neither side believes the other: the process may have been taken over by a stream, and the session by its client. */
#ifndef SPANCL_BACKEND_MEDIA_AV_MESSAGE_H
#define SPANCL_BACKEND_MEDIA_AV_MESSAGE_H

#include <stdbool.h>

#include "backend/media/codec.h"

enum { AV_VERSION = 3 /* of these messages */ };

enum av_kind {
        AV_HELLO,   /* version; the answer has the version, and in `codecs` bits of av_codec */
        AV_ENCODER, /* open an encoder, with the descriptor of the memory */
        AV_DECODER, /* open a decoder, the same */
        AV_FEED,    /* encode a picture, decode a packet, or write a unit, of `size` bytes */
        AV_NEXT,    /* get what is ready; the answer has CODEC_NONE, `size` bytes, or a picture */
        AV_FLUSH, /* nothing more comes before a reset; a sink is completed, and takes no more units */
        AV_RESET, /* of a decoder: forget the stream */
        AV_SOURCE, /* to media-io: give a socket of the named source; on that: open it, with the memory */
        AV_SINK, /* the same of a sink */
        AV_KINDS,
};

/* Bits of `codecs`: encoders from the first on, decoders from AV_DECODERS on. */
enum av_encoder { AV_ENCODE_MJPEG, AV_ENCODE_H264, AV_ENCODE_HEVC, AV_ENCODERS };
enum { AV_DECODERS = 16 };
enum av_decoder {
        AV_DECODE_H264,
        AV_DECODE_HEVC,
        AV_DECODE_MPEG2,
        AV_DECODE_MPEG4,
        AV_DECODE_VP8,
        AV_DECODE_VP9,
        AV_DECODE_MJPEG,
        AV_DECODER_KINDS,
};

enum av_pixels { AV_I420, AV_NV12, AV_RGBA, AV_PIXELS };

enum {
        AV_SIDE_MAX = 16384,
        AV_PIXELS_MAX = 1 << 28,
        AV_THREADS_MAX = 16,
        AV_RATE_MAX = 1000,     /* pictures a second */
        AV_KBITS_MAX = 4000000, /* 1000 bits a second */
        AV_QUALITY_MAX = 100,
        AV_PACKET_SPARE = 1 << 20, /* bytes that a packet may have beyond its picture */
        AV_PADDING = 4096,         /* behind each part of the memory: libraries read ahead */
        AV_LIMIT_S = 60,           /* of a request; the process then ends */
        AV_NAME_MAX = 32,          /* bytes of a source's or sink's name, with a NUL */
        AV_DEVICE_MAX = 128,       /* bytes of the name of a device that decodes, with a NUL */
        AV_RAW = 100,              /* codec of a source or sink: pictures in I420 */
};

enum av_flags {
        AV_KEY = 1 << 0,         /* a key frame: wanted, or made */
        AV_END = 1 << 1,         /* of a source that has nothing ready: nothing comes any more */
        AV_LOOP = 1 << 2,        /* of AV_SOURCE: begin again at the end */
        AV_FAST = 1 << 3,        /* do not wait for the time of a unit */
        AV_INTERLEAVED = 1 << 4, /* of a decoded picture: Cb and Cr alternate in the second plane */
};

/* Bytes of this order and size, because both programs are of one build: AV_HELLO tells. */
struct av_request {
        uint32_t kind, version;
        uint32_t codec;                 /* enum av_encoder or av_decoder; of a sink as av_reply's */
        uint32_t width, height, pixels; /* of an encoder or sink; enum av_pixels */
        uint32_t rate, kbits, quality;  /* of an encoder; see docs/MEDIA.md */
        uint32_t threads, flags, limit_pixels; /* of a picture */
        uint64_t size;
        uint64_t in_room, out_room; /* of the memory: to the process, from it */
        char name[AV_NAME_MAX];     /* of AV_SOURCE, AV_SINK */
        uint64_t time_ms;           /* of a unit, if the sink's `rate` is 0 */
        uint32_t delay_ms;          /* from then until its picture is shown */
        uint32_t reserved;          /* 0: there is no padding, because requests are compared */
};

struct av_reply {
        int32_t result; /* enum codec_result */
        uint32_t version, codecs;
        uint32_t width, height, bits; /* of a picture */
        uint32_t flags;
        uint32_t codec;    /* of a source: 1 and enum media_codec, AV_RAW; 0: another */
        uint64_t size;     /* of a picture: without gaps */
        uint64_t time_ms;  /* of a source's unit, from its first one on */
        uint32_t delay_ms; /* of a source's unit: from then until its picture is shown */
        /* Of a decoded picture, as of struct codec_picture. Planes begin at these bytes of the process's part. */
        uint32_t shift;
        uint64_t planes[3];
        uint32_t strides[3];
        uint32_t reserved; /* 0: padding would be memory of the process that answers */
};

/* Bytes of a picture with such pixels, 8 bits a sample. */
static inline uint64_t av_picture_size(uint64_t width, uint64_t height, enum av_pixels pixels)
{
        return pixels == AV_RGBA ? 4 * width * height
                                 : width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2);
}

/* Most bytes of a decoded picture: 4:2:0 with one pixel has three samples. */
static inline uint64_t av_decoded_max(uint64_t pixels)
{
        return 6 * pixels;
}

/* Bytes of a decoder's part of the memory. The last av_decoded_max bytes are for a picture that libavcodec has
 * elsewhere. The bytes before hold 15 of the largest pictures of 8 bits, or two where addresses are scarce. */
static inline uint64_t av_decoder_room(uint64_t pixels)
{
        return av_decoded_max(pixels) + pixels * (sizeof(void *) > 4 ? 24 : 4);
}

/* Most bytes of a packet for, or of, pictures of so many pixels. */
static inline uint64_t av_packet_max(uint64_t pixels)
{
        return 4 * pixels + AV_PACKET_SPARE;
}

/* Check a request, as the process does before all else. `open`: it has a stream. CODEC_DAMAGED: it is not what these
 * comments say; CODEC_TOO_LARGE. */
enum codec_result av_request_check(const struct av_request *r, bool open);

/* Check an answer to a request of this kind, as the device does before all else. Only AV_NEXT with CODEC_OK has bytes;
 * of a decoder they are a picture that fits `limit_pixels`, with planes inside its part of the memory. CODEC_LOST: the
 * process must not be believed. */
enum codec_result av_reply_check(const struct av_reply *r, enum av_kind kind,
                                 const struct av_request *open);

/* Return the picture of an answer that av_reply_check has passed. `out`: the process's part of the memory. */
struct codec_picture av_reply_picture(const struct av_reply *r, const uint8_t *out);

#endif
