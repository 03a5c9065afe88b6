/* What spancld listens on: the addresses of --listen and --socket. */
#ifndef SPANCL_DAEMON_LISTEN_H
#define SPANCL_DAEMON_LISTEN_H

#include <stddef.h>

#include "base/config.h"
#include "daemon/gate.h"
#include "daemon/scratch.h"
#include "proto/wire.h"
#include "transport/transport.h"

struct listening {
        struct listener *listener;
        bool tls_only; /* "tls:HOST:PORT": connections from this host must be encrypted, too */
};

struct listeners {
        struct listening *all;
        size_t count;
        struct gate *gate;
        unsigned port; /* of the first TCP listener; 0: none */
        /* The Unix socket for servers of this host; "": none. */
        char local_path[WIRE_LOCAL_PATH_MAX + 1];
        char local_path_folder[SCRATCH_PATH_MAX];
        int local_path_lock;
};

/* Listen on everything that the options name; beyond loopback, and with "tls:", only if the gate knows anybody, or
 * strangers are welcome (--insecure). An error was logged, with what to do. The result is freed
 * with listeners_close, also after an error. */
SP_NODISCARD int listeners_open(const struct config_options *o, struct gate *gate,
                                struct listeners *ret);

void listeners_close(struct listeners *l);

#endif
