/* The watchdog of the worker's loop. A driver may keep the loop's thread in a call that never
 * returns. Then that thread can't enforce its own time limits. Only the worker's main thread
 * calls it. */
#ifndef SPANCL_DAEMON_WATCHDOG_H
#define SPANCL_DAEMON_WATCHDOG_H

#include "config/options.h"

struct server_loop;

struct watchdog {
        struct server_loop *loop;
        uint64_t limit_ns;  /* how long the loop may be silent; 0: no limit */
        uint64_t silent_ns; /* the start of its silence; 0: it has answered */
        uint64_t check_ns;  /* when to ask it again */
};

/* Start to watch `l`, with --session-run-time as the limit. */
void watchdog_init(struct watchdog *w, const struct config_options *o, struct server_loop *l);

/* Return the time-out for poll(2) until watchdog_check is due. */
int watchdog_poll_ms(const struct watchdog *w);

/* End this process if the loop was silent for too long. First notifies the supervisor and cuts
 * all connections, so that no client waits even if the kernel can't end this process. */
void watchdog_check(struct watchdog *w);

#endif
