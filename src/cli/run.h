/* spancl run: executes a program in an environment where its OpenCL is SpanCL. spancl install and uninstall: change the
 * system's list of OpenCL implementations. */
#ifndef SPANCL_CLI_RUN_H
#define SPANCL_CLI_RUN_H

#include <limits.h>
#include <stdbool.h>

#include "os/process/child.h"

int command_run(int argc, char **argv);

/* Register the library with the system's ICD loader (os/icd.h), or remove it from the loader's list. Return the
 * program's exit status. */
int command_install(int argc, char **argv);
int command_uninstall(int argc, char **argv);

/* Find libspancl relative to this program: in the build tree, or in the installation prefix. */
bool run_library(char out[PATH_MAX]);

/* Check the servers' names. Set up the environment so that a program's ICD loader finds only SpanCL, with these servers
 * (NULL: as configured). On an error it has printed it. */
SP_NODISCARD int run_prepare(const char *servers);

/* Execute another program in place of this one. Returns the exit status after an error, which it has printed. */
int run_execute(char **argv);

/* Start another program, whose output this process reads. If it can't be executed, its exit status says so, as a
 * shell's does, and the error is printed. SP_E_LIMIT: errno gives the reason. */
SP_NODISCARD int run_start(char *const argv[], struct child *ret);

/* Run another program until its end, with the standard input and output of this one. Ctrl-C is for that program alone.
 * Returns its status as a shell gives it. */
int run_until_end(char **argv);

#endif
