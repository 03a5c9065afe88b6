/* Commands on their way to a queue. The API has checked the parameters of each enqueue_* function.
 * The function brings the data that the command needs to its device, sends the command, and waits
 * if it is blocking. It takes the client's lock itself and returns a cl_int. */
#ifndef SPANCL_CORE_COMMAND_H
#define SPANCL_CORE_COMMAND_H

#include "core/client.h"
#include "trace/trace.h"

struct recorder;

/* The common parameters of all clEnqueue* and clCommand* functions. */
struct enqueue {
        cl_command_queue queue;
        cl_command_type type;
        cl_uint wait_count;
        const cl_event *waits;
        cl_event *ret_event; /* NULL: not wanted */
        bool blocking;
        struct recorder
                *record; /* core/command/command_buffer.h: record it instead; NULL: enqueue it */
};

/* A box in memory or in a buffer: origin and region in bytes, rows, slices. */
struct box {
        size_t origin[3];
        size_t row_pitch, slice_pitch;
};

/* From the first to behind the last byte of the box. */
static inline struct range box_range(const struct box *b, const size_t region[3])
{
        size_t begin = b->origin[2] * b->slice_pitch + b->origin[1] * b->row_pitch + b->origin[0];
        size_t size = (region[2] - 1) * b->slice_pitch + (region[1] - 1) * b->row_pitch + region[0];
        return (struct range){ begin, begin + size };
}

cl_int enqueue_kernel(const struct enqueue *q, cl_kernel k, cl_uint dims, const size_t *offset,
                      const size_t *global, const size_t *local);
/* The same for a local size that only the implementation can judge. It waits until the
 * implementation has taken the launch, or has refused it with the error that is returned. A launch
 * that has to wait for other commands is not judged yet (*ret_judged). */
cl_int enqueue_kernel_judged(const struct enqueue *q, cl_kernel k, cl_uint dims,
                             const size_t *offset, const size_t *global, const size_t *local,
                             bool *ret_judged);
cl_int enqueue_write(const struct enqueue *q, cl_mem m, size_t offset, size_t size,
                     const void *from);
cl_int enqueue_read(const struct enqueue *q, cl_mem m, size_t offset, size_t size, void *to);
cl_int enqueue_write_rect(const struct enqueue *q, cl_mem m, const struct box *at,
                          const struct box *host, const size_t region[3], const void *from);
cl_int enqueue_read_rect(const struct enqueue *q, cl_mem m, const struct box *at,
                         const struct box *host, const size_t region[3], void *to);
cl_int enqueue_copy(const struct enqueue *q, cl_mem src, cl_mem dst, size_t src_offset,
                    size_t dst_offset, size_t size);
cl_int enqueue_copy_rect(const struct enqueue *q, cl_mem src, cl_mem dst, const struct box *from,
                         const struct box *to, const size_t region[3]);
cl_int enqueue_fill(const struct enqueue *q, cl_mem m, struct bytes pattern, size_t offset,
                    size_t size);
cl_int enqueue_marker(const struct enqueue *q, bool barrier);
/* A command that does nothing after its wait list; unlike a marker without one it may run at any time. */
cl_int enqueue_nothing(const struct enqueue *q);
/* `ranges`: which bytes of each; NULL: all. */
cl_int enqueue_migrate(const struct enqueue *q, cl_uint count, const cl_mem *mems,
                       const struct range *ranges, cl_mem_migration_flags flags);

/* *ret_pointer is written on success only. */
cl_int enqueue_map(const struct enqueue *q, cl_mem m, cl_map_flags flags, size_t offset,
                   size_t size, void **ret_pointer);
cl_int enqueue_map_image(const struct enqueue *q, cl_mem m, cl_map_flags flags,
                         const size_t origin[3], const size_t region[3], void **ret_pointer);
/* CL_INVALID_VALUE: nothing of m is mapped there. */
cl_int enqueue_unmap(const struct enqueue *q, cl_mem m, void *pointer);

/* ---- for the files that define the above ---------------------------------------------------- */

struct command {
        struct client *client;
        const struct enqueue *enqueue;
        cl_command_queue queue;
        struct server *server;
        struct session *session;
        uint64_t id;
        uint64_t at;     /* where its message will be (session_unsent_at) */
        cl_event event;  /* NULL: none is needed */
        bool behind_all; /* a marker or barrier without wait list */
        bool wide;       /* transfer_expect: the lane of waiting threads has enough to do */
        struct trace_span span;
        uint64_t *waits;
        size_t wait_count, wait_cap;
        uint64_t few_waits[16];
};

/* Take the lock, wait for room, make the wait list known to the server. command_end follows, also
 * after an error. */
SP_NODISCARD int command_begin(struct command *m, const struct enqueue *q);
/* Wait until the server's session takes more. Lock held; released while it waits. */
void command_wait_room(struct server *s);
SP_NODISCARD int command_wait_for(struct command *m, uint64_t event);

/* The command uses these bytes of `mem`: it waits for copies of them that are on their way. If
 * `bring`, stale bytes are brought first. */
SP_NODISCARD int command_use(struct command *m, cl_mem mem, struct range r, bool bring);

/* All bytes are brought: give the command its id and, if the application wants it or `event`, its
 * event. */
SP_NODISCARD int command_ready(struct command *m, bool event);

/* The command, which is sent, writes these bytes. */
SP_NODISCARD int command_wrote(struct command *m, cl_mem mem, struct range r);

/* The same for all memory that a launch of k may use, and may have written. */
SP_NODISCARD int command_use_args(struct command *m, cl_kernel k);
SP_NODISCARD int command_wrote_args(struct command *m, cl_kernel k);

/* The fields of its message. */
static inline uint64_t command_flags(const struct command *m)
{
        /* Another device's migrations may name the command in their wait lists. */
        if (!m->event)
                return m->queue->context->device_count > 1 ? COMMAND_NAMED : 0;
        return (m->event->watched ? COMMAND_NOTIFY : COMMAND_NAMED) | (m->wide ? COMMAND_WIDE : 0);
}
static inline struct wire_u64s command_waits(const struct command *m)
{
        return (struct wire_u64s){ m->waits, m->wait_count };
}

/* Send a command that does nothing but wait for its wait list and the events that command_use
 * added. */
SP_NODISCARD int command_send_nothing(struct command *m);

/* `r` < 0: the command could not be sent. Otherwise it is now the queue's last command; it is sent
 * soon, and if `wait`, waited for. Hands its event out and releases the lock. Returns the result of
 * the API call. */
cl_int command_end(struct command *m, int r, bool wait);

#endif
