/* spancl top: shows what servers, their devices and their sessions do. */
#ifndef SPANCL_CLI_TOP_H
#define SPANCL_CLI_TOP_H

int command_top(int argc, char **argv);

#endif
