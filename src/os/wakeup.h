/* A wake-up: a descriptor that one thread polls, and that other threads make readable. It stays
 * readable until it is cleared. Any thread. */
#ifndef SPANCL_OS_WAKEUP_H
#define SPANCL_OS_WAKEUP_H

/* Make one, for the caller to file_close(). -1: errno gives the reason. */
int wakeup_new(void);

/* Make it readable. Never blocks. */
void wakeup_set(int fd);

/* Make it unreadable. */
void wakeup_clear(int fd);

#endif
