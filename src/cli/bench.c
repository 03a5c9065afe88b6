#include "cli/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/installed.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/list.h"
#include "cli/options.h"
#include "cli/plot.h"
#include "cli/run.h"
#include "os/file.h"
#include "os/process/child.h"
#include "os/process/program.h"

struct bench {
        const char *plot, *results; /* files; NULL: none */
        bool json;
        char folder[PATH_MAX];
};

/* Find the path of a benchmark program. On an error it has printed it. */
static int find_program(const struct bench *b, const char *name, char out[PATH_MAX + 32])
{
        char installed[PATH_MAX];
        snprintf(out, PATH_MAX + 32, "%s/%s", b->folder, name);
        if (file_is_executable(out))
                return 0;
        if (installed_find(name, installed) && file_is_executable(installed)) {
                snprintf(out, PATH_MAX + 32, "%s", installed);
                return 0;
        }
        fprintf(stderr,
                "spancl: %s is not installed: it is a part of a build that has an ICD loader\n",
                name);
        return SP_E_NOENT;
}

static int read_all(int fd, struct buf *out)
{
        char part[4096];
        for (int64_t n; (n = file_read(fd, part, sizeof(part)));) {
                int r = n < 0 ? SP_E_LINK : buf_put(out, part, (size_t)n);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Run a benchmark and append its output. On an error it has printed it. */
static int run(const struct bench *b, const char *name, char **args, struct buf *out)
{
        char program[PATH_MAX + 32];
        char *argv[32] = { program };
        struct child child;
        int status = 0, r = find_program(b, name, program);
        if (r < 0)
                return r;
        for (size_t i = 0; args && args[i] && i + 2 < array_size(argv); i++)
                argv[i + 1] = args[i];
        if (run_start(argv, &child) < 0) {
                fprintf(stderr, "spancl: %s\n", strerror(errno));
                return SP_E_LINK;
        }
        r = read_all(child.output, out);
        if ((child_wait(&child, &status) != CHILD_EXITED || status) && !r)
                r = SP_E_LINK;
        if (r < 0)
                fprintf(stderr, "spancl: %s failed\n", name);
        return r;
}

/* Append one member of the results: {"name": the program's output}. */
static int add(const struct bench *b, const char *key, const char *name, char **args,
               struct buf *out)
{
        int r = buf_put(out, out->size ? ",\n\"" : "{\"", out->size ? 3 : 2);
        if (!r)
                r = buf_put(out, key, strlen(key));
        if (!r)
                r = buf_put(out, "\": ", 3);
        fprintf(stderr, "%s\n", key);
        return r < 0 ? r : run(b, name, args, out);
}

/* Measure the link, native OpenCL as this process finds it, and SpanCL. */
static int measure(const struct bench *b, const char *servers, char **args, struct buf *out)
{
        char *native[32] = { mem_strdup("--native") };
        if (!native[0])
                return SP_E_NOMEM;
        for (size_t i = 0; args[i] && i + 2 < array_size(native); i++)
                native[i + 1] = args[i];
        int r = add(b, "floor", "bench_floor", NULL, out);
        if (!r)
                r = add(b, "native", "bench_opencl", native, out);
        if (!r)
                r = run_prepare(servers);
        if (!r)
                r = add(b, "spancl", "bench_opencl", args, out);
        mem_free(native[0]);
        return r < 0 ? r : buf_put(out, "}\n", 2);
}

static int load(const char *path, struct buf *out)
{
        FILE *f = fopen(path, "re");
        if (!f) {
                fprintf(stderr, "spancl: %s: %s\n", path, strerror(errno));
                return SP_E_NOENT;
        }
        char part[4096];
        int r = 0;
        for (size_t n; !r && (n = fread(part, 1, sizeof(part), f));)
                r = buf_put(out, part, n);
        if (!r && ferror(f))
                r = SP_E_LINK;
        if (r < 0)
                fprintf(stderr, "spancl: %s: can't be read\n", path);
        fclose(f);
        return r;
}

static int draw(const struct bench *b, const struct buf *results)
{
        FILE *f = strcmp(b->plot, "-") ? fopen(b->plot, "we") : stdout;
        if (!f) {
                fprintf(stderr, "spancl: %s: %s\n", b->plot, strerror(errno));
                return SP_E_NOENT;
        }
        int r = plot_write(f, bytes_of(results->data, results->size));
        if ((f == stdout ? fflush(f) : fclose(f)) && !r)
                r = SP_E_LINK;
        if (r < 0)
                fprintf(stderr, "spancl: %s\n",
                        r == SP_E_INVAL ? "these are no results of benchmarks" : status_text(r));
        return r;
}

static int plot(const struct bench *b, const char *servers, char **args)
{
        struct buf results = { 0 };
        int r = b->results ? load(b->results, &results) : measure(b, servers, args, &results);
        if (!r)
                r = draw(b, &results);
        buf_fini(&results);
        return r < 0 ? 1 : 0;
}

/* Print the link's own figures first, for comparison; then execute bench_opencl in place of this
 * program. */
static int show(const struct bench *b, char *servers, char **args)
{
        char program[PATH_MAX + 32], server_option[] = "--server";
        char *list[] = { server_option, servers };
        char *argv[32] = { program };
        if (run_prepare(servers) < 0)
                return 2;
        if (find_program(b, "bench_opencl", program) < 0)
                return 1;
        int r = command_list(servers ? 2 : 0, list);
        if (r)
                return r;
        fflush(stdout);
        for (size_t i = 0; args[i] && i + 2 < array_size(argv); i++)
                argv[i + 1] = args[i];
        return run_execute(argv);
}

/* Print the servers and the results as lines of JSON. */
static int show_json(const struct bench *b, char *servers, char **args)
{
        char server_option[] = "--server", json_option[] = "--json";
        char *list[] = { json_option, server_option, servers };
        struct buf out = { 0 };
        int status = command_list(servers ? 3 : 1, list);
        int r = status ? 0 : run_prepare(servers);
        if (!status && !r)
                r = add(b, "results", "bench_opencl", args, &out);
        /* A string of JSON has no line breaks, so these are blanks between its parts. */
        for (size_t i = 0; i < out.size; i++)
                if (out.data[i] == '\n')
                        out.data[i] = ' ';
        if (!r && out.size)
                printf("%.*s}\n", (int)out.size, (const char *)out.data);
        buf_fini(&out);
        return r < 0 ? 1 : status;
}

/* Take "--NAME FILE" off the front. */
static bool take_file(int *argc, char ***argv, const char *name, const char **ret)
{
        if (*argc < 2 || strcmp(**argv, name) != 0)
                return false;
        *ret = (*argv)[1];
        *argc -= 2;
        *argv += 2;
        return true;
}

int command_bench(int argc, char **argv)
{
        struct bench b = { 0 };
        char *servers = NULL;
        while (take_file(&argc, &argv, "--plot", &b.plot) ||
               take_file(&argc, &argv, "--results", &b.results))
                ;
        int i = options_take(argc, argv, (const char *const[]){ "--json", NULL }, &b.json,
                             &servers);
        if (i < 0)
                return 2;
        if ((b.results && (!b.plot || servers || i < argc)) || (b.plot && b.json)) {
                mem_free(servers);
                return command_usage("bench");
        }
        if (i < argc && (!i || strcmp(argv[i - 1], "--") != 0)) {
                options_refuse("bench", argv[i]);
                mem_free(servers);
                return 2;
        }
        if (!program_folder(b.folder))
                b.folder[0] = 0;
        int r = b.plot   ? plot(&b, servers, argv + i)
                : b.json ? show_json(&b, servers, argv + i)
                         : show(&b, servers, argv + i);
        mem_free(servers);
        return r;
}
