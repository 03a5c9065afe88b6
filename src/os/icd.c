/* ICD loaders read files that packages of the system install. This process has no list of its own to change. */
#include "os/icd.h"

#include <string.h>

int icd_register(const char *library)
{
        (void)library;
        return SP_E_UNSUPP;
}

int icd_unregister(const char *library)
{
        (void)library;
        return SP_E_UNSUPP;
}

void icd_each(void (*each)(void *user, const char *library), void *user)
{
        (void)each, (void)user;
}

const char *icd_loader(void)
{
        return NULL;
}

bool icd_path(const char *path, char ret[PATH_MAX])
{
        size_t n = strlen(path);
        if (n < PATH_MAX)
                memcpy(ret, path, n + 1);
        return n < PATH_MAX;
}
