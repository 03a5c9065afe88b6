/* Programs that this process runs for their output files. No state; any thread. */
#ifndef SPANCL_OS_PROCESS_TOOL_H
#define SPANCL_OS_PROCESS_TOOL_H

#include "base/status.h"

/* Run the program `argv[0]`, a path, in `folder` until it ends. Standard output and error go to the file `out`, which
 * it makes for this user alone. SP_E_INVAL: it failed; SP_E_NOENT: it can't be run. If the application collects its
 * children elsewhere, the result is not known, and 0 is returned. */
SP_NODISCARD int tool_execute(const char *folder, const char *out, char *const *argv);

#endif
