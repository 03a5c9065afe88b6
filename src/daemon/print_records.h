/* `spancld --print-dns DOMAIN` and `spancld --print-avahi`: the records by which discovery finds this server, for
 * servers of names that the administrator configures. Port and addresses are those of the first --listen beyond
 * loopback. Both return the exit status; 2: an option is wrong. */
#ifndef SPANCL_DAEMON_PRINT_RECORDS_H
#define SPANCL_DAEMON_PRINT_RECORDS_H

#include "config/options.h"

/* Print the records for the domain of --print-dns, as lines of a zone's file. */
int print_dns(const struct config_options *o);
/* Print a file of static services, which avahi-daemon publishes with all addresses of the host. */
int print_avahi(const struct config_options *o);

#endif
