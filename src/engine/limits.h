/* The limits of one session on its server: spancld's --session-* options. Guarded by the engine's
 * lock. */
#ifndef SPANCL_ENGINE_LIMITS_H
#define SPANCL_ENGINE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include <CL/cl.h>

#include "config/options.h"
#include "engine/account.h"
#include "engine/lock.h"

enum { ENGINE_TURN_NS = 20000000 };

enum engine_limit {
        LIMIT_OBJECTS,   /* OpenCL objects: more can't be used */
        LIMIT_PROGRAMS,  /* of them: more can't be built */
        LIMIT_STORAGE,   /* bytes of buffers and images in all domains */
        LIMIT_TRANSFERS, /* bytes of transfers that are in this host's memory */
        LIMIT_BUILD_NS,  /* how long one build may take: then it has failed */
        /* How long a device may be busy with one command; after that the session is over. */
        LIMIT_RUN_NS,
        /* Bytes of buffers and images of all sessions of the client (account.h); not in `max`. */
        LIMIT_CLIENT,
        ENGINE_LIMITS,
};

/* 0: no limit except the engine's own (state.h). */
struct engine_limits {
        uint64_t max[ENGINE_LIMITS];
        uint64_t room_wait_ns; /* how long commands wait for device memory; 0: they fail */
};

/* The limits that --session-* options set. */
struct engine_limits engine_limits_of(const struct config_options *o);

struct command;
struct engine;
struct queue;

/* Would the session exceed the limit with `more` beside what it `has`? Logs the first time. */
bool engine_limit_exceeded(struct engine *e, enum engine_limit which, uint64_t has, uint64_t more)
        REQUIRES(engine_held);

/* Count `size` bytes of buffers and images towards the limits of the session and of its client, or take them back.
 * Return false if a limit would be exceeded; the caller can find out by engine_room_wait if others may free
 * memory. */
SP_NODISCARD bool engine_storage_take(struct engine *e, uint64_t size) REQUIRES(engine_held);
void engine_storage_give(struct engine *e, uint64_t size) REQUIRES(engine_held);

/* The devices, as bits, on which storage counts: those with limits of their own in the client's account. */
typedef uint32_t device_set;

/* Return true if memory of the session or of its client is limited. */
bool engine_limits_memory(const struct engine *e) REQUIRES(engine_held);
/* Return true if devices have limits of their own, for memory or time. */
bool engine_limits_devices(const struct engine *e) REQUIRES(engine_held);

/* Count storage of `size` bytes also on device `root` of the backend, which uses it, unless it is in *charged. Return
 * as engine_storage_take. */
SP_NODISCARD bool engine_storage_take_on(struct engine *e, unsigned root, uint64_t size,
                                         device_set *charged) REQUIRES(engine_held);
/* Take all of that back. */
void engine_storage_give_on(struct engine *e, uint64_t size, device_set *charged)
        REQUIRES(engine_held);

/* Storage for which no command can wait could not be made: say why. */
void engine_storage_report(struct engine *e) REQUIRES(engine_held);

/* A native buffer could not be made because the device is full. */
void engine_storage_full(struct engine *e) REQUIRES(engine_held);

/* The storage of the command's buffers could not be made: `status`. Return true if the command waits for memory;
 * engine_expire then pokes it from time to time. False: it fails now, or has waited for as long as
 * --when-full says. */
bool engine_room_wait(struct command *c, cl_int status) REQUIRES(engine_held);

/* Are completions observed one by one, because the time of commands is limited? */
bool engine_limit_times(const struct engine *e) REQUIRES(engine_held);

/* Return true if the command is a kernel and its client has used up its device time (--client-time), on all devices
 * together or on the command's. Return true also if that time is limited and the session has two kernels in flight on
 * the device. The command then waits. engine_expire pokes it from time to time, and the end of a kernel pokes the first
 * one. */
bool engine_limit_pauses(struct command *c) REQUIRES(engine_held);

/* Return true if a build may begin now: the sessions of the client have fewer at work than --client-builds. The
 * caller then calls engine_build_end when it has ended. False: it tries again after ENGINE_TURN_NS. */
bool engine_build_begin(struct engine *e) REQUIRES(engine_held);
/* Return true if another session waits for its turn, so that this one should wait first. */
bool engine_build_end(struct engine *e) REQUIRES(engine_held);

/* Some compiled programs found no room in the cache: tell, once, if the client has a limit of its own
 * (--client-cache). */
void engine_cache_full(struct engine *e) REQUIRES(engine_held);

/* A native part of the command was submitted; or is complete. */
void engine_limit_begin(struct command *c) REQUIRES(engine_held);
void engine_limit_end(struct command *c) REQUIRES(engine_held);
void engine_limit_free(struct engine *e);

#endif
