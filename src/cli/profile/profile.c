#include "cli/profile/profile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/options.h"
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

/* Read the ledger and write the report. False: there is none; the reason was printed. */
static bool report(const char *path, bool json)
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
        if (json)
                report_json(stderr, &l, &a);
        else
                report_text(stderr, &l, &a);
        ledger_fini(&l);
        return true;
}

int command_profile(int argc, char **argv)
{
        static const char *const flags[] = { "--json", NULL };
        bool json = false;
        char *servers = NULL, path[PATH_MAX];
        int i = options_take(argc, argv, flags, &json, &servers);
        if (i < 0)
                return 2;
        if (i == argc) {
                mem_free(servers);
                return command_usage("profile");
        }
        int r = run_prepare(servers);
        mem_free(servers);
        if (r < 0 || !make_file(path))
                return 2;
        int status = 2;
        if (environment_set("SPANCL_PROFILE_FILE", path) < 0) {
                fprintf(stderr, "spancl: out of memory\n");
        } else {
                status = run_until_end(argv + i);
                bool reported = report(path, json);
                if (!reported && !status)
                        status = 1;
        }
        (void)file_unlink(path);
        return status;
}
