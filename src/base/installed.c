#include "base/installed.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#ifndef SPANCL_LIBDIR
#define SPANCL_LIBDIR "lib"
#endif

/* Find the folder of the library or program that has this code. */
static bool own_folder(char ret[PATH_MAX])
{
        static const char here;
        Dl_info info;
        char *slash;
        ret[0] = 0;
        if (dladdr(&here, &info) && info.dli_fname && strstr(info.dli_fname, ".so")) {
                if (!realpath(info.dli_fname, ret))
                        return false;
        } else {
                ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
                ret[n > 0 ? n : 0] = 0;
        }
        slash = strrchr(ret, '/');
        if (!slash)
                return false;
        *slash = 0;
        /* Programs of discovery stand one folder deeper than the others. */
        slash = strrchr(ret, '/');
        if (slash && slash - ret >= 8 && !strcmp(slash - 8, "/libexec/spancl"))
                *slash = 0;
        return true;
}

bool installed_find(const char *name, char ret[PATH_MAX])
{
        /* Installed beside a library, built, installed beside a program; programs of a program's or a
         * library's. */
        static const char *const places[] = { "spancl",
                                              "../lib",
                                              "../lib/spancl",
                                              "../" SPANCL_LIBDIR "/spancl",
                                              "../libexec/spancl",
                                              "../../libexec/spancl" };
        char folder[PATH_MAX];
        if (!own_folder(folder))
                return false;
        for (size_t i = 0; i < array_size(places); i++) {
                int n = snprintf(ret, PATH_MAX, "%s/%s/%s", folder, places[i], name);
                if (n < PATH_MAX && access(ret, F_OK) == 0)
                        return true;
        }
        return false;
}
