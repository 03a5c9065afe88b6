/* The targets of the attacks of `spancld sandbox-test`: files in a temporary folder, processes,
 * sockets on loopback and System V objects. A process has one set at a time. */
#ifndef SPANCL_DAEMON_VICTIMS_H
#define SPANCL_DAEMON_VICTIMS_H

#include <sys/types.h>

#include "base/bytes.h"
#include "config/options.h"
#include "daemon/system/scratch.h"

struct victims {
        char folder[64];
        char scratch[SCRATCH_PATH_MAX]; /* for the attacking process */
        int lock;                       /* of the scratch folder */
        pid_t bystander, worker;        /* 0: none */
        int sockets[4];                 /* tcp, udp, Unix, abstract; -1: none */
        int segment, messages, semaphores;
        char shared[64];   /* a file in /dev/shm; "": none */
        struct buf params; /* as sandbox/attacks/params.def says */
};

/* Make the targets. The caller calls victims_remove, also after an error. From now on TMPDIR and
 * XDG_CACHE_HOME are in the folder. SP_E_INVAL: it can't be done, and the log says why;
 * SP_E_NOMEM. */
SP_NODISCARD int victims_make(struct victims *v, const struct config_options *o);
void victims_remove(struct victims *v);

#endif
