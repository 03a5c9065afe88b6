#include "cli/run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/options.h"
#include "os/file.h"
#include "os/icd.h"
#include "os/process/child.h"
#include "os/process/environment.h"
#include "os/process/library_name.h"
#include "os/process/program.h"
#include "os/signals.h"

#ifndef SPANCL_LIBDIR
#define SPANCL_LIBDIR "lib"
#endif

bool run_library(char out[PATH_MAX])
{
        static const char *const places[] = {
                "%s/../lib/" LIBRARY_CLIENT, "%s/../" SPANCL_LIBDIR "/" LIBRARY_CLIENT,
                "%s/" LIBRARY_CLIENT, /* on Windows */
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
        char found[PATH_MAX], library[PATH_MAX];
        if (!run_library(found) || !icd_path(found, library)) {
                fprintf(stderr,
                        "spancl: " LIBRARY_CLIENT " is not beside this program, in ../lib or "
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
        return child_start(argv, true, complain, ret);
}

int run_until_end(char **argv)
{
        static const int keys[] = { SIGINT, SIGQUIT };
        struct child child;
        int number = 0;
        fflush(NULL); /* before the program's output */
        if (child_start(argv, false, complain, &child) < 0) {
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

/* ---- registration of the library ------------------------------------------------------------- */

static int change(const char *command, int argc, int (*how)(const char *library), const char *done)
{
        char library[PATH_MAX], path[PATH_MAX];
        if (argc)
                return command_usage(command);
        if (!run_library(library) || !icd_path(library, path)) {
                fprintf(stderr,
                        "spancl: " LIBRARY_CLIENT " is not where `spancl run` looks for it\n");
                return 1;
        }
        int r = how(library);
        if (!r)
                printf("%s %s\n", path, done);
        else if (r == SP_E_UNSUPP)
                fprintf(stderr,
                        "spancl: this system has no registry. Packages and `cmake --install` write the file "
                        "for ICD loaders\n");
        else if (r == SP_E_NOENT)
                fprintf(stderr, "spancl: %s is not registered\n", path);
        else
                fprintf(stderr, "spancl: the registry can't be changed: %s%s\n", strerror(errno),
                        errno == EACCES ? ". Only an administrator may" : "");
        return r < 0;
}

int command_install(int argc, char **argv)
{
        (void)argv;
        return change("install", argc, icd_register, "is registered for all programs");
}

int command_uninstall(int argc, char **argv)
{
        (void)argv;
        return change("uninstall", argc, icd_unregister, "is not registered any more");
}
