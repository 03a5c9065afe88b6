/* Man pages, in roff with the macros of man(7). The tables of commands and of config/config.def give
 * their text. */
#ifndef SPANCL_CLI_PAGE_H
#define SPANCL_CLI_PAGE_H

#include <stdio.h>

void page_spancl(FILE *to);    /* spancl(1): the commands */
void page_variables(FILE *to); /* spancl(7): the environment variables */
void page_spancld(FILE *to);   /* spancld(8): the server's options */

#endif
