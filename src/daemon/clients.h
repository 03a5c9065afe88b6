/* `spancld clients`: lists the clients of a server and changes their list (KEYS_CLIENTS, transport/keys.h). */
#ifndef SPANCL_DAEMON_CLIENTS_H
#define SPANCL_DAEMON_CLIENTS_H

#include "config/options.h"

/* The exit status. `argv`: the verb and its arguments, without those of `o`. */
int clients_main(const struct config_options *o, int argc, char **argv);

#endif
