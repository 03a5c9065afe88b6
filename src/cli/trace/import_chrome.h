/* A reader of another program's timeline in the JSON of Chrome's trace viewer, as an object or as an array of events.
 * Its processes and threads become rows. It takes slices (X, B and E), moments (i, I), curves (C) and names. The text
 * may be anyone's. No state. */
#ifndef SPANCL_CLI_TRACE_IMPORT_CHROME_H
#define SPANCL_CLI_TRACE_IMPORT_CHROME_H

#include <stddef.h>

#include "cli/trace/imported.h"

/* Add the events of a text. SP_E_PROTO: it is no such timeline; SP_E_NOMEM. */
SP_NODISCARD int import_chrome(struct imported *s, const char *text, size_t size);

#endif
