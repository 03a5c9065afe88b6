/* spancl list --discover: every server that is configured or found, and which of their devices a program would
 * get, and why not the others. */
#ifndef SPANCL_CLI_LIST_FOUND_H
#define SPANCL_CLI_LIST_FOUND_H

/* Print the servers. Returns the exit status. */
int list_found(int timeout_ms);

#endif
