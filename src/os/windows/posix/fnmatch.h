/* POSIX's patterns of names. */
#ifndef SPANCL_OS_WINDOWS_POSIX_FNMATCH_H
#define SPANCL_OS_WINDOWS_POSIX_FNMATCH_H

/* Return 0 if the name matches the pattern. `flags` is 0. */
int fnmatch(const char *pattern, const char *name, int flags);

#endif
