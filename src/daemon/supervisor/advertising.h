/* The supervisor's part in publishing this server (--advertise). It starts the programs advertise-mdns and
 * advertise-dht of libexec/spancl, which have the libraries for it, restarts them after their end, and writes changes
 * to their standard input. They read packets of strangers: the supervisor reads nothing from them but their logs, and
 * signs the records of the hash table itself. */
#ifndef SPANCL_DAEMON_ADVERTISING_H
#define SPANCL_DAEMON_ADVERTISING_H

#include "daemon/supervisor/supervising.h"

/* Start the programs that --advertise wants and that do not run (advertiser_deadline); tell them changes. */
void advertiser_provide(struct supervisor *s);

/* The time of advertiser_provide's next work; UINT64_MAX: there is none. */
uint64_t advertiser_deadline(const struct supervisor *s);

/* A process has ended. Returns true if it was such a program. */
bool advertiser_ended(struct supervisor *s, pid_t pid);

/* Withdraw the records for good, because the server takes no new sessions. A program that has to tell others of it
 * may run on for some seconds. */
void advertiser_withdraw(struct supervisor *s);

/* Wait for those programs, and end what is left of them. */
void advertiser_stop(struct supervisor *s);

#endif
