#include "os/host_user.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

bool host_user_find(const char *name, struct host_user *ret)
{
        const struct passwd *user = getpwnam(name);
        if (!user)
                return false;
        ret->user = user->pw_uid;
        ret->group = user->pw_gid;
        return snprintf(ret->home, sizeof(ret->home), "%s", user->pw_dir) < PATH_MAX;
}

void host_user_settle(const struct host_user *u)
{
        setenv("HOME", u->home, 1);
        unsetenv("XDG_CACHE_HOME");
}
