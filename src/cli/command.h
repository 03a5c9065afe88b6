/* The commands of the tool. Each gets the arguments behind its name, prints its errors, and returns the exit status. */
#ifndef SPANCL_CLI_COMMAND_H
#define SPANCL_CLI_COMMAND_H

#include <stddef.h>
#include <stdio.h>

struct command {
        const char *name;
        const char *arguments; /* as the help shows them: cli/arguments.h */
        const char *help;
        int (*run)(int argc, char **argv);
};

/* Get the command number `i`; NULL behind the last one. */
const struct command *command_at(size_t i);

/* Find a command. NULL: there is none of this name. */
const struct command *command_find(const char *name);

/* The explanation of a server's name. */
extern const char command_servers_help[];

/* Print the arguments of a command. */
void command_print(FILE *to, const struct command *c);

/* Print them to standard error, and return 2. */
int command_usage(const char *name);

#endif
