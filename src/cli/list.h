/* spancl list and spancl ping: show servers, their devices, and the speed of links. */
#ifndef SPANCL_CLI_LIST_H
#define SPANCL_CLI_LIST_H

int command_list(int argc, char **argv);
int command_ping(int argc, char **argv);

#endif
