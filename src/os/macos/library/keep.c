/* Keeps libspancl.dylib from being unloaded, because threads of the library may be in the application's callbacks. */
#include <dlfcn.h>
#include <stddef.h>

__attribute__((constructor)) static void keep(void)
{
        Dl_info own;
        if (dladdr((const void *)keep, &own) && own.dli_fname)
                (void)dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
