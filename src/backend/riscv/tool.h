/* External programs: finding them, running them, a folder for their files. Stateless. */
#ifndef SPANCL_BACKEND_RISCV_TOOL_H
#define SPANCL_BACKEND_RISCV_TOOL_H

#include <limits.h>
#include <stdbool.h>

#include "base/bytes.h"

/* Find the first of `names` (ends with NULL) in PATH; false: none is there. */
bool tool_find(const char *const *names, char ret[PATH_MAX]);

/* Make a private folder below `base`; NULL: in the folder for temporary files. The caller removes it
 * (folder_remove). SP_E_NOENT. */
SP_NODISCARD int tool_folder(const char *base, char ret[PATH_MAX]);

/* Run argv[0] in `folder` until it ends. Its output is appended to `log`. SP_E_INVAL: it failed;
 * SP_E_NOENT: it can't be run; SP_E_NOMEM. */
SP_NODISCARD int tool_run(const char *folder, char *const *argv, struct buf *log);

/* Read or write a whole file of the folder. SP_E_NOENT, SP_E_NOMEM. */
SP_NODISCARD int tool_read(const char *folder, const char *name, struct buf *ret);
SP_NODISCARD int tool_write(const char *folder, const char *name, const void *data, size_t size);

#endif
