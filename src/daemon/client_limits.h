/* The limits of one client on this server: the --client-* options, and in their place the settings of the client's
 * line in the list of clients. Values only; no state. */
#ifndef SPANCL_DAEMON_CLIENT_LIMITS_H
#define SPANCL_DAEMON_CLIENT_LIMITS_H

#include "base/bytes.h"
#include "config/options.h"
#include "engine/account.h"

/* In the order of --client-priority's words. */
enum client_priority { PRIORITY_LOW, PRIORITY_NORMAL, PRIORITY_HIGH };

enum {
        CLIENT_DEVICES = ACCOUNT_DEVICES, /* with limits of their own */
        CLIENT_DEVICE_MAX = 99999,
};

/* A limit of device time in each window. */
struct client_time {
        uint64_t time_s, window_s;
};

/* The limits on one device. */
struct client_device {
        unsigned number; /* for --devices */
        uint64_t memory_bytes;
        struct client_time time;
};

/* 0: no limit. */
struct client_limits {
        uint64_t sessions, memory_bytes, builds; /* builds: at a time */
        uint64_t cache_bytes;                    /* 0: --cache-size holds alone */
        struct client_time time;
        struct client_device devices[CLIENT_DEVICES];
        size_t device_count;
        enum client_priority priority;
};

/* Return the limits of the options. */
struct client_limits client_limits_of(const struct config_options *o);

/* Take a setting: sessions=N, memory=, time=, priority=low|normal|high, builds=N, cache=MIB, with the values that the
 * options take, or reserve=DEVICE[:UNTIL],..., which is only checked. memory= and time= replace all limits of memory or
 * time, also those of devices. Return false, and change nothing, if there is no such setting, or if its value is not
 * one. */
SP_NODISCARD bool client_limits_set(struct client_limits *l, struct bytes key, struct bytes value);

/* Take the settings of a client's line, which are checked. */
void client_limits_apply(struct client_limits *l, const char *settings);

/* Return the disk space in bytes for the compiled programs of an owner of caches (daemon/supervisor/gate.h). `list`
 * is the list of clients; NULL: there is none. */
uint64_t client_cache_bytes(const struct config_options *o, const char *list, const char *owner);

/* Check --client-memory: terms "MIB" and "DEVICE=MIB", separated by commas, or --client-time: the same with
 * "SECONDS[/WINDOW]". Each device, and all together, come once at most. Return false if the text is malformed, or names
 * too many devices. */
bool client_memory_check(const char *text);
bool client_time_check(const char *text);

#endif
