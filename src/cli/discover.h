/* spancl discover: prints the servers that sources of discovery find, and whether they are used. */
#ifndef SPANCL_CLI_DISCOVER_H
#define SPANCL_CLI_DISCOVER_H

int command_discover(int argc, char **argv);

#endif
