/* Starting workers: as our own program anew, or forked from a zygote (zygote.h) where there is one. Owner: the
 * supervisor. */
#ifndef SPANCL_DAEMON_SPAWN_H
#define SPANCL_DAEMON_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/child_log.h"
#include "daemon/gate.h"

#define SPAWN_ZYGOTE "zygote" /* its name in the log */

struct spawner {
        int argc; /* the supervisor's own */
        char **argv;
        int zygote; /* its control socket; -1: there is none */
        pid_t zygote_pid;
        struct child_log log;               /* the zygote's */
        struct child_log_budget log_budget; /* its own and all workers' */
        bool loading;                       /* it is not known yet whether it can be used */
};

/* Start the zygote, if the options want one: its socket and its log are to be listened to, spawner_hear and
 * child_log_read. */
void spawner_init(struct spawner *s, const struct config_options *o, int argc, char **argv);
/* Also waits a little for all other children. */
void spawner_fini(struct spawner *s);

/* The zygote does not do what it is told: end it. */
void spawner_give_up(struct spawner *s);

/* The zygote has said something or is gone. False: the latter. */
bool spawner_hear(struct spawner *s);

/* Start a worker with this folder, for sessions that have this, with `control` as its CONTROL_FD and `log` as its standard
 * error. It will tell its number (CONTROL_PID). SP_E_LIMIT, SP_E_NOMEM. */
SP_NODISCARD int spawn_worker(struct spawner *s, const char *scratch_dir,
                              const struct gate_grant *grant, int control, int log);

/* Run our own program with `log` as its standard error and `control` as its CONTROL_FD, the last one that it gets of ours: `first` arguments, NULL
 * behind the last, the supervisor's own, and `last` ones. SP_E_LIMIT, SP_E_NOMEM. */
SP_NODISCARD int run_self(const struct spawner *s, char *const *first, char *const *last,
                          int control, int log, pid_t *ret_pid);

#endif
