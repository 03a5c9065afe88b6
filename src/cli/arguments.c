#include "cli/arguments.h"

#include <stdio.h>
#include <string.h>

#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER "abcdefghijklmnopqrstuvwxyz"

const struct argument_option argument_options[] = {
        { "--server", "S",
          "use this server, not those of SPANCL_SERVERS; the option may occur several times" },
        { "--quick", "", "do not measure the bandwidth of the links" },
        { "--discover", "",
          "show also the servers that discovery finds, and why each device is or is not taken" },
        { "--watch", "", "go on, and show what changes" },
        { "--json", "", "print JSON for programs, an object in each line (docs/JSON.md)" },
        { "--once", "", "print one table and exit" },
        { "--output", "FILE",
          "write the timeline into this file (also -o); the default is spancl-trace.json in the current folder; a name that "
          "ends with .pftrace has it in Perfetto's format" },
        { "--ring", "MIB",
          "keep the newest events in so many MiB, and write a timeline only at SIGUSR2, when a link or a server is "
          "lost, and when a command fails" },
        { "--attach", "[SESSION|HOST]",
          "record sessions that run already, from their servers: one of them, by the number that `spancl top` shows or, "
          "beside --server, by its program's name; or all that this user may see of HOST or of the configured servers" },
        { "--for", "SECONDS",
          "end the recording after so long: 10s, 5min or 1h, at most 24h; the default is Ctrl-C" },
        { "--svg", "FILE",
          "draw the timeline of this file as SVG, on standard output or into the file of --output" },
        { "--perfetto", "FILE",
          "write the timeline of this file in Perfetto's format, to standard output or into the file of --output" },
        { "--import", "FILE",
          "add the events of this file to a timeline: the text of babeltrace2 or of perf script, or a timeline of another "
          "program; SERVER=FILE has a server's clock, and @NS=FILE another clock; up to 16 times (docs/TRACING.md)" },
        { "--what-if", "LINK",
          "predict how long the run would take with another link between client and servers: rtt=5ms,bw=1Gbit, or one of "
          "them; the option may occur several times (docs/PROFILE.md)" },
        { "--html", "FILE", "write the report into this file, for browsers, with pictures" },
        { "--plot", "FILE", "draw the figures as SVG into this file; `-` is standard output" },
        { "--results", "FILE", "draw the figures of this file, and measure nothing" },
        { "--use", "", "then let all programs of this user see the server's devices, too" },
        { "--none", "", "no servers, also none of the system's configuration" },
        { "--rotate", "", "make a new key; hosts that know the old one accept it" },
        { "--markdown", "", "print the document of the source tree, as Markdown" },
        { "--help", "",
          "print all commands and options, or those of one command (also -h), and exit" },
        { "--version", "", "print the version (also -V) and exit" },
        { NULL, NULL, NULL },
};

const char *argument_doc(const char *option)
{
        for (const struct argument_option *o = argument_options; o->name; o++)
                if (!strcmp(o->name, option))
                        return o->doc;
        return "";
}

static void add(struct argument ret[ARGUMENTS_MAX], size_t *count, const struct argument *a)
{
        for (size_t i = 0; i < *count; i++)
                if (!strcmp(ret[i].option, a->option) && !strcmp(ret[i].value, a->value))
                        return;
        if (*count < ARGUMENTS_MAX)
                ret[(*count)++] = *a;
}

size_t arguments_of(const char *text, struct argument ret[ARGUMENTS_MAX])
{
        size_t count = 0;
        for (const char *p = text; *p;) {
                struct argument a = { 0 };
                p += strspn(p, " [|");
                size_t n = strncmp(p, "--", 2) ? 0 : 2 + strspn(p + 2, LOWER "-");
                if (n > 2) {
                        snprintf(a.option, sizeof(a.option), "%.*s", (int)n, p);
                        p += n;
                        /* A value follows after one blank: "--server S", but not "--quick] HOST". */
                        n = *p == ' ' ? strspn(p + 1, UPPER) : 0;
                        p += n ? 1 : 0;
                } else {
                        n = strspn(p, UPPER);
                }
                snprintf(a.value, sizeof(a.value), "%.*s", (int)n, p);
                if (*a.option || *a.value)
                        add(ret, &count, &a);
                p += strcspn(p, " ");
        }
        return count;
}
