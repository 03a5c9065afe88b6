#include "os/process/program.h"

#include <string.h>

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

/* No program can take the place of another. */
int program_become(char *const argv[])
{
        (void)argv;
        return SP_E_INVAL;
}
