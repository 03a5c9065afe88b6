#include "cli/command.h"

#include <string.h>

#include "base/mem.h"
#include "cli/bench.h"
#include "cli/discover.h"
#include "cli/doctor.h"
#include "cli/document.h"
#include "cli/drain.h"
#include "cli/keys.h"
#include "cli/list.h"
#include "cli/pair.h"
#include "cli/profile/profile.h"
#include "cli/run.h"
#include "cli/top.h"
#include "cli/trace/trace.h"
#include "cli/use.h"

static const struct command commands[] = {
        { "list", "[--server S]... [--quick] [--json] | --discover",
          "show the servers, their devices, the latency and bandwidth of each link, and the links between servers",
          command_list },
        { "run", "[--server S]... [--] PROGRAM [ARGS]",
          "run a program that sees the servers' devices and no other OpenCL", command_run },
        { "profile",
          "[--server S]... [--json] [--html FILE] [--what-if LINK]... [--] PROGRAM [ARGS]",
          "run a program as `run` does, and tell on standard error where its time went, what bounds it and what to do; "
          "with --html in a file for browsers; with --what-if also how long it would take over another link "
          "(docs/PROFILE.md)",
          command_profile },
        { "trace",
          "[--server S]... [--output FILE] [--ring MIB] [--json] [--] PROGRAM [ARGS] | --attach [SESSION|HOST] "
          "[--server S]... [--for SECONDS] [--output FILE] [--json] | --svg FILE [--output FILE] | "
          "--perfetto FILE [--output FILE] | [--import FILE]... [--output FILE] TIMELINE",
          "run a program as `run` does, write a timeline of it and of its servers, and summarise that on standard error; "
          "with --attach of sessions that run already, from their servers, until Ctrl-C; with --svg draw a timeline, "
          "with --perfetto write it in another format, with --import write it with events of other programs, on standard "
          "output or into a file (docs/TRACING.md)",
          command_trace },
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
          "HOST: on every configured server. The exit status is 0 if there is no fault. docs/JSON.md has the keys of "
          "--json",
          command_doctor },
        { "discover", "[--watch] [--json] [SOURCES]",
          "show the servers that discovery finds, and which ones this user may use; SOURCES are those "
          "of SPANCL_DISCOVERY, or mdns",
          command_discover },
        { "drain", "[HOST[:PORT]]",
          "have a server take no new sessions and end with the last one; clients learn that and use other "
          "servers. Only the user who runs spancld may: on its host, or from another one with a key that counts "
          "as the server's own; without HOST: localhost",
          command_drain },
        { "keys", "DIR",
          "make keys of a client and of its servers that know each other: DIR/client (SPANCL_KEYS) and "
          "DIR/server (spancld --keys)",
          command_keys },
        { "install", "",
          "register the library for all programs of a Windows host; on other systems packages do that",
          command_install },
        { "uninstall", "", "undo install", command_uninstall },
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

const struct command *command_find(const char *name)
{
        for (size_t i = 0; i < array_size(commands); i++)
                if (!strcmp(name, commands[i].name))
                        return &commands[i];
        return NULL;
}

void command_print(FILE *to, const struct command *c)
{
        fprintf(to, "Usage: spancl %s %s\n", c->name, c->arguments);
}

int command_usage(const char *name)
{
        const struct command *c = command_find(name);
        if (c)
                command_print(stderr, c);
        return 2;
}
