/* The worker's watch over its loop: a driver may keep the loop's thread in a call that never returns, and then the time
 * limits that this thread itself looks at do nothing. The worker's main thread only. */
#ifndef SPANCL_DAEMON_WATCHDOG_H
#define SPANCL_DAEMON_WATCHDOG_H

#include "base/config.h"

struct server_loop;

struct watchdog {
        struct server_loop *loop;
        uint64_t limit_ns;  /* how long the loop may be silent; 0: any time */
        uint64_t silent_ns; /* since when it has not answered; 0: it has */
        uint64_t look_ns;   /* when to ask it the next time */
};

/* With --session-run-time as the limit. */
void watchdog_init(struct watchdog *w, const struct config_options *o, struct server_loop *l);

/* For poll(2): until the loop has to be looked at. */
int watchdog_poll_ms(const struct watchdog *w);

/* If the loop is silent for too long: tell the supervisor, cut all connections, so that no client waits even if the kernel
 * can't end this process, and end the process. */
void watchdog_look(struct watchdog *w);

#endif
