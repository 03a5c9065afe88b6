/* The decoders of the module, each as far as its library was found. */
#ifndef SPANCL_MEDIA_CODECS_H
#define SPANCL_MEDIA_CODECS_H

#include "backend/media/codec.h"

extern const struct codec codec_h264, codec_hevc, codec_av1;

#endif
