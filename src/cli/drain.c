#include "cli/drain.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "loop/dial.h"
#include "transport/address.h"

/* Say hello with this role. The answer, or the reason why there is none, is in *reply. */
static int greet(const char *address, enum dial_role role, struct dial_reply *reply)
{
        struct conn *conn;
        const struct dial_params p = {
                .address = address,
                .timeout_ms = options_timeout(),
                .role = role,
                .name = "spancl",
                .own_user = role == DIAL_DRAIN,
        };
        int r = loop_connect(&p, &conn, reply);
        if (r == 0)
                conn_close(conn);
        return r;
}

/* A server of this host is asked over its Unix socket, where the system tells it who asks. */
static int drain(const struct server_spec *spec)
{
        struct dial_reply reply;
        struct address named, path;
        char text[ADDRESS_MAX];
        const char *address = spec->address;
        if (spec->in_process) {
                fprintf(stderr, "spancl: %s: devices of this process can't be drained\n",
                        spec->name);
                return SP_E_INVAL;
        }
        int r = greet(address, DIAL_LOOK, &reply);
        bool knows_user =
                address_parse(spec->address, &named) == 0 && named.ops->caps & TRANSPORT_KNOWS_USER;
        if (r == 0 && !knows_user && *reply.local_path &&
            !address_of_path(reply.local_path, &path)) {
                address_put(&path, text);
                address = text;
        }
        if (r == 0)
                r = greet(address, DIAL_DRAIN, &reply);
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
        if (options_servers(argc ? argv[0] : "localhost", &servers, &count) < 0)
                return 2;
        for (size_t i = 0; i < count; i++)
                failed += drain(&servers[i]) < 0;
        config_servers_free(servers, count);
        return failed ? 1 : 0;
}
