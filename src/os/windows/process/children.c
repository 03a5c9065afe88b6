/* Children have handles on Windows, and their numbers may be used again once these are closed. So each handle stays
 * open until process_collect. */
#include "os/windows/process/children.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "os/process/process.h"
#include "os/windows/signals.h"

#include <psapi.h>

/* The exit status of killed processes. */
#define KILLED 0x00EE0009u

struct child {
        struct child *next;
        pid_t pid;
        HANDLE handle, wait;
};

static struct child *children;

static struct child *find(pid_t pid)
{
        struct child *c = children;
        while (c && c->pid != pid)
                c = c->next;
        return c;
}

static void CALLBACK on_end(void *user, BOOLEAN timed_out)
{
        (void)user, (void)timed_out;
        (void)signals_note(SIGCHLD);
}

bool children_add(pid_t pid, HANDLE handle)
{
        struct child *c = calloc(1, sizeof(*c));
        if (!c) {
                CloseHandle(handle);
                errno = ENOMEM;
                return false;
        }
        *c = (struct child){ .next = children, .pid = pid, .handle = handle };
        children = c;
        (void)RegisterWaitForSingleObject(&c->wait, handle, on_end, NULL, INFINITE,
                                          WT_EXECUTEONLYONCE);
        return true;
}

static bool has_ended(const struct child *c)
{
        return WaitForSingleObject(c->handle, 0) == WAIT_OBJECT_0;
}

bool process_was_killed(int status)
{
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

bool process_has_ended(pid_t pid)
{
        const struct child *c = find(pid);
        return c && has_ended(c);
}

void process_kill(pid_t pid)
{
        const struct child *c = find(pid);
        if (c)
                (void)TerminateProcess(c->handle, KILLED);
}

bool process_is_child(pid_t pid)
{
        return find(pid) != NULL;
}

pid_t process_fork(void)
{
        errno = ENOSYS;
        return -1;
}

pid_t process_ended(void)
{
        for (const struct child *c = children; c; c = c->next)
                if (has_ended(c))
                        return c->pid;
        return 0;
}

/* The status of POSIX for an exit status: a fault begins with 0xC. */
static int status_of(DWORD code)
{
        return code == KILLED                              ? SIGKILL
               : code == (DWORD)STATUS_ACCESS_VIOLATION    ? SIGSEGV
               : code == (DWORD)STATUS_ILLEGAL_INSTRUCTION ? SIGILL
               : code >= 0xC0000000                        ? SIGABRT
                                                           : W_EXITCODE((int)(code & 0xff), 0);
}

/* In units of 100 ns. */
static double seconds(const FILETIME *t)
{
        return (double)((uint64_t)t->dwHighDateTime << 32 | t->dwLowDateTime) / 1e7;
}

void process_collect(pid_t pid, int *ret_status, struct process_usage *ret_usage)
{
        struct child *c = find(pid), **at = &children;
        FILETIME begun, ended, kernel = { 0 }, user = { 0 };
        PROCESS_MEMORY_COUNTERS memory = { 0 };
        DWORD code = 1;
        if (!c)
                return;
        (void)WaitForSingleObject(c->handle, INFINITE);
        if (!GetExitCodeProcess(c->handle, &code))
                (void)GetExitCodeThread(c->handle, &code);
        (void)GetProcessTimes(c->handle, &begun, &ended, &kernel, &user);
        (void)GetProcessMemoryInfo(c->handle, &memory, sizeof(memory));
        if (ret_status)
                *ret_status = status_of(code);
        if (ret_usage)
                *ret_usage =
                        (struct process_usage){ .cpu_s = seconds(&kernel) + seconds(&user),
                                                .memory_peak_bytes = memory.PeakWorkingSetSize };
        while (*at != c)
                at = &(*at)->next;
        *at = c->next;
        if (c->wait)
                (void)UnregisterWaitEx(c->wait, INVALID_HANDLE_VALUE);
        CloseHandle(c->handle);
        free(c);
}
