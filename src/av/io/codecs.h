/* Maps the numbers of codecs of sources and sinks (docs/MEDIA.md) to libavcodec's, and back. Stateless. */
#ifndef SPANCL_AV_IO_CODECS_H
#define SPANCL_AV_IO_CODECS_H

#include <stdint.h>

#include <libavcodec/codec_par.h>

/* The number of a stream's codec; 0: it has none. */
uint32_t codecs_number(const AVCodecParameters *p);

/* AV_CODEC_ID_NONE: there is no such number. */
enum AVCodecID codecs_id(uint32_t number);

#endif
