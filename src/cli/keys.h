/* spancl keys: makes the keys of a client and of its servers, which know each other. Jobs and
 * containers get their keys so, where they are started. */
#ifndef SPANCL_CLI_KEYS_H
#define SPANCL_CLI_KEYS_H

int command_keys(int argc, char **argv);

#endif
