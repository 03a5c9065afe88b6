/* The audit line: one line of the log for each session that has ended. It tells who used the server,
 * from where, how much, and why the session ended. */
#ifndef SPANCL_DAEMON_AUDIT_H
#define SPANCL_DAEMON_AUDIT_H

#include "daemon/control.h"
#include "daemon/supervisor/supervising.h"

/* A client is refused: count it (report_refused), and write a line, as a warning. At most ten such lines at once and
 * one each second; the next one tells how many are missing. */
void audit_refused(struct supervisor *s, const struct pending *v, int status, const char *why);

/* The worker gets a session: record its client. */
void audit_begin(struct worker *w, const struct pending *v);

/* Take the worker's CONTROL_ENDED. It counts once. */
void audit_receive(struct worker *w, const struct control *c);

/* The worker's session has ended: write the line, once its energy is known (energy.h). `why`: a reason that the
 * supervisor knows; NULL: the worker's own, or `how` its process ended. */
void audit_end(struct supervisor *s, struct worker *w, const struct process_usage *used,
               const char *why, const char *how);

#endif
