/* Decoders of libavcodec, each in a process of its own (av_process.h), behind the table of codec.h. Its `open` is NULL:
 * av_codec_open takes its place. */
#ifndef SPANCL_BACKEND_MEDIA_AV_CODEC_H
#define SPANCL_BACKEND_MEDIA_AV_CODEC_H

#include "backend/media/av_process.h"

extern const struct codec av_codec;

/* Errors as of av_process_start. */
SP_NODISCARD enum codec_result av_codec_open(struct av_processes *all, enum av_decoder which,
                                             const struct codec_limits *limits,
                                             struct codec_decoder **ret);

#endif
