/* The list of OpenCL implementations that the system's ICD loader gives to all programs. No state. */
#ifndef SPANCL_OS_ICD_H
#define SPANCL_OS_ICD_H

#include <limits.h>
#include <stdbool.h>

#include "base/status.h"

/* Add a library to the list, or remove it; the path is absolute. SP_E_UNSUPP: the loader of this system reads files of
 * packages, and has no list to change; SP_E_NOENT: the library is not in the list; SP_E_LIMIT: errno gives the
 * reason. */
SP_NODISCARD int icd_register(const char *library);
SP_NODISCARD int icd_unregister(const char *library);

/* Call `each` for the libraries of the list, in its order; `library` is borrowed for the call. */
void icd_each(void (*each)(void *user, const char *library), void *user);

/* Return the library that lists all implementations of this host and exports OpenCL's functions for them: the system's
 * own loader. NULL: programs can find and load the implementations themselves. */
const char *icd_loader(void);

/* Write a path in the form that the loader needs in environment variables. False: it is too long. */
bool icd_path(const char *path, char ret[PATH_MAX]);

#endif
