/* The start of worker processes. The supervisor runs its own program anew, or has the zygote
 * (zygote.h), if there is one, fork them. Owner: the supervisor. */
#ifndef SPANCL_DAEMON_SPAWN_H
#define SPANCL_DAEMON_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/supervisor/child_log.h"
#include "daemon/supervisor/gate.h"

#define SPAWN_ZYGOTE "zygote" /* the zygote's name in the log */

struct spawner {
        int argc; /* the supervisor's own arguments */
        char **argv;
        int zygote; /* the zygote's control socket; -1: no zygote */
        pid_t zygote_pid;
        struct child_log log;               /* of the zygote */
        struct child_log_budget log_budget; /* of the zygote and all workers together */
        bool loading;                       /* the zygote has not yet said whether it is usable */
};

/* Start the zygote, if the options want one. The caller polls its socket and its log
 * (spawner_receive, child_log_read). */
void spawner_init(struct spawner *s, const struct config_options *o, int argc, char **argv);
/* End the zygote. Also waits a little for all other children. */
void spawner_fini(struct spawner *s);

/* End a zygote that does not follow its orders. */
void spawner_give_up(struct spawner *s);

/* Receive the zygote's message. False: the zygote is gone. */
bool spawner_receive(struct spawner *s);

/* Start a worker with this folder. `devices` takes the place of --devices if it is not empty; `owner` is that of the
 * caches. `control` becomes its CONTROL_FD and `log` its standard error. *ret_pid: its number, which is in `group` from
 * its beginning; 0: the worker sends its number (CONTROL_PID), for cgroup_add. SP_E_LIMIT, SP_E_NOMEM. */
SP_NODISCARD int spawn_worker(struct spawner *s, const char *scratch_dir, const char *devices,
                              const char *owner, unsigned group, int control, int log,
                              pid_t *ret_pid);

/* Run this program anew, with `log` as its standard error and `control` as its CONTROL_FD, the
 * highest descriptor that it inherits. Its arguments are `first`, the supervisor's own, and
 * `last`; NULL ends `first` and `last`. `group` as of spawn_worker; 0: none. SP_E_LIMIT,
 * SP_E_NOMEM. */
SP_NODISCARD int run_self(const struct spawner *s, char *const *first, char *const *last,
                          unsigned group, int control, int log, pid_t *ret_pid);

/* Run this program with these arguments, for run_self. `argv` ends with NULL. SP_E_LIMIT, SP_E_NOMEM. */
SP_NODISCARD int run_own(char *const *argv, unsigned group, int control, int log, pid_t *ret_pid);

/* Run another program, with `input` as its standard input and `log` as its standard error. It inherits no further
 * descriptor. `argv` ends with NULL. SP_E_LIMIT, SP_E_NOMEM. */
SP_NODISCARD int run_program(const char *path, char *const *argv, int input, int log,
                             pid_t *ret_pid);

#endif
