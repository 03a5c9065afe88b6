#include "cli/profile/profile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/profile/html.h"
#include "cli/profile/report.h"
#include "cli/replay/what_if.h"
#include "cli/run.h"
#include "os/file.h"
#include "os/process/environment.h"

#define TIMELINE_MIB "256" /* of records */

_Static_assert((int)WHAT_IF_MAX <= (int)OPTIONS_REPEATED, "each has a place");

/* Make an empty file, which the client writes. False: it can't be made. */
static bool make_file(char ret[PATH_MAX])
{
        const char *folder = environment_get("TMPDIR");
        int n = snprintf(ret, PATH_MAX, "%s/spancl-profile.XXXXXX",
                         folder && *folder == '/' ? folder : "/tmp");
        int fd = n < PATH_MAX ? mkstemp(ret) : -1;
        if (fd < 0) {
                fprintf(stderr, "spancl: can't make %s: %s\n", ret, strerror(errno));
                return false;
        }
        (void)file_close(fd);
        return true;
}

/* Where the report goes, and what else is in it. */
struct output {
        bool json;
        FILE *html;            /* NULL: none is asked for */
        const char *html_path; /* in messages */
        struct what_if links[WHAT_IF_MAX];
        size_t link_count;
};

static bool write_html(const struct output *o, const struct ledger_file *l, const struct answers *a,
                       char *const *command)
{
        html_write(o->html, l, a, command);
        if (fflush(o->html) == 0 && !ferror(o->html)) {
                if (!o->json) /* programs read that */
                        fprintf(stderr, "spancl: the report is in %s\n", o->html_path);
                return true;
        }
        fprintf(stderr, "spancl: can't write %s: %s\n", o->html_path, strerror(errno));
        return false;
}

/* Predict times for the other links. False: they can't be predicted; the reason was printed. */
static bool predict(const char *timeline, const struct output *o, const struct ledger_file *l,
                    struct what_if_results *ret)
{
        int r = what_if_read(timeline, l, o->links, o->link_count, ret);
        if (r == SP_E_NOENT)
                fprintf(stderr, "spancl: no predictions: the run has no commands or waits\n");
        else if (r < 0)
                fprintf(stderr, "spancl: no predictions: the timeline can't be replayed: %s\n",
                        status_text(r));
        return r == 0;
}

/* Read the ledger and write the report. False: there is none, or it can't be written; the reason was printed. */
static bool report(const char *path, const char *timeline, const struct output *o,
                   char *const *command)
{
        struct ledger_file l;
        struct answers a;
        struct what_if_results what_if;
        FILE *from = fopen(path, "re");
        int c = from ? fgetc(from) : EOF;
        if (c == EOF) {
                fprintf(stderr,
                        "spancl: no profile: the program did not use SpanCL, or it did not exit but "
                        "was ended\n");
                if (from)
                        fclose(from);
                return false;
        }
        ungetc(c, from);
        int r = ledger_read(from, &l);
        fclose(from);
        if (r < 0) {
                fprintf(stderr, "spancl: no profile: %s\n", status_text(r));
                return false;
        }
        answers_find(&l, &a);
        bool written = !o->link_count || predict(timeline, o, &l, &what_if);
        if (o->link_count && written)
                a.what_if = &what_if;
        if (o->html && !write_html(o, &l, &a, command))
                written = false;
        if (o->json)
                report_json(stderr, &l, &a);
        else if (!o->html)
                report_text(stderr, &l, &a);
        ledger_fini(&l);
        return written;
}

/* Open the file of --html before the program runs, so that a wrong name costs no run. */
static bool open_html(struct output *o)
{
        if (o->html_path)
                o->html = file_create_stream(o->html_path);
        if (o->html_path && !o->html)
                fprintf(stderr, "spancl: can't write %s: %s\n", o->html_path, strerror(errno));
        return !o->html_path || o->html;
}

/* Have the client write these files. A timeline needs room for many commands. */
static bool set_files(const char *ledger, const char *timeline)
{
        if (environment_set("SPANCL_PROFILE_FILE", ledger) == 0 &&
            (!timeline || (environment_set("SPANCL_TRACE", timeline) == 0 &&
                           environment_set("SPANCL_TRACE_TIMES", "some") == 0 &&
                           environment_set("SPANCL_TRACE_RING", "0") == 0 &&
                           environment_set("SPANCL_TRACE_SIZE", TIMELINE_MIB) == 0)))
                return true;
        fprintf(stderr, "spancl: out of memory\n");
        return false;
}

static int profile(char **argv, const struct output *o)
{
        char path[PATH_MAX], timeline[PATH_MAX] = "";
        int status = 2;
        if (!make_file(path))
                return 2;
        if ((!o->link_count || make_file(timeline)) &&
            set_files(path, o->link_count ? timeline : NULL)) {
                status = run_until_end(argv);
                bool reported = report(path, timeline, o, argv);
                if (!reported && !status)
                        status = 1;
        }
        if (*timeline)
                (void)file_unlink(timeline);
        (void)file_unlink(path);
        return status;
}

/* Read the values of --what-if. False: one is bad; the reason was printed. */
static bool take_links(struct output *o, const char *const *texts, size_t count)
{
        char error[WHAT_IF_ERROR_MAX];
        if (count > WHAT_IF_MAX) {
                fprintf(stderr, "spancl: --what-if can occur %d times\n", WHAT_IF_MAX);
                return false;
        }
        for (; o->link_count < count; o->link_count++) {
                if (what_if_parse(texts[o->link_count], &o->links[o->link_count], error) < 0) {
                        fprintf(stderr, "spancl: --what-if: %s\n", error);
                        return false;
                }
        }
        return true;
}

int command_profile(int argc, char **argv)
{
        static const char *const flags[] = { "--json", NULL };
        struct output o = { 0 };
        const char *links[OPTIONS_REPEATED];
        size_t link_count = 0;
        const struct option_value values[] = {
                { "--html", NULL, &o.html_path, NULL, NULL },
                { "--what-if", NULL, links, NULL, &link_count },
                { NULL, NULL, NULL, NULL, NULL },
        };
        char *servers = NULL;
        int i = options_take_values(argc, argv, flags, &o.json, values, &servers);
        if (i < 0)
                return 2;
        if (i == argc) {
                mem_free(servers);
                return command_usage("profile");
        }
        if (!take_links(&o, links, link_count)) {
                mem_free(servers);
                return 2;
        }
        int r = run_prepare(servers);
        mem_free(servers);
        if (r < 0 || !open_html(&o))
                return 2;
        int status = profile(argv + i, &o);
        if (o.html && fclose(o.html) != 0) {
                fprintf(stderr, "spancl: can't write %s: %s\n", o.html_path, strerror(errno));
                status = status ? status : 1;
        }
        return status;
}
