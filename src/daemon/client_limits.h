/* The limits of one client on this server: the --client-* options, and in their place the settings of the client's
 * line in the list of clients. Values only; no state. */
#ifndef SPANCL_DAEMON_CLIENT_LIMITS_H
#define SPANCL_DAEMON_CLIENT_LIMITS_H

#include "base/bytes.h"
#include "config/options.h"

/* In the order of --client-priority's words. */
enum client_priority { PRIORITY_LOW, PRIORITY_NORMAL, PRIORITY_HIGH };

/* 0: no limit. */
struct client_limits {
        uint64_t sessions, memory_bytes, builds; /* builds: at a time */
        uint64_t cache_bytes;                    /* 0: --cache-size holds alone */
        uint64_t time_s, window_s;               /* device time in each window */
        enum client_priority priority;
};

/* Return the limits of the options. */
struct client_limits client_limits_of(const struct config_options *o);

/* Take a setting: sessions=N, memory=MIB, time=SECONDS[/WINDOW], priority=low|normal|high, builds=N, cache=MIB, with
 * the values that the options take, or reserve=DEVICE[:UNTIL],..., which is only checked. Return false, and change
 * nothing, if there is no such setting, or if its value is not one. */
SP_NODISCARD bool client_limits_set(struct client_limits *l, struct bytes key, struct bytes value);

/* Return the disk space in bytes for the compiled programs of an owner of caches (daemon/supervisor/gate.h). `list`
 * is the list of clients; NULL: there is none. */
uint64_t client_cache_bytes(const struct config_options *o, const char *list, const char *owner);

/* Parse --client-time: "SECONDS" or "SECONDS/WINDOW". Return false if it is neither. */
SP_NODISCARD bool client_time_parse(const char *text, uint64_t *ret_time_s, uint64_t *ret_window_s);

#endif
