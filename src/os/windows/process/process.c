/* This process. The port has no functions for children, because no part that is built for Windows has children. */
#include "os/process/process.h"

#include <errno.h>
#include <process.h>
#include <stdlib.h>

#include <windows.h>

pid_t process_self(void)
{
        return (pid_t)GetCurrentProcessId();
}

pid_t process_parent(void)
{
        return 0;
}

/* Users have no numbers on Windows. Each is another user than root. */
unsigned process_user(void)
{
        return 1;
}

void process_name(const char *name)
{
        (void)name;
}

void process_exit(int status)
{
        _exit(status);
}

void process_priority(int nice)
{
        (void)SetThreadPriority(GetCurrentThread(), nice > 0   ? THREAD_PRIORITY_BELOW_NORMAL
                                                    : nice < 0 ? THREAD_PRIORITY_ABOVE_NORMAL
                                                               : THREAD_PRIORITY_NORMAL);
}
