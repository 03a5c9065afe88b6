#include "os/process/program.h"

#include <errno.h>
#include <string.h>

#include "os/windows/process/start.h"
#include "os/windows/wide.h"

#include <windows.h>

static bool folder_of(HMODULE module, char ret[PATH_MAX])
{
        wchar_t path[WIDE_MAX];
        DWORD n = GetModuleFileNameW(module, path, WIDE_MAX);
        char *slash =
                n && n < WIDE_MAX && wide_path_text(path, ret, PATH_MAX) ? strrchr(ret, '/') : NULL;
        if (slash)
                *slash = 0;
        return slash != NULL;
}

bool program_folder(char ret[PATH_MAX])
{
        return folder_of(NULL, ret);
}

bool program_folder_of(const void *code, char ret[PATH_MAX])
{
        HMODULE module;
        return GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                          GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                                  (LPCWSTR)code, &module) &&
               folder_of(module, ret);
}

static BOOL WINAPI leave_to_program(DWORD event)
{
        (void)event;
        return TRUE;
}

/* No program can take the place of another. This process waits for its end and then ends in the same way. Keys such as
 * Ctrl-C are for the program alone. */
int program_become(char *const argv[])
{
        HANDLE process;
        DWORD status;
        if (!start_program(argv, NULL, &process))
                return errno == ENOENT ? SP_E_NOENT : SP_E_INVAL;
        (void)SetConsoleCtrlHandler(leave_to_program, TRUE);
        ExitProcess(start_wait(process, &status) ? status : 126);
}
