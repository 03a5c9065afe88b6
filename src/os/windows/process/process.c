/* This process. process/children.c has the functions for children. */
#include "os/process/process.h"

#include <errno.h>
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

/* Children begin in a job that ends them with their parent (process/start.c). */
void process_end_with_parent(void)
{
}

/* New processes begin such groups (process/start.c). */
void process_begin_group(void)
{
}

/* A new file is its user's alone (access.h). */
unsigned process_file_mask(unsigned mask)
{
        return mask;
}

/* Windows has no limit of handles that a process could reach before it lacks memory. */
uint64_t process_files_max(void)
{
        return 1 << 24;
}

void process_files_raise(uint64_t wanted)
{
        (void)wanted;
}

/* ExitProcess, which _exit calls, first ends all other threads and then runs code of the libraries. Drivers hang there,
 * and no thread is left that could end the process. */
void process_exit(int status)
{
        (void)TerminateProcess(GetCurrentProcess(), (UINT)status);
        abort(); /* not reached */
}

void process_priority(int nice)
{
        (void)SetThreadPriority(GetCurrentThread(), nice > 0   ? THREAD_PRIORITY_BELOW_NORMAL
                                                    : nice < 0 ? THREAD_PRIORITY_ABOVE_NORMAL
                                                               : THREAD_PRIORITY_NORMAL);
}
