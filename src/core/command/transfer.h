/* Bulk data between the application's memory and servers, and from server to server. */
#ifndef SPANCL_CORE_TRANSFER_H
#define SPANCL_CORE_TRANSFER_H

#include "core/command/command.h"
#include "core/link/listeners.h"
#include "core/memory/placement.h"

/* Bytes of the application: `region` as clEnqueueReadBufferRect has it; origin 0. */
struct host_box {
        uint8_t *at;
        size_t region[3], row_pitch, slice_pitch;
};

static inline struct host_box host_bytes(const void *at, size_t size)
{
        return (struct host_box){ (uint8_t *)(uintptr_t)at, { size, 1, 1 }, size, size };
}

static inline uint64_t host_size(const struct host_box *b)
{
        return (uint64_t)b->region[0] * b->region[1] * b->region[2];
}

/* A copy that the client makes within the application's memory, after everything that the event
 * waits for is done. */
struct host_copy {
        struct event_tail tail;
        struct list link; /* the client's, until it is done */
        void *to;
        const void *from;
        size_t size;
};

/* Set when the last byte has been read from the application's memory. */
struct sent {
        bool done;
        int status;
};

/* A list of events that a message waits for; borrowed. */
static inline struct wire_u64s ids_waits(const struct ids *ids)
{
        return (struct wire_u64s){ ids->few, ids->count };
}

/* Send the bytes as the transfer of m, whose message is sent. Its event, if any, is not complete
 * before they are sent. `keep`, which owns the memory, and `sent` may be NULL. */
SP_NODISCARD int transfer_send(struct command *m, struct host_box from, cl_mem keep,
                               struct sent *sent) REQUIRES(client_held);

/* Does the client need an event for a write of `size` bytes? Yes if the application's memory is
 * read after the call, or if a blocking call waits for completion. */
bool transfer_needs_event(const struct enqueue *q, uint64_t size);

/* The message of a write is sent, unless r < 0: send its data, then call command_end. A blocking
 * write without a wait list is complete when its data has been taken. With a wait list it waits for
 * completion, because a failed wait list must be reported. */
cl_int transfer_finish_write(struct command *m, int r, struct host_box from) RELEASE(client_held);

/* Receive the transfer of m, which has an event; called before its message is sent. The event is
 * not complete before all bytes have come. `keep`, the object that is read, is held until then. */
SP_NODISCARD int transfer_expect(struct command *m, struct host_box to, cl_mem keep)
        REQUIRES(client_held);

/* Send the messages of a migration: one to the server that has the bytes, one to the server that
 * receives them. For an image they are about all pixels. */
SP_NODISCARD int transfer_bring_read(struct session *session, cl_mem root, struct range part,
                                     const struct wire_buffer_read *m) REQUIRES(client_held);
SP_NODISCARD int transfer_bring_write(struct session *session, cl_mem root, struct range part,
                                      const struct wire_buffer_write *m) REQUIRES(client_held);

/* Send the message of transfer_bring_write for command m, and the bytes from the client's memory. */
SP_NODISCARD int transfer_bring_host(struct command *m, cl_mem root, struct range part,
                                     const struct wire_buffer_write *w) REQUIRES(client_held);

/* Send from the client's memory the bytes that command `event` of `to` should have received from
 * another server. SP_E_GONE: they are not current in the client any more. */
SP_NODISCARD int transfer_reroute_host(struct server *to, cl_mem root, struct range part,
                                       uint64_t event) REQUIRES(client_held);

/* Everything that e comes after is done: the bytes that were held for e may move to or from the
 * application's memory. */
void transfer_turn(cl_event e) REQUIRES(client_held);
/* The call that sends or awaits e's bytes returns without them: the application's memory must not
 * be touched any more. */
void transfer_detach(cl_event e) REQUIRES(client_held);

/* The server will not send the bytes that were asked for. */
void transfers_server_lost(struct server *s, const struct server_loss *loss) REQUIRES(client_held);
/* No bytes come: it was not asked for. */
void incoming_cancel(struct client *c, uint64_t transfer) REQUIRES(client_held);
/* Its command has failed: no bytes come, or all of them have. SP_E_PROTO: some have. */
SP_NODISCARD int incoming_failed(struct server *s, uint64_t transfer) REQUIRES(client_held);

/* Reads into memory of the client, for no command. */
struct fetch {
        unsigned open; /* reads that have not ended */
        bool failed;
};

/* Start to bring bytes of `root` from a replica that has them. `to` lives as long as the object. Errors:
 * SP_E_NOMEM, SP_E_GONE. */
SP_NODISCARD int transfer_fetch(cl_mem root, struct range part, const struct replica *from,
                                uint8_t *to, struct fetch *f) REQUIRES(client_held);
/* Wait until all reads have ended. SP_E_GONE: some bytes have not come. Releases the lock while it waits. */
SP_NODISCARD int fetch_wait(struct client *c, struct fetch *f) REQUIRES(client_held);

/* Not all of it comes. */
int transfer_cut(void *user, const struct wire_transfer_cut *m) REQUIRES(client_held);

/* session_ops for bulk data; user is the server. */
int transfer_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                   void **ret) REQUIRES(client_held);
int transfer_restart(void *user) REQUIRES(client_held);
int transfer_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                     uint64_t *ret_below) REQUIRES(client_held);

#endif
