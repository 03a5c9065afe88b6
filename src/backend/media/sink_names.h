/* The values NAME[,SETTING]...=URL of --media-sink. Stateless. */
#ifndef SPANCL_BACKEND_MEDIA_SINK_NAMES_H
#define SPANCL_BACKEND_MEDIA_SINK_NAMES_H

#include "backend/media/av_message.h"
#include "config/options.h"

enum {
        MEDIA_SINK_MIB = 1024, /* of a file, if no setting says so */
        MEDIA_SINK_FILES = 10, /* of a path with a number, the same */
        MEDIA_SINK_FILES_MAX = 1000,
        MEDIA_FORMAT_MAX = 32, /* bytes of a format's name, with a NUL */
};

struct media_sink {
        char name[AV_NAME_MAX];
        char format[MEDIA_FORMAT_MAX]; /* libavformat's name; "": as the URL says */
        bool overwrite;
        unsigned mib, files;
        const char *url, *path; /* of the value; `path` NULL: it is no file */
};

#define MEDIA_SINK_NUMBER "%d" /* in a path: the number of a file */

/* Parse a value. False: it is none. */
bool media_sink_parse(const char *value, struct media_sink *ret);

/* Return the bytes of the name; 0: this is no such value. */
size_t media_sink_name(const char *value);

/* Check form, number and names of all sinks. False: `ret_wrong` says what is wrong, without a URL. */
bool media_sinks_check(const struct config_options *o, char *ret_wrong, size_t size);

#endif
