#include "os/host.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

void host_name(char *ret, size_t size)
{
        if (gethostname(ret, size) < 0 && errno != ENAMETOOLONG)
                ret[0] = 0;
        ret[size - 1] = 0;
}

void host_user(char *ret, size_t size)
{
        const struct passwd *own = getpwuid(geteuid());
        snprintf(ret, size, "%s", own ? own->pw_name : "");
}
