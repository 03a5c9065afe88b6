/* spancl pair makes this user and a server on another host known to each other; spancl unpair forgets the server. */
#ifndef SPANCL_CLI_PAIR_H
#define SPANCL_CLI_PAIR_H

int command_pair(int argc, char **argv);
int command_unpair(int argc, char **argv);

#endif
