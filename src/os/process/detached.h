/* Programs that are no children of this process, and whose output it reads. No state; any thread. */
#ifndef SPANCL_OS_PROCESS_DETACHED_H
#define SPANCL_OS_PROCESS_DETACHED_H

#include <stdbool.h>

#include "base/status.h"

/* Start the program `argv[0]`, a path, with the environment of this process, or with none if this
 * process has more rights than its user (setuid). *ret_fd is the reading end of a pipe from its
 * standard output: non-blocking, closed on exec; the caller closes it, and the program then ends.
 * Standard input is empty. Standard error is this process's, or nothing if `quiet`.
 *
 * The program is no child of this process: wait() does not see it, and no SIGCHLD comes for it. The
 * init process, or the nearest subreaper, is its parent. It has a session (setsid) of its own, so
 * that the terminal's signals do not reach it; all its signals have their default actions, and none
 * is blocked. It has no descriptor of this process but 0, 1 and 2.
 *
 * SP_E_NOENT: it can't be executed, errno says why; SP_E_LIMIT: errno says why; SP_E_NOMEM. */
SP_NODISCARD int detached_start(char *const argv[], bool quiet, int *ret_fd);

/* The same, but the program's standard input is one end of a pair of sockets for packets, and *ret_fd is the other end;
 * standard output is empty. *ret_id is the program's number, for detached_collect, also after an error; 0: none. */
SP_NODISCARD int detached_start_socket(char *const argv[], bool quiet, int *ret_fd, int *ret_id);

/* Collect the program, if this process has become its parent, as the nearest subreaper. Does not wait. False: it runs
 * still. 0 is allowed. A process that is neither its parent nor will become that must not call this: the number may be
 * another child's. */
SP_NODISCARD bool detached_collect(int id);

#endif
