#include "daemon/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

int scratch_make(char path[SCRATCH_PATH_MAX])
{
        const char *base = getenv("TMPDIR");
        if (!base || *base != '/')
                base = "/tmp";
        int n = snprintf(path, SCRATCH_PATH_MAX, "%s/spancld.XXXXXX", base);
        if (n < 0 || n >= SCRATCH_PATH_MAX || !mkdtemp(path)) {
                path[0] = 0;
                return SP_E_INVAL;
        }
        return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)ftw;
        /* Not remove(3): a worker may not even try to unlink what stands beside its folder. */
        if ((type == FTW_DP ? rmdir(path) : unlink(path)) < 0)
                log_debug("scratch", "can't remove %s", path);
        return 0;
}

void scratch_remove(const char *path)
{
        if (*path)
                (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
