/* The processes that sessions leave behind: the supervisor adopts and ends them. */
#ifndef SPANCL_DAEMON_ORPHANS_H
#define SPANCL_DAEMON_ORPHANS_H

#include "daemon/supervisor/supervising.h"

/* Make this process adopt the processes whose parents have ended. */
void orphans_adopt(void);

/* End the children of this process that came from a session's sandbox. Their filter of system
 * calls identifies them, because a process can't remove its filter. Other adopted processes stay,
 * and so do children from before spancld ran in this process. When an orphan ends, this process
 * adopts its children, which is another SIGCHLD. Returns true if some orphans have yet to end. */
bool orphans_end(struct supervisor *s);

#endif
