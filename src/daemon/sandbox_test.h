/* `spancld sandbox-test`: does this host's kernel keep a session in? */
#ifndef SPANCL_DAEMON_SANDBOX_TEST_H
#define SPANCL_DAEMON_SANDBOX_TEST_H

#include "base/config.h"

/* Run every attack of sandbox/attacks that judges itself, each in a process that is shut in as a worker with these
 * options is, against victims that this function makes in a temporary folder. It prints a table. The exit status: 0: all
 * are held; 1: one was not; 2: the test could not be made. */
int sandbox_test(const struct config_options *o);

#endif
