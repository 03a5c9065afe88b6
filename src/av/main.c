/* media-av session|own LEVEL [DEVICE]: a process of a media device, with libavcodec (backend/media/av_process.h).
 * Standard input is the socket of its requests. It has one stream and ends with it. `own`: it was not started within a
 * session's sandbox. LEVEL: of its log. DEVICE: the device that decodes (av/hardware.h). */
#include <stdio.h>
#include <string.h>

#include "av/hardware.h"
#include "av/serve.h"
#include "base/log.h"
#include "os/process/process.h"
#include "sandbox/sandbox.h"

static enum codec_result open_stream(const struct av_server *s, const struct av_request *r,
                                     uint8_t *out, struct av_stream **ret)
{
        (void)s;
        return r->kind == AV_ENCODER   ? av_encoder_open(r, ret)
               : r->kind == AV_DECODER ? av_decoder_open(r, out, ret)
                                       : CODEC_DAMAGED;
}

int main(int argc, char **argv)
{
        struct av_server server = { .open = open_stream };
        int level = argc > 2 ? log_level_parse(argv[2]) : -1;
        if (level < 0 || argc > 4 ||
            (strcmp(argv[1], "own") != 0 && strcmp(argv[1], "session") != 0)) {
                fputs("media-av is started by SpanCL's media device\n", stderr);
                return 2;
        }
        log_threshold = (enum log_level)level;
        bool device = argc == 4 && hardware_open(argv[3]);
        if (!sandbox_enter_media(!strcmp(argv[1], "own"), device))
                return 1;
        server.codecs = av_encoders() | av_decoders();
        av_serve(0, &server);
        process_exit(0); /* the system frees everything */
}
