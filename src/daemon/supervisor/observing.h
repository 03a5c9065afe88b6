/* The right to observe a session (HELLO_ROLE_OBSERVE). The user who runs spancld may observe all sessions, as it may
 * drain. Another client may observe those that show the same key, or come from the same user. */
#ifndef SPANCL_DAEMON_SUPERVISOR_OBSERVING_H
#define SPANCL_DAEMON_SUPERVISOR_OBSERVING_H

#include "daemon/supervisor/supervising.h"

/* Hand the admitted connection to the worker of the session that it wants to observe. Write the audit line, and
 * remember the observer's key. Of each session the supervisor knows eight keys of observers. For a ninth one the worker
 * drops the observers of the oldest. Errors, each with a static text for the client: SP_E_AUTH: it may not observe the
 * session; SP_E_GONE: there is no such session (any more); SP_E_LIMIT: the worker does not keep up; SP_E_PROTO: bytes
 * came behind the hello; SP_E_NOMEM. */
SP_NODISCARD int observing_admit(struct supervisor *s, struct pending *v,
                                 const struct wire_hello *m, const char **ret_text);

/* The list of clients has changed; NULL: there is none. The worker drops the observers whose keys are not in it. */
void observing_expire(struct worker *w, const char *list);

/* The client of this grant has replaced its key: its observers go on under the new one. */
void observing_rekeyed(struct worker *w, const struct gate_grant *grant);

#endif
