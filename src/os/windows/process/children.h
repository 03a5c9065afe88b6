/* The children of this process, by their numbers. One thread, but for children_add. */
#ifndef SPANCL_OS_WINDOWS_PROCESS_CHILDREN_H
#define SPANCL_OS_WINDOWS_PROCESS_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include <windows.h>

/* Add a process, or a thread that works like one, for the functions of os/process/process.h. Its end is SIGCHLD. Takes
 * the handle; it is closed after a failure, too. False: there is no memory. */
bool children_add(pid_t pid, HANDLE handle);

#endif
