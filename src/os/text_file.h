/* Small text files, as the kernel has them in /proc and in control groups, read or written at once.
 * No state. */
#ifndef SPANCL_OS_TEXT_FILE_H
#define SPANCL_OS_TEXT_FILE_H

#include <stddef.h>

#include "base/status.h"

/* Write to the file `path` below the folder `dir` (AT_FDCWD: the current one). It must exist and be
 * no link. Returns 0 or a negative errno. */
SP_NODISCARD int text_file_write(int dir, const char *path, const char *text);

/* Read up to `size` - 1 bytes of it, with a NUL behind. "": it can't be read. */
void text_file_read(int dir, const char *path, char *ret, size_t size);

#endif
