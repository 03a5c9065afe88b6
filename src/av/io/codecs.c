#include "av/io/codecs.h"

#include <libavutil/pixfmt.h>

#include "backend/media/av_message.h"
#include "backend/media/kernels.h"

static const enum AVCodecID ids[MEDIA_CODECS_MAX] = {
        [MEDIA_H264] = AV_CODEC_ID_H264,   [MEDIA_HEVC] = AV_CODEC_ID_HEVC,
        [MEDIA_AV1] = AV_CODEC_ID_AV1,     [MEDIA_MPEG2] = AV_CODEC_ID_MPEG2VIDEO,
        [MEDIA_MPEG4] = AV_CODEC_ID_MPEG4, [MEDIA_VP8] = AV_CODEC_ID_VP8,
        [MEDIA_VP9] = AV_CODEC_ID_VP9,     [MEDIA_MJPEG] = AV_CODEC_ID_MJPEG,
};

uint32_t codecs_number(const AVCodecParameters *p)
{
        if (p->codec_id == AV_CODEC_ID_RAWVIDEO)
                return p->format == AV_PIX_FMT_YUV420P ? AV_RAW : 0;
        for (uint32_t i = 0; i < MEDIA_CODECS_MAX; i++)
                if (ids[i] == p->codec_id)
                        return i + 1;
        return 0;
}

enum AVCodecID codecs_id(uint32_t number)
{
        if (number == AV_RAW)
                return AV_CODEC_ID_RAWVIDEO;
        return number && number <= MEDIA_CODECS_MAX ? ids[number - 1] : AV_CODEC_ID_NONE;
}
