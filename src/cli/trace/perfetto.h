/* A timeline file in Perfetto's own format: smaller than the JSON, and read faster by ui.perfetto.dev and by the
 * programs of Perfetto. No state. */
#ifndef SPANCL_CLI_TRACE_PERFETTO_H
#define SPANCL_CLI_TRACE_PERFETTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

/* Convert the JSON of a timeline (cli/trace/file.h) while writing it. Slices are sorted by row and time, and one that
 * does not nest in the slice around it ends with it. *ret_left_out counts events without room, and points of arrows
 * without a slice. Errors of the file are the stream's. SP_E_PROTO: it is no timeline; SP_E_NOMEM. */
SP_NODISCARD int perfetto_write(FILE *to, const char *text, size_t size, uint64_t *ret_left_out);

/* Return true if a file's name asks for this format: it ends with .pftrace or .perfetto-trace. */
bool perfetto_is_name(const char *path);

#endif
