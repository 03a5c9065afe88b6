/* Functions of POSIX and GNU that the C library of Windows lacks. */
#ifndef SPANCL_OS_WINDOWS_POSIX_STDLIB_H
#define SPANCL_OS_WINDOWS_POSIX_STDLIB_H

#include_next <stdlib.h>

/* free() takes the memory of these two, so it begins at multiples of 16 bytes like all memory, also where `alignment`
 * is more. */
int posix_memalign(void **ret, size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
char *secure_getenv(const char *name);
void qsort_r(void *all, size_t count, size_t size,
             int (*compare)(const void *a, const void *b, void *user), void *user);

#endif
