/* The text of --media. Stateless. */
#ifndef SPANCL_BACKEND_MEDIA_SETTINGS_H
#define SPANCL_BACKEND_MEDIA_SETTINGS_H

#include "backend/media/av_message.h"

struct media_settings {
        struct codec_limits limits;
        unsigned streams;           /* decoders at a time */
        char device[AV_DEVICE_MAX]; /* that decodes, as TYPE or TYPE:NAME; "": none */
};

/* Parse `on`, or settings separated by commas: size=WIDTHxHEIGHT, threads=N, streams=N,
 * device=TYPE[:NAME]. Without one its default holds: 4096x2304, 2, 16, none. SP_E_INVAL. */
SP_NODISCARD int media_settings_parse(const char *text, struct media_settings *ret);

#endif
