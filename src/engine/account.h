/* A client's account of device memory, device time and builds, which its sessions on one spancld share. The
 * account is a page of memory that the supervisor makes for each client. Only workers of that client
 * get it, so a worker that was taken over can falsify no other client's account. Each session writes
 * the bytes that it holds to a slot of its own. The supervisor clears the slot when the session's
 * process has ended. There are no locks; each slot has one owner. A hostile
 * worker's values only make the takes of its own client fail or succeed. */
#ifndef SPANCL_ENGINE_ACCOUNT_H
#define SPANCL_ENGINE_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
        ACCOUNT_SLOTS = 8189, /* sessions of one client at a time */
        ACCOUNT_DEVICES = 32, /* with limits of their own */
};

/* The time that all sessions have used of the devices, or of one device. */
struct account_time {
        _Atomic uint64_t busy_ns;
        _Atomic uint64_t paused; /* not 0: kernels wait, because the client has used its time */
};

struct account_page {
        _Atomic uint64_t used; /* slots from this one on are zeros; at most ACCOUNT_SLOTS counts */
        struct account_time time;             /* of all devices together */
        _Atomic uint64_t held[ACCOUNT_SLOTS]; /* bytes, on all devices together */
        /* Builds at work; with ACCOUNT_BUILD_WAITS, the session wants more. */
        _Atomic uint64_t builds[ACCOUNT_SLOTS];
        /* The same for devices with limits of their own. The supervisor gives each of them a column. */
        struct account_time device_time[ACCOUNT_DEVICES];
        _Atomic uint64_t device_held[ACCOUNT_DEVICES][ACCOUNT_SLOTS];
};

#define ACCOUNT_BUILD_WAITS (UINT64_C(1) << 32)

/* A device with limits of its own. */
struct account_device {
        unsigned number; /* for --devices */
        unsigned column; /* in the page, below ACCOUNT_DEVICES */
        uint64_t max;    /* bytes for all sessions together; UINT64_MAX: no limit */
        uint64_t held;
        bool timed; /* its time is limited */
};

/* A session's view. Zeroed memory is an account without a limit. */
struct account {
        struct account_page *page; /* NULL: there is no limit */
        unsigned slot;
        uint64_t max; /* bytes for all sessions together; UINT64_MAX: no limit */
        uint64_t held;
        bool timed;          /* device time is limited */
        uint64_t builds_max; /* at a time, of all sessions together; 0: no limit */
        uint64_t builds;
        uint64_t cache_max; /* bytes of the compile cache; 0: --cache-size holds alone */
        struct account_device devices[ACCOUNT_DEVICES];
        unsigned device_count;
};

/* Count `size` bytes more. Return false if the sessions of the client would then hold more than the
 * limit. Of two sessions that want the last bytes at the same time, one gets them, as a rule. */
bool account_take(struct account *a, uint64_t size);
void account_give(struct account *a, uint64_t size);

/* The same for bytes on entry `i` of the account's devices. */
bool account_device_take(struct account *a, unsigned i, uint64_t size);
void account_device_give(struct account *a, unsigned i, uint64_t size);

/* Return the bytes that all sessions hold; UINT64_MAX if the sum is larger. */
uint64_t account_sum(const struct account_page *page);
uint64_t account_device_sum(const struct account_page *page, unsigned column);

/* Begin a build. Return false if the sessions of the client would then have more than the limit at work; the account
 * shows that this one waits. */
bool account_build_take(struct account *a);
/* A build has ended. Return true if another session waits, so that this one should not begin the next at once. */
bool account_build_give(struct account *a);

/* For the supervisor: take a free slot. Return false if there is none. `taken` has a bool for each slot, and the first
 * `columns` columns are in use. */
bool account_open(struct account_page *page, bool taken[ACCOUNT_SLOTS], unsigned columns,
                  unsigned *ret_slot);
/* The session of the slot has ended. */
void account_close(struct account_page *page, bool taken[ACCOUNT_SLOTS], unsigned columns,
                   unsigned slot);

#endif
