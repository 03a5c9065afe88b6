/* Lines of a configuration file: "KEY=value". Blanks around key and value do not count, nor does a pair
 * of quotes around the whole value. Empty lines and lines that begin with # are skipped; a # elsewhere
 * belongs to the value. No I/O; any thread. */
#ifndef SPANCL_CONFIG_LINES_H
#define SPANCL_CONFIG_LINES_H

#include <stdbool.h>

struct config_line {
        unsigned number; /* from 1 */
        char *key;       /* NULL: the line has no "=", or nothing in front of it */
        char *value;     /* NULL without a key */
};

/* Take the next line off the front of `*text`, which ends with a NUL and is changed. `*number` is the
 * number of the line before it, at first 0. The strings lie in the text. False: there is no more. */
bool config_lines_next(char **text, unsigned *number, struct config_line *ret);

#endif
