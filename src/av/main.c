/* media-av session|own: a process of a media device, with libavcodec (backend/media/av_process.h). Standard input is
 * the socket of its requests. It has one stream and ends with it. `own`: it was not started within a session's
 * sandbox. */
#include <stdio.h>
#include <string.h>

#include "av/serve.h"
#include "os/process/process.h"
#include "sandbox/sandbox.h"

static enum codec_result open_stream(const struct av_server *s, const struct av_request *r,
                                     struct av_stream **ret)
{
        (void)s;
        return r->kind == AV_ENCODER   ? av_encoder_open(r, ret)
               : r->kind == AV_DECODER ? av_decoder_open(r, ret)
                                       : CODEC_DAMAGED;
}

int main(int argc, char **argv)
{
        struct av_server server = { .open = open_stream };
        if (argc != 2 || (strcmp(argv[1], "own") != 0 && strcmp(argv[1], "session") != 0)) {
                fputs("media-av is started by SpanCL's media device\n", stderr);
                return 2;
        }
        if (!sandbox_enter_media(!strcmp(argv[1], "own")))
                return 1;
        server.codecs = av_encoders() | av_decoders();
        av_serve(0, &server);
        process_exit(0); /* the system frees everything */
}
