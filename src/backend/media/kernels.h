/* The built-in kernels of the media device. */
#ifndef SPANCL_BACKEND_MEDIA_KERNELS_H
#define SPANCL_BACKEND_MEDIA_KERNELS_H

#include <stdatomic.h>

#include "backend/builtin/registry.h"
#include "backend/media/settings.h"

/* Kernels that decode. */
enum media_codec {
        MEDIA_H264,
        MEDIA_HEVC,
        MEDIA_AV1,
        MEDIA_MPEG2,
        MEDIA_MPEG4,
        MEDIA_VP8,
        MEDIA_VP9,
        MEDIA_MJPEG,
        MEDIA_CODECS_MAX,
};

enum { MEDIA_ENCODERS_MAX = 3, MEDIA_RATE = 25 /* if none is given */ };

struct av_processes;

/* The user of registry_launch. Executors share it. */
struct media {
        struct media_settings settings;
        const struct codec *codecs[MEDIA_CODECS_MAX]; /* at the place of its kernel; NULL: none */
        struct av_processes *av;                      /* NULL: there is no such program */
        uint32_t av_codecs;                           /* that it has (av_reply) */
        atomic_uint streams;                          /* decoders and encoders that are open */
        int stop; /* a wake-up (os/wakeup.h): the device ends, so no command waits for a process */
        const struct registry_kernel
                *kernels[MEDIA_CODECS_MAX + MEDIA_ENCODERS_MAX + 3]; /* of the device */
};

/* The words of a status buffer, 32 bits each. */
enum media_status {
        MEDIA_RESULT, /* enum media_result, or the error of the command */
        MEDIA_WIDTH,
        MEDIA_HEIGHT,
        MEDIA_FORMAT,
        MEDIA_BITS,
        MEDIA_PICTURES, /* that commands have delivered since the stream began */
        MEDIA_BYTES,    /* of the picture, also where the buffer is too small for it */
        MEDIA_RESERVED,
        MEDIA_TIME = MEDIA_RESERVED, /* of a source's unit, in ms */
        MEDIA_STATUS_WORDS,
        /* Further words, which a kernel writes if the buffer has room for them. */
        MEDIA_DELAY = MEDIA_STATUS_WORDS, /* of a source's unit: ms until its picture is shown */
        MEDIA_STATUS_WORDS_MAX,
};

enum media_result {
        MEDIA_PICTURE,
        MEDIA_AGAIN, /* no picture is ready before the next packet */
        MEDIA_END,   /* the stream was flushed, and all pictures are out */
};

/* Of encoders: word 4 is 1 for a key frame, and the words 5 and 6 are of packets. */
enum { MEDIA_IS_KEY = MEDIA_BITS };

enum media_format { MEDIA_I420, MEDIA_NV12, MEDIA_RGBA /* of encoders */ };

enum media_flags {
        MEDIA_RESET = 1 << 0,
        MEDIA_FLUSH = 1 << 1,
        MEDIA_KEY = 1 << 2,      /* of encoders */
        MEDIA_OTHER = MEDIA_KEY, /* of decoders: libavcodec's */
        MEDIA_LOOP = 1 << 1,     /* of sources: begin again at the end */
        MEDIA_FAST = 1 << 2,     /* of sources: as fast as they come */
        MEDIA_TIMED = 1 << 3,    /* of sinks: units have times */
};

/* The kernel that decodes with the i-th codec, and the codec's name; NULL past the end. */
const struct registry_kernel *media_decode_kernel(size_t i, const char **ret_codec);

/* Return true if the device has a decoder for the i-th one. */
bool media_decodes(const struct media *media, size_t i);

/* The kernel of the i-th encoder (enum av_encoder); NULL past the end. */
const struct registry_kernel *media_encode_kernel(size_t i);

extern const struct registry_kernel media_convert_kernel, media_source_kernel, media_sink_kernel;

/* Bytes of a picture without gaps, in any format. */
static inline size_t media_picture_size(unsigned width, unsigned height, unsigned bits)
{
        size_t chroma = ((size_t)width + 1) / 2 * (((size_t)height + 1) / 2);
        return ((size_t)width * height + 2 * chroma) * (bits > 8 ? 2 : 1);
}

#endif
