/* The supervisor's knowledge of its devices: which of them work. A device is checked when there is a reason for doubt: a
 * session's process died by a signal, its driver's context broke, a command ran for too long, or a worker did not come up. A
 * worker that never has a client makes the check (daemon/checkup.h), so no session can lie about it. A device whose last check failed
 * is kept out of new sessions, and after some failures in a row is out of service until a later check passes. */
#ifndef SPANCL_DAEMON_HEALTH_H
#define SPANCL_DAEMON_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct supervisor;
struct worker;
struct control;

enum { HEALTH_DEVICES = 32, HEALTH_FILTER_MAX = 256, HEALTH_TEXT_MAX = 200 };

struct health_device {
        unsigned number; /* as --devices has it */
        char name[64];
        char why[HEALTH_TEXT_MAX]; /* the last check failed */
        unsigned failures;         /* in a row */
        uint64_t due_ns;           /* of the next check; UINT64_MAX: none */
        uint64_t begun_ns;         /* of the check that runs; 0: none */
        uint64_t checked_ns;       /* the end of the last one */
        bool had_sessions;         /* there were sessions then, which may have left it nothing */
        bool kept_out;             /* of workers that are made now */
        bool guessed;              /* no worker has told of it: there may be no such device */
};

struct health {
        struct health_device devices[HEALTH_DEVICES];
        size_t count;
        bool held;      /* new sessions wait for a check */
        bool searching; /* no worker has told yet which devices there are: the last one is a guess */
        bool searched;  /* in vain */
};

/* A worker without a client says that it is ready: take down its devices. */
void health_learn(struct supervisor *s, const char *text);

/* A reason for doubt: check all devices soon. */
void health_doubt(struct supervisor *s);

/* A session has ended: what it had of devices is free. */
void health_session_ended(struct supervisor *s);

/* Start the checks that are due; end those that take too long. */
void health_provide(struct supervisor *s);
uint64_t health_deadline(const struct supervisor *s);

/* Do new sessions wait for a check now? For some seconds at most; then devices that have not answered are kept out. */
bool health_holds(const struct supervisor *s);

/* The filter for a worker: that of the grant or of --devices, without those that are kept out. */
void health_filter(const struct supervisor *s, const char *granted, char ret[HEALTH_FILTER_MAX]);

/* A sentence for a client that gets no device; NULL: devices that are kept out are not the reason. */
const char *health_excuse(const struct supervisor *s);

/* A worker that checks a device has said this; takes too long; has ended, in this way. */
void health_hear(struct supervisor *s, struct worker *w, const struct control *c);
void health_give_up(struct supervisor *s, struct worker *w);
void health_ended(struct supervisor *s, struct worker *w, const char *how);

/* Append the exchanges of session_stats for one who looks at the server. SP_E_NOMEM. */
SP_NODISCARD int health_tell(const struct supervisor *s, struct buf *out);

#endif
