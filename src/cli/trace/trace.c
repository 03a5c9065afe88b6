#include "cli/trace/trace.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/run.h"
#include "cli/trace/summary.h"
#include "os/file.h"
#include "os/process/environment.h"

#define DEFAULT_FILE "spancl-trace.json"

/* The program may change its folder before it writes the file. */
static bool absolute(const char *path, char ret[PATH_MAX])
{
        char folder[PATH_MAX];
        int n = -1;
        if (*path == '/')
                n = snprintf(ret, PATH_MAX, "%s", path);
        else if (file_real_path(".", folder))
                n = snprintf(ret, PATH_MAX, "%s/%s", folder, path);
        if (n > 0 && n < PATH_MAX)
                return true;
        fprintf(stderr, "spancl: %s: the path is too long, or its folder can't be read\n", path);
        return false;
}

/* Make an empty file of the name: an old timeline must not look like the new one. */
static bool make_file(const char *path)
{
        int fd = file_create(path);
        if (fd < 0) {
                fprintf(stderr, "spancl: can't write %s: %s\n", path, strerror(errno));
                return false;
        }
        return file_close(fd);
}

/* Read the timeline and print its summary. False: there is none; the reason was printed. */
static bool report(const char *path, bool json)
{
        struct trace_file f;
        struct summary s;
        uint64_t size = 0;
        int fd = file_open(path, true, &size);
        if (fd >= 0)
                (void)file_close(fd);
        if (fd < 0 || !size) {
                fprintf(stderr,
                        "spancl: no timeline: the program did not use SpanCL, or it did not exit but was "
                        "ended\n");
                (void)file_unlink(path);
                return false;
        }
        int r = trace_file_read(path, &f);
        if (r < 0) {
                fprintf(stderr, "spancl: can't read %s: %s\n", path,
                        r == SP_E_NOENT ? strerror(errno) : status_text(r));
                return false;
        }
        summary_make(&f, &s);
        if (json)
                summary_json(stderr, &f, &s, path);
        else
                summary_text(stderr, &f, &s, path);
        trace_file_fini(&f);
        return true;
}

/* Set a variable of the program unless the user has. */
static bool set_default(const char *name, const char *value)
{
        return environment_get(name) || environment_set(name, value) == 0;
}

static int trace(char **argv, const char *file, bool json)
{
        char path[PATH_MAX];
        if (!absolute(file, path) || !make_file(path))
                return 2;
        if (environment_set("SPANCL_TRACE", path) < 0 || !set_default("SPANCL_TRACE_TIMES", "on")) {
                fprintf(stderr, "spancl: out of memory\n");
                return 2;
        }
        int status = run_until_end(argv);
        bool reported = report(path, json);
        return !reported && !status ? 1 : status;
}

int command_trace(int argc, char **argv)
{
        static const char *const flags[] = { "--json", NULL };
        const char *file = DEFAULT_FILE;
        const struct option_value values[] = { { "--output", "-o", &file }, { NULL, NULL, NULL } };
        bool json = false;
        char *servers = NULL;
        int i = options_take_values(argc, argv, flags, &json, values, &servers);
        if (i < 0)
                return 2;
        if (i == argc) {
                mem_free(servers);
                return command_usage("trace");
        }
        int r = run_prepare(servers);
        mem_free(servers);
        return r < 0 ? 2 : trace(argv + i, file, json);
}
