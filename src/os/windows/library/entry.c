/* The entry point of spancl.dll. It keeps the library from being unloaded, because threads of the library may be in the
 * application's callbacks. */
#include <windows.h>

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, LPVOID reserved);

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, LPVOID reserved)
{
        HMODULE unused;
        (void)library, (void)reserved;
        if (reason == DLL_PROCESS_ATTACH)
                (void)GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN |
                                                 GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                                         (LPCWSTR)(const void *)DllMain, &unused);
        return TRUE;
}
