/* Sinks: files and streams that libavformat writes. */
#ifndef SPANCL_AV_IO_SINK_H
#define SPANCL_AV_IO_SINK_H

#include "av/serve.h"

/* Open `s->output`, as av_server.open. CODEC_FORMAT: there is no such format, or it does not take the codec, or the
 * address can't be reached. If the output is a file, this process gets no further descriptors. */
enum codec_result sink_open(const struct av_server *s, const struct av_request *r, uint8_t *out,
                            struct av_stream **ret);

/* Return true if libavformat knows the format of such an output. */
bool sink_has_format(const char *format, const char *url);

/* Complete the open stream, because no more requests come. */
void sink_end(void);

#endif
