/* The command `spancld sandbox-test`: it tests whether this host's kernel confines a session. */
#ifndef SPANCL_DAEMON_SANDBOX_TEST_H
#define SPANCL_DAEMON_SANDBOX_TEST_H

#include "config/options.h"

/* Run every attack of sandbox/attacks that judges itself, and print a table. Each attack runs in
 * its own process, in the sandbox that a worker with these options has. Its victims are in a
 * temporary folder that this function makes. Returns the exit status: 0: all attacks failed; 1:
 * one succeeded; 2: the test could not be made. */
int sandbox_test(const struct config_options *o);

#endif
