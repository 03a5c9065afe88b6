/* The zygote: a process that has loaded the native implementations' libraries (--preload), but
 * has opened nothing. Workers are forked from it. So they share the pages that loading has
 * written to (relocations: 11 MiB with PoCL's LLVM). It has one thread and receives nothing from
 * clients. */
#ifndef SPANCL_DAEMON_ZYGOTE_H
#define SPANCL_DAEMON_ZYGOTE_H

#include "config/options.h"

/* Run the zygote until the supervisor closes the control socket; a forked worker returns when it
 * ends. Returns the process's exit status; 1: workers can't be forked from it, and the log says
 * why. Changes `o` in workers. */
int zygote_main(struct config_options *o);

#endif
