/* The devices that are reserved for clients: by lines of the list of clients (`reserve`, daemon/reservation.h), which
 * `spancld clients reserve` writes, and by --reserve. Only who may write this list, or starts spancld, can reserve.
 * A session of another client gets a worker that does not open the device. Sessions that exist go on.
 *
 * The list is read again, when it has changed, before each decision about a new session. A list that can't be read
 * leaves the reservations as they were. Part of the supervisor; its thread. */
#ifndef SPANCL_DAEMON_RESERVING_H
#define SPANCL_DAEMON_RESERVING_H

#include "daemon/reservation.h"
#include "daemon/supervisor/gate.h"
#include "os/file_info.h"

struct supervisor;

/* A reservation for a client. */
struct reserved {
        struct reservation what;
        char who[GATE_WHO_MAX];       /* as in struct gate_grant */
        char name[KEYS_NAME_MAX + 1]; /* the client, for people */
};

struct reservations {
        struct reserved *all; /* those of --reserve first; NULL: there are none */
        size_t count, fixed;  /* how many; of --reserve */
        bool read;            /* `file` is that of the list that was read last */
        struct file_info file;
        uint64_t check_ns; /* when one may have ended; 0: none ends */
};

/* Check a value of --reserve. False: it is malformed. */
bool reserving_check(const char *text);

/* Take those of --reserve. SP_E_NOMEM. */
SP_NODISCARD int reserving_init(struct supervisor *s);
void reserving_fini(struct supervisor *s);

/* Read the list if it has changed, and end reservations whose time is over. When that changes the reservations, log
 * the change, and end the workers that wait for sessions. */
void reserving_refresh(struct supervisor *s);
/* The same, at its time. */
void reserving_expire(struct supervisor *s, uint64_t now_ns);
uint64_t reserving_deadline(const struct supervisor *s);

/* Fill in the devices that clients with these rights do not get. */
void reserving_apply(const struct supervisor *s, struct gate_grant *grant);

/* Return a clause about a device that a session of these rights does not get; NULL: it gets all. The same as a sentence
 * for one that gets no device. */
const char *reserving_reason(const struct supervisor *s, const struct gate_grant *grant);
const char *reserving_excuse(const struct supervisor *s, const struct gate_grant *grant);

/* Append the session_stats exchanges that report the reservations. SP_E_NOMEM. */
SP_NODISCARD int reserving_report(const struct supervisor *s, struct buf *out);

#endif
