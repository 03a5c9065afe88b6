#include "os/host.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
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
        char text[4096];
        struct passwd entry, *found = NULL;
        bool known = getpwuid_r(geteuid(), &entry, text, sizeof(text), &found) == 0 && found;
        snprintf(ret, size, "%s", known ? found->pw_name : "");
}
