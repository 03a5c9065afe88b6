/* A picture of a timeline as SVG: a row for each thread, queue and lane, bars for what happened there, arrows for
 * migrations, lines for lost links. It shows the time in which devices computed, or all if none did. No state. */
#ifndef SPANCL_CLI_TRACE_PICTURE_H
#define SPANCL_CLI_TRACE_PICTURE_H

#include <stdio.h>

#include "cli/trace/file.h"

enum {
        PICTURE_ROWS_MAX = 200, /* the rest is left out, and the picture says so */
        PICTURE_BARS_MAX = 1 << 16,
};

/* Errors of the file are the stream's. SP_E_NOMEM; SP_E_NOENT: the timeline has no slices. */
SP_NODISCARD int picture_draw(FILE *to, const struct trace_file *f);

#endif
