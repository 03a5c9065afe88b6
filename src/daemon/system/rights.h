/* The rights of spancld's helper processes. */
#ifndef SPANCL_DAEMON_RIGHTS_H
#define SPANCL_DAEMON_RIGHTS_H

#include <stdbool.h>

/* If this process is root's: become the user of this name ("": stay), with its groups and its home folder. False:
 * it is not possible, and nothing else may be done in its place. */
bool rights_become(const char *name);

/* Give this thread alone the rights of a user, without further groups. False: it is not possible. */
bool rights_become_thread(unsigned user, unsigned group);

/* Let no program that this process starts have more rights than it (setuid). */
void rights_gain_none(void);

/* Give up all rights: root becomes nobody, and the process has at most `files` descriptors and ends with its parent.
 * An errno: it stays root; 0. */
int rights_give_up(unsigned files);

#endif
