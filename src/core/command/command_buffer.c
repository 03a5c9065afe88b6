#include "core/command/command_buffer.h"

#include "base/mem.h"
#include "core/client.h"
#include "core/command/ahead.h"
#include "core/command/command.h"
#include "core/command/enqueue.h"
#include "core/command/khr_command_buffer.h"
#include "core/command/launch.h"
#include "core/command/queue.h"
#include "core/context.h"
#include "core/device.h"
#include "core/handle.h"
#include "core/link/server.h"
#include "core/memory/recorded_memory.h"
#include "core/program/kernel.h"

/* ---- lifetime ------------------------------------------------------------------------------- */

void recorded_free(cl_mutable_command_khr c)
{
        if (!c)
                return;
        list_remove(&c->changed);
        memory_uses_fini(&c->uses);
        memory_uses_fini(&c->next_uses);
        if (c->now.args)
                kernel_release(c->now.args);
        if (c->next.args)
                kernel_release(c->next.args);
        if (c->kernel)
                kernel_unhold(c->kernel);
        mem_free(c->properties);
        handle_free(&c->h, sizeof(*c));
}

static void buffer_free(cl_command_buffer_khr b) REQUIRES(client_held)
{
        recorded_memory_free(b);
        for (size_t i = 0; i < b->count; i++)
                recorded_free(b->commands[i]);
        for (cl_uint i = 0; i < b->queue_count; i++)
                queue_unhold(b->queues[i]);
        mem_free(b->commands);
        mem_free(b->queues);
        mem_free(b->slots);
        mem_free(b->last);
        mem_free(b->properties);
        handle_free(&b->h, sizeof(*b));
}

bool command_buffer_can_sync(cl_device_id a, cl_device_id b)
{
        return device_present(a)->server == device_present(b)->server;
}

/* Slots of the queues, and one per domain for migrations if there are several domains. */
static cl_uint slot_count(const struct _cl_command_buffer_khr *b)
{
        return b->queue_count + (b->domain_count > 1 ? b->domain_count : 0);
}

static int send_create(cl_command_buffer_khr b, struct session *session)
{
        size_t n = slot_count(b);
        uint64_t *ids = mem_alloc(2 * n * sizeof(*ids));
        if (!ids)
                return SP_E_NOMEM;
        for (size_t i = 0; i < n; i++) {
                ids[i] = b->slots[i].id;
                ids[n + i] = b->slots[i].device->index;
        }
        int r = session_send(session, recording_create, .recording = b->id, .slots = { ids, n },
                             .devices = { ids + n, n });
        mem_free(ids);
        return r;
}

static void slot_init(struct _cl_command_queue *slot, cl_context x, cl_device_id d,
                      cl_command_queue_properties properties) REQUIRES(client_held)
{
        slot->context = x;
        slot->device = d;
        slot->properties = properties;
        slot->id = client_new_id(x->client, OBJECT_QUEUE);
        list_init(&slot->commands);
}

/* The slots that queue_side has queues for: one for each domain. */
static void take_domains(cl_command_buffer_khr b) REQUIRES(client_held)
{
        cl_context x = b->context;
        for (cl_uint i = 0; i < b->queue_count; i++) {
                const struct _cl_device_id *d = b->queues[i]->device;
                struct _cl_command_queue *sides = b->slots + b->queue_count;
                cl_uint k = 0, n = 0;
                while (k < b->domain_count && sides[k].device->domain != d->domain)
                        k++;
                if (k < b->domain_count)
                        continue;
                while (x->devices[n]->server != d->server || x->devices[n]->domain != d->domain)
                        n++;
                slot_init(&sides[b->domain_count++], x, x->devices[n],
                          CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        }
}

/* Allocate room for the params, and copy them. */
static int take_params(cl_command_buffer_khr b, const struct command_buffer_params *params)
        REQUIRES(client_held)
{
        size_t n = params->queue_count;
        b->queue_count = params->queue_count;
        b->queues = mem_dup(params->queues, n * sizeof(*b->queues));
        b->slots = mem_zalloc(2 * n * sizeof(*b->slots));
        b->last = mem_zalloc(n * sizeof(*b->last));
        if (!b->queues || !b->slots || !b->last)
                return SP_E_NOMEM;
        if (params->properties) {
                while (params->properties[b->property_count])
                        b->property_count += 2;
                b->property_count++;
                b->properties =
                        mem_dup(params->properties, b->property_count * sizeof(*b->properties));
                if (!b->properties)
                        return SP_E_NOMEM;
        }
        b->flags = params->flags;
        b->asserts = params->asserts;
        for (size_t i = 0; i < n; i++)
                slot_init(&b->slots[i], b->context, b->queues[i]->device, b->queues[i]->properties);
        take_domains(b);
        return 0;
}

int command_buffer_new(const struct command_buffer_params *params, cl_command_buffer_khr *ret)
{
        cl_context x = params->queues[0]->context;
        struct server *s = params->queues[0]->device->server;
        struct session *session = server_session(s);
        if (!session)
                return SP_E_GONE;
        cl_command_buffer_khr b = mem_zalloc(sizeof(*b));
        if (!b)
                return SP_E_NOMEM;
        handle_init(&b->h, HANDLE_COMMAND_BUFFER);
        list_init(&b->changed);
        list_init(&b->sums);
        b->context = x;
        b->server = s;
        b->id = client_new_id(x->client, OBJECT_RECORDING);
        int r = take_params(b, params);
        if (!r)
                r = send_create(b, session);
        if (r < 0) {
                b->queue_count = 0; /* not held yet */
                buffer_free(b);
                return r;
        }
        for (cl_uint i = 0; i < b->queue_count; i++)
                queue_hold(b->queues[i]);
        context_hold(x);
        server_kick(s);
        *ret = b;
        return 0;
}

static int release_slots(cl_command_buffer_khr b, struct session *session)
{
        int r = 0;
        for (cl_uint i = 0; i < slot_count(b) && !r; i++)
                r = session_send(session, release, .object = b->slots[i].id);
        return r;
}

void command_buffer_unhold(cl_command_buffer_khr b)
{
        if (atomic_fetch_sub(&b->h.holds, 1) != 1)
                return;
        cl_context x = b->context;
        struct session *session = server_session(b->server);
        int r = session && !b->finalized ? release_slots(b, session) : 0;
        /* Without memory the server keeps it until the session ends. */
        if (session && !r && session_send(session, release, .object = b->id) == 0)
                server_kick(b->server);
        buffer_free(b);
        context_unhold(x);
}

int command_buffer_finalize(cl_command_buffer_khr b)
{
        struct session *session = server_session(b->server);
        if (!session)
                return SP_E_GONE;
        if (b->broken)
                return SP_E_NOMEM;
        int r = release_slots(b, session);
        b->broken = r < 0;
        b->finalized = true;
        recorded_placements_free(b);
        server_kick(b->server);
        return r;
}

cl_command_buffer_state_khr command_buffer_state(const struct _cl_command_buffer_khr *b)
{
        if (!b->finalized)
                return CL_COMMAND_BUFFER_STATE_RECORDING_KHR;
        for (size_t i = 0; i < b->count; i++)
                if (b->commands[i]->incomplete)
                        return CL_COMMAND_BUFFER_STATE_FINALIZED_KHR;
        return CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR;
}

/* ---- recording ------------------------------------------------------------------------------ */

static int take_launch(cl_mutable_command_khr c, const struct recorder *r) REQUIRES(client_held)
{
        c->kernel = r->kernel;
        kernel_hold(c->kernel);
        c->incomplete = !kernel_is_ready(c->kernel);
        c->fields = r->fields;
        c->now = *r->launch;
        if (!(r->buffer->flags & CL_COMMAND_BUFFER_MUTABLE_KHR))
                return 0;
        int e = kernel_clone(c->kernel, &c->now.args);
        c->now.sent = e < 0 ? 0 : c->now.args->version;
        return e;
}

static int take_properties(cl_mutable_command_khr c, const command_property *properties)
{
        if (!properties)
                return 0;
        while (properties[c->property_count])
                c->property_count += 2;
        c->property_count++;
        c->properties = mem_dup(properties, c->property_count * sizeof(*c->properties));
        return c->properties ? 0 : SP_E_NOMEM;
}

cl_mutable_command_khr recorded_alloc(cl_command_buffer_khr b, cl_command_type type)
{
        /* A command is made before the migrations in front of it, and appended after them: there has to be
         * room for one more. */
        if (b->cap - b->count < 2) {
                size_t cap = b->cap ? b->cap * 2 : 16;
                cl_mutable_command_khr *all = mem_realloc(b->commands, cap * sizeof(*all));
                if (!all)
                        return NULL;
                b->commands = all;
                b->cap = cap;
        }
        cl_mutable_command_khr c = mem_zalloc(sizeof(*c));
        if (!c)
                return NULL;
        handle_init(&c->h, HANDLE_MUTABLE_COMMAND);
        list_init(&c->changed);
        c->buffer = b;
        c->type = type;
        return c;
}

void recorded_append(cl_mutable_command_khr c)
{
        cl_command_buffer_khr b = c->buffer;
        b->commands[b->count++] = c;
        c->number = b->count;
        b->summed = false;
}

static int command_new(struct recorder *r, cl_command_type type) REQUIRES(client_held)
{
        cl_mutable_command_khr c = recorded_alloc(r->buffer, type);
        if (!c)
                return SP_E_NOMEM;
        r->command = c;
        r->uses = &c->uses;
        c->queue = r->buffer->queues[r->slot];
        int e = take_properties(c, r->properties);
        return !e && r->kernel ? take_launch(c, r) : e;
}

int record_begin(struct command *m)
{
        struct recorder *r = m->enqueue->record;
        cl_command_buffer_khr b = r->buffer;
        if (b->broken)
                return SP_E_NOMEM;
        if (b->finalized)
                return SP_E_UNSUPP;
        /* "[...] a hard upper limit on the number of commands a command-buffer can hold as CL_UINT_MAX, at
         * which point CL_OUT_OF_RESOURCES will be returned." */
        if (b->count == CL_UINT_MAX)
                return SP_E_LIMIT;
        m->queue = &b->slots[r->slot];
        int e = 0;
        for (cl_uint i = 0; i < r->sync_count && !e; i++)
                e = command_wait_for(m, recorded_number(r->syncs[i]));
        /* "If the queue is an in-order queue, then an additional dependency is created on the last command
         * appended to the command-buffer using the same queue parameter." */
        if (!e && queue_in_order(m->queue) && b->last[r->slot])
                e = command_wait_for(m, recorded_number(b->last[r->slot]));
        return e < 0 ? e : command_new(r, m->enqueue->type);
}

int record_fold_waits(struct command *m)
{
        cl_command_buffer_khr b = m->enqueue->record->buffer;
        cl_mutable_command_khr c = recorded_alloc(b, 0);
        uint64_t number = recorded_number(b->count + 1);
        int r = c ? session_send(m->session, marker, .event = number, .queue = m->queue->id,
                                 .waits = command_waits(m))
                  : SP_E_NOMEM;
        if (r < 0) {
                recorded_free(c);
                return r;
        }
        recorded_append(c);
        m->wait_count = 0;
        return command_wait_for(m, number);
}

int record_ready(struct command *m)
{
        m->id = recorded_number(m->enqueue->record->buffer->count + 1);
        return server_session(m->server) ? 0 : SP_E_GONE;
}

void record_end(struct command *m, int r)
{
        struct recorder *rec = m->enqueue->record;
        cl_command_buffer_khr b = rec->buffer;
        if (r < 0) {
                /* From record_ready on the server may have it. */
                b->broken |= m->id != 0;
                recorded_free(steal(rec->command));
                return;
        }
        recorded_append(rec->command);
        b->last[rec->slot] = b->count;
}

/* ---- running -------------------------------------------------------------------------------- */

static int send_run(struct command *m, cl_command_buffer_khr b, const cl_command_queue *queues)
        REQUIRES(client_held)
{
        uint64_t few[8], *ids = few;
        cl_uint count = slot_count(b);
        int r = 0;
        if (count > array_size(few))
                ids = mem_alloc(count * sizeof(*ids));
        if (!ids)
                return SP_E_NOMEM;
        for (cl_uint i = 0; i < b->queue_count; i++)
                ids[i] = queues[i]->id;
        for (cl_uint i = b->queue_count; i < count && !r; i++)
                r = queue_side(b->context, b->server, b->slots[i].device->domain, &ids[i]);
        if (!r)
                r = session_send(m->session, recording_run, .event = m->id,
                                 .flags = command_flags(m), .recording = b->id,
                                 .queues = { ids, count }, .waits = command_waits(m));
        if (ids != few)
                mem_free(ids);
        return r;
}

cl_int enqueue_command_buffer(const struct enqueue *q, cl_command_buffer_khr b,
                              const cl_command_queue *queues)
{
        struct command m;
        int r = command_begin(&m, q);
        if (r == 0 && b->broken)
                r = SP_E_NOMEM;
        for (cl_uint i = 1; i < b->queue_count && r == 0; i++)
                r = ahead_is_due(queues[i]) ? ahead_order(queues[i]) : 0;
        if (r == 0)
                r = recorded_use_all(&m, b);
        if (r == 0)
                r = command_ready(&m, false);
        if (r == 0)
                r = send_run(&m, b, queues);
        if (r == 0)
                r = recorded_wrote_all(&m, b);
        if (r == 0 && m.event)
                m.event->many_queues = b->queue_count > 1;
        /* The event is complete when everything is, on whatever queue. */
        for (cl_uint i = 1; i < b->queue_count && r == 0; i++)
                queues[i]->last_event = m.id;
        return command_end(&m, r, false);
}

/* ---- changes -------------------------------------------------------------------------------- */

int command_change(cl_mutable_command_khr c)
{
        cl_kernel args;
        if (c->next.args)
                return 0;
        int r = kernel_clone(c->now.args, &args);
        if (r < 0)
                return r;
        c->next = c->now;
        c->next.args = args;
        c->next.sent = args->version;
        list_append(&c->buffer->changed, &c->changed);
        return 0;
}

static void forget_change(cl_mutable_command_khr c) REQUIRES(client_held)
{
        list_remove(&c->changed);
        memory_uses_fini(&c->next_uses);
        kernel_release(steal(c->next.args));
}

void command_buffer_abort(cl_command_buffer_khr b)
{
        list_each(c, &b->changed, struct _cl_mutable_command_khr, changed)
        {
                forget_change(c);
        }
}

/* Note the memory uses of the changed launch, whose objects are thereby declared at the server. */
static int change_uses(cl_mutable_command_khr c) REQUIRES(client_held)
{
        struct recorder r = { .buffer = c->buffer, .uses = &c->next_uses };
        struct enqueue q = { .queue = c->queue, .record = &r };
        struct command m = { .enqueue = &q, .queue = c->queue, .server = c->buffer->server };
        int e = command_use_args(&m, c->next.args);
        return e < 0 ? e : command_wrote_args(&m, c->next.args);
}

static int put_changed_args(const struct launch *l, struct buf *ret)
{
        int r = 0;
        for (cl_uint i = 0; i < l->args->info->arg_count && !r; i++) {
                struct arg a = l->args->args[i].arg;
                a.index = i;
                if (l->args->args[i].version > l->sent)
                        r = args_put(ret, &a);
        }
        return r;
}

static int send_change(cl_mutable_command_khr c, struct session *session)
{
        struct launch *l = &c->next;
        size_t size = l->dims * sizeof(size_t);
        uint64_t v[3][3];
        for (cl_uint i = 0; i < l->dims; i++) {
                v[0][i] = l->offset[i];
                v[1][i] = l->global[i];
                v[2][i] = l->local[i];
        }
        bool offset = memcmp(l->offset, c->now.offset, size);
        bool global = memcmp(l->global, c->now.global, size);
        bool local = l->has_local && (!c->now.has_local || memcmp(l->local, c->now.local, size));
        struct buf args = { 0 };
        int r = put_changed_args(l, &args);
        if (!r && (offset || global || local || args.size))
                r = session_send(session, recording_update, .recording = c->buffer->id,
                                 .command = recorded_number(c->number),
                                 .offset = { v[0], offset ? l->dims : 0 },
                                 .global = { v[1], global ? l->dims : 0 },
                                 .local = { v[2], local ? l->dims : 0 },
                                 .args = bytes_of(args.data, args.size));
        buf_fini(&args);
        return r;
}

static void take_change(cl_mutable_command_khr c) REQUIRES(client_held)
{
        list_remove(&c->changed);
        memory_uses_fini(&c->uses);
        c->uses = c->next_uses;
        c->next_uses = (struct memory_uses){ 0 };
        kernel_release(c->now.args);
        c->now = c->next;
        c->next = (struct launch){ 0 };
        c->now.sent = c->now.args->version;
        c->incomplete = !kernel_is_ready(c->now.args);
}

int command_buffer_commit(cl_command_buffer_khr b)
{
        command_wait_room(b->server);
        struct session *session = server_session(b->server);
        int r = !session ? SP_E_GONE : b->broken ? SP_E_NOMEM : 0;
        list_each(c, &b->changed, struct _cl_mutable_command_khr, changed)
        {
                if (!r)
                        r = change_uses(c);
        }
        if (r < 0) {
                command_buffer_abort(b);
                return r;
        }
        list_each(c, &b->changed, struct _cl_mutable_command_khr, changed)
        {
                if (!r)
                        r = send_change(c, session);
                b->broken |= r < 0;
                if (r < 0)
                        forget_change(c);
                else
                        take_change(c);
        }
        b->summed = false;
        server_kick(b->server);
        return r;
}
