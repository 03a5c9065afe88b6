/* The listening sockets of spancld: the addresses of --listen and --socket. */
#ifndef SPANCL_DAEMON_LISTEN_H
#define SPANCL_DAEMON_LISTEN_H

#include <stddef.h>

#include "config/options.h"
#include "daemon/supervisor/gate.h"
#include "daemon/system/scratch.h"
#include "proto/wire.h"
#include "transport/transport.h"

struct listening {
        struct listener *listener;
        bool tls_only; /* "tls:HOST:PORT": this host's connections need TLS, too */
};

struct listeners {
        struct listening *all;
        size_t count;
        struct gate *gate;
        bool local;    /* clients of this host may use a Unix socket */
        unsigned port; /* of the first TCP listener; 0: none */
        /* The Unix socket for servers of this host; "": none. */
        char local_path[WIRE_LOCAL_PATH_MAX + 1];
        char local_path_folder[SCRATCH_PATH_MAX];
        int local_path_lock;
};

/* Listen on the sockets that the service manager has made (LISTEN_FDS), and on all other addresses
 * that the options name. If one of its sockets is TCP, the options' addresses do not count.
 * Addresses beyond loopback, and with "tls:", are opened only if the gate knows a client or
 * --insecure admits strangers. On an error the log says what to do. The caller frees the result
 * with listeners_close, also after an error. */
SP_NODISCARD int listeners_open(const struct config_options *o, struct gate *gate,
                                struct listeners *ret);

void listeners_close(struct listeners *l);

#endif
