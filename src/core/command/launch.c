#include "core/command/launch.h"
#include "core/command/operands.h"

#include "core/client.h"
#include "core/command/command.h"
#include "core/command/command_buffer.h"
#include "core/command/enqueue.h"
#include "core/command/event.h"
#include "core/handle.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "core/memory/host_watch.h"
#include "core/memory/mem.h"
#include "core/memory/sampler.h"
#include "core/memory/svm.h"
#include "core/memory/usm.h"
#include "core/memory/view.h"
#include "core/profile/names.h"
#include "core/program/kernel.h"
#include "core/status.h"

/* The arguments of a launch have been checked. In a recorded launch, objects that a later change
 * will replace may not exist any more. */
static bool arg_is_alive(const struct command *m, const struct _cl_kernel *k, cl_uint i)
        REQUIRES(client_held)
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
static int changed_args(const struct command *m, cl_kernel k, struct buf *ret) REQUIRES(client_held)
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
static cl_mem svm_arg(cl_kernel k, const struct kernel_arg *a) REQUIRES(client_held)
{
        if (!a->version || a->arg.kind != ARG_SVM)
                return NULL;
        const uint8_t *at = (const uint8_t *)(uintptr_t)a->arg.object;
        cl_mem m = svm_find(k->program->context, at);
        return m ? m : svm_find(k->program->context, at - 1);
}

/* The kinds of allocations that the kernel reaches by any pointer: none on a device without SVM, which knows none of
 * their addresses. */
static unsigned char any_pointers(const struct command *m, const struct _cl_kernel *k)
{
        return m->queue->device->svm ? k->reaches : 0;
}

static bool kernel_reaches(const struct command *m, const struct _cl_kernel *k)
{
        return any_pointers(m, k) || k->reached[KERNEL_REACH_SVM].count ||
               k->reached[KERNEL_REACH_USM].count;
}

/* Do something with the allocations that the kernel may reach by any pointer. If all devices have one memory, they are
 * there, except for those that the application has used since. */
static int each_indirect(struct command *m, unsigned char reaches,
                         int (*fn)(struct command *m, cl_mem svm)) REQUIRES(client_held)
{
        cl_context x = m->queue->context;
        int r = 0;
        if (svm_only_in_one_place(x)) {
                list_each(v, &x->views.touched, struct view, touched)
                {
                        if (r == 0 && reaches & usm_bit(v->mem->usm.type))
                                r = fn(m, v->mem);
                }
                return r;
        }
        list_each(chunk, &x->svm_chunks, struct svm_chunk, link)
        {
                for (size_t i = 0; i < chunk->live_count && r == 0; i++)
                        r = reaches & usm_bit(chunk->live[i]->usm.type) ? fn(m, chunk->live[i]) : 0;
        }
        return r;
}

/* Do something with all allocations that the kernel may reach by pointers other than its arguments. */
static int each_reached(struct command *m, cl_kernel k, int (*fn)(struct command *m, cl_mem svm))
        REQUIRES(client_held)
{
        cl_context x = k->program->context;
        int r = 0;
        for (size_t n = 0; n < array_size(k->reached); n++) {
                for (size_t i = 0; i < k->reached[n].count && r == 0; i++) {
                        cl_mem svm = svm_find(x, k->reached[n].at[i]);
                        r = svm ? fn(m, svm) : 0;
                }
        }
        const unsigned char reaches = any_pointers(m, k);
        if (r < 0 || !reaches)
                return r;
        if (m->enqueue->record && svm_only_in_one_place(x)) {
                m->enqueue->record->buffer->reaches |= reaches;
                return 0;
        }
        return each_indirect(m, reaches, fn);
}

static int use_reached(struct command *m, cl_mem svm) REQUIRES(client_held)
{
        return command_use(m, svm, mem_all(svm), true);
}

int command_use_indirect(struct command *m, unsigned char reaches)
{
        return reaches ? each_indirect(m, reaches, use_reached) : 0;
}

int command_use_args(struct command *m, cl_kernel k)
{
        int r = 0;
        for (cl_uint i = 0; i < k->info->arg_count && r == 0; i++) {
                if (!arg_is_alive(m, k, i))
                        continue;
                cl_mem svm = svm_arg(k, &k->args[i]), mem = svm ? svm : k->args[i].mem;
                cl_sampler sampler = k->args[i].sampler;
                if (mem && mem->host_ptr && !m->enqueue->record)
                        host_watch_launch(mem, m->queue->device);
                r = mem ? command_use(m, mem, mem_all(mem), true) : 0;
                if (r == 0 && sampler)
                        r = sampler_declare(sampler, m->server);
        }
        return r < 0 || !kernel_reaches(m, k) ? r : each_reached(m, k, use_reached);
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

static int wrote_reached(struct command *m, cl_mem svm) REQUIRES(client_held)
{
        return svm_is_written(svm, NULL) ? command_wrote(m, svm, mem_all(svm), false) : 0;
}

int command_wrote_indirect(struct command *m, unsigned char reaches)
{
        if (reaches)
                views_reached(m);
        return reaches ? each_indirect(m, reaches, wrote_reached) : 0;
}

int command_wrote_args(struct command *m, cl_kernel k)
{
        int r = 0;
        for (cl_uint i = 0; i < k->info->arg_count && r == 0; i++) {
                cl_mem svm = svm_arg(k, &k->args[i]);
                if (svm && svm_is_written(svm, &k->info->args[i]))
                        r = command_wrote(m, svm, mem_all(svm), false);
                else if (arg_is_alive(m, k, i) && arg_is_written(k, i))
                        r = command_wrote(m, k->args[i].mem, mem_all(k->args[i].mem), false);
        }
        if (any_pointers(m, k) && !m->enqueue->record)
                views_reached(m);
        return r < 0 || !kernel_reaches(m, k) ? r : each_reached(m, k, wrote_reached);
}

static int send_kernel(struct command *m, cl_kernel k, cl_uint dims, const size_t *offset,
                       const size_t *global, const size_t *local) REQUIRES(client_held)
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
        if (k->program->prints)
                q->queue->context->ahead.never = true;
        if (trace_has_begun(&m.span))
                m.span.probe = trace_at(TRACE_enqueue, names_of_kernel(k->info), 0);
        bool timed = false;
        if (r == 0 && profile_counts(&m.profile))
                timed = profile_launch(&m, k->info, dims, global, local);
        if (r == 0)
                r = command_ready(&m, timed);
        if (r == 0)
                r = send_kernel(&m, k, dims, offset, global, local);
        return command_end(&m, r, false);
}

/* Releases the lock while it waits. */
static cl_int ask_launch(cl_event e, bool *ret_judged) REQUIRES(client_held)
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
        bool handed_out = status == CL_SUCCESS && q->ret_event;
        if (!handed_out) {
                /* The call itself returns the failure of a refused launch, so the queue must not report it again: the
                 * event stays until the server has told of the failure. */
                e->watched |= status != CL_SUCCESS;
                if (handle_release(&e->h) > 0)
                        event_unhold(e);
        }
        client_unlock(c);
        if (handed_out)
                *q->ret_event = e;
        return status;
}
