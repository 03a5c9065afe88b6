/* The report of `spancl profile` as a file for browsers: what the text says, with pictures. The file needs nothing
 * else, contains no script, and forbids the browser to load any. Names in it are text, whatever they contain. */
#ifndef SPANCL_CLI_PROFILE_HTML_H
#define SPANCL_CLI_PROFILE_HTML_H

#include <stdio.h>

#include "cli/profile/answers.h"

/* `command`: the program and its arguments, up to a NULL. Errors of the file are the stream's. */
void html_write(FILE *to, const struct ledger_file *l, const struct answers *a,
                char *const *command);

#endif
