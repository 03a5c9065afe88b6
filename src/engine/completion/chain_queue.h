/* Chain queues. Some applications use an out-of-order queue like an in-order one: each command
 * waits for the event of the one before. Such a chain pays for events, natively too, and some
 * drivers take longer for an event than for the launch. So the engine gives a queue that shows a
 * chain a chain queue: a native in-order queue beside its own. Further launches of the chain go
 * there as untracked launches (engine/completion/untracked.h). This is done only where the failure
 * of one command fails every later one. Elsewhere a command that waits for a failed one would be
 * executed. */
#ifndef SPANCL_ENGINE_CHAIN_QUEUE_H
#define SPANCL_ENGINE_CHAIN_QUEUE_H

#include "engine/object.h"

enum { CHAIN_WAITS_MAX = 8 };

/* The dependencies of a launch beside those that the chain queue's order covers. */
struct chain_deps {
        struct backend_event *native[CHAIN_WAITS_MAX];
        size_t count;
};

/* Return the chain queue for the queue's next launch. NULL: the launch does not belong to a chain. */
struct queue *engine_chain_take(struct queue *q, uint64_t event, struct wire_u64s waits,
                                struct chain_deps *ret) REQUIRES(engine_held);

/* Make the next command submitted to the queue wait for its chain queue, too. */
SP_NODISCARD cl_int engine_chain_join(struct queue *q);

#endif
