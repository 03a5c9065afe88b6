/* SPANCL_STATS: the traffic of each link and the number of waits, as JSON, written when the program
 * ends. */
#ifndef SPANCL_CORE_STATS_H
#define SPANCL_CORE_STATS_H

#include "core/client.h"

/* Write the traffic of each link to the file of SPANCL_STATS, if set; asks the servers for theirs. */
void stats_write(struct client *c) REQUIRES(client_held);

#endif
