/* The supervisor's part in serving metrics (daemon/exporter/exporter.h): it opens the address of
 * --metrics, keeps an exporter running, and passes its queries on. */
#ifndef SPANCL_DAEMON_EXPORTING_H
#define SPANCL_DAEMON_EXPORTING_H

#include "daemon/supervisor/supervising.h"

/* Listen on the address of --metrics, if there is one. On an error the log says what to do. */
SP_NODISCARD int exporter_open(struct supervisor *s);

/* Start an exporter, if one is wanted and none runs. */
void exporter_provide(struct supervisor *s);

/* Receive the exporter's queries. */
void exporter_read(struct supervisor *s);

/* A process has ended. Returns true if it was the exporter. */
bool exporter_ended(struct supervisor *s, pid_t pid);

/* End the exporter, and close the address. */
void exporter_stop(struct supervisor *s);

#endif
