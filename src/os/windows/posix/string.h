/* Functions of POSIX and GNU that the C library of Windows lacks. */
#ifndef SPANCL_OS_WINDOWS_POSIX_STRING_H
#define SPANCL_OS_WINDOWS_POSIX_STRING_H

#include_next <string.h>

#include <stddef.h>

void *memmem(const void *data, size_t size, const void *what, size_t what_size);
void *memrchr(const void *data, int c, size_t size);
char *strchrnul(const char *s, int c);
char *strndup(const char *s, size_t size);
char *stpcpy(char *to, const char *from);
char *strsep(char **s, const char *separators);
void explicit_bzero(void *data, size_t size);

#endif
