/* spancl: the tool that queries servers, and runs programs on their devices. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/paragraph.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/options.h"
#include "cli/profile/profile.h"
#include "cli/run.h"
#include "cli/trace/trace.h"
#include "cli/use.h"
#include "config/nearest.h"
#include "config/variables.h"
#include "transport/tls.h"

enum { INDENT = 6, SENTENCE_MAX = 1024 };

static void print_option(FILE *to, const struct argument_option *o)
{
        fprintf(to, "  %s%s%s\n", o->name, *o->value ? " " : "", o->value);
        paragraph_print(to, INDENT, o->doc);
}

static void print_servers_help(FILE *to)
{
        fprintf(to, "\n");
        paragraph_print(to, 0, command_servers_help);
}

static void print_command_help(const struct command *c)
{
        struct argument list[ARGUMENTS_MAX];
        size_t n = arguments_of(c->arguments, list);
        command_print(stdout, c);
        char sentence[SENTENCE_MAX];
        snprintf(sentence, sizeof(sentence), "%c%s.", toupper((unsigned char)c->help[0]),
                 c->help + 1);
        paragraph_print(stdout, 0, sentence);
        for (size_t i = 0; i < n; i++)
                for (const struct argument_option *o = argument_options; o->name; o++)
                        if (!strcmp(o->name, list[i].option))
                                print_option(stdout, o);
        if (strstr(c->arguments, "S]") || strstr(c->arguments, "S..."))
                print_servers_help(stdout);
}

static void print_help(FILE *to)
{
        fprintf(to, "Usage: spancl COMMAND [ARGUMENTS]\n"
                    "Uses devices of other hosts as local OpenCL devices.\n\n");
        const struct command *c;
        for (size_t i = 0; (c = command_at(i)); i++) {
                fprintf(to, "  %s %s\n", c->name, c->arguments);
                paragraph_print(to, INDENT, c->help);
        }
        fprintf(to, "\nOptions:\n");
        for (const struct argument_option *o = argument_options; o->name; o++)
                print_option(to, o);
        print_servers_help(to);
}

static bool asks_help(const char *arg)
{
        return !strcmp(arg, "--help") || !strcmp(arg, "-h");
}

static int run(const struct command *c, int argc, char **argv)
{
        if (argc && asks_help(argv[0])) {
                print_command_help(c);
                return 0;
        }
        log_threshold = (enum log_level)config_number(CONFIG_client_log);
        tls_by_kernel = config_number(CONFIG_client_ktls) == 0;
        /* doctor and `use` print the faults themselves, and so does the library in the program that `run` becomes. */
        if (c->run != command_run && c->run != command_profile && c->run != command_trace &&
            c->run != command_doctor && c->run != command_use)
                options_faults();
        return c->run(argc, argv);
}

/* Find the command whose name is nearest. NULL: none is near. */
static const char *nearest(const char *name)
{
        const struct command *c;
        const char *best = NULL;
        unsigned best_distance = 3;
        for (size_t i = 0; (c = command_at(i)); i++) {
                unsigned d = config_distance(name, c->name);
                if (d < best_distance && d < strlen(c->name) / 2 + 1) {
                        best = c->name;
                        best_distance = d;
                }
        }
        return best;
}

int main(int argc, char **argv)
{
        const char *name = argc > 1 ? argv[1] : "--help";
        if (asks_help(name) || !strcmp(name, "help")) {
                print_help(argc > 1 ? stdout : stderr);
                return argc > 1 ? 0 : 2;
        }
        if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
                printf("spancl %s\n", SPANCL_VERSION);
                return 0;
        }
        const struct command *c = command_find(name);
        if (c)
                return run(c, argc - 2, argv + 2);
        const char *near = nearest(name);
        fprintf(stderr, "spancl: no command '%s'; %s%s%sspancl --help lists all\n", name,
                near ? "is it '" : "", near ? near : "", near ? "'? " : "");
        return 2;
}
