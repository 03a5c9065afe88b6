/* The terminal of standard input and output. One thread, and handlers of signals. */
#ifndef SPANCL_OS_TERMINAL_H
#define SPANCL_OS_TERMINAL_H

#include <stddef.h>

#include "base/status.h"

/* Keep the terminal's state for terminal_restore. SP_E_UNSUPP: standard input is no terminal. */
SP_NODISCARD int terminal_keep(void);

/* Have each key read at once, and not shown. Signals of keys remain. */
void terminal_read_keys(void);

/* Give it the state back that it had. A handler of a signal may call it. */
void terminal_restore(void);

/* Write all bytes, and wait until the terminal takes them. A handler of a signal may call it. */
void terminal_write(const char *data, size_t size);

/* Have it take output also while its user selects text. Only consoles of Windows pause programs for that, so other
 * systems do nothing. Selecting then takes the console's menu. */
void terminal_never_pause(void);

/* Get its columns and lines; 80 and 24 if they are not known. */
void terminal_size(int *ret_width, int *ret_height);

#endif
