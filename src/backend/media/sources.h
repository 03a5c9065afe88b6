/* The socket of this worker with media-io (src/av/io), the program that has the sources of --media-source and
 * the sinks of --media-sink. One state per process, any thread. */
#ifndef SPANCL_BACKEND_MEDIA_SOURCES_H
#define SPANCL_BACKEND_MEDIA_SOURCES_H

#include "backend/media/av_process.h"
#include "backend/media/stream.h"

/* Use this socket from now on, and take it over. */
void media_sources_use(int socket);

/* A stream of a source or sink. */
struct media_named {
        struct media_stream common;
        bool open;
        struct av_process process;
        uint32_t units; /* that commands have delivered or taken since it was opened */
};

/* Open the source or sink that `open` names, if the stream is not open. CL_INVALID_VALUE: there is none of this
 * name, or the stream was opened with other values. CL_IMAGE_FORMAT_NOT_SUPPORTED: it can't be opened now, or has no
 * video, or its format does not take the codec. CL_OUT_OF_HOST_MEMORY: the session has as many as it may.
 * CL_OUT_OF_RESOURCES: media-io does not run now, or the device has as many streams as it may. */
cl_int media_named_open(struct media_named *s, const struct av_request *open);
void media_named_end(struct media_named *s); /* it may be closed already */

#endif
