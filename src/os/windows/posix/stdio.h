/* C's streams, with names of files in UTF-8. */
#ifndef SPANCL_OS_WINDOWS_POSIX_STDIO_H
#define SPANCL_OS_WINDOWS_POSIX_STDIO_H

#include_next <stdio.h>

FILE *windows_fopen(const char *path, const char *mode);
#undef fopen
#define fopen windows_fopen

/* Write to a descriptor. Returns the number of bytes, or -1. */
int dprintf(int fd, const char *format, ...);

#endif
