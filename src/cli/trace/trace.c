#include "cli/trace/trace.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/run.h"
#include "cli/trace/picture.h"
#include "cli/trace/summary.h"
#include "os/file.h"
#include "os/process/environment.h"
#include "trace/timeline.h"

#define DEFAULT_FILE "spancl-trace.json"

enum { RING_MAX_MIB = 1024 };

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

static bool is_empty(const char *path)
{
        uint64_t size = 0;
        int fd = file_open(path, true, &size);
        if (fd >= 0)
                (void)file_close(fd);
        return fd < 0 || !size;
}

/* Read a timeline and print its summary. False: it can't be read; the reason was printed. */
static bool report(const char *path, bool json)
{
        struct trace_file f;
        struct summary s;
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

/* The files of the flight recorder. */
static bool report_ring(const char *path, bool json)
{
        char one[PATH_MAX + 16];
        bool good = true;
        unsigned n = 1;
        for (; n <= TIMELINE_FILES && timeline_path(path, n, one, sizeof(one)) && file_exists(one);
             n++)
                good &= report(one, json);
        if (n == 1)
                fprintf(stderr,
                        "spancl: no timeline: nothing made the flight recorder write one\n");
        return good;
}

static bool report_program(const char *path, bool json)
{
        if (!is_empty(path))
                return report(path, json);
        fprintf(stderr,
                "spancl: no timeline: the program did not use SpanCL, or it did not exit but was "
                "ended\n");
        (void)file_unlink(path);
        return false;
}

/* Remove old files, which must not look like new ones. */
static void clear_ring(const char *path)
{
        char one[PATH_MAX + 16];
        for (unsigned n = 1; n <= TIMELINE_FILES && timeline_path(path, n, one, sizeof(one)); n++)
                (void)file_unlink(one);
}

/* Set a variable of the program unless the user has. */
static bool set_default(const char *name, const char *value)
{
        return environment_get(name) || environment_set(name, value) == 0;
}

static int trace(char **argv, const char *file, const char *ring, bool json)
{
        char path[PATH_MAX];
        if (!absolute(file, path) || !make_file(path))
                return 2;
        if (ring)
                clear_ring(path);
        if (environment_set("SPANCL_TRACE", path) < 0 ||
            (ring && environment_set("SPANCL_TRACE_RING", ring) < 0) ||
            !set_default("SPANCL_TRACE_TIMES", "on")) {
                fprintf(stderr, "spancl: out of memory\n");
                return 2;
        }
        int status = run_until_end(argv);
        bool reported = ring ? report_ring(path, json) : report_program(path, json);
        return !reported && !status ? 1 : status;
}

/* The size of the ring, as the variable has it. */
static bool is_ring(const char *text)
{
        size_t n = strspn(text, "0123456789");
        if (n && n < 5 && !text[n] && strtoul(text, NULL, 10) - 1 < RING_MAX_MIB)
                return true;
        fprintf(stderr, "spancl: --ring takes a number of MiB from 1 to %d\n", RING_MAX_MIB);
        return false;
}

/* Draw the picture of a timeline. */
static int draw(const char *path)
{
        struct trace_file f;
        int r = trace_file_read(path, &f);
        if (r < 0) {
                fprintf(stderr, "spancl: can't read %s: %s\n", path,
                        r == SP_E_NOENT ? strerror(errno) : status_text(r));
                return 1;
        }
        r = picture_draw(stdout, &f);
        trace_file_fini(&f);
        if (r < 0)
                fprintf(stderr, "spancl: %s: %s\n", path,
                        r == SP_E_NOENT ? "the timeline is empty" : status_text(r));
        else if (fflush(stdout) != 0)
                fprintf(stderr, "spancl: can't write the picture: %s\n", strerror(errno));
        return r < 0 || ferror(stdout);
}

int command_trace(int argc, char **argv)
{
        static const char *const flags[] = { "--json", NULL };
        const char *file = DEFAULT_FILE, *ring = NULL, *svg = NULL;
        const struct option_value values[] = { { "--output", "-o", &file },
                                               { "--ring", NULL, &ring },
                                               { "--svg", NULL, &svg },
                                               { NULL, NULL, NULL } };
        bool json = false;
        char *servers = NULL;
        int i = options_take_values(argc, argv, flags, &json, values, &servers);
        if (i < 0)
                return 2;
        if ((i == argc) != (svg != NULL)) { /* a program, or a picture */
                mem_free(servers);
                return command_usage("trace");
        }
        if (svg) {
                mem_free(servers);
                return draw(svg);
        }
        int r = ring && !is_ring(ring) ? SP_E_INVAL : run_prepare(servers);
        mem_free(servers);
        return r < 0 ? 2 : trace(argv + i, file, ring, json);
}
