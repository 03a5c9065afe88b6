/* The supervisor's report about itself and its devices, for clients that query statistics and for
 * the exporter: session_stats exchanges with INFO_SERVER and INFO_HEALTH. */
#ifndef SPANCL_DAEMON_REPORT_H
#define SPANCL_DAEMON_REPORT_H

#include "daemon/supervisor/supervising.h"

/* Count a refused connection; `status` is the reason's SP_E_*. */
void report_refused(struct supervisor *s, int status);

/* Append the report. SP_E_NOMEM. */
SP_NODISCARD int report_put(const struct supervisor *s, struct buf *out);

/* Append the exchange that says whose session this worker has. SP_E_NOMEM. */
SP_NODISCARD int report_put_origin(const struct supervisor *s, const struct worker *w,
                                   struct buf *out);

/* Append the end of an answer that misses no session, for the exporter. SP_E_NOMEM. */
SP_NODISCARD int report_put_whole(struct buf *out);

/* Return true if these records, from a worker, are well-formed and about its session only
 * (INFO_SESSION, INFO_LINK). Only the supervisor reports about the server. */
bool report_is_of_session(struct bytes records);

#endif
