/* The supervisor's report about itself and its devices, for clients that query statistics and for
 * the exporter: session_stats exchanges with INFO_SERVER and INFO_HEALTH. */
#ifndef SPANCL_DAEMON_REPORT_H
#define SPANCL_DAEMON_REPORT_H

#include "daemon/supervisor/supervising.h"

/* Count a refused connection; `status` is the reason's SP_E_*. */
void report_refused(struct supervisor *s, int status);

/* Append the report. SP_E_NOMEM. */
SP_NODISCARD int report_put(const struct supervisor *s, struct buf *out);

#endif
