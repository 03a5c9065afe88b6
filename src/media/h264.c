/* H.264 by libopenh264 (BSD): profiles up to High, 8 bits, frames only, slices of types I and P. The
 * library (2.3.1) decodes slices of type B, but not exactly where they have sub-macroblocks, as most
 * have. So these are refused (nal.h). */
#include <stdlib.h>
#include <string.h>

#include <wels/codec_api.h>

#include "codecs.h"
#include "nal.h"

enum { BITS = 8, PACKET_MAX = 1 << 28 };

/* Flags of DECODING_STATE after which a picture is not what the stream means. */
enum {
        FAILED = dsRefLost | dsBitstreamError | dsDepLayerLost | dsNoParamSets | dsRefListNullPtrs |
                 dsDataErrorConcealed
};

struct codec_decoder {
        ISVCDecoder *wels;
        struct codec_limits limits;
        bool ready, flushed; /* ready: `planes` and `info` have a picture */
        uint8_t *planes[3];
        SBufferInfo info;
};

static enum codec_result start(struct codec_decoder *d)
{
        SDecodingParam params = { .eEcActiveIdc = ERROR_CON_DISABLE,
                                  .sVideoProperty.eVideoBsType = VIDEO_BITSTREAM_AVC };
        int quiet = WELS_LOG_QUIET;
        (*d->wels)->SetOption(d->wels, DECODER_OPTION_TRACE_LEVEL, &quiet);
        d->ready = d->flushed = false;
        return (*d->wels)->Initialize(d->wels, &params) ? CODEC_NO_MEMORY : CODEC_OK;
}

static void h264_close(struct codec_decoder *d)
{
        if (d && d->wels) {
                (*d->wels)->Uninitialize(d->wels);
                WelsDestroyDecoder(d->wels);
        }
        free(d);
}

static enum codec_result h264_open(const struct codec_limits *limits, struct codec_decoder **ret)
{
        struct codec_decoder *d = calloc(1, sizeof(*d));
        if (!d || WelsCreateDecoder(&d->wels) || start(d) < 0) {
                h264_close(d);
                return CODEC_NO_MEMORY;
        }
        d->limits = *limits;
        *ret = d;
        return CODEC_OK;
}

static enum codec_result result_of(struct codec_decoder *d, DECODING_STATE state)
{
        d->ready = d->info.iBufferStatus == 1;
        if (state & dsOutOfMemory)
                return CODEC_NO_MEMORY;
        return state & (FAILED | dsInvalidArgument | dsInitialOptExpected) ? CODEC_DAMAGED
                                                                           : CODEC_OK;
}

static enum codec_result h264_feed(struct codec_decoder *d, const uint8_t *data, size_t size)
{
        const uint8_t *at = data;
        size_t rest = size;
        struct nal n;
        enum codec_result r = CODEC_DAMAGED;
        d->ready = false;
        while (nal_next(&at, &rest, &n)) {
                r = nal_check_h264(&n, &d->limits, BITS);
                if (r < 0)
                        return r;
        }
        if (r < 0 || size > PACKET_MAX)
                return CODEC_DAMAGED;
        memset(&d->info, 0, sizeof(d->info));
        return result_of(
                d, (*d->wels)->DecodeFrameNoDelay(d->wels, data, (int)size, d->planes, &d->info));
}

static enum codec_result h264_next(struct codec_decoder *d, struct codec_picture *ret)
{
        if (!d->ready && d->flushed) {
                memset(&d->info, 0, sizeof(d->info));
                enum codec_result r =
                        result_of(d, (*d->wels)->FlushFrame(d->wels, d->planes, &d->info));
                if (r < 0)
                        return r;
        }
        if (!d->ready)
                return CODEC_NONE;
        const SSysMEMBuffer *m = &d->info.UsrData.sSystemBuffer;
        d->ready = false;
        if (m->iWidth <= 0 || m->iHeight <= 0 || m->iStride[0] <= 0 || m->iStride[1] <= 0)
                return CODEC_DAMAGED;
        if ((uint64_t)m->iWidth * (uint64_t)m->iHeight > d->limits.pixels)
                return CODEC_TOO_LARGE;
        *ret = (struct codec_picture){
                .width = (unsigned)m->iWidth,
                .height = (unsigned)m->iHeight,
                .bits = BITS,
                .planes = { d->planes[0], d->planes[1], d->planes[2] },
                .strides = { (size_t)m->iStride[0], (size_t)m->iStride[1], (size_t)m->iStride[1] },
        };
        return CODEC_OK;
}

static enum codec_result h264_flush(struct codec_decoder *d)
{
        int end = 1;
        (*d->wels)->SetOption(d->wels, DECODER_OPTION_END_OF_STREAM, &end);
        d->flushed = true;
        return CODEC_OK;
}

static enum codec_result h264_reset(struct codec_decoder *d)
{
        (*d->wels)->Uninitialize(d->wels);
        return start(d);
}

const struct codec codec_h264 = {
        .name = "h264",
        .open = h264_open,
        .close = h264_close,
        .feed = h264_feed,
        .next = h264_next,
        .flush = h264_flush,
        .reset = h264_reset,
};
