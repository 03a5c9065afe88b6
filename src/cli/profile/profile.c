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
#include "cli/run.h"
#include "os/file.h"
#include "os/process/environment.h"

/* Make an empty file for the ledger. False: it can't be made. */
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

/* Where the report goes. */
struct output {
        bool json;
        FILE *html;            /* NULL: none is asked for */
        const char *html_path; /* in messages */
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

/* Read the ledger and write the report. False: there is none, or it can't be written; the reason was printed. */
static bool report(const char *path, const struct output *o, char *const *command)
{
        struct ledger_file l;
        struct answers a;
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
        bool written = !o->html || write_html(o, &l, &a, command);
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

static int profile(char **argv, const struct output *o)
{
        char path[PATH_MAX];
        int status = 2;
        if (!make_file(path))
                return 2;
        if (environment_set("SPANCL_PROFILE_FILE", path) < 0) {
                fprintf(stderr, "spancl: out of memory\n");
        } else {
                status = run_until_end(argv);
                bool reported = report(path, o, argv);
                if (!reported && !status)
                        status = 1;
        }
        (void)file_unlink(path);
        return status;
}

int command_profile(int argc, char **argv)
{
        static const char *const flags[] = { "--json", NULL };
        struct output o = { 0 };
        const struct option_value values[] = { { "--html", NULL, &o.html_path, NULL },
                                               { NULL, NULL, NULL, NULL } };
        char *servers = NULL;
        int i = options_take_values(argc, argv, flags, &o.json, values, &servers);
        if (i < 0)
                return 2;
        if (i == argc) {
                mem_free(servers);
                return command_usage("profile");
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
