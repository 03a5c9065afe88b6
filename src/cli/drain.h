/* spancl drain: a server takes no new sessions and ends with the last one. */
#ifndef SPANCL_CLI_DRAIN_H
#define SPANCL_CLI_DRAIN_H

int command_drain(int argc, char **argv);

#endif
