#include "base/installed.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "os/file.h"
#include "os/process/program.h"

#ifndef SPANCL_LIBDIR
#define SPANCL_LIBDIR "lib"
#endif

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
        static const char here; /* in the library or program that has this code */
        char folder[PATH_MAX];
        if (!program_folder_of(&here, folder))
                return false;
        /* Programs of discovery stand one folder deeper than the others. */
        char *slash = strrchr(folder, '/');
        if (slash && slash - folder >= 8 && !strcmp(slash - 8, "/libexec/spancl"))
                *slash = 0;
        for (size_t i = 0; i < array_size(places); i++) {
                int n = snprintf(ret, PATH_MAX, "%s/%s/%s", folder, places[i], name);
                if (n < PATH_MAX && file_exists(ret))
                        return true;
        }
        return false;
}
