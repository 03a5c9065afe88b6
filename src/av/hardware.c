#include "av/hardware.h"

#include <stdlib.h>
#include <string.h>

#include <libavutil/hwcontext.h>
#include <libavutil/log.h>
#include <libavutil/pixdesc.h>

#include "base/log.h"

#define LOG "media-av"

static struct {
        const char *name;
        AVBufferRef *device;               /* NULL: none */
        enum { NOTHING, USED, LEFT } told; /* of the last stream */
} hardware;

bool hardware_open(const char *text)
{
        char type[16] = "", error[AV_ERROR_MAX_STRING_SIZE];
        size_t n = strcspn(text, ":");
        if (n < sizeof(type))
                memcpy(type, text, n);
        av_log_set_level(AV_LOG_QUIET);
        enum AVHWDeviceType kind = av_hwdevice_find_type_by_name(type);
        if (kind == AV_HWDEVICE_TYPE_NONE) {
                log_warn(LOG, "libavutil has no type of the device %s: decoders use the processor",
                         text);
                return false;
        }
        /* A device of OpenCL may be SpanCL's own, which would start this program again. */
        (void)unsetenv("SPANCL_MEDIA");
        int r = av_hwdevice_ctx_create(&hardware.device, kind, text[n] ? text + n + 1 : NULL, NULL,
                                       0);
        if (r < 0) {
                log_warn(LOG, "the device %s can't be opened: %s: decoders use the processor", text,
                         av_make_error_string(error, sizeof(error), r));
                return false;
        }
        hardware.name = text;
        log_debug(LOG, "the device %s is open", text);
        return true;
}

/* Choose the format of a stream. If the height is odd, libavcodec 59 takes NVDEC's chroma one row too early. */
static enum AVPixelFormat choose(AVCodecContext *c, const enum AVPixelFormat *formats)
{
        while (c->coded_height % 2 && *formats != AV_PIX_FMT_NONE &&
               av_pix_fmt_desc_get(*formats)->flags & AV_PIX_FMT_FLAG_HWACCEL)
                formats++;
        return avcodec_default_get_format(c, formats);
}

void hardware_use(AVCodecContext *c)
{
        if (!hardware.device)
                return;
        /* libavcodec's own get_format prefers this device, and asks again if the device refuses the stream. */
        c->hw_device_ctx = av_buffer_ref(hardware.device);
        c->get_format = choose;
}

static void tell(const AVCodecContext *c, bool used)
{
        if (!hardware.device || hardware.told == (used ? USED : LEFT))
                return;
        if (used)
                log_info(LOG, "the device %s decodes %s", hardware.name, c->codec->name);
        else
                log_info(LOG, "the device %s does not decode this stream of %s: the processor does",
                         hardware.name, c->codec->name);
        hardware.told = used ? USED : LEFT;
}

void hardware_left(const AVCodecContext *c)
{
        tell(c, false);
}

/* Copy the picture to the pool. False: the device can't do that, for instance because it has another format. */
static bool transfer(AVFrame *to, struct pool *pool, const AVFrame *whole)
{
        const AVHWFramesContext *all = (const void *)whole->hw_frames_ctx->data;
        to->format = all->sw_format;
        to->width = all->width;
        to->height = all->height;
        bool ok = pool_get(pool, to, all->width, all->height) >= 0 &&
                  av_hwframe_transfer_data(to, whole, 0) >= 0;
        if (!ok)
                av_frame_unref(to);
        return ok;
}

/* Copy the picture as the device has it. With the size of the stream CUDA would leave out the last row of chroma if the
 * height is odd. */
static int copy_whole(AVFrame *to, struct pool *pool, const AVFrame *f)
{
        const AVHWFramesContext *all = (const void *)f->hw_frames_ctx->data;
        AVFrame *whole = av_frame_clone(f);
        if (!whole)
                return AVERROR(ENOMEM);
        whole->width = all->width;
        whole->height = all->height;
        int r = transfer(to, pool, whole) ? 0 : av_hwframe_transfer_data(to, whole, 0);
        to->width = f->width;
        to->height = f->height;
        av_frame_free(&whole);
        return r;
}

int hardware_fetch(const AVCodecContext *c, struct pool *pool, AVFrame *f)
{
        tell(c, f->hw_frames_ctx);
        if (!f->hw_frames_ctx)
                return 0;
        AVFrame *copy = av_frame_alloc();
        if (!copy)
                return AVERROR(ENOMEM);
        int r = copy_whole(copy, pool, f);
        if (r >= 0)
                r = av_frame_copy_props(copy, f);
        if (r >= 0) /* libavcodec has cut only the right and the lower edge on the device */
                r = av_frame_apply_cropping(copy, AV_FRAME_CROP_UNALIGNED);
        if (r >= 0) {
                av_frame_unref(f);
                av_frame_move_ref(f, copy);
        }
        av_frame_free(&copy);
        return r;
}
