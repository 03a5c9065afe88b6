#include "os/folder.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

int folder_make(const char *path)
{
        char part[PATH_MAX];
        size_t n = strlen(path);
        if (n >= sizeof(part)) {
                errno = ENAMETOOLONG;
                return SP_E_LIMIT;
        }
        memcpy(part, path, n + 1);
        for (size_t i = 1; i <= n; i++) {
                if (path[i] && path[i] != '/')
                        continue;
                part[i] = 0;
                if (mkdir(part, 0700) < 0 && errno != EEXIST)
                        return SP_E_LIMIT;
                part[i] = path[i];
        }
        return 0;
}
