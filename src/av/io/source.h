/* Sources: streams that libavformat reads. */
#ifndef SPANCL_AV_IO_SOURCE_H
#define SPANCL_AV_IO_SOURCE_H

#include "av/serve.h"

/* Prepare libavformat, once, before a sandbox. */
void source_prepare(void);

/* Open `s->url`, as av_server.open. CODEC_FORMAT: it can't be opened, or has no video. */
enum codec_result source_open(const struct av_server *s, const struct av_request *r, uint8_t *out,
                              struct av_stream **ret);

#endif
