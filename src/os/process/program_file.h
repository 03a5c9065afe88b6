/* The file of the program that this process runs, for os/process/program.c. */
#ifndef SPANCL_OS_PROCESS_PROGRAM_FILE_H
#define SPANCL_OS_PROCESS_PROGRAM_FILE_H

#include <limits.h>
#include <stdbool.h>

/* Find the absolute path of that file. False: it is not known. */
bool program_file(char ret[PATH_MAX]);

#endif
