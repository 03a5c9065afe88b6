/* Text and paths between UTF-8 and the system's UTF-16. Absolute paths have the form "/C:/folder/file" outside of this
 * folder, so that they begin with a slash as on Linux. No state; any thread. */
#ifndef SPANCL_OS_WINDOWS_WIDE_H
#define SPANCL_OS_WINDOWS_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

enum { WIDE_MAX = 4096 };

/* Convert text in UTF-8, or else in the code page of the system. False, with ENAMETOOLONG: it is too long. */
bool wide_of(const char *text, wchar_t ret[WIDE_MAX]);

/* Convert a path, also one that begins with a drive letter or has backslashes. */
bool wide_path(const char *path, wchar_t ret[WIDE_MAX]);

/* Convert to UTF-8. False, with ENAMETOOLONG: there is no room. */
bool wide_text(const wchar_t *text, char *ret, size_t size);

/* Convert a path of the system, such as "C:\folder". */
bool wide_path_text(const wchar_t *path, char *ret, size_t size);

#endif
