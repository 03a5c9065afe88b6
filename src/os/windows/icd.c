/* The loader reads a key of the registry: the name of each value is a library's path, and its number is 0. */
#include "os/icd.h"

#include <errno.h>

#include "os/process/library_name.h"
#include "os/windows/descriptor.h"
#include "os/windows/wide.h"

#include <windows.h>

#define VENDORS L"SOFTWARE\\Khronos\\OpenCL\\Vendors"

/* Set errno to the reason. */
static int refuse(LSTATUS reason)
{
        SetLastError((DWORD)reason);
        (void)descriptor_fail_system();
        return SP_E_LIMIT;
}

int icd_register(const char *library)
{
        wchar_t path[WIDE_MAX];
        const DWORD in_use = 0;
        HKEY key;
        if (!wide_path(library, path))
                return SP_E_LIMIT;
        LSTATUS r = RegCreateKeyExW(HKEY_LOCAL_MACHINE, VENDORS, 0, NULL, 0,
                                    KEY_SET_VALUE | KEY_WOW64_64KEY, NULL, &key, NULL);
        if (r)
                return refuse(r);
        r = RegSetValueExW(key, path, 0, REG_DWORD, (const BYTE *)&in_use, sizeof(in_use));
        RegCloseKey(key);
        return r ? refuse(r) : 0;
}

int icd_unregister(const char *library)
{
        wchar_t path[WIDE_MAX];
        HKEY key;
        if (!wide_path(library, path))
                return SP_E_LIMIT;
        LSTATUS r = RegOpenKeyExW(HKEY_LOCAL_MACHINE, VENDORS, 0, KEY_SET_VALUE | KEY_WOW64_64KEY,
                                  &key);
        if (!r) {
                r = RegDeleteValueW(key, path);
                RegCloseKey(key);
        }
        return r == ERROR_FILE_NOT_FOUND ? SP_E_NOENT : r ? refuse(r) : 0;
}

void icd_each(void (*each)(void *user, const char *library), void *user)
{
        wchar_t path[WIDE_MAX];
        char text[PATH_MAX];
        HKEY key;
        if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, VENDORS, 0, KEY_QUERY_VALUE | KEY_WOW64_64KEY, &key))
                return;
        for (DWORD i = 0;; i++) {
                DWORD n = WIDE_MAX, type, off, size = sizeof(off);
                LSTATUS r = RegEnumValueW(key, i, path, &n, NULL, &type, (BYTE *)&off, &size);
                if (r == ERROR_MORE_DATA)
                        continue; /* another type of value */
                if (r)
                        break;
                if (type == REG_DWORD && !off && wide_path_text(path, text, sizeof(text)))
                        each(user, text);
        }
        RegCloseKey(key);
}

/* Drivers are not only in this key, but also in those of their devices. OpenCL.dll knows all. Wine's passes the
 * calls on to the loader of the Linux host, whose objects this process can't look into. */
const char *icd_loader(void)
{
        return LIBRARY_LOADER;
}

bool icd_path(const char *path, char ret[PATH_MAX])
{
        wchar_t wide[WIDE_MAX];
        return wide_path(path, wide) && wide_text(wide, ret, PATH_MAX);
}
