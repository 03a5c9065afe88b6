/* The sinks that media-io has, and their files. One thread. */
#ifndef SPANCL_AV_IO_OUTPUTS_H
#define SPANCL_AV_IO_OUTPUTS_H

#include "backend/media/sink_names.h"

struct output {
        struct media_sink sink;
        char *value;        /* of the option: the sink's strings are parts of it */
        char *folder;       /* of the file */
        uint64_t bytes_max; /* of the file; 0: it is none */
};

/* Take a value of --media-sink over, which stays in place. False: it is wrong, or out of memory. */
bool output_take(char *value, struct output *ret);

/* Tell the log of sinks whose format libavformat does not know, and of folders that are not there. */
void outputs_check(const struct output *outputs, size_t count);

/* Make and lock the file of the sink, or the next one if its path has a number. -1: the log says why. */
SP_NODISCARD int output_open(const struct output *o);

/* Clear the URL. */
void output_forget(struct output *o);

#endif
