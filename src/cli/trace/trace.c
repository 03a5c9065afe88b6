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
#include "cli/trace/attach.h"
#include "cli/trace/import.h"
#include "cli/trace/perfetto.h"
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

static bool is_regular(const char *path)
{
        uint64_t size;
        int fd = file_open(path, false, &size);
        return fd >= 0 && file_close(fd);
}

/* Remove a file that is not good. A device stays. */
static void discard(const char *path)
{
        if (is_regular(path))
                (void)file_unlink(path);
}

/* Make an empty file of the name: an old timeline must not look like the new one. */
static bool make_file(const char *path)
{
        int fd = file_create(path);
        if (fd >= 0 && file_close(fd) && is_regular(path)) /* another file is put in its place */
                return true;
        fprintf(stderr, "spancl: can't write %s: %s\n", path, strerror(errno));
        return false;
}

static bool is_empty(const char *path)
{
        uint64_t size = 0;
        int fd = file_open(path, true, &size);
        if (fd >= 0)
                (void)file_close(fd);
        return fd < 0 || !size;
}

/* Write a timeline in Perfetto's format. False: it can't be; the reason was printed. */
static bool convert(const char *from, FILE *to, const char *to_name)
{
        char *text = NULL;
        size_t size = 0;
        uint64_t left_out = 0;
        int r = trace_file_load(from, &text, &size);
        if (!r)
                r = perfetto_write(to, text, size, &left_out);
        mem_free(text);
        if (r < 0)
                fprintf(stderr, "spancl: can't read %s: %s\n", from,
                        r == SP_E_NOENT ? strerror(errno) : status_text(r));
        else if (fflush(to) != 0 || ferror(to))
                fprintf(stderr, "spancl: can't write %s: %s\n", to_name, strerror(errno));
        else if (left_out)
                fprintf(stderr, "spancl: %s: %llu events had no room\n", to_name,
                        (unsigned long long)left_out);
        return !r && !ferror(to);
}

/* The file that the client writes, and that which the user wants of it. */
struct files {
        char json[PATH_MAX + 32], wanted[PATH_MAX + 32];
};

/* False: a folder has no name, as was printed. */
static bool name_files(const char *file, struct files *ret)
{
        char path[PATH_MAX];
        if (!absolute(file, path))
                return false;
        snprintf(ret->wanted, sizeof(ret->wanted), "%s", path);
        snprintf(ret->json, sizeof(ret->json), "%s%s", path, perfetto_is_name(file) ? ".json" : "");
        return true;
}

/* Make the file that the client writes, and remove an old one of the wanted name. False: the reason was printed. */
static bool make_files(const struct files *f)
{
        if (!make_file(f->json))
                return false;
        if (strcmp(f->json, f->wanted) != 0)
                (void)file_unlink(f->wanted);
        return true;
}

/* Convert a file and remove the JSON, if the user wants another format. Returns the file that is there. */
static const char *finish_file(const struct files *f)
{
        if (!strcmp(f->json, f->wanted))
                return f->json;
        FILE *to = file_create_stream(f->wanted);
        if (!to)
                fprintf(stderr, "spancl: can't write %s: %s\n", f->wanted, strerror(errno));
        bool converted = to && convert(f->json, to, f->wanted);
        if (to && fclose(to) != 0)
                converted = false;
        discard(converted ? f->json : f->wanted);
        return converted ? f->wanted : f->json;
}

/* Read a timeline, bring it into the format that the user wants, and print its summary. False: the reason was
 * printed. */
static bool report(const struct files *files, bool json)
{
        struct trace_file f;
        struct summary s;
        int r = trace_file_read(files->json, &f);
        if (r < 0) {
                fprintf(stderr, "spancl: can't read %s: %s\n", files->json,
                        r == SP_E_NOENT ? strerror(errno) : status_text(r));
                return false;
        }
        const char *path = finish_file(files);
        summary_make(&f, &s);
        if (json)
                summary_json(stderr, &f, &s, path);
        else
                summary_text(stderr, &f, &s, path);
        trace_file_fini(&f);
        return !strcmp(path, files->wanted);
}

/* File `number` of the flight recorder. */
static bool ring_files(const struct files *f, unsigned number, struct files *ret)
{
        return number <= TIMELINE_FILES &&
               timeline_path(f->json, number, ret->json, sizeof(ret->json)) &&
               timeline_path(f->wanted, number, ret->wanted, sizeof(ret->wanted));
}

static bool report_ring(const struct files *f, bool json)
{
        struct files one;
        bool good = true;
        unsigned n = 1;
        for (; ring_files(f, n, &one) && file_exists(one.json); n++)
                good &= report(&one, json);
        if (n == 1)
                fprintf(stderr,
                        "spancl: no timeline: nothing made the flight recorder write one\n");
        return good;
}

static bool report_program(const struct files *f, bool json)
{
        if (!is_empty(f->json))
                return report(f, json);
        fprintf(stderr,
                "spancl: no timeline: the program did not use SpanCL, or it did not exit but was "
                "ended\n");
        discard(f->json);
        return false;
}

/* Remove old files, which must not look like new ones. */
static void clear_ring(const struct files *f)
{
        struct files one;
        for (unsigned n = 1; ring_files(f, n, &one); n++) {
                (void)file_unlink(one.json);
                (void)file_unlink(one.wanted);
        }
}

/* Set a variable of the program unless the user has. */
static bool set_default(const char *name, const char *value)
{
        return environment_get(name) || environment_set(name, value) == 0;
}

static int trace(char **argv, const char *file, const char *ring, bool json)
{
        struct files f;
        if (!name_files(file, &f) || !make_files(&f))
                return 2;
        if (ring)
                clear_ring(&f);
        if (environment_set("SPANCL_TRACE", f.json) < 0 ||
            (ring && environment_set("SPANCL_TRACE_RING", ring) < 0) ||
            /* The flight recorder runs for long, and times make servers report each command by itself. */
            (!ring && !set_default("SPANCL_TRACE_TIMES", "on"))) {
                fprintf(stderr, "spancl: out of memory\n");
                return 2;
        }
        int status = run_until_end(argv);
        bool reported = ring ? report_ring(&f, json) : report_program(&f, json);
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

/* Would the output replace a file that is read? True: it would, as was printed. */
static bool replaces(const char *from, const char *path)
{
        char one[PATH_MAX], other[PATH_MAX];
        bool same = file_real_path(from, one) && file_real_path(path, other) && !strcmp(one, other);
        if (same)
                fprintf(stderr, "spancl: %s is read itself: name another file to write\n", path);
        return same;
}

/* Open the file that a timeline is drawn or converted into. `path` NULL: standard output. NULL: it can't be; the reason
 * was printed. */
static FILE *open_output(const char *from, const char *path)
{
        if (!path)
                return stdout;
        if (replaces(from, path))
                return NULL;
        FILE *to = file_create_stream(path);
        if (!to)
                fprintf(stderr, "spancl: can't write %s: %s\n", path, strerror(errno));
        return to;
}

/* Close it, and remove a file that is not `good`. False: it is not, or can't be written, as was printed. */
static bool close_output(FILE *to, const char *path, bool good)
{
        bool written = fflush(to) == 0 && !ferror(to);
        if (path)
                written = fclose(to) == 0 && written;
        if (good && !written)
                fprintf(stderr, "spancl: can't write %s: %s\n", path ? path : "the picture",
                        strerror(errno));
        if (path && !(good && written))
                discard(path);
        return good && written;
}

/* Draw the picture of a timeline. */
static int draw(const char *path, const char *output)
{
        struct trace_file f;
        int r = trace_file_read(path, &f);
        if (r < 0) {
                fprintf(stderr, "spancl: can't read %s: %s\n", path,
                        r == SP_E_NOENT ? strerror(errno) : status_text(r));
                return 1;
        }
        FILE *to = open_output(path, output);
        if (to)
                r = picture_draw(to, &f);
        trace_file_fini(&f);
        if (r < 0)
                fprintf(stderr, "spancl: %s: %s\n", path,
                        r == SP_E_NOENT ? "the timeline is empty" : status_text(r));
        return !to || !close_output(to, output, r >= 0);
}

/* Convert a timeline. */
static int convert_file(const char *path, const char *output)
{
        if (!output && file_is_terminal(FILE_STDOUT)) {
                fprintf(stderr, "spancl: --perfetto writes no text: give its output to a file\n");
                return 2;
        }
        FILE *to = open_output(path, output);
        bool good = to && convert(path, to, output ? output : "the timeline");
        return !to || !close_output(to, output, good);
}

/* The text of a file that another program wrote. False: it can't be read, as was printed. */
static bool load(const char *path, struct bytes *ret)
{
        char *text = NULL;
        size_t size = 0;
        int r = trace_file_load(path, &text, &size);
        if (r < 0)
                fprintf(stderr, "spancl: can't read %s: %s\n", path,
                        r == SP_E_NOENT ? strerror(errno) : status_text(r));
        else
                *ret = bytes_of(text, size);
        return r == 0;
}

static void say_imported(const struct import_source *s)
{
        fprintf(stderr, "%s (%s): %llu events", s->path, import_format_name(s->format),
                (unsigned long long)s->events);
        if (s->outside)
                fprintf(stderr, ", %llu outside of the timeline's time",
                        (unsigned long long)s->outside);
        if (s->left_out)
                fprintf(stderr, ", %llu left out", (unsigned long long)s->left_out);
        fprintf(stderr, "\n");
        if (!s->events && s->outside)
                fprintf(stderr,
                        "spancl: none of them lies in the timeline's time: were they recorded with "
                        "CLOCK_MONOTONIC (docs/TRACING.md)?\n");
}

static void say_bad(const char *path, const struct import_source *s, int status)
{
        if (!s)
                fprintf(stderr, "spancl: %s: %s\n", path,
                        status == SP_E_NOENT ? "the timeline is empty" : status_text(status));
        else if (status == SP_E_NOENT)
                fprintf(stderr, "spancl: %s has no clock of a server %s\n", path, s->server);
        else
                fprintf(stderr, "spancl: %s: %s\n", s->path,
                        status == SP_E_PROTO ? "this is no text of babeltrace2 or perf script, and "
                                               "no JSON of Chrome's trace viewer"
                                             : status_text(status));
}

/* Write a timeline with events of other programs. False: it can't be done, as was printed. */
static bool write_imported(FILE *to, const char *path, struct import_source *sources, size_t count)
{
        struct bytes timeline = { 0 }, texts[IMPORT_SOURCES] = { { 0 } };
        bool good = load(path, &timeline);
        size_t bad;
        for (size_t i = 0; i < count && good; i++)
                good = load(sources[i].path, &texts[i]);
        int r = good ? import_write(to, timeline, sources, texts, count, &bad) : 0;
        if (r < 0)
                say_bad(path, bad < count ? &sources[bad] : NULL, r);
        for (size_t i = 0; i < count && good && r == 0; i++)
                say_imported(&sources[i]);
        for (size_t i = 0; i < count; i++)
                mem_free((void *)(uintptr_t)texts[i].data);
        mem_free((void *)(uintptr_t)timeline.data);
        return good && r == 0;
}

/* Add events of other programs to a timeline. `output` NULL: standard output. */
static int import(const char *path, const char *const *specs, size_t count, const char *output)
{
        struct import_source sources[IMPORT_SOURCES];
        struct files f;
        for (size_t i = 0; i < count; i++) {
                if (i == IMPORT_SOURCES || !import_parse(specs[i], &sources[i])) {
                        fprintf(stderr,
                                "spancl: --import takes a file, or SERVER=FILE, SERVER@NS=FILE or @NS=FILE, at most %d "
                                "times\n",
                                IMPORT_SOURCES);
                        return 2;
                }
        }
        if (output && !name_files(output, &f))
                return 2;
        for (size_t i = 0; output && i < count; i++)
                if (replaces(sources[i].path, f.json))
                        return 1;
        FILE *to = open_output(path, output ? f.json : NULL);
        bool good = to && write_imported(to, path, sources, count);
        if (!to || !close_output(to, output ? f.json : NULL, good))
                return 1;
        return output && strcmp(finish_file(&f), f.wanted) != 0;
}

/* Record sessions that run. `what`: one of them, by the number of its process or, beside --server, by its program; else
 * a server; NULL: all sessions of the servers. */
static int attach(const char *what, const char *servers, const char *seconds, const char *file,
                  bool json)
{
        struct files f;
        struct attach a = { .file = f.json };
        struct server_spec *list = NULL;
        const char *origin = servers ? "--server" : "--attach";
        bool number = what && *what && !what[strspn(what, "0123456789")];
        if (what && !number && !servers)
                servers = what;
        else
                a.session = what;
        if (seconds && !attach_seconds(seconds, &a.seconds)) {
                fprintf(stderr,
                        "spancl: --for takes a duration of up to 24 h, such as 10s, 5min or 1h\n");
                return 2;
        }
        if (!name_files(file, &f) || options_servers(servers, origin, &list, &a.count) < 0)
                return 2;
        a.servers = list;
        bool made = make_files(&f);
        int r = made ? attach_record(&a) : SP_E_UNSUPP;
        config_servers_free(list, a.count);
        if (made && r < 0)
                discard(f.json);
        return !made ? 2 : r < 0 || !report(&f, json) ? 1 : 0;
}

int command_trace(int argc, char **argv)
{
        static const char *const flags[] = { "--json", NULL };
        const char *output = NULL, *ring = NULL, *svg = NULL, *perfetto = NULL, *seconds = NULL,
                   *what = NULL, *imports[OPTIONS_REPEATED];
        size_t import_count = 0;
        bool json = false, attaches = false;
        const struct option_value values[] = {
                { "--output", "-o", &output, NULL, NULL },
                { "--ring", NULL, &ring, NULL, NULL },
                { "--svg", NULL, &svg, NULL, NULL },
                { "--perfetto", NULL, &perfetto, NULL, NULL },
                { "--for", NULL, &seconds, NULL, NULL },
                { "--attach", NULL, &what, &attaches, NULL },
                { "--import", NULL, imports, NULL, &import_count },
                { NULL, NULL, NULL, NULL, NULL },
        };
        char *servers = NULL;
        int i = options_take_values(argc, argv, flags, &json, values, &servers);
        bool converts = svg || perfetto;
        const char *file = output ? output : DEFAULT_FILE;
        if (i < 0)
                return 2;
        if (import_count && i + 1 == argc && !attaches && !seconds && !converts && !servers &&
            !ring && !json)
                return import(argv[i], imports, import_count, output);
        if (attaches && i == argc && !ring && !converts && !import_count) {
                int status = attach(what, servers, seconds, file, json);
                mem_free(servers);
                return status;
        }
        /* A program, or a file. */
        if (attaches || seconds || import_count || (i == argc) != converts || (svg && perfetto) ||
            (converts && (servers || ring || json))) {
                mem_free(servers);
                return command_usage("trace");
        }
        if (converts)
                return svg ? draw(svg, output) : convert_file(perfetto, output);
        int r = ring && !is_ring(ring) ? SP_E_INVAL : run_prepare(servers);
        mem_free(servers);
        return r < 0 ? 2 : trace(argv + i, file, ring, json);
}
