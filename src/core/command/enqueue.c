#include "core/command/enqueue.h"
#include "core/command/operands.h"

#include "core/client.h"
#include "core/command/action.h"
#include "core/command/command.h"
#include "core/command/event.h"
#include "core/command/prefetch.h"
#include "core/command/queue.h"
#include "core/command/transfer.h"
#include "core/link/server.h"
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

/* Copy under the lock, so that no other thread can enqueue meanwhile. False: another thread has
 * enqueued a command already, which would run during the copy. */
static bool copy_direct(struct command *m, cl_mem mem, size_t offset, void *read_to,
                        const void *write_from, size_t size) REQUIRES(client_held)
{
        struct range at = mem_range(mem, offset, size);
        uint8_t *bytes = mem_host(mem, offset, size);
        if (queue_in_order(m->queue) && m->queue->last_event != m->id)
                return false;
        if (write_from &&
            placement_arrives_after(&mem_root(mem)->placement, m->server->index,
                                    mem_domain(mem_root(mem), m->queue->device), at, m->id))
                return false;
        if (read_to)
                memcpy(read_to, bytes, size);
        else
                memcpy(bytes, write_from, size);
        return read_to || command_wrote(m, mem, at, true) == 0;
}

/* Transfer the bytes in place. True: the call returns *ret. False: only the wait list is complete;
 * the transfer goes on like any other. */
static bool enqueue_direct(const struct enqueue *q, cl_mem mem, size_t offset, size_t size,
                           void *read_to, const void *write_from, cl_int *ret)
{
        struct command m;
        struct range at = mem_range(mem, offset, size);
        int r = command_begin(&m, q);
        m.profile.bytes = size;
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
        return action_enqueue(q, &(struct action){ .kind = ACTION_BUFFER_WRITE,
                                                   .to = operand_bytes(mem, offset, size),
                                                   .covers = true,
                                                   .host = host_bytes(from, size) });
}

cl_int enqueue_read(const struct enqueue *q, cl_mem mem, size_t offset, size_t size, void *to)
{
        cl_int status;
        const struct enqueue rest = after(q);
        if (q->queue->prefetch && prefetch_take(q, mem, offset, size, to, &status))
                return status;
        if (goes_direct(q, mem, size)) {
                if (enqueue_direct(q, mem, offset, size, to, NULL, &status))
                        return status;
                q = &rest;
        }
        return action_enqueue(q, &(struct action){ .kind = ACTION_BUFFER_READ,
                                                   .from = operand_bytes(mem, offset, size),
                                                   .host = host_bytes(to, size) });
}

cl_int enqueue_copy(const struct enqueue *q, cl_mem src, cl_mem dst, size_t src_offset,
                    size_t dst_offset, size_t size)
{
        return action_enqueue(q, &(struct action){ .kind = ACTION_BUFFER_COPY,
                                                   .from = operand_bytes(src, src_offset, size),
                                                   .to = operand_bytes(dst, dst_offset, size),
                                                   .covers = true });
}

cl_int enqueue_fill(const struct enqueue *q, cl_mem mem, struct bytes pattern, size_t offset,
                    size_t size)
{
        /* The lock is held when it is read: no access may fault then. */
        uint8_t copy[FILL_PATTERN_MAX];
        memcpy(copy, pattern.data, pattern.size);
        return action_enqueue(q, &(struct action){ .kind = ACTION_BUFFER_FILL,
                                                   .to = operand_bytes(mem, offset, size),
                                                   .covers = true,
                                                   .pattern = bytes_of(copy, pattern.size) });
}

/* ---- rectangles ----------------------------------------------------------------------------- */

static struct operand operand_box(cl_mem mem, const struct box *b, const size_t region[3])
{
        struct range r = box_range(b, region);
        return (struct operand){ .mem = mem,
                                 .named = mem,
                                 .bytes =
                                         mem_range(mem, (size_t)r.begin, (size_t)(r.end - r.begin)),
                                 .origin = b->origin,
                                 .row_pitch = b->row_pitch,
                                 .slice_pitch = b->slice_pitch };
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
        return action_enqueue(q, &(struct action){ .kind = ACTION_BUFFER_WRITE_RECT,
                                                   .to = operand_box(mem, at, region),
                                                   .covers = is_dense(at, region),
                                                   .region = region,
                                                   .host = host_part(host, region, from) });
}

cl_int enqueue_read_rect(const struct enqueue *q, cl_mem mem, const struct box *at,
                         const struct box *host, const size_t region[3], void *to)
{
        return action_enqueue(q, &(struct action){ .kind = ACTION_BUFFER_READ_RECT,
                                                   .from = operand_box(mem, at, region),
                                                   .region = region,
                                                   .host = host_part(host, region, to) });
}

cl_int enqueue_copy_rect(const struct enqueue *q, cl_mem src, cl_mem dst, const struct box *from,
                         const struct box *to, const size_t region[3])
{
        return action_enqueue(q, &(struct action){ .kind = ACTION_BUFFER_COPY_RECT,
                                                   .from = operand_box(src, from, region),
                                                   .to = operand_box(dst, to, region),
                                                   .covers = is_dense(to, region),
                                                   .region = region });
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
                r = command_wrote(&m, mems[i], ranges ? ranges[i] : mem_all(mems[i]), true);
        return command_end(&m, r, false);
}
