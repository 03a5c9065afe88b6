#include "os/host.h"

#include <stdio.h>
#include <string.h>

#include "os/windows/wide.h"

#include <windows.h>

void host_name(char *ret, size_t size)
{
        wchar_t name[256];
        char text[1024] = "";
        DWORD n = 256;
        if (GetComputerNameExW(ComputerNameDnsHostname, name, &n))
                (void)wide_text(name, text, sizeof(text));
        snprintf(ret, size, "%s", text);
}

void host_short_name(char *ret, size_t size, const char *otherwise)
{
        host_name(ret, size);
        ret[strcspn(ret, ".")] = 0;
        if (!*ret)
                snprintf(ret, size, "%s", otherwise);
}

void host_identity(char *ret, size_t size)
{
        wchar_t guid[64] = L"";
        DWORD n = sizeof(guid);
        char machine[200] = "", name[256];
        if (RegGetValueW(HKEY_LOCAL_MACHINE, L"SOFTWARE\\Microsoft\\Cryptography", L"MachineGuid",
                         RRF_RT_REG_SZ | RRF_SUBKEY_WOW6464KEY, NULL, guid, &n) == ERROR_SUCCESS)
                (void)wide_text(guid, machine, sizeof(machine));
        host_name(name, sizeof(name));
        snprintf(ret, size, "%s %s", machine, name);
}

void host_clock_source(char *ret, size_t size)
{
        (void)size;
        *ret = 0; /* the system does not tell */
}

void host_user(char *ret, size_t size)
{
        wchar_t name[257];
        char text[1024] = "";
        DWORD n = 257;
        if (GetUserNameW(name, &n))
                (void)wide_text(name, text, sizeof(text));
        snprintf(ret, size, "%s", text);
}
