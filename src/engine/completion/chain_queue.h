/* Chains in a queue without order. Who waits for each command's event with the next one has an in-order queue,
 * but pays for events: natively, too, and some drivers take longer for them than for the launch. So a
 * queue that shows a chain gets a chain queue, a native in-order queue beside its own, where the chain's further
 * launches are untracked launches (engine/completion/untracked.h). Only where a failure is every later command's, since otherwise what
 * waits for a failed command would be executed. */
#ifndef SPANCL_ENGINE_CHAIN_QUEUE_H
#define SPANCL_ENGINE_CHAIN_QUEUE_H

#include "engine/object.h"

enum { CHAIN_WAITS_MAX = 8 };

/* What a launch has to wait for that the chain queue's order does not say. */
struct chain_deps {
        struct backend_event *native[CHAIN_WAITS_MAX];
        size_t count;
};

/* The chain queue that the queue's next launch belongs to. NULL: to none. */
struct queue *engine_chain_take(struct queue *q, uint64_t event, struct wire_u64s waits,
                                struct chain_deps *ret);

/* What is submitted to the queue next comes behind its chain queue, too. */
SP_NODISCARD cl_int engine_chain_join(struct queue *q);

#endif
