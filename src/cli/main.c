/* spancl: the tool that queries servers, and runs programs on their devices. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "config/faults.h"
#include "config/variables.h"
#include "transport/tls.h"

static const struct command commands[] = {
        { "list", "[--server S]... [--quick] [--json]",
          "show the servers, their devices, the latency and bandwidth of each link, and the links between servers",
          command_list },
        { "run", "[--server S]... [--] PROGRAM [ARGS]",
          "run a program that sees the servers' devices and no other OpenCL", command_run },
        { "ping", "HOST[:PORT] [--json]", "connect to a server and measure the round trip",
          command_ping },
        { "top", "[--server S]... [--once] [--json]",
          "show the devices and sessions of the servers: on a terminal again and again (q ends it, h shows the keys), "
          "else one table with the traffic of each link; with --json a line for each server and second",
          command_top },
        { "bench",
          "[--json] [--server S]... [-- ARGS] | --plot FILE.svg [--results FILE | --server S...]",
          "measure the latency and bandwidth of OpenCL commands, beside the link's own; with --plot "
          "draw them beside native OpenCL, or draw the results of bench/run.py --json",
          command_bench },
        { "pair", "[HOST[:PORT] [CODE] [--use] | --rotate]",
          "make this user a client of another host's server, with the code that `spancld pair` shows "
          "there; without HOST: print this user's own fingerprint",
          command_pair },
        { "unpair", "HOST[:PORT]",
          "forget the key of another host's server, under all of its names", command_unpair },
        { "use", "[S... | @PROFILE [S...] | --none]",
          "choose the servers whose devices this user's programs see, or the profile that names them; with "
          "both, write the profile; without arguments: print the choice",
          command_use },
        { "doctor", "[HOST[:PORT]...] [--json]",
          "check all that a program needs to compute on servers, and say what to do about each fault; without "
          "HOST: on every configured server. The exit status is 0 if there is no fault. The keys of --json are "
          "check, state (ok, warning or fault), text, remedy, and server in checks of one",
          command_doctor },
        { "discover", "[--watch] [--json] [SOURCES]",
          "show the servers that discovery finds, and which ones this user may use; SOURCES are those "
          "of SPANCL_DISCOVERY, or mdns",
          command_discover },
        { "keys", "DIR",
          "make keys of a client and of its servers that know each other: DIR/client (SPANCL_KEYS) and "
          "DIR/server (spancld --keys)",
          command_keys },
        { "config", "[--markdown | --json]",
          "show all options, their values and the sources of these", command_config },
        { "protocol", "[--markdown]", "show the protocol between client and server",
          command_protocol },
        { "document", "[DOCUMENT]",
          "print a man page or the completions of a shell; without DOCUMENT: print the names of all",
          command_document },
};

const char command_servers_help[] =
        "S is a server as in SPANCL_SERVERS: host[:port][/device,...][#peer-host], unix:/path, or "
        "in-process. Without --server, spancl reads the variable or the files that `spancl use` writes; its "
        "default is localhost.";

const struct command *command_at(size_t i)
{
        return i < array_size(commands) ? &commands[i] : NULL;
}

static void print_command(FILE *to, const struct command *c)
{
        fprintf(to, "Usage: spancl %s %s\n", c->name, c->arguments);
}

static void print_option(FILE *to, const struct argument_option *o)
{
        fprintf(to, "  %s%s%s\n      %s\n", o->name, *o->value ? " " : "", o->value, o->doc);
}

static void print_command_help(const struct command *c)
{
        struct argument list[ARGUMENTS_MAX];
        size_t n = arguments_of(c->arguments, list);
        print_command(stdout, c);
        printf("%c%s.\n", toupper((unsigned char)c->help[0]), c->help + 1);
        for (size_t i = 0; i < n; i++)
                for (const struct argument_option *o = argument_options; o->name; o++)
                        if (!strcmp(o->name, list[i].option))
                                print_option(stdout, o);
        if (strstr(c->arguments, "S]") || strstr(c->arguments, "S..."))
                printf("\n%s\n", command_servers_help);
}

int command_usage(const char *name)
{
        for (size_t i = 0; i < array_size(commands); i++)
                if (!strcmp(name, commands[i].name))
                        print_command(stderr, &commands[i]);
        return 2;
}

static void print_help(FILE *to)
{
        fprintf(to, "Usage: spancl COMMAND [ARGUMENTS]\n"
                    "Uses devices of other hosts as local OpenCL devices.\n\n");
        for (size_t i = 0; i < array_size(commands); i++)
                fprintf(to, "  %s %s\n      %s\n", commands[i].name, commands[i].arguments,
                        commands[i].help);
        fprintf(to, "\nOptions:\n");
        for (const struct argument_option *o = argument_options; o->name; o++)
                print_option(to, o);
        fprintf(to, "\n%s\n", command_servers_help);
}

static void print_fault(void *user, const char *text)
{
        (void)user;
        fprintf(stderr, "spancl: %s\n", text);
}

void command_faults(void)
{
        config_faults(print_fault, NULL);
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
        /* The library of the program that `run` becomes tells the faults, too, as do doctor and `use`. */
        if (c->run != command_run && c->run != command_doctor && c->run != command_use)
                command_faults();
        return c->run(argc, argv);
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
        for (size_t i = 0; i < array_size(commands); i++)
                if (!strcmp(name, commands[i].name))
                        return run(&commands[i], argc - 2, argv + 2);
        fprintf(stderr, "spancl: no command '%s'; spancl --help lists all\n", name);
        return 2;
}
