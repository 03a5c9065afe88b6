#include "os/process/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

const char *library_path(struct library *l)
{
        struct link_map *map;
        return dlinfo(l, RTLD_DI_LINKMAP, &map) ? NULL : map->l_name;
}
