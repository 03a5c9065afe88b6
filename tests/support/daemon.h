/* A spancld that a test starts, with the reference backend, and observes. */
#ifndef SPANCL_TESTS_DAEMON_H
#define SPANCL_TESTS_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#include "support/probe.h"

enum { DAEMON_CHILDREN_MAX = 16 };

struct daemon {
        pid_t pid;
        unsigned port;
        char address[128];
        char folder[64]; /* its TMPDIR, and where its log is */
        char log[96];
};

/* Start a daemon with the options `more` (NULL: none) and wait until it is ready. daemon_start
 * makes a new folder. daemon_start_in uses the folder of another daemon. */
void daemon_start(struct daemon *d, char *const *more);
void daemon_start_in(struct daemon *d, const char *folder, char *const *more);

/* Run a daemon that ends by itself. Return its exit status, or -1. */
int daemon_run(struct daemon *d, char *const *args);

/* End it with SIGTERM, check that it ended cleanly and left nothing behind, and remove its folder. */
void daemon_stop(struct daemon *d);

/* Wait until it ends, and return the status as waitpid gives it. */
int daemon_wait_end(struct daemon *d);

/* Remove its folder. */
void daemon_forget(struct daemon *d);

/* Return true if its log contains `what` now / within ten seconds. */
bool daemon_logged(const struct daemon *d, const char *what);
bool daemon_comes_to_log(const struct daemon *d, const char *what);

/* Count its scratch folders. daemon_has_scratch waits until there are at most `most`, since
 * another process removes them. */
int daemon_count_scratch(const struct daemon *d);
bool daemon_has_scratch(const struct daemon *d, int most);

int daemon_children(const struct daemon *d, pid_t out[DAEMON_CHILDREN_MAX]);

/* Wait for the worker that the next session will get. */
pid_t daemon_warm_worker(const struct daemon *d);

/* Begin a session, which must succeed. */
void daemon_join(const struct daemon *d, struct probe *p);

/* Check that it serves a new session. */
void daemon_assert_serves(const struct daemon *d);

#endif
