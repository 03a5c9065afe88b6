/* spancl use: writes the servers that this user's programs see into the user's configuration file. */
#ifndef SPANCL_CLI_USE_H
#define SPANCL_CLI_USE_H

int command_use(int argc, char **argv);

/* Add a server to those that this user's programs see. Returns the exit status; it has printed the result or the
 * error. */
int use_also(const char *server);

#endif
