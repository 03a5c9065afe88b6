/* Events that stand for signals: requests to stop, and the ends of children. */
#ifndef SPANCL_OS_WINDOWS_SIGNALS_H
#define SPANCL_OS_WINDOWS_SIGNALS_H

#include <stdbool.h>

/* Make signals_next() return this number. Any thread. False: nothing watches signals. */
bool signals_note(int number);

#endif
