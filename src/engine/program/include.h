/* The client's header files on this host: a folder that mirrors their absolute paths, and build options
 * whose -I name folders in it. No state; any thread. */
#ifndef SPANCL_ENGINE_INCLUDE_H
#define SPANCL_ENGINE_INCLUDE_H

#include <stdbool.h>

#include "base/bytes.h"

/* Is `headers` (as in program_build) a sequence of INFO_HEADER records with absolute, normalised
 * paths? */
bool engine_include_valid(struct bytes headers);

/* Write them below `root`, which is made. SP_E_LIMIT: the file system refuses; SP_E_NOMEM. */
SP_NODISCARD int engine_include_write(const char *root, struct bytes headers);

/* `options` with each -I's folder below `root`; the folders are made as well, so that "../" in an
 * #include works. Folders with spaces or quotes get other names. *ret is the caller's (mem_free).
 * SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_include_rewrite(const char *root, const char *options, char **ret);

/* Remove the folder and all in it. */
void engine_include_remove(const char *root);

#endif
