/* The loop of a process with one stream: requests from a socket (backend/media/av_message.h). One thread. */
#ifndef SPANCL_AV_SERVE_H
#define SPANCL_AV_SERVE_H

#include "av/stream.h"

struct av_server {
        uint32_t codecs; /* for AV_HELLO */
        /* Open a stream for a request that av_request_check has passed. `out`: the memory that `next` gets. */
        enum codec_result (*open)(const struct av_server *s, const struct av_request *r,
                                  uint8_t *out, struct av_stream **ret);
        const char *url;                /* of a source or sink */
        int socket;                     /* of both: where the requests come from */
        const struct av_output *output; /* of a sink */
};

/* A sink's output, as media-io has opened it. */
struct av_output {
        const char *name, *format; /* "": as the URL says */
        int file;                  /* -1: it is none, so it is an address */
        int used;                  /* a pipe; closing it lets others open the sink */
        uint64_t bytes_max;        /* of the file */
};

/* Serve until the other side is gone, or does not keep to the protocol. */
void av_serve(int socket, const struct av_server *server);

#endif
