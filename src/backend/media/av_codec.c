#include "backend/media/av_codec.h"

#include <string.h>

#include "base/mem.h"

struct codec_decoder {
        struct av_process process;
};

static enum codec_result call(struct codec_decoder *d, enum av_kind kind, uint64_t size,
                              struct av_reply *ret)
{
        const struct av_request r = { .kind = kind, .size = size };
        return av_process_call(&d->process, &r, ret);
}

static void decoder_close(struct codec_decoder *d)
{
        if (d)
                av_process_end(&d->process);
        mem_free(d);
}

static enum codec_result decoder_feed(struct codec_decoder *d, const uint8_t *data, size_t size)
{
        struct av_reply unused;
        if (size > d->process.open.in_room)
                return CODEC_DAMAGED;
        if (d->process.socket >= 0)
                memcpy(av_process_in(&d->process), data, size);
        return call(d, AV_FEED, size, &unused);
}

/* The picture lies in the memory of both processes. The other one may change its bytes, not its sizes and places. */
static enum codec_result decoder_next(struct codec_decoder *d, struct codec_picture *ret)
{
        struct av_reply r;
        enum codec_result result = call(d, AV_NEXT, 0, &r);
        if (result != CODEC_OK)
                return result;
        *ret = av_reply_picture(&r, av_process_out(&d->process));
        return CODEC_OK;
}

static enum codec_result decoder_flush(struct codec_decoder *d)
{
        struct av_reply unused;
        return call(d, AV_FLUSH, 0, &unused);
}

static enum codec_result decoder_reset(struct codec_decoder *d)
{
        struct av_reply unused;
        return call(d, AV_RESET, 0, &unused);
}

const struct codec av_codec = {
        .name = "libavcodec",
        .close = decoder_close,
        .feed = decoder_feed,
        .next = decoder_next,
        .flush = decoder_flush,
        .reset = decoder_reset,
};

enum codec_result av_codec_open(struct av_processes *all, enum av_decoder which,
                                const struct codec_limits *limits, struct codec_decoder **ret)
{
        const struct av_request open = {
                .kind = AV_DECODER,
                .codec = which,
                .threads = limits->threads,
                .limit_pixels = (uint32_t)limits->pixels,
                .in_room = av_packet_max(limits->pixels),
                .out_room = av_decoder_room(limits->pixels),
        };
        struct codec_decoder *d = mem_zalloc(sizeof(*d));
        if (!d)
                return CODEC_NO_MEMORY;
        enum codec_result r = av_process_start(all, &open, &d->process);
        if (r == CODEC_OK)
                *ret = d;
        else
                mem_free(d);
        return r;
}
