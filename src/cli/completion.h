/* Completions of the arguments of spancl and spancld, as scripts of shells. */
#ifndef SPANCL_CLI_COMPLETION_H
#define SPANCL_CLI_COMPLETION_H

#include <stdio.h>

enum completion_program {
        COMPLETION_SPANCL,
        COMPLETION_SPANCLD,
};

void completion_bash(FILE *to, enum completion_program program);
void completion_zsh(FILE *to, enum completion_program program);
void completion_fish(FILE *to, enum completion_program program);

#endif
