/* Finds files that are installed beside the library or program that has this code. Stateless. */
#ifndef SPANCL_BASE_INSTALLED_H
#define SPANCL_BASE_INSTALLED_H

#include <limits.h>
#include <stdbool.h>

/* Find the file `name`. False: it is not installed. */
bool installed_find(const char *name, char ret[PATH_MAX]);

#endif
