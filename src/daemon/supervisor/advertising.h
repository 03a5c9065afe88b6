/* The supervisor's part in publishing this server (--advertise). It starts the program
 * libexec/spancl/advertise-mdns, which has the libraries for it, restarts it after its end, and writes changes to its
 * standard input. The program reads packets of strangers: the supervisor reads nothing from it but its log. */
#ifndef SPANCL_DAEMON_ADVERTISING_H
#define SPANCL_DAEMON_ADVERTISING_H

#include "daemon/supervisor/supervising.h"

/* Start the program if --advertise wants it and it does not run (advertiser_deadline); tell it changes. */
void advertiser_provide(struct supervisor *s);

/* The time of advertiser_provide's next work; UINT64_MAX: there is none. */
uint64_t advertiser_deadline(const struct supervisor *s);

/* A process has ended. Returns true if it was the program. */
bool advertiser_ended(struct supervisor *s, pid_t pid);

/* End the program for good, because the server takes no new sessions. */
void advertiser_withdraw(struct supervisor *s);

/* End the program, which withdraws the record. */
void advertiser_stop(struct supervisor *s);

#endif
