/* The table of video decoders that the media device needs. SpanCL's libraries need libc alone. The
 * module behind this table, libspancl-media.so (src/media), needs libdav1d, libopenh264 and libde265,
 * as far as it was built with them.
 *
 * One thread at a time calls the functions of a decoder; decoders are independent of each other.
 * Packets come from clients. */
#ifndef SPANCL_BACKEND_MEDIA_CODEC_H
#define SPANCL_BACKEND_MEDIA_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { CODEC_VERSION = 3 /* of this table */ };

#define CODEC_SYMBOL "spancl_media_module" /* a struct codec_module */

enum codec_result {
        CODEC_OK = 0,
        CODEC_NONE = 1, /* no picture is ready */
        CODEC_DAMAGED =
                -1, /* the data is not what the format demands, or refers to what is missing */
        CODEC_TOO_LARGE = -2, /* a picture has more pixels than allowed */
        CODEC_FORMAT = -3,    /* not 4:2:0, or more bits than the library has */
        CODEC_NO_MEMORY = -4, /* or too many pictures wait */
        CODEC_UNWRITTEN = -5, /* of a sink: its file is full, or its receiver is gone */
        CODEC_LOST = -6,      /* the stream's process has ended (av_process.h) */
};

struct codec_limits {
        unsigned threads; /* of each decoder, at least 1 */
        uint64_t pixels;  /* of a picture, at most 2^28 */
        /* Another decoder can take the stream if this one refuses its first packet (CODEC_FORMAT), so it refuses a
         * stream there that it may not decode to the end. */
        bool other;
};

/* 4:2:0: the planes 1 and 2 have half the width and height, rounded up. Samples of more than 8 bits
 * have two bytes, the low one first. */
struct codec_picture {
        unsigned width, height, bits;
        unsigned shift;   /* unused bits below those of a sample of two bytes */
        bool interleaved; /* Cb and Cr alternate in planes[1], and there is no planes[2] */
        const uint8_t *planes[3];
        size_t strides[3]; /* bytes from a row to the next */
};

struct codec_decoder;

struct codec {
        const char *name;
        /* CODEC_NO_MEMORY. */
        enum codec_result (*open)(const struct codec_limits *limits, struct codec_decoder **ret);
        void (*close)(struct codec_decoder *d); /* NULL is allowed */
        /* Decode one access unit; the bytes stay in place for the call. */
        enum codec_result (*feed)(struct codec_decoder *d, const uint8_t *data, size_t size);
        /* Get the next picture in the order of output. It stays until the next call for `d`. */
        enum codec_result (*next)(struct codec_decoder *d, struct codec_picture *ret);
        /* No more packets come before a reset, so all pictures are ready. */
        enum codec_result (*flush)(struct codec_decoder *d);
        /* Forget the stream; the next packet begins another. */
        enum codec_result (*reset)(struct codec_decoder *d);
};

struct codec_module {
        unsigned version;
        const struct codec *const *codecs; /* up to a NULL */
};

#endif
