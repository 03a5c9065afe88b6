#include "cli/run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/options.h"
#include "os/file.h"
#include "os/process/child.h"
#include "os/process/environment.h"
#include "os/process/program.h"
#include "os/signals.h"

#ifndef SPANCL_LIBDIR
#define SPANCL_LIBDIR "lib"
#endif

bool run_library(char out[PATH_MAX])
{
        static const char *const places[] = {
                "%s/../lib/libspancl.so.1",
                "%s/../" SPANCL_LIBDIR "/libspancl.so.1",
        };
        char folder[PATH_MAX];
        if (!program_folder(folder))
                return false;
        for (size_t i = 0; i < array_size(places); i++) {
                char path[PATH_MAX + 64];
                const char *rest = places[i] + 2;
                snprintf(path, sizeof(path), "%s%s", folder, rest);
                if (file_real_path(path, out) && file_is_readable(out))
                        return true;
        }
        return false;
}

static int set_environment(const char *servers)
{
        char library[PATH_MAX];
        if (!run_library(library)) {
                fprintf(stderr, "spancl: libspancl.so.1 is not beside this program, in ../lib or "
                                "../" SPANCL_LIBDIR "\n");
                return SP_E_NOENT;
        }
        /* ocl-icd accepts a library in OCL_ICD_VENDORS. Khronos' loader finds no folder of that
         * name, and uses OCL_ICD_FILENAMES. */
        if ((servers && environment_set("SPANCL_SERVERS", servers)) ||
            environment_set("OCL_ICD_VENDORS", library) ||
            environment_set("OCL_ICD_FILENAMES", library)) {
                fprintf(stderr, "spancl: out of memory\n");
                return SP_E_NOMEM;
        }
        return 0;
}

int run_prepare(const char *servers)
{
        struct server_spec *specs;
        size_t count;
        int r = options_servers(servers, "--server", &specs, &count);
        if (r < 0)
                return r;
        /* The server was implied; name it, so that the program reports its absence. */
        if (!servers && count && specs[0].implied)
                servers = specs[0].name;
        r = set_environment(servers);
        config_servers_free(specs, count);
        return r;
}

static int complain(char *const argv[])
{
        int error = errno;
        fprintf(stderr, "spancl: %s: %s\n", argv[0], strerror(error));
        return error == ENOENT ? 127 : 126;
}

int run_execute(char **argv)
{
        (void)!program_become(argv);
        return complain(argv);
}

int run_start(char *const argv[], struct child *ret)
{
        return child_start(argv, complain, ret);
}

/* In the child: become the program, with the standard output of this process. */
static int become(void *user, int to)
{
        (void)file_close(to);
        return run_execute(user);
}

int run_until_end(char **argv)
{
        static const int keys[] = { SIGINT, SIGQUIT };
        struct child child;
        int number = 0;
        if (child_run(become, argv, 0, &child) < 0) {
                fprintf(stderr, "spancl: %s\n", strerror(errno));
                return 126;
        }
        /* Ctrl-C is for the program: a report follows its end. */
        int watched = signals_watch(keys, array_size(keys));
        enum child_end end = child_wait(&child, &number);
        if (watched >= 0)
                (void)file_close(watched);
        if (end == CHILD_LOST)
                return 126;
        return end == CHILD_EXITED ? number : 128 + (end == CHILD_TOO_LONG ? SIGALRM : number);
}

int command_run(int argc, char **argv)
{
        char *servers = NULL;
        int i = options_take(argc, argv, NULL, NULL, &servers);
        if (i < 0)
                return 2;
        if (i == argc) {
                fprintf(stderr, "Usage: spancl run [--server S]... [--] PROGRAM [ARGS]\n");
                mem_free(servers);
                return 2;
        }
        int r = run_prepare(servers);
        mem_free(servers);
        return r < 0 ? 2 : run_execute(argv + i);
}
