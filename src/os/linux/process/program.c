#include "os/process/program_file.h"

#include <unistd.h>

bool program_file(char ret[PATH_MAX])
{
        ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
        ret[n > 0 ? n : 0] = 0;
        return n > 0;
}
