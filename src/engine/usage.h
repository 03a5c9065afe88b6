/* The use that a session makes of its devices, for queries of statistics, the client's account and the server's
 * samples of energy. Guarded by the engine's lock, but for the samples: a driver may hold a thread with the lock up for
 * long, or for ever. */
#ifndef SPANCL_ENGINE_USAGE_H
#define SPANCL_ENGINE_USAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "engine/lock.h"

struct engine;
struct queue;

/* The time during which the session had native commands in flight on one device of the backend. The commands of
 * sub-devices count for their device. */
struct device_use {
        size_t queues; /* with commands in flight */
        /* Written with the lock, read without it: busy_ns and since_ns as a pair (engine_busy_ns). */
        _Atomic uint64_t busy_ns;  /* up to `since_ns` */
        _Atomic uint64_t since_ns; /* the device is busy since then, or longer; 0: it is idle */
        size_t kernels;            /* in flight (limits.c) */
        /* Joules of the session by the server's last sample, if the device has a counter (`metered`). Any thread. */
        _Atomic uint64_t energy_uj;
        atomic_bool metered;
        unsigned limited; /* 1 + its entry of the account's devices; 0: it has none */
};

/* Make room for all devices. SP_E_NOMEM. */
SP_NODISCARD int engine_usage_init(struct engine *e);
void engine_usage_fini(struct engine *e);

/* Find the devices that have limits of their own in the client's account. */
void engine_usage_limit(struct engine *e) REQUIRES(engine_held);

/* Append an INFO_ENERGY record for each device that has a counter. SP_E_NOMEM. */
SP_NODISCARD int engine_usage_put_energy(struct engine *e, struct buf *ret) REQUIRES(engine_held);

/* One more native command of the queue is in flight; or one less. If device time is limited, the end of each
 * command also puts the time into the client's account (account.h). */
void engine_usage_begin(struct queue *q) REQUIRES(engine_held);
void engine_usage_end(struct queue *q) REQUIRES(engine_held);

#endif
