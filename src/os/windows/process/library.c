#include "os/process/library.h"

#include <stdio.h>
#include <string.h>

#include "os/windows/wide.h"

#include <windows.h>

static _Thread_local DWORD last_error;

struct library *library_load(const char *name, unsigned flags)
{
        wchar_t wide[WIDE_MAX];
        HMODULE unused, library = NULL;
        /* Neither the current folder nor PATH. The libraries that it needs may be in its own folder. */
        const DWORD where = LOAD_LIBRARY_SEARCH_DEFAULT_DIRS |
                            (strpbrk(name, "/\\") ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR : 0);
        if (wide_path(name, wide))
                library = LoadLibraryExW(wide, NULL, where);
        last_error = library ? 0 : GetLastError();
        if (library && flags & LIBRARY_FOR_EVER)
                (void)GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN |
                                                 GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                                         (LPCWSTR)(const void *)library, &unused);
        return (struct library *)library;
}

void library_unload(struct library *l)
{
        (void)FreeLibrary((HMODULE)l);
}

void *library_symbol(struct library *l, const char *name)
{
        FARPROC found = GetProcAddress((HMODULE)l, name);
        void *ret;
        last_error = found ? 0 : GetLastError();
        memcpy(&ret, &found, sizeof(ret));
        return ret;
}

const char *library_path(struct library *l)
{
        static _Thread_local char text[WIDE_MAX];
        wchar_t path[WIDE_MAX];
        DWORD n = GetModuleFileNameW((HMODULE)l, path, WIDE_MAX);
        return n && n < WIDE_MAX && wide_path_text(path, text, sizeof(text)) ? text : NULL;
}

const char *library_error(void)
{
        static _Thread_local char text[64];
        snprintf(text, sizeof(text), "error %lu of Windows", last_error);
        return text;
}
