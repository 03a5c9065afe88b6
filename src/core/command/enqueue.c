#include "core/command/enqueue.h"

#include "core/client.h"
#include "core/command/command.h"
#include "core/command/event.h"
#include "core/command/queue.h"
#include "core/command/transfer.h"
#include "core/link/server.h"
#include "core/memory/content_size.h"
#include "core/memory/mem.h"
#include "core/memory/placement.h"
#include "core/memory/storage.h"

/* ---- bytes that the device has in common with this process ----------------------------------- */

/* A blocking transfer of a buffer in place (storage.h) is a command that does nothing, and then a copy. */
static bool goes_direct(const struct enqueue *q, cl_mem mem, size_t size)
{
        return q->blocking && !q->record && size > SESSION_INLINE_DEFAULT &&
               storage_is_here(mem_root(mem)->storage, q->queue->device);
}

/* Copy with the lock held, so that no other thread can enqueue meanwhile. False: another thread has
 * enqueued a command already, which would run during the copy. */
static bool copy_direct(struct command *m, cl_mem mem, size_t offset, void *read_to,
                        const void *write_from, size_t size)
{
        struct range at = mem_range(mem, offset, size);
        uint8_t *bytes = mem_host(mem, offset);
        if (queue_in_order(m->queue) && m->queue->last_event != m->id)
                return false;
        if (read_to)
                memcpy(read_to, bytes, size);
        else
                memcpy(bytes, write_from, size);
        return read_to || command_wrote(m, mem, at) == 0;
}

/* Transfer the bytes in place. True: the call returns *ret. False: only the wait list is complete;
 * the transfer goes on like any other. */
static bool enqueue_direct(const struct enqueue *q, cl_mem mem, size_t offset, size_t size,
                           void *read_to, const void *write_from, cl_int *ret)
{
        struct command m;
        struct range at = mem_range(mem, offset, size);
        int r = command_begin(&m, q);
        if (r == 0)
                r = command_use(&m, mem_root(mem), at, read_to != NULL);
        if (r == 0)
                r = command_ready(&m, true);
        if (r == 0)
                r = command_send_nothing(&m);
        *ret = command_end(&m, r, true);
        if (*ret != CL_SUCCESS)
                return true;
        client_lock(m.client);
        bool up = server_session(m.server) != NULL;
        bool done = up && copy_direct(&m, mem, offset, read_to, write_from, size);
        client_unlock(m.client);
        if (!up)
                *ret = CL_DEVICE_NOT_AVAILABLE;
        return done || !up;
}

/* The rest of a transfer that could not be done in place: q without its event, which is handed out,
 * and without its wait list, which is complete. */
static struct enqueue after(const struct enqueue *q)
{
        return (struct enqueue){ .queue = q->queue, .type = q->type, .blocking = true };
}

cl_int enqueue_write(const struct enqueue *q, cl_mem mem, size_t offset, size_t size,
                     const void *from)
{
        cl_int status;
        const struct enqueue rest = after(q);
        if (goes_direct(q, mem, size)) {
                if (enqueue_direct(q, mem, offset, size, NULL, from, &status))
                        return status;
                q = &rest;
        }
        struct command m;
        struct range at = mem_range(mem, offset, size);
        int r = command_begin(&m, q);
        if (r == 0)
                r = command_use(&m, mem_root(mem), at, false);
        if (r == 0)
                r = command_ready(&m, transfer_needs_event(q, size));
        if (r == 0)
                r = session_send(m.session, buffer_write, .event = m.id, .queue = m.queue->id,
                                 .flags = command_flags(&m), .buffer = mem_root(mem)->id,
                                 .offset = at.begin, .size = size, .transfer = m.id,
                                 .waits = command_waits(&m));
        if (r == 0)
                r = command_wrote(&m, mem, at);
        return transfer_finish_write(&m, r, host_bytes(from, size));
}

cl_int enqueue_read(const struct enqueue *q, cl_mem mem, size_t offset, size_t size, void *to)
{
        cl_int status;
        const struct enqueue rest = after(q);
        if (goes_direct(q, mem, size)) {
                if (enqueue_direct(q, mem, offset, size, to, NULL, &status))
                        return status;
                q = &rest;
        }
        struct command m;
        struct range at = mem_range(mem, offset, size);
        int r = command_begin(&m, q);
        if (r == 0)
                r = command_use(&m, mem_root(mem), at, true);
        if (r == 0)
                r = content_size_use(&m, mem, size);
        if (r == 0)
                r = command_ready(&m, true);
        if (r == 0)
                r = transfer_expect(&m, host_bytes(to, size), mem);
        if (r == 0)
                r = content_size_send(&m, mem, size);
        if (r == 0)
                r = session_send(m.session, buffer_read, .event = m.id, .queue = m.queue->id,
                                 .flags = command_flags(&m), .buffer = mem_root(mem)->id,
                                 .offset = at.begin, .size = size, .transfer = m.id,
                                 .waits = command_waits(&m));
        if (r < 0)
                incoming_cancel(m.client, m.id);
        return command_end(&m, r, q->blocking);
}

/* ---- rectangles ----------------------------------------------------------------------------- */

/* The box as the wire has it. */
struct wire_box {
        uint64_t origin[3], region[3];
};

static struct wire_box to_wire(const struct box *b, const size_t region[3])
{
        return (struct wire_box){ { b->origin[0], b->origin[1], b->origin[2] },
                                  { region[0], region[1], region[2] } };
}

static struct range box_bytes(const struct _cl_mem *mem, const struct box *b,
                              const size_t region[3])
{
        struct range r = box_range(b, region);
        return mem_range(mem, (size_t)r.begin, (size_t)(r.end - r.begin));
}

/* Does the box leave no byte between its first and its last? */
static bool is_dense(const struct box *b, const size_t region[3])
{
        bool rows = region[1] == 1 || b->row_pitch == region[0];
        return rows && (region[2] == 1 || b->slice_pitch == region[0] * region[1]);
}

static struct host_box host_part(const struct box *b, const size_t region[3], const void *base)
{
        size_t begin = (size_t)box_range(b, region).begin;
        return (struct host_box){ (uint8_t *)(uintptr_t)base + begin,
                                  { region[0], region[1], region[2] },
                                  b->row_pitch,
                                  b->slice_pitch };
}

cl_int enqueue_write_rect(const struct enqueue *q, cl_mem mem, const struct box *at,
                          const struct box *host, const size_t region[3], const void *from)
{
        struct command m;
        struct wire_box w = to_wire(at, region);
        struct range bytes = box_bytes(mem, at, region);
        int r = command_begin(&m, q);
        if (r == 0)
                r = command_use(&m, mem, bytes, !is_dense(at, region));
        if (r == 0)
                r = command_ready(&m, transfer_needs_event(q, region[0] * region[1] * region[2]));
        if (r == 0)
                r = session_send(m.session, buffer_write_rect, .event = m.id, .queue = m.queue->id,
                                 .flags = command_flags(&m), .buffer = mem->id,
                                 .origin = { w.origin, 3 }, .region = { w.region, 3 },
                                 .row_pitch = at->row_pitch, .slice_pitch = at->slice_pitch,
                                 .transfer = m.id, .waits = command_waits(&m));
        if (r == 0)
                r = command_wrote(&m, mem, bytes);
        return transfer_finish_write(&m, r, host_part(host, region, from));
}

cl_int enqueue_read_rect(const struct enqueue *q, cl_mem mem, const struct box *at,
                         const struct box *host, const size_t region[3], void *to)
{
        struct command m;
        struct wire_box w = to_wire(at, region);
        int r = command_begin(&m, q);
        if (r == 0)
                r = command_use(&m, mem, box_bytes(mem, at, region), true);
        if (r == 0)
                r = command_ready(&m, true);
        if (r == 0)
                r = transfer_expect(&m, host_part(host, region, to), mem);
        if (r == 0)
                r = session_send(m.session, buffer_read_rect, .event = m.id, .queue = m.queue->id,
                                 .flags = command_flags(&m), .buffer = mem->id,
                                 .origin = { w.origin, 3 }, .region = { w.region, 3 },
                                 .row_pitch = at->row_pitch, .slice_pitch = at->slice_pitch,
                                 .transfer = m.id, .waits = command_waits(&m));
        if (r < 0)
                incoming_cancel(m.client, m.id);
        return command_end(&m, r, q->blocking);
}

/* ---- copies and fills ----------------------------------------------------------------------- */

cl_int enqueue_copy(const struct enqueue *q, cl_mem src, cl_mem dst, size_t src_offset,
                    size_t dst_offset, size_t size)
{
        struct command m;
        struct range from = mem_range(src, src_offset, size), to = mem_range(dst, dst_offset, size);
        int r = command_begin(&m, q);
        if (r == 0)
                r = command_use(&m, mem_root(src), from, true);
        if (r == 0)
                r = command_use(&m, mem_root(dst), to, false);
        if (r == 0)
                r = content_size_use(&m, src, size);
        if (r == 0)
                r = command_ready(&m, q->blocking);
        if (r == 0)
                r = content_size_send(&m, src, size);
        if (r == 0)
                r = session_send(m.session, buffer_copy, .event = m.id, .queue = m.queue->id,
                                 .flags = command_flags(&m), .src = mem_root(src)->id,
                                 .dst = mem_root(dst)->id, .src_offset = from.begin,
                                 .dst_offset = to.begin, .size = size, .waits = command_waits(&m));
        if (r == 0)
                r = command_wrote(&m, dst, to);
        return command_end(&m, r, q->blocking);
}

cl_int enqueue_copy_rect(const struct enqueue *q, cl_mem src, cl_mem dst, const struct box *from,
                         const struct box *to, const size_t region[3])
{
        struct command m;
        struct wire_box w_from = to_wire(from, region), w_to = to_wire(to, region);
        struct range written = box_bytes(dst, to, region);
        int r = command_begin(&m, q);
        if (r == 0)
                r = command_use(&m, src, box_bytes(src, from, region), true);
        if (r == 0)
                r = command_use(&m, dst, written, !is_dense(to, region));
        if (r == 0)
                r = command_ready(&m, q->blocking);
        if (r == 0)
                r = session_send(
                        m.session, buffer_copy_rect, .event = m.id, .queue = m.queue->id,
                        .flags = command_flags(&m), .src = src->id, .dst = dst->id,
                        .src_origin = { w_from.origin, 3 }, .dst_origin = { w_to.origin, 3 },
                        .region = { w_to.region, 3 }, .src_row_pitch = from->row_pitch,
                        .src_slice_pitch = from->slice_pitch, .dst_row_pitch = to->row_pitch,
                        .dst_slice_pitch = to->slice_pitch, .waits = command_waits(&m));
        if (r == 0)
                r = command_wrote(&m, dst, written);
        return command_end(&m, r, q->blocking);
}

cl_int enqueue_fill(const struct enqueue *q, cl_mem mem, struct bytes pattern, size_t offset,
                    size_t size)
{
        struct command m;
        struct range at = mem_range(mem, offset, size);
        int r = command_begin(&m, q);
        if (r == 0)
                r = command_use(&m, mem_root(mem), at, false);
        if (r == 0)
                r = command_ready(&m, false);
        if (r == 0)
                r = session_send(m.session, buffer_fill, .event = m.id, .queue = m.queue->id,
                                 .flags = command_flags(&m), .buffer = mem_root(mem)->id,
                                 .offset = at.begin, .size = size, .pattern = pattern,
                                 .waits = command_waits(&m));
        if (r == 0)
                r = command_wrote(&m, mem, at);
        return command_end(&m, r, false);
}

/* ---- markers -------------------------------------------------------------------------------- */

cl_int enqueue_marker(const struct enqueue *q, bool barrier)
{
        struct command m;
        int r = command_begin(&m, q);
        m.behind_all = !q->wait_count;
        if (r == 0 && q->wait_count)
                r = command_wait_for_nothing(&m);
        if (r == 0)
                r = command_ready(&m, q->blocking);
        if (r == 0)
                r = command_send_marker(&m, barrier ? COMMAND_BARRIER : 0);
        if (r == 0 && barrier && m.event && event_lags(m.event))
                m.queue->fence = m.event;
        return command_end(&m, r, q->blocking);
}

cl_int enqueue_nothing(const struct enqueue *q)
{
        struct command m;
        int r = command_begin(&m, q);
        if (r == 0)
                r = command_ready(&m, q->blocking);
        if (r == 0)
                r = command_send_nothing(&m);
        return command_end(&m, r, q->blocking);
}

cl_int enqueue_migrate(const struct enqueue *q, cl_uint count, const cl_mem *mems,
                       const struct range *ranges, cl_mem_migration_flags flags)
{
        struct command m;
        int r = command_begin(&m, q);
        for (cl_uint i = 0; i < count && r == 0; i++) {
                /* To the host: there is nothing to bring, maps and reads take it from where it is. */
                if (flags & CL_MIGRATE_MEM_OBJECT_HOST)
                        continue;
                r = command_use(&m, mems[i], ranges ? ranges[i] : mem_all(mems[i]),
                                !(flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED));
        }
        if (r == 0)
                r = command_ready(&m, false);
        if (r == 0)
                r = command_send_nothing(&m);
        /* "CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED [...] the contents of the set of memory objects are
         * undefined after migration": there, and of no interest anywhere else. */
        for (cl_uint i = 0; i < count && r == 0 && flags == CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
             i++)
                r = command_wrote(&m, mems[i], ranges ? ranges[i] : mem_all(mems[i]));
        return command_end(&m, r, false);
}
