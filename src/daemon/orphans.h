/* Processes that sessions have left behind: the supervisor, which adopts them, ends them. */
#ifndef SPANCL_DAEMON_ORPHANS_H
#define SPANCL_DAEMON_ORPHANS_H

#include "daemon/supervising.h"

/* Adopt processes whose parents have ended. */
void orphans_adopt(void);

/* End those that are children of this process and were begun in a session's sandbox, which is known by its filter of
 * system calls: nothing takes that away from a process. Others that were adopted, or that were children before spancld
 * was run in this process, are left alone. Their own children are adopted when they have ended, which is
 * another SIGCHLD. True: some have yet to end. */
bool orphans_end(struct supervisor *s);

#endif
