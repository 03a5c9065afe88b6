#include "os/process/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool cut_name(char path[PATH_MAX])
{
        char *slash = strrchr(path, '/');
        if (slash)
                *slash = 0;
        return slash != NULL;
}

bool program_folder(char ret[PATH_MAX])
{
        ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
        ret[n > 0 ? n : 0] = 0;
        return cut_name(ret);
}

bool program_folder_of(const void *code, char ret[PATH_MAX])
{
        Dl_info info;
        if (!dladdr(code, &info) || !info.dli_fname || !strstr(info.dli_fname, ".so"))
                return program_folder(ret);
        return realpath(info.dli_fname, ret) && cut_name(ret);
}

int program_become(char *const argv[])
{
        execvp(argv[0], argv);
        return errno == ENOENT ? SP_E_NOENT : SP_E_INVAL;
}
