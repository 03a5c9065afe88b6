/* `spancld --print-dns DOMAIN`: the records by which discovery finds this server in a domain. */
#ifndef SPANCL_DAEMON_PRINT_DNS_H
#define SPANCL_DAEMON_PRINT_DNS_H

#include "config/options.h"

/* Print the records for the domain of --print-dns, as lines of a zone's file. Port and addresses are those of the
 * first --listen beyond loopback. Returns the exit status; 2: an option is wrong. */
int print_dns(const struct config_options *o);

#endif
