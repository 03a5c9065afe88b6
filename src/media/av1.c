/* AV1 by libdav1d (BSD): 4:2:0 with 8 to 12 bits. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <dav1d/dav1d.h>

#include "codecs.h"

enum { WAITING_MAX = 16, PACKET_MAX = 1 << 28 };

struct codec_decoder {
        Dav1dContext *dav1d;
        uint64_t pixels;
        /* Pictures in the order of output. The first was given to the caller if `shown`. */
        Dav1dPicture waiting[WAITING_MAX];
        unsigned count;
        bool shown;
};

static enum codec_result result_of(int error)
{
        if (!error)
                return CODEC_OK;
        if (error == DAV1D_ERR(ENOMEM))
                return CODEC_NO_MEMORY;
        if (error == DAV1D_ERR(ERANGE)) /* frame_size_limit */
                return CODEC_TOO_LARGE;
        return error == DAV1D_ERR(ENOPROTOOPT) ? CODEC_FORMAT : CODEC_DAMAGED;
}

static void drop_first(struct codec_decoder *d)
{
        dav1d_picture_unref(&d->waiting[0]);
        d->count--;
        memmove(d->waiting, d->waiting + 1, d->count * sizeof(d->waiting[0]));
        memset(&d->waiting[d->count], 0, sizeof(d->waiting[0]));
        d->shown = false;
}

static void drop_all(struct codec_decoder *d)
{
        while (d->count)
                drop_first(d);
}

static void av1_close(struct codec_decoder *d)
{
        if (d) {
                drop_all(d);
                if (d->dav1d)
                        dav1d_close(&d->dav1d);
        }
        free(d);
}

static enum codec_result av1_open(const struct codec_limits *limits, struct codec_decoder **ret)
{
        struct codec_decoder *d = calloc(1, sizeof(*d));
        if (!d)
                return CODEC_NO_MEMORY;
        Dav1dSettings settings;
        dav1d_default_settings(&settings);
        settings.n_threads = (int)limits->threads;
        settings.max_frame_delay = 1;
        settings.all_layers = 0;
        settings.frame_size_limit = (unsigned)limits->pixels;
        settings.logger.callback = NULL;
        d->pixels = limits->pixels;
        if (dav1d_open(&d->dav1d, &settings)) {
                av1_close(d);
                return CODEC_NO_MEMORY;
        }
        *ret = d;
        return CODEC_OK;
}

/* Take pictures until the decoder wants data. */
static enum codec_result take_all(struct codec_decoder *d)
{
        for (;;) {
                if (d->count == WAITING_MAX)
                        return CODEC_NO_MEMORY;
                Dav1dPicture *p = &d->waiting[d->count];
                memset(p, 0, sizeof(*p));
                int r = dav1d_get_picture(d->dav1d, p);
                if (r == DAV1D_ERR(EAGAIN))
                        return CODEC_OK;
                if (r)
                        return result_of(r);
                d->count++;
        }
}

static enum codec_result av1_feed(struct codec_decoder *d, const uint8_t *data, size_t size)
{
        Dav1dData in = { 0 };
        if (d->shown)
                drop_first(d);
        uint8_t *to = size <= PACKET_MAX ? dav1d_data_create(&in, size) : NULL;
        if (!to)
                return CODEC_NO_MEMORY;
        memcpy(to, data, size);
        enum codec_result r = CODEC_OK;
        while (r == CODEC_OK && in.sz) {
                int sent = dav1d_send_data(d->dav1d, &in);
                if (sent && sent != DAV1D_ERR(EAGAIN))
                        r = result_of(sent);
                else
                        r = take_all(d);
        }
        if (in.sz)
                dav1d_data_unref(&in);
        if (r < 0) {
                /* The rest of the packet must not come before the next one. */
                drop_all(d);
                dav1d_flush(d->dav1d);
        }
        return r;
}

static enum codec_result av1_next(struct codec_decoder *d, struct codec_picture *ret)
{
        if (d->shown)
                drop_first(d);
        if (!d->count)
                return CODEC_NONE;
        const Dav1dPicture *p = &d->waiting[0];
        d->shown = true;
        if (p->p.w <= 0 || p->p.h <= 0)
                return CODEC_DAMAGED;
        if ((uint64_t)p->p.w * (uint64_t)p->p.h > d->pixels)
                return CODEC_TOO_LARGE;
        if (p->p.layout != DAV1D_PIXEL_LAYOUT_I420)
                return CODEC_FORMAT;
        *ret = (struct codec_picture){
                .width = (unsigned)p->p.w,
                .height = (unsigned)p->p.h,
                .bits = (unsigned)p->p.bpc,
                .planes = { p->data[0], p->data[1], p->data[2] },
                .strides = { (size_t)p->stride[0], (size_t)p->stride[1], (size_t)p->stride[1] },
        };
        return CODEC_OK;
}

/* The decoder has no delay: all pictures are out. */
static enum codec_result av1_flush(struct codec_decoder *d)
{
        return CODEC_OK;
}

static enum codec_result av1_reset(struct codec_decoder *d)
{
        drop_all(d);
        dav1d_flush(d->dav1d);
        return CODEC_OK;
}

const struct codec codec_av1 = {
        .name = "av1",
        .open = av1_open,
        .close = av1_close,
        .feed = av1_feed,
        .next = av1_next,
        .flush = av1_flush,
        .reset = av1_reset,
};
