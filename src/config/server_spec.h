/* Specifications of servers: the grammar of SPANCL_SERVERS. Any thread. */
#ifndef SPANCL_CONFIG_SERVER_SPEC_H
#define SPANCL_CONFIG_SERVER_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum {
        CONFIG_PORT = 7777,
        CONFIG_SERVERS_MAX = 256,
};

/* One server of SPANCL_SERVERS (or of POCL_REMOTE<n>_PARAMETERS when that is unset). */
struct server_spec {
        char *name;      /* as it was written, without devices and peer host: for messages */
        bool implied;    /* not named: the default when nothing is configured */
        bool in_process; /* the client's own devices */
        bool accelerators; /* it also has config_accelerators' devices and the media device: the first in_process server */
        char *address; /* of the transport: "tcp:HOST:PORT", "tls:HOST:PORT", "loopback:HOST:PORT",
                               "vsock:CID:PORT", "vsock-plain:CID:PORT", "unix:PATH"; NULL if in_process */
        char *backend; /* in_process: "native", "reference", "almaif" or "media"; else NULL */
        char *devices; /* "0,2", as it was written; NULL: all */
        unsigned *device_list;
        size_t device_count; /* 0: all */
        char *peer_host; /* where other servers reach it, as in peer_open: host, "tls:HOST", "tcp:HOST",
                             "unix:PATH"; NULL if in_process, or nowhere */
        unsigned peer_port; /* 0 with unix: */
        bool peer_given;    /* the user named it */
};

/* A list that grows; config_servers_free frees what it holds. */
struct server_specs {
        struct server_spec *specs;
        size_t count;
};

/* Add the server that `n` bytes of text specify; `origin` names the text in messages. SP_E_INVAL with
 * *ret_error, which the caller frees with mem_free; SP_E_NOMEM. */
SP_NODISCARD int server_specs_add(struct server_specs *all, const char *p, size_t n,
                                  const char *origin, char **ret_error);
void server_spec_fini(struct server_spec *s);

/* Read servers from a text with the grammar of SPANCL_SERVERS. Origin and errors as above. */
SP_NODISCARD int config_servers_parse(const char *text, const char *origin,
                                      struct server_spec **ret, size_t *ret_count,
                                      char **ret_error);
void config_servers_free(struct server_spec *servers, size_t count);

#endif
