#include "os/process/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/process/library_name.h"
#include "os/process/program_file.h"

static bool cut_name(char path[PATH_MAX])
{
        char *slash = strrchr(path, '/');
        if (slash)
                *slash = 0;
        return slash != NULL;
}

bool program_folder(char ret[PATH_MAX])
{
        return program_file(ret) && cut_name(ret);
}

bool program_folder_of(const void *code, char ret[PATH_MAX])
{
        Dl_info info;
        if (!dladdr(code, &info) || !info.dli_fname || !strstr(info.dli_fname, LIBRARY_SUFFIX))
                return program_folder(ret);
        return realpath(info.dli_fname, ret) && cut_name(ret);
}

int program_become(char *const argv[])
{
        execvp(argv[0], argv);
        return errno == ENOENT ? SP_E_NOENT : SP_E_INVAL;
}
