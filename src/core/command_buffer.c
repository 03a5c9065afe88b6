#include "core/command_buffer.h"

#include "base/mem.h"
#include "core/device.h"
#include "core/kernel.h"
#include "core/mem.h"
#include "core/queue.h"
#include "core/server.h"

/* ---- what commands do to memory ------------------------------------------------------------- */

static int uses_add(struct memory_uses *u, const struct memory_use *use)
{
        if (u->count == u->cap) {
                size_t cap = u->cap ? u->cap * 2 : 4;
                struct memory_use *list = mem_realloc(u->list, cap * sizeof(*list));
                if (!list)
                        return SP_E_NOMEM;
                u->list = list;
                u->cap = cap;
        }
        u->list[u->count++] = *use;
        mem_hold(use->mem);
        return 0;
}

static void uses_fini(struct memory_uses *u)
{
        for (size_t i = 0; i < u->count; i++)
                mem_unhold(u->list[i].mem);
        mem_free(u->list);
        *u = (struct memory_uses){ 0 };
}

static void sums_free(cl_command_buffer_khr b)
{
        list_each(s, &b->sums, struct memory_sum, link)
        {
                range_set_fini(&s->bring);
                range_set_fini(&s->meet);
                range_set_fini(&s->wrote);
                list_remove(&s->link);
                mem_free(s);
        }
        b->summed = false;
}

static int sum_of(cl_command_buffer_khr b, struct map *known, cl_mem root, struct memory_sum **ret)
{
        struct memory_sum *s = map_get(known, root->id);
        if (!s) {
                s = mem_zalloc(sizeof(*s));
                if (!s)
                        return SP_E_NOMEM;
                s->root = root;
                list_append(&b->sums, &s->link);
                int r = map_put(known, root->id, s);
                if (r < 0)
                        return r;
        }
        *ret = s;
        return 0;
}

static int sum_add(struct memory_sum *s, const struct memory_use *use)
{
        if (use->wrote)
                return range_set_add(&s->wrote, use->range);
        /* What an earlier command has written need not be brought. */
        if (use->bring && !range_set_has(&s->wrote, use->range))
                return range_set_add(&s->bring, use->range);
        return range_set_add(&s->meet, use->range);
}

static int sums_make(cl_command_buffer_khr b)
{
        struct map known = { 0 };
        int r = 0;
        if (b->summed)
                return 0;
        sums_free(b);
        for (size_t i = 0; i < b->count; i++) {
                const struct memory_uses *u = &b->commands[i]->uses;
                for (size_t k = 0; k < u->count && !r; k++) {
                        struct memory_sum *s;
                        r = sum_of(b, &known, mem_root(u->list[k].mem), &s);
                        if (!r)
                                r = sum_add(s, &u->list[k]);
                }
        }
        map_fini(&known);
        b->summed = r == 0;
        return r;
}

/* ---- lifetime ------------------------------------------------------------------------------- */

static void command_free(cl_mutable_command_khr c)
{
        if (!c)
                return;
        list_remove(&c->changed);
        uses_fini(&c->uses);
        uses_fini(&c->next_uses);
        if (c->now.args)
                kernel_release(c->now.args);
        if (c->next.args)
                kernel_release(c->next.args);
        if (c->kernel)
                kernel_unhold(c->kernel);
        mem_free(c->properties);
        handle_free(&c->h, sizeof(*c));
}

static void buffer_free(cl_command_buffer_khr b)
{
        sums_free(b);
        for (size_t i = 0; i < b->count; i++)
                command_free(b->commands[i]);
        for (cl_uint i = 0; i < b->queue_count; i++)
                queue_unhold(b->queues[i]);
        mem_free(b->commands);
        mem_free(b->queues);
        mem_free(b->slots);
        mem_free(b->last);
        mem_free(b->properties);
        handle_free(&b->h, sizeof(*b));
}

static bool can_be_divided(cl_device_id d)
{
        struct bytes v;
        return device_info(d, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, &v) && v.size == 4 &&
               bytes_get_u32(v.data) > 1;
}

bool command_buffer_can_sync(cl_device_id a, cl_device_id b)
{
        return a->server == b->server && a->domain == b->domain && !can_be_divided(a) &&
               !can_be_divided(b);
}

static int send_create(cl_command_buffer_khr b, struct session *session)
{
        size_t n = b->queue_count;
        uint64_t *ids = mem_alloc(2 * n * sizeof(*ids));
        if (!ids)
                return SP_E_NOMEM;
        for (size_t i = 0; i < n; i++) {
                ids[i] = b->slots[i].id;
                ids[n + i] = b->queues[i]->device->index;
        }
        int r = session_send(session, recording_create, .recording = b->id, .slots = { ids, n },
                             .devices = { ids + n, n });
        mem_free(ids);
        return r;
}

/* Room and copies for what the params say. */
static int take_params(cl_command_buffer_khr b, const struct command_buffer_params *params)
{
        size_t n = params->queue_count;
        b->queues = mem_dup(params->queues, n * sizeof(*b->queues));
        b->slots = mem_zalloc(n * sizeof(*b->slots));
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
        for (size_t i = 0; i < n; i++) {
                struct _cl_command_queue *slot = &b->slots[i];
                slot->context = b->queues[i]->context;
                slot->device = b->queues[i]->device;
                slot->properties = b->queues[i]->properties;
                slot->id = client_new_id(slot->context->client, OBJECT_QUEUE);
                list_init(&slot->commands);
        }
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
        b->queue_count = params->queue_count;
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
        for (cl_uint i = 0; i < b->queue_count && !r; i++)
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

static int take_launch(cl_mutable_command_khr c, const struct recorder *r)
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

static int command_new(struct recorder *r, cl_command_type type)
{
        cl_command_buffer_khr b = r->buffer;
        if (b->count == b->cap) {
                size_t cap = b->cap ? b->cap * 2 : 16;
                cl_mutable_command_khr *all = mem_realloc(b->commands, cap * sizeof(*all));
                if (!all)
                        return SP_E_NOMEM;
                b->commands = all;
                b->cap = cap;
        }
        cl_mutable_command_khr c = mem_zalloc(sizeof(*c));
        if (!c)
                return SP_E_NOMEM;
        handle_init(&c->h, HANDLE_MUTABLE_COMMAND);
        list_init(&c->changed);
        r->command = c;
        r->uses = &c->uses;
        c->buffer = b;
        c->queue = b->queues[r->slot];
        c->type = type;
        int e = take_properties(c, r->properties);
        return !e && r->kernel ? take_launch(c, r) : e;
}

static uint64_t number_id(size_t number)
{
        return object_id(OBJECT_EVENT, number);
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
                e = command_wait_for(m, number_id(r->syncs[i]));
        /* "If the queue is an in-order queue, then an additional dependency is created on the last command
         * appended to the command-buffer using the same queue parameter." */
        if (!e && queue_in_order(m->queue) && b->last[r->slot])
                e = command_wait_for(m, number_id(b->last[r->slot]));
        return e < 0 ? e : command_new(r, m->enqueue->type);
}

int record_use(struct command *m, cl_mem mem, struct range range, bool bring)
{
        /* An argument that does not exist any more; it will be replaced before it counts. */
        if (!handle_is(mem, HANDLE_MEM))
                return 0;
        int r = mem_declare(mem, m->server);
        if (r < 0)
                return r;
        return uses_add(m->enqueue->record->uses, &(struct memory_use){ mem, range, bring, false });
}

int record_wrote(struct command *m, cl_mem mem, struct range range)
{
        if (!handle_is(mem, HANDLE_MEM))
                return 0;
        return uses_add(m->enqueue->record->uses, &(struct memory_use){ mem, range, false, true });
}

int record_ready(struct command *m)
{
        m->id = number_id(m->enqueue->record->buffer->count + 1);
        return server_session(m->server) ? 0 : SP_E_GONE;
}

void record_end(struct command *m, int r)
{
        struct recorder *rec = m->enqueue->record;
        cl_command_buffer_khr b = rec->buffer;
        if (r < 0) {
                /* From record_ready on the server may have it. */
                b->broken |= m->id != 0;
                command_free(steal(rec->command));
                return;
        }
        b->commands[b->count++] = rec->command;
        b->last[rec->slot] = rec->command->number = b->count;
        b->summed = false;
}

/* ---- running -------------------------------------------------------------------------------- */

static int use_ranges(struct command *m, cl_mem root, const struct range_set *set, bool bring)
{
        int r = 0;
        for (size_t i = 0; i < set->count && !r; i++)
                r = command_use(m, root, set->ranges[i], bring);
        return r;
}

static int use_all(struct command *m, cl_command_buffer_khr b)
{
        int r = sums_make(b);
        list_each(s, &b->sums, struct memory_sum, link)
        {
                if (!r)
                        r = use_ranges(m, s->root, &s->bring, true);
                if (!r)
                        r = use_ranges(m, s->root, &s->meet, false);
        }
        return r;
}

static int wrote_all(struct command *m, cl_command_buffer_khr b)
{
        int r = 0;
        list_each(s, &b->sums, struct memory_sum, link)
        {
                for (size_t i = 0; i < s->wrote.count && !r; i++)
                        r = command_wrote(m, s->root, s->wrote.ranges[i]);
        }
        return r;
}

static int send_run(struct command *m, cl_command_buffer_khr b, const cl_command_queue *queues)
{
        uint64_t few[8], *ids = few;
        if (b->queue_count > array_size(few))
                ids = mem_alloc(b->queue_count * sizeof(*ids));
        if (!ids)
                return SP_E_NOMEM;
        for (cl_uint i = 0; i < b->queue_count; i++)
                ids[i] = queues[i]->id;
        int r = session_send(m->session, recording_run, .event = m->id, .flags = command_flags(m),
                             .recording = b->id, .queues = { ids, b->queue_count },
                             .waits = command_waits(m));
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
        if (r == 0)
                r = use_all(&m, b);
        if (r == 0)
                r = command_ready(&m, false);
        if (r == 0)
                r = send_run(&m, b, queues);
        if (r == 0)
                r = wrote_all(&m, b);
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

static void forget_change(cl_mutable_command_khr c)
{
        list_remove(&c->changed);
        uses_fini(&c->next_uses);
        kernel_release(steal(c->next.args));
}

void command_buffer_abort(cl_command_buffer_khr b)
{
        list_each(c, &b->changed, struct _cl_mutable_command_khr, changed)
        {
                forget_change(c);
        }
}

/* What the changed launch does to memory, all of which the server gets to know. */
static int change_uses(cl_mutable_command_khr c)
{
        struct recorder r = { .uses = &c->next_uses };
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
                                 .command = number_id(c->number),
                                 .offset = { v[0], offset ? l->dims : 0 },
                                 .global = { v[1], global ? l->dims : 0 },
                                 .local = { v[2], local ? l->dims : 0 },
                                 .args = bytes_of(args.data, args.size));
        buf_fini(&args);
        return r;
}

static void take_change(cl_mutable_command_khr c)
{
        list_remove(&c->changed);
        uses_fini(&c->uses);
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
