/* The arguments of a command as data. They are read from the text that its help shows, such as
 * "[--server S]... [--] PROGRAM [ARGS]", so man pages and completions need no second list. */
#ifndef SPANCL_CLI_ARGUMENTS_H
#define SPANCL_CLI_ARGUMENTS_H

#include <stddef.h>

enum { ARGUMENTS_MAX = 12 };

struct argument {
        char option[32]; /* "--server"; "" for an argument that is known by its place */
        char value[32];  /* "S", "HOST", "FILE"; "" for a flag */
};

/* Read the arguments in `text`, each once and in their order. Returns how many there are. */
size_t arguments_of(const char *text, struct argument ret[ARGUMENTS_MAX]);

/* Options of spancl with an explanation; a row without name ends the table. Each option in the
 * arguments of a command is among them. A value that may be missing is in brackets. */
struct argument_option {
        const char *name, *value, *doc;
};
extern const struct argument_option argument_options[];

/* Explain an option of spancl, or of the commands of spancld; "" if nothing does. */
const char *argument_doc(const char *option);

#endif
