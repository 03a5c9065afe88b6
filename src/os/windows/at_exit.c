#include "os/at_exit.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <windows.h>

static void (*function)(void);

static int run_once(void)
{
        static atomic_bool done;
        if (!atomic_exchange(&done, 1))
                function();
        return 0;
}

/* Register with one C library, if the process has it. Both functions take the same argument; one returns it. */
static void register_with(const wchar_t *library, const char *name)
{
        HMODULE module = GetModuleHandleW(library);
        FARPROC found = module ? GetProcAddress(module, name) : NULL;
        void *(*take)(int (*run)(void));
        if (!found)
                return;
        memcpy(&take, &found, sizeof(take));
        (void)take(run_once);
}

void at_exit_register(void (*run)(void))
{
        function = run;
        register_with(L"msvcrt.dll", "_onexit");
        register_with(L"ucrtbase.dll", "_crt_atexit");
}
