/* spancl profile: run a program, and tell where its time went. */
#ifndef SPANCL_CLI_PROFILE_PROFILE_H
#define SPANCL_CLI_PROFILE_PROFILE_H

int command_profile(int argc, char **argv);

#endif
