/* The supervisor's record of its devices: which of them work. A reason for doubt leads to a
 * check: a session's process died by a signal, its driver's context broke, a command ran for too
 * long, or a worker did not come up. A worker that never has a client makes the check
 * (daemon/worker/checkup.h), so no session can falsify it. New sessions do not get a device whose last
 * check failed. After some failures in a row it is out of service until a later check passes. */
#ifndef SPANCL_DAEMON_HEALTH_H
#define SPANCL_DAEMON_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "proto/info.h"

struct supervisor;
struct worker;
struct control;
struct gate_grant;

enum { HEALTH_DEVICES = 32, HEALTH_FILTER_MAX = 2048, HEALTH_TEXT_MAX = 200 };

struct health_device {
        unsigned number; /* as in --devices */
        char name[64];
        char why[HEALTH_TEXT_MAX]; /* the reason why the last check failed */
        bool is_cpu;
        unsigned meter;      /* its entry of the energy's meters, and 1; 0: it has none */
        unsigned failures;   /* in a row */
        uint64_t due_ns;     /* the time of the next check; UINT64_MAX: none */
        uint64_t begun_ns;   /* the start of the running check; 0: none */
        uint64_t checked_ns; /* the end of the last check */
        /* Sessions ran during the last check, so they may have held all of the device. */
        bool had_sessions;
        bool kept_out; /* workers made now do not get it */
        bool guessed;  /* no worker has reported it: it may not exist */
};

struct health {
        struct health_device devices[HEALTH_DEVICES];
        size_t count;
        bool held;      /* new sessions wait for a check */
        bool searching; /* no worker has reported devices yet: the last is a guess */
        bool searched;  /* the search found no working device */
};

/* Return the name of the device with this number; "name not known". */
const char *health_name(const struct supervisor *s, unsigned number);

/* A worker without a client is ready: record its devices. */
void health_learn(struct supervisor *s, const char *text);

/* A reason for doubt: check all devices soon. */
void health_doubt(struct supervisor *s);

/* A session has ended: its share of the devices is free. */
void health_session_ended(struct supervisor *s);

/* Start the checks that are due; end those that take too long. */
void health_provide(struct supervisor *s);
uint64_t health_deadline(const struct supervisor *s);

/* Return true if new sessions wait for a check now. They wait for some seconds at most; then they
 * do not get the devices that have not answered. */
bool health_holds(const struct supervisor *s);

/* Make the device filter for a worker with these rights: that of the grant or of --devices, without the devices that
 * are reserved for others, and without those that no new session gets. "": --devices decides. */
void health_filter(const struct supervisor *s, const struct gate_grant *grant,
                   char ret[HEALTH_FILTER_MAX]);

/* Return a sentence for a client that gets no device; NULL: failed checks are not the reason. */
const char *health_excuse(const struct supervisor *s);

/* A worker that checks a device has sent this message; or takes too long; or has ended in this
 * way. */
void health_receive(struct supervisor *s, struct worker *w, const struct control *c);
void health_give_up(struct supervisor *s, struct worker *w);
void health_ended(struct supervisor *s, struct worker *w, const char *how);

/* The device's state. */
enum info_health_state health_state(const struct health_device *d);

/* Append the session_stats exchanges that report devices out of use. SP_E_NOMEM. */
SP_NODISCARD int health_report(const struct supervisor *s, struct buf *out);

#endif
