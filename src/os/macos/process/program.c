#include "os/process/program_file.h"

#include <mach-o/dyld.h>
#include <stdint.h>
#include <stdlib.h>

bool program_file(char ret[PATH_MAX])
{
        char path[PATH_MAX];
        uint32_t size = sizeof(path);
        return _NSGetExecutablePath(path, &size) == 0 && realpath(path, ret);
}
