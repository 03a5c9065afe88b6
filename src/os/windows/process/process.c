/* This process. It has no children: those of the other system are copies (fork), or are started by
 * os/process/child.h. */
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

/* Users are no numbers here: each is another than root. */
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

bool process_has_ended(pid_t pid)
{
        (void)pid;
        return true;
}

void process_kill(pid_t pid)
{
        (void)pid;
}

void process_collect(pid_t pid, int *ret_status, struct process_usage *ret_usage)
{
        (void)pid;
        if (ret_status)
                *ret_status = 0;
        if (ret_usage)
                *ret_usage = (struct process_usage){ 0 };
}
