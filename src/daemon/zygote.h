/* A process that has loaded the native implementations' libraries (--preload), has opened nothing, and from which
 * workers are forked: the pages that loading has written to (relocations: 11 MiB with PoCL's LLVM) are theirs in
 * common. It has one thread and sees nothing of clients. */
#ifndef SPANCL_DAEMON_ZYGOTE_H
#define SPANCL_DAEMON_ZYGOTE_H

#include "base/config.h"

/* Until the supervisor closes the control socket; in a worker, until that ends. The process's exit status; 1: nothing can
 * be forked from it, and the log says why. Changes `o` in workers. */
int zygote_main(struct config_options *o);

#endif
