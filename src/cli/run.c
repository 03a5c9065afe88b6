/* spancl run: executes a program in an environment where its OpenCL is SpanCL. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/command.h"

#ifndef SPANCL_LIBDIR
#define SPANCL_LIBDIR "lib"
#endif

bool command_folder(char out[PATH_MAX])
{
        ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
        if (n <= 0)
                return false;
        out[n] = 0;
        char *slash = strrchr(out, '/');
        if (!slash)
                return false;
        *slash = 0;
        return true;
}

bool command_library(char out[PATH_MAX])
{
        static const char *const places[] = {
                "%s/../lib/libspancl.so.1",
                "%s/../" SPANCL_LIBDIR "/libspancl.so.1",
        };
        char folder[PATH_MAX];
        if (!command_folder(folder))
                return false;
        for (size_t i = 0; i < array_size(places); i++) {
                char path[PATH_MAX + 64];
                const char *rest = places[i] + 2;
                snprintf(path, sizeof(path), "%s%s", folder, rest);
                if (realpath(path, out) && !access(out, R_OK))
                        return true;
        }
        return false;
}

static int set_environment(const char *servers)
{
        char library[PATH_MAX];
        if (!command_library(library)) {
                fprintf(stderr, "spancl: libspancl.so.1 is not beside this program, in ../lib or "
                                "../" SPANCL_LIBDIR "\n");
                return SP_E_NOENT;
        }
        /* ocl-icd accepts a library in OCL_ICD_VENDORS. Khronos' loader finds no folder of that
         * name, and uses OCL_ICD_FILENAMES. */
        if ((servers && setenv("SPANCL_SERVERS", servers, 1)) ||
            setenv("OCL_ICD_VENDORS", library, 1) || setenv("OCL_ICD_FILENAMES", library, 1)) {
                fprintf(stderr, "spancl: out of memory\n");
                return SP_E_NOMEM;
        }
        return 0;
}

int command_prepare(const char *servers)
{
        struct server_spec *specs;
        size_t count;
        int r = command_servers(servers, &specs, &count);
        if (r < 0)
                return r;
        /* The server was implied; name it, so that the program reports its absence. */
        if (!servers && count && specs[0].implied)
                servers = specs[0].name;
        r = set_environment(servers);
        config_servers_free(specs, count);
        return r;
}

int command_execute(char **argv)
{
        execvp(argv[0], argv);
        fprintf(stderr, "spancl: %s: %s\n", argv[0], strerror(errno));
        return errno == ENOENT ? 127 : 126;
}

int command_run(int argc, char **argv)
{
        char *servers = NULL;
        int i = command_options(argc, argv, NULL, NULL, &servers);
        if (i < 0)
                return 2;
        if (i == argc) {
                fprintf(stderr, "Usage: spancl run [--server S]... [--] PROGRAM [ARGS]\n");
                mem_free(servers);
                return 2;
        }
        int r = command_prepare(servers);
        mem_free(servers);
        return r < 0 ? 2 : command_execute(argv + i);
}
