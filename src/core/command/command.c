#include "core/command/command.h"

#include "base/mem.h"
#include "core/command/command_buffer.h"
#include "core/command/event.h"
#include "core/command/queue.h"
#include "core/command/transfer.h"
#include "core/link/server.h"
#include "core/memory/content_size.h"
#include "core/memory/mem.h"
#include "core/memory/sampler.h"
#include "core/memory/storage.h"
#include "core/memory/svm.h"
#include "core/program/kernel.h"

static bool has_room(void *arg)
{
        struct server *s = arg;
        return server_refuses(s) || session_has_room(server_session(s));
}

void command_wait_room(struct server *s)
{
        if (!has_room(s))
                client_wait(s->client, has_room, s);
}

int command_begin(struct command *m, const struct enqueue *q)
{
        m->span = trace_begin(TRACE_enqueue, 0);
        m->client = q->queue->context->client;
        m->enqueue = q;
        m->queue = q->queue;
        m->server = q->queue->device->server;
        m->id = 0;
        m->event = NULL;
        m->behind_all = false;
        m->wide = false;
        m->waits = m->few_waits;
        m->wait_count = 0;
        m->wait_cap = array_size(m->few_waits);
        client_lock(m->client);
        command_wait_room(m->server);
        m->session = server_refuses(m->server) ? NULL : server_session(m->server);
        if (!m->session)
                return SP_E_GONE;
        if (q->record)
                return record_begin(m);
        for (cl_uint i = 0; i < q->wait_count; i++) {
                int r = event_reach(q->waits[i], m->server);
                if (r > 0)
                        r = command_wait_for(m, q->waits[i]->id);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A message has no room for more: one marker for them all. */
static int fold_waits(struct command *m)
{
        uint64_t id = client_new_id(m->client, OBJECT_EVENT);
        int r = session_send(m->session, marker, .event = id, .queue = m->enqueue->queue->id,
                             .flags = COMMAND_NAMED, .waits = command_waits(m));
        m->wait_count = 0;
        return r < 0 ? r : command_wait_for(m, id);
}

int command_wait_for(struct command *m, uint64_t event)
{
        if (m->wait_count == WIRE_WAITS_MAX && m->enqueue) {
                int r = m->enqueue->record ? record_fold_waits(m) : fold_waits(m);
                if (r < 0)
                        return r;
        }
        if (m->wait_count == m->wait_cap) {
                uint64_t *more = mem_alloc(m->wait_cap * 2 * sizeof(*more));
                if (!more)
                        return SP_E_NOMEM;
                memcpy(more, m->waits, m->wait_count * sizeof(*more));
                if (m->waits != m->few_waits)
                        mem_free(m->waits);
                m->waits = more;
                m->wait_cap *= 2;
        }
        m->waits[m->wait_count++] = event;
        return 0;
}

/* Does the client itself have to do something before the command may be complete? */
static bool comes_later(const struct command *m)
{
        for (cl_uint i = 0; i < m->enqueue->wait_count; i++)
                if (event_lags(m->enqueue->waits[i]))
                        return true;
        return queue_lags(m->queue, m->behind_all);
}

static int follow(struct command *m)
{
        int r = queue_follow(m->queue, m->event, m->behind_all);
        for (cl_uint i = 0; i < m->enqueue->wait_count && r == 0; i++)
                r = event_follow(m->event, m->enqueue->waits[i]);
        return r;
}

int command_ready(struct command *m, bool event)
{
        if (m->enqueue->record)
                return record_ready(m);
        m->id = client_new_id(m->client, OBJECT_EVENT);
        bool app = m->enqueue->ret_event != NULL, later = comes_later(m);
        /* Sending for command_use may have shown that the server is gone. Then nothing would
         * complete the event. */
        if (!server_session(m->server))
                return SP_E_GONE;
        m->at = session_position(m->session);
        if (!app && !event && !later)
                return 0;
        int r = event_new(m->queue, m->enqueue->type, m->id, app, &m->event);
        /* Until the application waits for or queries the event, the server need not notify that it
         * succeeded. If the client has work to do before it (`later`), the server notifies in any
         * case. */
        if (r == 0 && !event && !later && !(m->queue->properties & CL_QUEUE_PROFILING_ENABLE))
                m->event->watched = false;
        return r == 0 && later ? follow(m) : r;
}

/* The result of a blocking command. Errors of commands before it are not the call's own. */
static cl_int blocking_status(const struct command *m)
{
        if (m->event->status < 0)
                return m->event->status;
        if (event_is_done(m->event))
                return CL_SUCCESS;
        transfer_detach(m->event);
        return CL_DEVICE_NOT_AVAILABLE;
}

cl_int command_end(struct command *m, int r, bool wait)
{
        cl_int status = status_to_cl(r);
        if (m->enqueue->record)
                record_end(m, r);
        if (r == 0) {
                m->queue->last_event = m->id;
                m->queue->last_at = m->at;
                if (wait) {
                        if (m->queue->properties & CL_QUEUE_PROFILING_ENABLE)
                                server_ask_clock(m->server);
                        client_wait(m->client, event_is_settled, m->event);
                        status = blocking_status(m);
                } else {
                        server_kick(m->server);
                }
        } else if (m->event) {
                event_complete(m->event, status);
        }
        if (m->waits != m->few_waits)
                mem_free(m->waits);
        if (m->event && m->enqueue->ret_event && status == CL_SUCCESS)
                *m->enqueue->ret_event = m->event;
        else if (m->event)
                event_unhold(m->event);
        m->span.value = m->id;
        trace_end(&m->span);
        client_unlock(m->client);
        return status;
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* The arguments of a launch have been checked. In a recorded launch, objects that a later change
 * will replace may not exist any more. */
static bool arg_is_alive(const struct command *m, const struct _cl_kernel *k, cl_uint i)
{
        return !m->enqueue->record || kernel_arg_is_alive(k, i);
}

static bool arg_is_written(const struct _cl_kernel *k, cl_uint i)
{
        const struct kernel_arg *a = &k->args[i];
        const struct kernel_arg_info *info = &k->info->args[i];
        return a->mem && !info->read_only && !(a->mem->flags & CL_MEM_READ_ONLY) &&
               info->access != CL_KERNEL_ARG_ACCESS_READ_ONLY;
}

/* The arguments that the server does not have yet. */
static int changed_args(const struct command *m, cl_kernel k, struct buf *ret)
{
        uint64_t sent = k->sent[m->server->index];
        for (cl_uint i = 0; i < k->info->arg_count; i++) {
                struct arg a = k->args[i].arg;
                if (k->args[i].version <= sent || !arg_is_alive(m, k, i))
                        continue;
                a.index = i;
                int r = args_put(ret, &a);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The allocation that an argument points into. An address right behind one is one of it, too: a kernel may
 * be told where to stop. */
static cl_mem svm_arg(cl_kernel k, const struct kernel_arg *a)
{
        if (!a->version || a->arg.kind != ARG_SVM)
                return NULL;
        const uint8_t *at = (const uint8_t *)(uintptr_t)a->arg.object;
        cl_mem m = svm_find(k->program->context, at);
        return m ? m : svm_find(k->program->context, at - 1);
}

static inline bool kernel_reaches(const struct _cl_kernel *k)
{
        return k->reaches_usm || k->reached[KERNEL_REACH_SVM].count ||
               k->reached[KERNEL_REACH_USM].count;
}

/* Do something with all allocations that the kernel may reach by pointers other than its arguments. Device allocations
 * that all lie in one place stay there, so that there is nothing to be known of them. */
static int each_reached(struct command *m, cl_kernel k, int (*fn)(struct command *m, cl_mem svm))
{
        cl_context x = k->program->context;
        int r = 0;
        for (size_t n = 0; n < array_size(k->reached); n++) {
                for (size_t i = 0; i < k->reached[n].count && r == 0; i++) {
                        cl_mem svm = svm_find(x, k->reached[n].at[i]);
                        r = svm ? fn(m, svm) : 0;
                }
        }
        if (r < 0 || !k->reaches_usm || svm_in_one_place(x))
                return r;
        list_each(chunk, &x->svm_chunks, struct svm_chunk, link)
        {
                for (size_t i = 0; i < chunk->live_count && r == 0; i++)
                        r = chunk->live[i]->usm ? fn(m, chunk->live[i]) : 0;
        }
        return r;
}

static int use_reached(struct command *m, cl_mem svm)
{
        return command_use(m, svm, mem_all(svm), true);
}

int command_use_args(struct command *m, cl_kernel k)
{
        int r = 0;
        for (cl_uint i = 0; i < k->info->arg_count && r == 0; i++) {
                if (!arg_is_alive(m, k, i))
                        continue;
                cl_mem svm = svm_arg(k, &k->args[i]), mem = svm ? svm : k->args[i].mem;
                cl_sampler sampler = k->args[i].sampler;
                r = mem ? command_use(m, mem, mem_all(mem), true) : 0;
                if (r == 0 && sampler)
                        r = sampler_declare(sampler, m->server);
        }
        return r < 0 || !kernel_reaches(k) ? r : each_reached(m, k, use_reached);
}

/* Can elements of that type hold an address? */
static bool may_hold_pointers(const char *type)
{
        static const char *const none[] = { "char", "uchar", "short", "ushort", "int",
                                            "uint", "half",  "float", "double", "bool" };
        size_t n = type ? strcspn(type, "0123456789* ") : 0;
        for (size_t i = 0; i < array_size(none); i++)
                if (n && strlen(none[i]) == n && !strncmp(type, none[i], n))
                        return false;
        return true;
}

/* A kernel may write through pointers in an allocation, even if its argument is `const`. */
static bool svm_is_written(const struct _cl_mem *svm, const struct kernel_arg_info *info)
{
        if (svm->flags & CL_MEM_READ_ONLY)
                return false;
        return !info || !info->read_only || may_hold_pointers(info->type_name);
}

static int wrote_reached(struct command *m, cl_mem svm)
{
        return svm_is_written(svm, NULL) ? command_wrote(m, svm, mem_all(svm)) : 0;
}

int command_wrote_args(struct command *m, cl_kernel k)
{
        int r = 0;
        for (cl_uint i = 0; i < k->info->arg_count && r == 0; i++) {
                cl_mem svm = svm_arg(k, &k->args[i]);
                if (svm && svm_is_written(svm, &k->info->args[i]))
                        r = command_wrote(m, svm, mem_all(svm));
                else if (arg_is_alive(m, k, i) && arg_is_written(k, i))
                        r = command_wrote(m, k->args[i].mem, mem_all(k->args[i].mem));
        }
        return r < 0 || !kernel_reaches(k) ? r : each_reached(m, k, wrote_reached);
}

static int send_kernel(struct command *m, cl_kernel k, cl_uint dims, const size_t *offset,
                       const size_t *global, const size_t *local)
{
        uint64_t values[3][3];
        for (cl_uint i = 0; i < dims; i++) {
                values[0][i] = offset ? offset[i] : 0;
                values[1][i] = global[i];
                values[2][i] = local ? local[i] : 0;
        }
        struct buf *args = &m->client->args;
        args->size = 0;
        int r = changed_args(m, k, args);
        if (r == 0)
                r = session_send(
                        m->session, kernel_launch, .event = m->id, .queue = m->queue->id,
                        .flags = command_flags(m), .kernel = k->id,
                        .offset = { values[0], offset ? dims : 0 }, .global = { values[1], dims },
                        .local = { values[2], local ? dims : 0 },
                        .args = bytes_of(args->data, args->size), .waits = command_waits(m));
        if (r == 0)
                k->sent[m->server->index] = k->version;
        return r < 0 ? r : command_wrote_args(m, k);
}

cl_int enqueue_kernel(const struct enqueue *q, cl_kernel k, cl_uint dims, const size_t *offset,
                      const size_t *global, const size_t *local)
{
        struct command m;
        int r = command_begin(&m, q);
        if (r == 0)
                r = kernel_declare(k, m.server);
        if (r == 0)
                r = command_use_args(&m, k);
        if (r == 0)
                r = command_ready(&m, false);
        if (r == 0)
                r = send_kernel(&m, k, dims, offset, global, local);
        return command_end(&m, r, false);
}

/* Lock held; released while it waits. */
static cl_int ask_launch(cl_event e, bool *ret_judged)
{
        struct server *s = e->server;
        struct session *session = server_session(s);
        struct request request = { 0 };
        if (!session)
                return CL_DEVICE_NOT_AVAILABLE;
        int r = request_begin(s->client, s, &request);
        if (r == 0) {
                r = session_send(session, launch_query, .request = request.id, .event = e->id);
                if (r < 0)
                        request_done(s->client, request.id, status_to_cl(r), (struct bytes){ 0 });
                request_wait(s->client, &request);
                r = request.status;
        }
        *ret_judged = r == 0 && request.info.size && *(const uint8_t *)request.info.data;
        buf_fini(&request.info);
        return status_to_cl(r);
}

cl_int enqueue_kernel_judged(const struct enqueue *q, cl_kernel k, cl_uint dims,
                             const size_t *offset, const size_t *global, const size_t *local,
                             bool *ret_judged)
{
        cl_event e = NULL;
        struct client *c = q->queue->context->client;
        struct enqueue named = *q;
        named.ret_event = &e;
        cl_int status = enqueue_kernel(&named, k, dims, offset, global, local);
        if (status != CL_SUCCESS)
                return status;
        client_lock(c);
        status = ask_launch(e, ret_judged);
        if (status == CL_SUCCESS && q->ret_event) {
                *q->ret_event = e;
        } else {
                /* The call itself returns the failure of a refused launch, so the queue must not report it again: the
                 * event stays until the server has told of the failure. */
                e->watched |= status != CL_SUCCESS;
                if (handle_release(&e->h) > 0)
                        event_unhold(e);
        }
        client_unlock(c);
        return status;
}

/* ---- reads and writes ----------------------------------------------------------------------- */

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
                r = command_ready(&m, false);
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
        return command_end(&m, r, false);
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

static int send_marker(struct command *m, bool barrier)
{
        return session_send(m->session, marker, .event = m->id, .queue = m->queue->id,
                            .flags = command_flags(m) | (barrier ? COMMAND_BARRIER : 0),
                            .waits = command_waits(m));
}

/* Without a wait list a marker waits for everything before it; so its list gets the id of no command, which
 * for the server is one that is complete. */
static int wait_for_nothing(struct command *m)
{
        if (m->enqueue->record) /* there it is not meant anyway */
                return 0;
        return m->wait_count ? 0 : command_wait_for(m, client_new_id(m->client, OBJECT_EVENT));
}

int command_send_nothing(struct command *m)
{
        int r = wait_for_nothing(m);
        return r < 0 ? r : send_marker(m, false);
}

cl_int enqueue_marker(const struct enqueue *q, bool barrier)
{
        struct command m;
        int r = command_begin(&m, q);
        m.behind_all = !q->wait_count;
        if (r == 0 && q->wait_count)
                r = wait_for_nothing(&m);
        if (r == 0)
                r = command_ready(&m, q->blocking);
        if (r == 0)
                r = send_marker(&m, barrier);
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
