/* The right to observe a session (HELLO_ROLE_OBSERVE). The user who runs spancld may observe all sessions, as it may
 * drain. Another client may observe those that show the same key, or come from the same user. */
#ifndef SPANCL_DAEMON_SUPERVISOR_OBSERVING_H
#define SPANCL_DAEMON_SUPERVISOR_OBSERVING_H

#include "daemon/supervisor/supervising.h"

/* Find the worker of the session that the admitted connection wants to observe. SP_E_GONE: there is no such session;
 * SP_E_AUTH: it may not. Both come with a static text for the client. */
SP_NODISCARD int observing_find(struct supervisor *s, const struct pending *v,
                                const struct wire_hello *m, struct worker **ret,
                                const char **ret_text);

#endif
