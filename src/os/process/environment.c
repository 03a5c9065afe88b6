#include "os/process/environment.h"

#include <stdlib.h>
#include <unistd.h>

const char *environment_get(const char *name)
{
        return secure_getenv(name);
}

int environment_set(const char *name, const char *value)
{
        return setenv(name, value, 1) < 0 ? SP_E_NOMEM : 0;
}

void environment_unset(const char *name)
{
        (void)unsetenv(name);
}

char **environment_all(void)
{
        static char *none[] = { NULL };
        return environ ? environ : none;
}
