/* HEVC by libde265 (LGPL): Main and Main 10, and others with 4:2:0 and at most 16 bits. */
#include <stdbool.h>
#include <stdlib.h>

#include <libde265/de265.h>

#include "codecs.h"
#include "nal.h"

enum {
        BITS = 16,
        PACKET_MAX = 1 << 28,
        STEPS_MAX = 64,
};

/* Types of NAL units. */
enum {
        SLICES_END = 32, /* those below are slices */
        DELIMITER = 35,
        FILLER = 38,
        PREFIX_SEI = 39,
        SUFFIX_SEI = 40,
};

struct codec_decoder {
        de265_decoder_context *de265;
        struct codec_limits limits;
        bool shown; /* the picture in front was given to the caller */
};

static void hevc_close(struct codec_decoder *d)
{
        if (d && d->de265)
                de265_free_decoder(d->de265);
        free(d);
}

static enum codec_result hevc_open(const struct codec_limits *limits, struct codec_decoder **ret)
{
        struct codec_decoder *d = calloc(1, sizeof(*d));
        if (!d || !(d->de265 = de265_new_decoder()) ||
            (limits->threads > 1 &&
             de265_start_worker_threads(d->de265, (int)limits->threads) != DE265_OK)) {
                hevc_close(d);
                return CODEC_NO_MEMORY;
        }
        de265_set_parameter_bool(d->de265, DE265_DECODER_PARAM_SUPPRESS_FAULTY_PICTURES, 1);
        d->limits = *limits;
        *ret = d;
        return CODEC_OK;
}

/* The caller does not need the picture any more. */
static void drop_shown(struct codec_decoder *d)
{
        if (d->shown)
                de265_release_next_picture(d->de265);
        d->shown = false;
}

/* A warning is about data that the library went on without. */
static enum codec_result take_warnings(struct codec_decoder *d)
{
        enum codec_result r = CODEC_OK;
        for (de265_error w; (w = de265_get_warning(d->de265)) != DE265_OK;)
                if (w != DE265_WARNING_NO_WPP_CANNOT_USE_MULTITHREADING)
                        r = CODEC_DAMAGED;
        return r;
}

/* Make one step; false: there is nothing to do before more data comes. */
static bool step(struct codec_decoder *d, enum codec_result *r)
{
        int more = 0;
        de265_error e = de265_decode(d->de265, &more);
        if (e == DE265_OK || e == DE265_ERROR_WAITING_FOR_INPUT_DATA)
                return more && e == DE265_OK;
        *r = e == DE265_ERROR_OUT_OF_MEMORY || e == DE265_ERROR_IMAGE_BUFFER_FULL ? CODEC_NO_MEMORY
                                                                                  : CODEC_DAMAGED;
        return false;
}

/* Decode the units that were pushed, all of an access unit. The library decodes a slice as it takes its
 * unit, and completes the picture with the last unit if that is a slice; else one more step does
 * (`open`). A further step would put out all pictures, in the order of decoding. */
static enum codec_result run(struct codec_decoder *d, bool open)
{
        enum codec_result r = CODEC_OK;
        for (int left; (left = de265_get_number_of_NAL_units_pending(d->de265));) {
                (void)step(d, &r);
                if (r != CODEC_NO_MEMORY && de265_get_number_of_NAL_units_pending(d->de265) < left)
                        continue;
                /* It does not go on, and would keep these units and all later ones. */
                de265_reset(d->de265);
                return r < 0 ? r : CODEC_DAMAGED;
        }
        if (open)
                (void)step(d, &r);
        enum codec_result warned = take_warnings(d);
        return r < 0 ? r : warned;
}

static enum codec_result hevc_feed(struct codec_decoder *d, const uint8_t *data, size_t size)
{
        struct nal n;
        bool found = false, slices = false, last = false;
        drop_shown(d);
        if (size > PACKET_MAX)
                return CODEC_DAMAGED;
        while (nal_next(&data, &size, &n)) {
                enum codec_result r = nal_check_hevc(&n, &d->limits, BITS);
                if (r < 0)
                        return r;
                if (n.size < 2)
                        return CODEC_DAMAGED;
                unsigned type = n.data[0] >> 1 & 63;
                if (type == DELIMITER || type == FILLER || type == PREFIX_SEI || type == SUFFIX_SEI)
                        continue;
                if (de265_push_NAL(d->de265, n.data, (int)n.size, 0, NULL) != DE265_OK)
                        return CODEC_NO_MEMORY;
                found = true;
                last = type < SLICES_END;
                slices |= last;
        }
        if (!found)
                return CODEC_DAMAGED;
        de265_push_end_of_frame(d->de265);
        return run(d, slices && !last);
}

static enum codec_result hevc_next(struct codec_decoder *d, struct codec_picture *ret)
{
        drop_shown(d);
        const struct de265_image *image = de265_peek_next_picture(d->de265);
        if (!image)
                return CODEC_NONE;
        d->shown = true;
        int width = de265_get_image_width(image, 0), height = de265_get_image_height(image, 0);
        int bits = de265_get_bits_per_pixel(image, 0);
        if (width <= 0 || height <= 0)
                return CODEC_DAMAGED;
        if ((uint64_t)width * (uint64_t)height > d->limits.pixels)
                return CODEC_TOO_LARGE;
        if (de265_get_chroma_format(image) != de265_chroma_420 || bits < 8 ||
            (bits > 8) != (de265_get_bits_per_pixel(image, 1) > 8))
                return CODEC_FORMAT;
        *ret = (struct codec_picture){ .width = (unsigned)width,
                                       .height = (unsigned)height,
                                       .bits = (unsigned)bits };
        for (int i = 0; i < 3; i++) {
                int stride;
                ret->planes[i] = de265_get_image_plane(image, i, &stride);
                ret->strides[i] = (size_t)stride;
                int half = i ? 1 : 0;
                if (!ret->planes[i] || stride < 0 ||
                    de265_get_image_width(image, i) != (width + half) >> half ||
                    de265_get_image_height(image, i) != (height + half) >> half)
                        return CODEC_FORMAT;
        }
        return CODEC_OK;
}

static enum codec_result hevc_flush(struct codec_decoder *d)
{
        drop_shown(d);
        if (de265_flush_data(d->de265) != DE265_OK)
                return CODEC_DAMAGED;
        enum codec_result r = CODEC_OK;
        for (unsigned i = 0; i < STEPS_MAX && step(d, &r); i++)
                continue;
        enum codec_result warned = take_warnings(d);
        return r < 0 ? r : warned;
}

static enum codec_result hevc_reset(struct codec_decoder *d)
{
        drop_shown(d);
        de265_reset(d->de265);
        return CODEC_OK;
}

const struct codec codec_hevc = {
        .name = "hevc",
        .open = hevc_open,
        .close = hevc_close,
        .feed = hevc_feed,
        .next = hevc_next,
        .flush = hevc_flush,
        .reset = hevc_reset,
};
