/* The metrics of a server, made of the answers to a query of statistics, as text in the exposition
 * format 0.0.4 of Prometheus. No I/O; one owner. */
#ifndef SPANCL_DAEMON_METRICS_H
#define SPANCL_DAEMON_METRICS_H

#include "base/bytes.h"
#include "proto/wire.h"

enum {
        METRICS_SESSIONS = 1024, /* further sessions have no series of their own */
        METRICS_DEVICES = 64,
        METRICS_REASONS = 16,
        METRICS_CLIENTS = 256,
        METRICS_SHARES = 33, /* of a client: of all devices together, and of those with limits */
        METRICS_NAME = 64,
        METRICS_USES =
                8, /* devices of a session with an energy counter; further ones have no series */
};

enum { METRICS_CLIENT, METRICS_SERVER, METRICS_ENDS }; /* the other end of a link */
enum { METRICS_SENT, METRICS_RECEIVED, METRICS_WAYS };

struct metrics_session {
        uint64_t process;
        bool told; /* its worker has answered */
        char program[METRICS_NAME];
        uint64_t bytes[METRICS_ENDS][METRICS_WAYS], messages[METRICS_ENDS][METRICS_WAYS];
        uint64_t memory, programs;
        struct {
                uint64_t device, energy_uj;
        } uses[METRICS_USES];
        size_t use_count;
};

struct metrics_device {
        uint64_t number, state, failures; /* state: enum info_health_state */
        uint64_t energy_uj;               /* UINT64_MAX: it has no counter */
        char name[METRICS_NAME];
};

struct metrics_refusals {
        char reason[METRICS_NAME];
        uint64_t count;
};

/* A figure of a client's share. */
enum metrics_share_figure {
        METRICS_MEMORY,
        METRICS_MEMORY_MAX,
        METRICS_TIME,
        METRICS_TIME_MAX,
        METRICS_WINDOW,
        METRICS_PAUSED,
        METRICS_FIGURES,
};

/* A client's use and limits of a device. */
struct metrics_share {
        uint64_t device;                   /* UINT64_MAX: all together */
        uint64_t figures[METRICS_FIGURES]; /* UINT64_MAX: nobody counts it, or it has no limit */
};

struct metrics_client {
        char name[METRICS_NAME];
        uint64_t sessions, sessions_max; /* sessions_max: UINT64_MAX: no limit */
        struct metrics_share shares[METRICS_SHARES];
        size_t share_count;
};

/* Zeroed memory is an empty one. */
struct metrics {
        bool whole; /* all sessions have answered: INFO_WHOLE has come */
        uint64_t up_ns, sessions, sessions_max, begun, lost, draining;
        struct metrics_refusals refused[METRICS_REASONS];
        size_t refused_count;
        struct metrics_device devices[METRICS_DEVICES];
        size_t device_count;
        struct metrics_client clients[METRICS_CLIENTS];
        size_t client_count;
        struct metrics_session all[METRICS_SESSIONS];
        size_t count;
};

/* Take one answer, whose texts a client may have chosen. Records that are malformed, unknown or too
 * many are ignored. */
void metrics_take(struct metrics *m, const struct wire_session_stats *answer);

/* Append the text. SP_E_NOMEM. */
SP_NODISCARD int metrics_put(const struct metrics *m, struct buf *out);

#endif
