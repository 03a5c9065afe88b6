/* A snapshot: the answer of a server about itself, its devices and its sessions (session_stats messages), for `spancl
 * top` and `spancl list`. The server may be hostile: texts are kept as they come, within the sizes here, and the counts
 * are bounded. No I/O; one owner. */
#ifndef SPANCL_CLI_SNAPSHOT_H
#define SPANCL_CLI_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json_writer.h"
#include "proto/wire.h"

enum {
        SNAPSHOT_NAME = 128,
        SNAPSHOT_NOTICE = 300,
        SNAPSHOT_DEVICES = 64,
        SNAPSHOT_NOTICES = 128,
        SNAPSHOT_SESSIONS = 4096,
        SNAPSHOT_LINKS = 128, /* of a session */
        SNAPSHOT_USES = 32,   /* devices of a session */
        SNAPSHOT_CLIENTS = 1024,
        SNAPSHOT_SHARES = 33, /* of a client: of all devices together, and of those with limits */
};

#define SNAPSHOT_UNKNOWN UINT64_MAX

struct snapshot_device {
        uint64_t number, state, failures; /* state: enum info_health_state */
        char name[SNAPSHOT_NAME];
        /* SNAPSHOT_UNKNOWN: nobody tells. */
        uint64_t busy_percent, memory_used, memory_total, temperature_c, power_mw, energy_uj;
};

/* A sentence about a device that new sessions do not get. */
struct snapshot_notice {
        char text[SNAPSHOT_NOTICE];
};

/* A device that other clients do not get. A notice says so, too. */
struct snapshot_reservation {
        uint64_t number, until_s; /* until_s: SNAPSHOT_UNKNOWN: it has no end */
        char name[SNAPSHOT_NAME], client[SNAPSHOT_NAME];
};

/* A client's use and limits of all devices together, or of one. SNAPSHOT_UNKNOWN: nobody counts it, or it has no
 * limit. */
struct snapshot_share {
        uint64_t number; /* of the device; SNAPSHOT_UNKNOWN: of all together */
        char name[SNAPSHOT_NAME];
        uint64_t memory, memory_max;
        uint64_t time_ns, time_max_ns, window_ns, window_left_ns; /* all or none */
        bool paused;                                              /* kernels wait */
};

struct snapshot_client {
        char name[SNAPSHOT_NAME];
        uint64_t sessions, sessions_max; /* sessions_max: SNAPSHOT_UNKNOWN: no limit */
        struct snapshot_share *shares;
        size_t share_count;
};

struct snapshot_use {
        uint64_t number, busy_ns;
        uint64_t energy_uj; /* SNAPSHOT_UNKNOWN: nobody tells */
        char name[SNAPSHOT_NAME];
};

struct snapshot_link {
        uint64_t peer; /* 0: the client */
        char name[SNAPSHOT_NAME];
        bool relayed;
        /* [0]: sent by the server; [1]: received */
        uint64_t messages[2], bytes[2], bulk[2], fabric[2];
};

struct snapshot_session {
        uint64_t process;
        char program[SNAPSHOT_NAME], client[SNAPSHOT_NAME], user[SNAPSHOT_NAME],
                host[SNAPSHOT_NAME], from[SNAPSHOT_NAME];
        uint64_t age_ns, memory, memory_peak, programs, commands;
        uint64_t round_trip_ns; /* 0: not known */
        struct snapshot_use *uses;
        size_t use_count;
        struct snapshot_link *links;
        size_t link_count;
};

struct snapshot {
        uint64_t taken_ns; /* of clock_now_ns; the caller sets it */
        uint64_t up_ns, sessions_max, begun, lost, refused;
        bool draining;
        struct snapshot_device *devices;
        size_t device_count;
        struct snapshot_session *sessions; /* as the server names them */
        size_t count;
        struct snapshot_notice *notices;
        size_t notice_count;
        struct snapshot_reservation *reservations;
        size_t reservation_count;
        struct snapshot_client *clients;
        size_t client_count;
};

/* Zeroed memory is an empty one. */
void snapshot_fini(struct snapshot *s);

/* Take one message, whose records are well formed (info_check). Unknown and malformed records in it are ignored. */
void snapshot_take(struct snapshot *s, const struct wire_session_stats *m);

/* Return true if a limit is set there. */
bool snapshot_is_limited(const struct snapshot_share *s);

/* The share of the time, in percent, in which the session used this device, since `old` or, without it, since the
 * session began. Negative: not known. */
double snapshot_busy(const struct snapshot *old, const struct snapshot *now,
                     const struct snapshot_session *s, const struct snapshot_use *u);

/* Bytes per second, in the same way. */
double snapshot_rate(const struct snapshot *old, const struct snapshot *now,
                     const struct snapshot_session *s, int way);

/* Write the members "notices" and "reservations". */
void snapshot_json_notices(struct json_writer *w, const struct snapshot *s);

/* Write the members of a server's object (docs/JSON.md). `old`: NULL, or the one before. */
void snapshot_json(struct json_writer *w, const struct snapshot *old, const struct snapshot *now);

#endif
