/* A helper process of the supervisor: the dialler, media-io, the allocator, the meter, the exporter, the sensors, or
 * one of the programs that publish the server. One of each runs at a time, and another one is started after its end.
 * Owner: the supervisor. */
#ifndef SPANCL_DAEMON_HELPER_H
#define SPANCL_DAEMON_HELPER_H

#include "daemon/supervisor/child_log.h"
#include "daemon/supervisor/source.h"
#include "os/process/process.h"

struct supervisor;

struct helper {
        const char *name;                 /* in the log */
        struct source source, log_source; /* of `control`; of `log` */
        bool shares_log;                  /* it writes to the supervisor's own standard error */
        struct child_log log;
        int control;       /* its CONTROL_FD's other end, or that of its standard input; -1: none */
        pid_t pid;         /* 0: none */
        uint64_t again_ns; /* when to start one; UINT64_MAX: not by itself */
        uint64_t begun_ns; /* when it was started; only of helpers whose pauses grow */
        unsigned pause_ms; /* the last one */
};

/* A helper that does not run. `kind`: of `control`, if the supervisor reads it; SOURCE_HELPER_LOG: it does not. */
struct helper helper_of(const char *name, enum source_kind kind);

/* Run this program anew as the helper. `first`: its arguments before the supervisor's own, with a NULL behind.
 * SP_E_LIMIT, SP_E_NOMEM: the caller calls helper_gone. */
SP_NODISCARD int helper_start(struct supervisor *s, struct helper *h, char *const *first);

/* Run another program as the helper; `control` is its standard input, a pipe whose writes never wait. Errors as
 * above. */
SP_NODISCARD int helper_run(struct supervisor *s, struct helper *h, const char *path,
                            char *const *argv);

/* The same, but its standard input is the other end of `control`, a socket of packets. */
SP_NODISCARD int helper_run_socket(struct supervisor *s, struct helper *h, const char *path,
                                   char *const *argv);

/* Forget the helper, which has ended or could not be started; start the next one after this time. If it still runs,
 * it is killed. */
void helper_gone(struct supervisor *s, struct helper *h, unsigned again_ms);

/* A process has ended, and was collected. Returns true if it was the helper, which is then gone as above. */
bool helper_ended(struct supervisor *s, struct helper *h, pid_t pid, unsigned again_ms);

/* Kill the helper, wait up to 2 s for its end and forget it. The log says so if it does not end. */
void helper_stop(struct supervisor *s, struct helper *h);

/* Return when to start the helper; UINT64_MAX: it runs. */
uint64_t helper_deadline(const struct helper *h);

/* Read some of its log. */
void helper_read_log(struct supervisor *s, struct helper *h);

#endif
