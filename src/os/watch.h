/* A watch: a descriptor that can be read when something in a folder has changed. */
#ifndef SPANCL_OS_WATCH_H
#define SPANCL_OS_WATCH_H

#include <stdbool.h>

/* Watch a folder for files that come, change or go. The caller closes it with file_close. -1: errno gives the
 * reason. */
int watch_new(const char *folder);

/* Make it unreadable until the next change. False: the folder is gone, or has another name. */
bool watch_clear(int watch);

#endif
