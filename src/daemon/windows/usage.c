/* A session has one process (sandbox/windows/job.c), which the system describes by its number. */
#include "daemon/system/usage.h"

#include "os/file.h"

#include <windows.h>

#include <psapi.h>

/* The measurement needs the number alone; this is any open file. */
int usage_folder(pid_t pid)
{
        (void)pid;
        return file_open_both("NUL", false);
}

bool usage_can_inspect(int folder)
{
        (void)folder;
        return true;
}

/* In units of 100 ns. */
static uint64_t ns_of(const FILETIME *t)
{
        return ((uint64_t)t->dwHighDateTime << 32 | t->dwLowDateTime) * 100;
}

uint64_t usage_cpu_ns(pid_t pid)
{
        FILETIME begun, ended, kernel = { 0 }, user = { 0 };
        HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, (DWORD)pid);
        if (!process)
                return 0;
        (void)GetProcessTimes(process, &begun, &ended, &kernel, &user);
        CloseHandle(process);
        return ns_of(&kernel) + ns_of(&user);
}

int usage_measure(const struct usage_params *p, struct usage *ret)
{
        PROCESS_MEMORY_COUNTERS_EX memory = { 0 };
        DWORD status = 0;
        HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_VM_READ, FALSE,
                                     (DWORD)p->pid);
        if (!process)
                return SP_E_GONE;
        bool ok = GetExitCodeProcess(process, &status) && status == STILL_ACTIVE &&
                  GetProcessMemoryInfo(process, (PROCESS_MEMORY_COUNTERS *)&memory, sizeof(memory));
        CloseHandle(process);
        if (!ok)
                return SP_E_GONE;
        *ret = (struct usage){ .tasks = 1, .memory_bytes = memory.PrivateUsage };
        return 0;
}
