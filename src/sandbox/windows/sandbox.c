/* The rights that a process gives up by itself. Its job object (job.c) is the other part of the sandbox. Windows has no
 * filter of system calls for a process to set, and no limit of files, so a worker has the rights of the server's
 * user. */
#include "sandbox/sandbox.h"

#include "base/log.h"
#include "sandbox/calls.h"
#include "sandbox/files.h"
#include "sandbox/limits.h"

#include <stdlib.h>

#include <windows.h>

#define LOG "sandbox"

uint64_t limits_memory_bytes(const struct config_options *o)
{
        return config_option_number(o, CONFIG_session_memory) << 20;
}

/* Remove all privileges but the one that every process has (SeChangeNotifyPrivilege), for good. */
static bool drop_privileges(void)
{
        HANDLE token;
        LUID keep;
        DWORD size = 0;
        if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY | TOKEN_ADJUST_PRIVILEGES, &token))
                return false;
        (void)GetTokenInformation(token, TokenPrivileges, NULL, 0, &size);
        TOKEN_PRIVILEGES *all = size ? malloc(size) : NULL;
        bool ok = all && GetTokenInformation(token, TokenPrivileges, all, size, &size) &&
                  LookupPrivilegeValueW(NULL, L"SeChangeNotifyPrivilege", &keep);
        for (DWORD i = 0; ok && i < all->PrivilegeCount; i++) {
                const LUID *one = &all->Privileges[i].Luid;
                if (one->LowPart != keep.LowPart || one->HighPart != keep.HighPart)
                        all->Privileges[i].Attributes = SE_PRIVILEGE_REMOVED;
        }
        ok = ok && AdjustTokenPrivileges(token, FALSE, all, 0, NULL, NULL);
        free(all);
        CloseHandle(token);
        return ok;
}

static bool enter(const struct config_options *o)
{
        if (!config_option_flag(o, CONFIG_sandbox) || drop_privileges())
                return true;
        log_error(LOG, "the privileges of a process can't be dropped: error %lu of Windows",
                  GetLastError());
        return false;
}

bool sandbox_enter(struct user *u, const struct config_options *o,
                   const struct sandbox_folders *folders, int *ret_refusals)
{
        (void)u, (void)folders;
        *ret_refusals = -1;
        return enter(o);
}

bool sandbox_enter_dialler(const struct config_options *o)
{
        return enter(o);
}

/* It makes memory of NVIDIA's GPUs by Linux' descriptors. */
bool sandbox_enter_allocator(const struct config_options *o)
{
        (void)o;
        return false;
}

bool user_lay_aside(struct user *u, const struct config_options *o, const char *scratch_dir)
{
        (void)o, (void)scratch_dir;
        *u = (struct user){ 0 };
        return true;
}

bool files_outdated(void)
{
        return false;
}

/* There are no system calls to name (config/windows/absent.c refuses --sandbox-allow). */
bool calls_known(const char *allowed, char *text, size_t size)
{
        (void)allowed, (void)text, (void)size;
        return true;
}
