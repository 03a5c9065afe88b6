#include "os/windows/wide.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <windows.h>

static bool too_long(void)
{
        errno = ENAMETOOLONG;
        return false;
}

bool wide_of(const char *text, wchar_t ret[WIDE_MAX])
{
        return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, ret, WIDE_MAX) ||
               MultiByteToWideChar(CP_ACP, 0, text, -1, ret, WIDE_MAX) || too_long();
}

bool wide_path(const char *path, wchar_t ret[WIDE_MAX])
{
        if ((path[0] == '/' || path[0] == '\\') && isalpha((unsigned char)path[1]) &&
            path[2] == ':')
                path++;
        if (!wide_of(path, ret))
                return false;
        for (wchar_t *p = ret; *p; p++)
                if (*p == L'/')
                        *p = L'\\';
        return true;
}

bool wide_text(const wchar_t *text, char *ret, size_t size)
{
        return WideCharToMultiByte(CP_UTF8, 0, text, -1, ret, (int)size, NULL, NULL) || too_long();
}

bool wide_path_text(const wchar_t *path, char *ret, size_t size)
{
        bool drive = path[0] && path[1] == L':';
        if (size < 2)
                return too_long();
        if (drive)
                *ret = '/';
        if (!wide_text(path, ret + drive, size - drive))
                return false;
        for (char *p = ret; *p; p++)
                if (*p == '\\')
                        *p = '/';
        return true;
}
