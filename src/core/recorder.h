/* The flight recorder of SPANCL_TRACE_RING: recording in bounded memory, and a timeline of the last moments when
 * something happens: SIGUSR2, a lost link, a failed command.
 *
 * A thread of its own writes the files. A signal's handler only sets a flag and wakes it. At most TIMELINE_FILES are
 * written, and at most one a second; reasons that come meanwhile are in the next one. */
#ifndef SPANCL_CORE_RECORDER_H
#define SPANCL_CORE_RECORDER_H

#include "core/client.h"

/* Start it if the variable asks for it, before recording starts. */
void recorder_start(void);
bool recorder_is_on(void);

/* Something has happened to `subject` (NULL: nothing to name). Costs a branch if the recorder is off. */
void recorder_trigger(const char *what, const char *subject) REQUIRES(client_held);

/* The process ends: wait for a file that is being written, and write the one that is due. */
void recorder_finish(struct client *c) REQUIRES(client_held);

/* In a child of fork(): there is no such thread. */
void recorder_forget(void);

#endif
