#include "cli/drain.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "loop/dial.h"
#include "transport/address.h"

/* A server of this host is asked over its Unix socket, where the system tells it who asks. */
static int drain(const struct server_spec *spec)
{
        struct dial_reply reply;
        char address[ADDRESS_MAX];
        if (spec->in_process) {
                fprintf(stderr, "spancl: %s: devices of this process can't be drained\n",
                        spec->name);
                return SP_E_INVAL;
        }
        int r = remote_own_address(spec, address, &reply);
        if (r == 0)
                r = remote_greet(address, DIAL_DRAIN, &reply);
        if (r < 0) {
                fprintf(stderr, "spancl: %s: %s\n", spec->name,
                        remote_without_address(reply.text, address));
                return r;
        }
        printf("%s takes no new sessions, and ends with the last one\n", spec->name);
        return 0;
}

int command_drain(int argc, char **argv)
{
        struct server_spec *servers;
        size_t count;
        int failed = 0;
        if (argc > 1 || (argc && argv[0][0] == '-'))
                return command_usage("drain");
        if (options_servers(argc ? argv[0] : "localhost", "drain", &servers, &count) < 0)
                return 2;
        for (size_t i = 0; i < count; i++)
                failed += drain(&servers[i]) < 0;
        config_servers_free(servers, count);
        return failed ? 1 : 0;
}
