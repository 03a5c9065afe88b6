/* Bulk data of one command: incoming (a session fills it, a write consumes it), outgoing (a read fills
 * it, a session sends it), or local (a read fills it, a write of this same server consumes it). */
#ifndef SPANCL_ENGINE_TRANSFER_H
#define SPANCL_ENGINE_TRANSFER_H

#include "engine/transfer/peer.h"
#include "session/arrivals.h"

struct command;

struct transfer {
        struct engine *engine;
        uint64_t id, total;
        uint64_t
                announced; /* what the commands ask for; `total` is less after engine_transfer_cut */
        size_t refs;       /* the table, reader, writer, the session that sends */
        struct staging *staging;
        uint8_t **chunks; /* its memory, in pieces of chunk_size, each made when first needed */
        uint8_t *only;    /* `chunks` when there is one */
        uint8_t *target;  /* incoming: its memory is the buffer's own instead; else NULL */
        struct buffer *target_of; /* while bytes may come: that buffer; held */
        uint64_t chunk_size;
        uint64_t part_size; /* of one native command; chunks are whole parts */
        uint64_t step;      /* engine_transfer_expect */
        uint64_t freed;     /* bytes below it were given back */
        uint64_t good;    /* outgoing: bytes from here on failed, zeros are sent; else UINT64_MAX */
        uint64_t arrived; /* bytes below it are there */
        struct arrivals placed; /* incoming: bytes that a lane was given a place for */
        struct arrivals came;   /* and those that came: `arrived` and what is beyond */
        /* Incoming, of a server: when the first byte was given a place, and the last came. */
        uint64_t first_ns, last_ns;
        cl_int status; /* negative: the rest will not come, or has no meaning */
        cl_int lack;   /* why there was no memory the last time */
        bool hopeless; /* failed: the same bytes of somebody else would not help, or nobody has them */
        struct peer *peer; /* the other end; NULL: local */
        bool unwanted;     /* local: its writer is over, or there is none */
        bool early;        /* incoming: the command that consumes it has not come yet */
        bool swallow;      /* early and failed, or cut: its bytes come nevertheless */
        uint64_t cut;      /* early: it is cut to that; 0: it is not */
        uint64_t placing;  /* incoming: bytes of places that lanes may be writing to */
        bool sending;      /* outgoing: `bulk` is the session's */
        bool leaves;       /* outgoing, to the client */
        struct command *reader, *writer;
        struct session_bulk bulk;
        /* engine/transfer/reroute.h */
        struct list
                orphaned; /* engine's: the client was asked for somebody else who has the bytes */
        uint64_t orphaned_event; /* that of the command that takes them */
        struct transfer *before; /* its writer's: given up before it */
};

/* For a write: the transfer `id` of `total` bytes from `from`, NULL: from a read of this server.
 * `step` not 0: in one piece of memory, and in parts that are multiples of so many bytes. SP_E_PROTO: the id is
 * in use, or the sizes differ; SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_transfer_expect(struct engine *e, struct peer *from, uint64_t id,
                                        uint64_t total, uint64_t step, struct command *writer,
                                        struct transfer **ret);

/* For a read: the same to `to`, NULL: to a write of this server. */
SP_NODISCARD int engine_transfer_offer(struct engine *e, struct peer *to, uint64_t id,
                                       uint64_t total, uint64_t step, struct command *reader,
                                       struct transfer **ret);

/* The same for a run of a recording, which knows both: first the read, whose bytes are the caller's too until
 * the write adopts them. SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_transfer_local(struct engine *e, uint64_t total, uint64_t step,
                                       struct command *reader, struct transfer **ret);
void engine_transfer_adopt(struct transfer *t, struct command *writer);
/* There will be no write. */
void engine_transfer_disown(struct transfer *t);

/* Its bytes belong at `target`, in memory of `b`: they are received there, if none has come yet and they come from the
 * client, who neither fails half-way nor sends them anew. */
void engine_transfer_aim(struct transfer *t, uint8_t *target, struct buffer *b);

/* The writer is complete, or has failed: nobody waits for the rest, if there is any. */
void engine_transfer_taken(struct transfer *t);

/* The memory of the bytes from `offset` on, made when needed, and in *ret_len how many of them lie there
 * in one piece. NULL: out of memory, or more than the session may have (t->lack). */
uint8_t *engine_transfer_at(struct transfer *t, uint64_t offset, uint64_t *ret_len);

/* The same for one part. */
uint8_t *engine_transfer_part(struct transfer *t, uint64_t offset, uint64_t *ret_len);

/* How far may its reader read now? To a peer only as far as the session has room to send soon, here not far ahead of
 * the writer. */
uint64_t engine_transfer_window(const struct transfer *t);

/* Has the session no room for the next bytes of this read while others will let go of some? Then the read is poked
 * when they did. */
bool engine_transfer_over_quota(struct command *c);

/* What may have let go of some has: who waits for room looks again. */
void engine_transfer_uncrowd(struct engine *e);

/* Bytes below `offset` are not needed any more. */
void engine_transfer_pass(struct transfer *t, uint64_t offset);

/* The reader has `ready` bytes: send them on. */
SP_NODISCARD cl_int engine_transfer_progress(struct transfer *t, uint64_t ready);

/* The reader will read only so many bytes, of which none were sent; its other end will know. */
void engine_transfer_cut(struct transfer *t, uint64_t size);

/* The reader failed: its other end will know. True: the client is still being sent bytes, and the
 * reader must wait with its completion until it is called again. */
bool engine_transfer_abort(struct transfer *t, cl_int status);

/* When the bytes came that `writer` took; false: not all of them came, or of no server. */
bool engine_transfer_times(const struct transfer *t, const struct command *writer,
                           struct backend_times *ret);

/* The command that used it is complete. */
void engine_transfer_leave(struct transfer *t, struct command *c);

/* The peer is lost: what it should have sent, or got, fails. */
void engine_transfer_fail_peer(struct peer *p, cl_int status);

/* Let go of buffers: no lane receives any more. Then, when the backend is closed, of the rest. */
void engine_transfer_abandon_all(struct engine *e);
void engine_transfer_free_all(struct engine *e);
void engine_transfer_init_staging(struct engine *e);
void engine_transfer_free_staging(struct engine *e);
void engine_transfer_count_staging(struct engine *e, size_t *ret_all, size_t *ret_free);

/* For struct session_ops. */
int engine_transfer_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                          void **ret);
int engine_transfer_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                            uint64_t *ret_below);

int engine_transfer_restart(void *user);

int engine_handle_transfer_cut(void *user, const struct wire_transfer_cut *m);
int engine_handle_transfer_failed(void *user, const struct wire_transfer_failed *m);

#endif
