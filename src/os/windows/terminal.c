#include "os/terminal.h"

#include <io.h>

#include <windows.h>

int terminal_keep(void)
{
        return SP_E_UNSUPP;
}

void terminal_read_keys(void)
{
}

void terminal_restore(void)
{
}

void terminal_write(const char *data, size_t size)
{
        while (size) {
                int n = _write(1, data, (unsigned)size);
                if (n <= 0)
                        return;
                data += n;
                size -= (size_t)n;
        }
}

void terminal_never_pause(void)
{
        HANDLE console = GetStdHandle(STD_INPUT_HANDLE);
        DWORD mode;
        if (GetConsoleMode(console, &mode))
                (void)SetConsoleMode(console, (mode & ~(DWORD)ENABLE_QUICK_EDIT_MODE) |
                                                      ENABLE_EXTENDED_FLAGS);
}

void terminal_size(int *ret_width, int *ret_height)
{
        CONSOLE_SCREEN_BUFFER_INFO info;
        *ret_width = 80;
        *ret_height = 24;
        if (!GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &info))
                return;
        *ret_width = info.srWindow.Right - info.srWindow.Left + 1;
        *ret_height = info.srWindow.Bottom - info.srWindow.Top + 1;
}
