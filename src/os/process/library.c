#include "os/process/library.h"

#include <dlfcn.h>
#include <stddef.h>

struct library *library_load(const char *name, unsigned flags)
{
        return dlopen(name, RTLD_LOCAL | (flags & LIBRARY_LAZY ? RTLD_LAZY : RTLD_NOW) |
                                    (flags & LIBRARY_FOR_EVER ? RTLD_NODELETE : 0));
}

void library_unload(struct library *l)
{
        dlclose(l);
}

void *library_symbol(struct library *l, const char *name)
{
        return dlsym(l, name);
}

const char *library_error(void)
{
        const char *why = dlerror();
        return why ? why : "?";
}
