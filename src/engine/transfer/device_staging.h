/* Device staging: memory of a device through which large transfers go from one server of a host to another, when both
 * use the device. The sender has made the memory and passed its descriptor. A piece of a transfer is a copy on the
 * device into that memory, a message, and a copy out of it by the receiver.
 *
 * Each direction of a peer has at most one such memory, with at most one piece. A transfer that finds it in use goes
 * through the host's memory, so no transfer waits for another. Owner: the engine, under its lock. */
#ifndef SPANCL_ENGINE_DEVICE_STAGING_H
#define SPANCL_ENGINE_DEVICE_STAGING_H

#include "engine/state.h"

struct command;
struct peer;
struct transfer;

enum {
        DEVICE_STAGING_OFFERS = 16,  /* that a side makes, or takes; it refuses more */
        DEVICE_STAGING_REFUSALS = 8, /* of pieces, in a row; then the sender releases the memory */
};

/* Only larger transfers than the first, in bytes, use the memory. It is not below READ_AHEAD, up to which a read
 * completes without an answer of the other side. The second is the size of the memory, in bytes. Tests make both
 * smaller. */
extern uint64_t engine_device_staging_above, engine_device_staging_size;

enum device_staging_state {
        DEVICE_STAGING_NONE,
        DEVICE_STAGING_OFFERED, /* the answer has not come */
        DEVICE_STAGING_READY,
        DEVICE_STAGING_OFF, /* it has not worked: not tried again */
};

/* Zeroed memory is a peer without staging. */
struct device_staging {
        bool near; /* the peer takes offers, and its connection takes descriptors */
        /* The memory that this side has made. */
        struct {
                enum device_staging_state state;
                struct backend_buffer *buffer;
                unsigned domain;
                uint64_t size, number;
                struct transfer *user; /* held; NULL: free */
                uint64_t filled;       /* end of the piece that the peer has; 0: none */
                unsigned refusals;
        } out;
        /* The memory that the peer has made. */
        struct {
                struct backend_buffer *buffer;
                unsigned domain, offers;
                uint64_t size;
                /* The piece in it; `size_bytes` 0: none. */
                struct {
                        uint64_t transfer, offset, size_bytes;
                        bool taken; /* a write has it; else its command has not come */
                } piece;
        } in;
};

/* A read begins: have its transfer use the staging memory, if there is any, or offer the peer some for later ones. */
void engine_device_staging_begin(struct command *c) REQUIRES(engine_held);

/* Does the read wait for the peer's answer to its first piece? */
bool engine_device_staging_waits(const struct transfer *t);

/* Submit the next piece of a read or write. */
SP_NODISCARD cl_int engine_device_staging_submit(struct command *c) REQUIRES(engine_held);

/* The bytes of the transfer below `ready` are in the staging memory, or have left it: send staging_filled for those
 * that the peer does not know of. */
SP_NODISCARD cl_int engine_device_staging_progress(struct transfer *t, uint64_t ready)
        REQUIRES(engine_held);

/* A native command that read from the peer's memory is complete. */
void engine_device_staging_taken(struct peer *p) REQUIRES(engine_held);

/* The command of an incoming transfer has come: a piece of it may be there. */
void engine_device_staging_expect(struct transfer *t) REQUIRES(engine_held);

/* The read has failed. */
void engine_device_staging_abort(struct transfer *t) REQUIRES(engine_held);

/* A command that used the transfer is complete. */
void engine_device_staging_leave(struct transfer *t, const struct command *c) REQUIRES(engine_held);

/* The peer is lost, or the engine ends. */
void engine_device_staging_end(struct peer *p) REQUIRES(engine_held);

/* Device memory is short: release the staging memory that no transfer uses, and notify the peers. */
void engine_device_staging_trim(struct engine *e) REQUIRES(engine_held);

/* Handle a message of a peer (proto/schema/session.def). SP_E_PROTO: the peer broke the protocol; drop its session. */
int engine_handle_staging_offer(void *user, const struct wire_staging_offer *m)
        REQUIRES(engine_held);
int engine_handle_staging_answer(void *user, const struct wire_staging_answer *m)
        REQUIRES(engine_held);
int engine_handle_staging_filled(void *user, const struct wire_staging_filled *m)
        REQUIRES(engine_held);
int engine_handle_staging_emptied(void *user, const struct wire_staging_emptied *m)
        REQUIRES(engine_held);

#endif
