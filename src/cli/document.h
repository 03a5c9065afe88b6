/* spancl config, protocol and document: they print the tables in the source. */
#ifndef SPANCL_CLI_DOCUMENT_H
#define SPANCL_CLI_DOCUMENT_H

#include <stddef.h>

int command_config(int argc, char **argv);
int command_protocol(int argc, char **argv);
int command_document(int argc, char **argv);

/* Write the names that `document` takes, separated by blanks. */
void document_names(char *text, size_t size);

#endif
