#include "os/account.h"

#include <pwd.h>
#include <stdio.h>

bool account_find(const char *name, struct account *ret)
{
        const struct passwd *user = getpwnam(name);
        if (!user)
                return false;
        ret->user = user->pw_uid;
        ret->group = user->pw_gid;
        return snprintf(ret->home, sizeof(ret->home), "%s", user->pw_dir) < PATH_MAX;
}
