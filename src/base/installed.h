/* Files that are installed beside the library or program that this code is in. Stateless. */
#ifndef SPANCL_BASE_INSTALLED_H
#define SPANCL_BASE_INSTALLED_H

#include <limits.h>
#include <stdbool.h>

/* Where `name` is; false: nowhere. */
bool installed_find(const char *name, char ret[PATH_MAX]);

#endif
