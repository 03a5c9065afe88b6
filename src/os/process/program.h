/* The program that this process runs, and the programs that take its place. */
#ifndef SPANCL_OS_PROCESS_PROGRAM_H
#define SPANCL_OS_PROCESS_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "base/status.h"

/* Find the folder of this program, without a slash at the end. */
bool program_folder(char ret[PATH_MAX]);

/* Find the folder of the library that has the address `code`, or of this program if it has that. */
bool program_folder_of(const void *code, char ret[PATH_MAX]);

/* Execute another program in place of this one, with the environment of this process. `argv[0]` is a path, or a
 * name that PATH has. Returns after an error only: SP_E_NOENT: there is none; SP_E_INVAL: errno gives the reason. */
SP_NODISCARD int program_become(char *const argv[]);

#endif
