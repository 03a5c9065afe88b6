/* The devices of a session: the backend's own, and sub-devices that the client makes of them.
 * Sub-devices are numbered behind the backend's devices, and numbers are never used again. The
 * devices of one partition are a domain. */
#ifndef SPANCL_ENGINE_DEVICE_H
#define SPANCL_ENGINE_DEVICE_H

#include <stdbool.h>

#include "engine/lock.h"
#include "proto/wire.h"

struct engine;
struct sub_device;

/* May the client name device number `device`? */
bool engine_device_valid(struct engine *e, uint64_t device);

/* Take a reference that keeps a sub-device while commands may yet come to it. NULL: the device is
 * no sub-device. */
struct sub_device *engine_device_ref(struct engine *e, uint64_t device);
struct sub_device *engine_device_share(struct sub_device *s);
void engine_device_unref(struct engine *e, struct sub_device *s);

/* Return the backend's device of which this valid one is a part, or which it is. For a sub-device that the client has
 * released, return its own number, which is at least `device_count`. */
unsigned engine_device_root(struct engine *e, unsigned device);

/* Free all sub-devices, at the session's end. */
void engine_device_free_all(struct engine *e);

int engine_handle_server_info_query(void *user, const struct wire_server_info_query *m)
        REQUIRES(engine_held);
int engine_handle_device_partition(void *user, const struct wire_device_partition *m)
        REQUIRES(engine_held);
int engine_handle_device_release(void *user, const struct wire_device_release *m);

#endif
