/* spancl top: prints the counters of the links of all sessions on servers. */
#ifndef SPANCL_CLI_TOP_H
#define SPANCL_CLI_TOP_H

int command_top(int argc, char **argv);

#endif
