/* Starting workers: as our own program anew, or forked from a zygote (zygote.h) where there is one. Owner: the
 * supervisor. */
#ifndef SPANCL_DAEMON_SPAWN_H
#define SPANCL_DAEMON_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/gate.h"

struct spawner {
        int argc; /* the supervisor's own */
        char **argv;
        int zygote; /* its control socket; -1: there is none */
        pid_t zygote_pid;
        bool loading; /* it is not known yet whether it can be used */
};

/* Start the zygote, if the options want one: its socket is to be listened to, spawner_hear. */
void spawner_init(struct spawner *s, const struct config_options *o, int argc, char **argv);
void spawner_fini(struct spawner *s);

/* The zygote has said something or is gone. False: the latter. */
bool spawner_hear(struct spawner *s);

/* Start a worker with this folder, for sessions that have this, and `control` as its CONTROL_FD. *ret_pid 0: it will
 * tell. SP_E_LIMIT, SP_E_NOMEM. */
SP_NODISCARD int spawn_worker(struct spawner *s, const char *scratch_dir,
                              const struct gate_grant *grant, int control, pid_t *ret_pid);

#endif
