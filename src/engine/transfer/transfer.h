/* A transfer is the bulk data of one command. Incoming: a session fills it, a write consumes it.
 * Outgoing: a read fills it, a session sends it. Local: a read fills it, a write of this same
 * server consumes it. */
#ifndef SPANCL_ENGINE_TRANSFER_H
#define SPANCL_ENGINE_TRANSFER_H

#include "engine/transfer/peer.h"
#include "session/arrivals.h"

struct command;

struct transfer_memory {
        struct staging *staging;
        uint8_t **chunks; /* its memory, in pieces of chunk_size, each made when first needed */
        uint8_t *only;    /* `chunks` when there is one */
        uint8_t *target;  /* incoming: its memory is the buffer's own instead; else NULL */
        struct buffer *target_of; /* that buffer, while bytes may come; held */
        uint64_t chunk_size;
        uint64_t part_size; /* of one native command; chunks are whole parts */
        uint64_t freed;     /* bytes below it were given back */
        cl_int lack;        /* why the last allocation failed */
};

struct transfer_incoming {
        struct arrivals placed; /* bytes for which a lane got a place */
        struct arrivals came;   /* and bytes received: `arrived` and more */
        uint64_t placing;       /* bytes that lanes may be writing */
        /* From a server: the time when the first byte got a place, and when the last byte came. */
        uint64_t first_ns, last_ns;
        bool early;   /* the command that consumes it has not come yet */
        bool swallow; /* early and failed, or cut: its bytes still come */
        uint64_t cut; /* early: the size it is cut to; 0: not cut */
};

struct transfer_outgoing {
        /* Bytes from here on failed, and zeros are sent; else UINT64_MAX. */
        uint64_t good;
        bool sending; /* `bulk` is the session's */
        bool leaves;  /* to the client */
        struct session_bulk bulk;
};

/* engine/transfer/reroute.h */
struct transfer_reroute {
        /* It failed, and rerouting would not help: no other server has the bytes, or they would
         * fail again. */
        bool hopeless;
        /* In the engine's `orphaned`: the client was asked for another source. */
        struct list orphaned;
        uint64_t event;          /* of its writer, while the client is asked */
        struct transfer *before; /* the one that its writer gave up before it */
};

/* engine/transfer/device_staging.h */
struct transfer_staged {
        bool used;           /* its bytes go through device staging memory */
        bool refused;        /* outgoing: the peer can't use that memory for it */
        bool accepted;       /* outgoing: the peer has all bytes, and takes them later */
        uint64_t taken;      /* outgoing: bytes below it were taken by the peer */
        uint64_t plain_part; /* memory.part_size without that memory */
};

struct upload;

struct transfer {
        struct engine *engine;
        uint64_t id, total;
        /* The size in the commands; engine_transfer_cut makes `total` smaller. */
        uint64_t announced;
        uint64_t step;     /* engine_transfer_expect */
        uint64_t arrived;  /* bytes below it are there */
        size_t refs;       /* the table, reader, writer, the session that sends */
        struct peer *peer; /* the other end; NULL: local */
        struct command *reader, *writer;
        bool unwanted; /* local: its writer is complete, or there is none */
        cl_int status; /* negative: the rest will not come, or is invalid */

        struct transfer_memory memory;
        struct transfer_incoming in;
        struct transfer_outgoing out;
        struct transfer_reroute reroute;
        struct transfer_staged staged;
        struct upload *upload; /* upload.h; NULL: the client sends all bytes */
};

/* For a write: give the transfer `id` of `total` bytes from `from`; NULL: from a read of this
 * server. `step` not 0: the memory is one piece, and parts are multiples of `step` bytes.
 * SP_E_PROTO: the id is in use, or the sizes differ; SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_transfer_expect(struct engine *e, struct peer *from, uint64_t id,
                                        uint64_t total, uint64_t step, struct command *writer,
                                        struct transfer **ret) REQUIRES(engine_held);

/* For a read: the same to `to`, NULL: to a write of this server. */
SP_NODISCARD int engine_transfer_offer(struct engine *e, struct peer *to, uint64_t id,
                                       uint64_t total, uint64_t step, struct command *reader,
                                       struct transfer **ret) REQUIRES(engine_held);

/* The same for a run of a recording, which knows both commands. The read comes first, and the
 * caller shares the transfer until the write adopts it. SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_transfer_local(struct engine *e, uint64_t total, uint64_t step,
                                       struct command *reader, struct transfer **ret)
        REQUIRES(engine_held);
void engine_transfer_adopt(struct transfer *t, struct command *writer);
/* There will be no write. */
void engine_transfer_disown(struct transfer *t) REQUIRES(engine_held);

/* Receive the transfer's bytes straight into `target`, in memory of `b`. This is done only if none
 * has come yet and the sender is the client, which neither fails half-way nor sends them again. */
void engine_transfer_aim(struct transfer *t, uint8_t *target, struct buffer *b);

/* The writer is complete, or has failed: no command needs the rest, if there is any. */
void engine_transfer_taken(struct transfer *t);

/* Return the memory of the bytes from `offset` on, made when needed, and in *ret_len how many of
 * them are there in one piece. NULL: out of memory, or beyond the session's limit (t->lack). */
uint8_t *engine_transfer_at(struct transfer *t, uint64_t offset, uint64_t *ret_len)
        REQUIRES(engine_held);

/* The same for one part. */
uint8_t *engine_transfer_part(struct transfer *t, uint64_t offset, uint64_t *ret_len)
        REQUIRES(engine_held);

/* Up to which byte may the reader read now? For a peer, as far as the session has room to send
 * soon; for a local transfer, not far ahead of the writer. */
uint64_t engine_transfer_window(const struct transfer *t);

/* Has the session no room for the next bytes of this read, while other transfers will free some?
 * Then the read is poked when there is room. */
bool engine_transfer_over_quota(struct command *c) REQUIRES(engine_held);

/* Return true if the session has no room for the bytes at `offset` now, but other transfers will free
 * some. Then engine_uploads_go_on is called when there is room. */
bool engine_transfer_lacks_room(const struct transfer *t, uint64_t offset) REQUIRES(engine_held);

/* Give a reference back (struct transfer.refs). */
void engine_transfer_unref(struct transfer *t) REQUIRES(engine_held);

/* Memory may be free again: commands and lanes that wait for room try again. */
void engine_transfer_uncrowd(struct engine *e) REQUIRES(engine_held);

/* Bytes below `offset` are not needed any more. */
void engine_transfer_pass(struct transfer *t, uint64_t offset) REQUIRES(engine_held);

/* The reader has read `ready` bytes: send them on. */
SP_NODISCARD cl_int engine_transfer_progress(struct transfer *t, uint64_t ready)
        REQUIRES(engine_held);

/* The reader will read only `size` bytes, of which none were sent. The other end is notified. */
void engine_transfer_cut(struct transfer *t, uint64_t size) REQUIRES(engine_held);

/* The reader failed; the other end is notified. True: bytes are still being sent to the client. The
 * reader is done, and its completion is published when they have gone out. */
bool engine_transfer_abort(struct transfer *t, cl_int status) REQUIRES(engine_held);

/* Give the times when the bytes for `writer` came. False: not all came, or not from a server. */
bool engine_transfer_times(const struct transfer *t, const struct command *writer,
                           struct backend_times *ret);

/* All bytes of an incoming transfer have come: no message will name its id any more. */
void engine_transfer_forget(struct transfer *t) REQUIRES(engine_held);

/* A command that used the transfer is complete. */
void engine_transfer_leave(struct transfer *t, struct command *c) REQUIRES(engine_held);

/* The peer is lost: transfers from and to it fail. */
void engine_transfer_fail_peer(struct peer *p, cl_int status) REQUIRES(engine_held);

/* Release buffers: no lane receives any more. After the backend is closed, free the rest. */
void engine_transfer_abandon_all(struct engine *e) REQUIRES(engine_held);
void engine_transfer_free_all(struct engine *e) REQUIRES(engine_held);
void engine_transfer_init_staging(struct engine *e) REQUIRES(engine_held);
void engine_transfer_free_staging(struct engine *e);
void engine_transfer_count_staging(struct engine *e, size_t *ret_all, size_t *ret_free)
        REQUIRES(engine_held);

/* For struct session_ops. */
int engine_transfer_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                          void **ret) REQUIRES(engine_held);
int engine_transfer_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                            uint64_t *ret_below) REQUIRES(engine_held);

int engine_transfer_restart(void *user) REQUIRES(engine_held);

int engine_handle_transfer_cut(void *user, const struct wire_transfer_cut *m) REQUIRES(engine_held);
int engine_handle_transfer_failed(void *user, const struct wire_transfer_failed *m)
        REQUIRES(engine_held);

#endif
