#include "os/host.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/text_file.h"

void host_name(char *ret, size_t size)
{
        if (gethostname(ret, size) < 0 && errno != ENAMETOOLONG)
                ret[0] = 0;
        ret[size - 1] = 0;
}

void host_short_name(char *ret, size_t size, const char *otherwise)
{
        host_name(ret, size);
        ret[strcspn(ret, ".")] = 0;
        if (!*ret)
                snprintf(ret, size, "%s", otherwise);
}

void host_identity(char *ret, size_t size)
{
        char machine[64], name[256];
        text_file_read(AT_FDCWD, "/etc/machine-id", machine, sizeof(machine));
        host_name(name, sizeof(name));
        snprintf(ret, size, "%.*s %s", (int)strcspn(machine, "\n"), machine, name);
}

void host_clock_source(char *ret, size_t size)
{
        text_file_read(AT_FDCWD, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                       ret, size);
        ret[strcspn(ret, "\n")] = 0;
}

void host_user(char *ret, size_t size)
{
        char text[4096];
        struct passwd entry, *found = NULL;
        bool known = getpwuid_r(geteuid(), &entry, text, sizeof(text), &found) == 0 && found;
        snprintf(ret, size, "%s", known ? found->pw_name : "");
}
