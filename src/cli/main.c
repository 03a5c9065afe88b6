/* spancl: the tool that queries servers, and runs programs on their devices. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "config/variables.h"
#include "transport/tls.h"

static const struct command commands[] = {
        { "list", "[--server S]... [--quick]",
          "show the servers, their devices, and the latency and bandwidth of each link",
          command_list },
        { "run", "[--server S]... [--] PROGRAM [ARGS]",
          "run a program that sees the servers' devices and no other OpenCL", command_run },
        { "ping", "HOST[:PORT]", "connect to a server and measure the round trip", command_ping },
        { "top", "[--server S]... [--once]",
          "show the traffic on the links of all sessions on the servers", command_top },
        { "bench", "[--server S]... [-- ARGS] | --plot FILE.svg [--results FILE | --server S...]",
          "measure the latency and bandwidth of OpenCL commands, beside the link's own; with --plot "
          "draw them beside native OpenCL, or draw the results of bench/run.py --json",
          command_bench },
        { "pair", "[HOST[:PORT] [CODE] | --rotate]",
          "make this user a client of another host's server, with the code that `spancld pair` shows "
          "there; without HOST: print this user's own fingerprint",
          command_pair },
        { "discover", "[--watch] [--json] [SOURCES]",
          "show the servers that discovery finds, and which ones this user may use; SOURCES are those "
          "of SPANCL_DISCOVERY, or mdns",
          command_discover },
        { "keys", "DIR",
          "make keys of a client and of its servers that know each other: DIR/client (SPANCL_KEYS) and "
          "DIR/server (spancld --keys)",
          command_keys },
        { "config", "[--markdown]", "show all options, their values and the sources of these",
          command_config },
        { "protocol", "[--markdown]", "show the protocol between client and server",
          command_protocol },
        { "document", "[DOCUMENT]",
          "print a man page or the completions of a shell; without DOCUMENT: print the names of all",
          command_document },
};

const char command_servers_help[] =
        "S is a server as in SPANCL_SERVERS: host[:port][/device,...][#peer-host], unix:/path, or "
        "in-process. Without --server, spancl reads the variable; its default is localhost.";

const struct command *command_at(size_t i)
{
        return i < array_size(commands) ? &commands[i] : NULL;
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
                fprintf(to, "  %s%s%s\n      %s\n", o->name, *o->value ? " " : "", o->value,
                        o->doc);
        fprintf(to, "\n%s\n", command_servers_help);
}

int main(int argc, char **argv)
{
        uint64_t level, ktls;
        char *error = NULL;
        const char *name = argc > 1 ? argv[1] : "--help";
        if (!strcmp(name, "--help") || !strcmp(name, "help")) {
                print_help(argc > 1 ? stdout : stderr);
                return argc > 1 ? 0 : 2;
        }
        if (!strcmp(name, "--version")) {
                printf("spancl %s\n", SPANCL_VERSION);
                return 0;
        }
        if (config_number(CONFIG_client_log, &level, &error) < 0 ||
            config_number(CONFIG_client_ktls, &ktls, &error) < 0) {
                fprintf(stderr, "spancl: %s\n", error ? error : "out of memory");
                mem_free(error);
                return 2;
        }
        log_threshold = (enum log_level)level;
        tls_by_kernel = ktls == 0;
        for (size_t i = 0; i < array_size(commands); i++)
                if (!strcmp(name, commands[i].name))
                        return commands[i].run(argc - 2, argv + 2);
        fprintf(stderr, "spancl: no command '%s'; spancl --help lists all\n", name);
        return 2;
}
