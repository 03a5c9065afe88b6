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

/* Parse a value of --media-sink, and take it over; it must stay in place. False: it is wrong, or out of memory. */
bool output_take(char *value, struct output *ret);

/* Log each sink whose format libavformat does not know, or whose folder does not exist. */
void outputs_check(const struct output *outputs, size_t count);

/* Make and lock the file of the sink, or the next one if its path has a number. -1: the log says why. */
SP_NODISCARD int output_open(const struct output *o);

/* Clear the URL. */
void output_forget(struct output *o);

#endif
