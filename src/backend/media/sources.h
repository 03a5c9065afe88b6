/* The socket of this worker with media-io (src/av/io), the program that has the sources of --media-source and
 * the sinks of --media-sink. One state per process, any thread. */
#ifndef SPANCL_BACKEND_MEDIA_SOURCES_H
#define SPANCL_BACKEND_MEDIA_SOURCES_H

#include "backend/media/av_process.h"

/* Use this socket from now on, and take it over. */
void media_sources_use(int socket);

/* Open the source or sink that `open` names. CODEC_DAMAGED: there is none of this name; CODEC_FORMAT: it can't be
 * opened now, or has no video, or its format does not take the codec; CODEC_NO_MEMORY: the session has as many as it
 * may; CODEC_LOST: media-io does not run now. `stop`: as of av_processes_open. */
SP_NODISCARD enum codec_result media_stream_open(const struct av_request *open, int stop,
                                                 struct av_process *ret);

#endif
