#include "backend/almaif/launch.h"

#include "backend/almaif/memory.h"
#include "backend/almaif/program.h"
#include "base/bytes.h"
#include "base/mem.h"

/* ---- packets -------------------------------------------------------------------------------- */

cl_int launch_check(const struct backend_queue *q, const struct backend_command *c)
{
        if (!c->kernel)
                return CL_INVALID_KERNEL;
        if (c->kernel->domain != q->unit->domain)
                return CL_INVALID_CONTEXT;
        cl_int r = builtin_check_launch(c);
        if (r != CL_SUCCESS)
                return r;
        /* The packet has no place for an offset, 32 bits for sizes, 16 for those of groups. */
        for (unsigned i = 0; i < c->dims; i++) {
                if (c->offset && c->offset[i] && !c->kernel->code)
                        return CL_INVALID_GLOBAL_OFFSET;
                if (c->global[i] > UINT32_MAX)
                        return CL_INVALID_GLOBAL_WORK_SIZE;
        }
        if (c->kernel->code)
                return code_launch_check(q->unit, c->kernel->code, c);
        const struct registry_kernel *k = c->kernel->kernel;
        for (unsigned i = 0; i < registry_arg_count(k); i++)
                if (!c->kernel->args[i].set)
                        return CL_INVALID_KERNEL_ARGS;
        for (size_t i = 0; i < q->unit->kernel_count; i++)
                if (q->unit->kernels[i] == k)
                        return CL_SUCCESS;
        return CL_INVALID_PROGRAM_EXECUTABLE; /* another unit of the domain has it */
}

static size_t arg_at(enum spec_args how, unsigned index, size_t end, size_t size)
{
        switch (how) {
        case SPEC_ARGS_PACKED:
                return end;
        case SPEC_ARGS_STRIDE:
                return (size_t)index * ALMAIF_ARGUMENT_STRIDE;
        case SPEC_ARGS_NATURAL:
                break;
        }
        return (end + size - 1) / size * size;
}

uint64_t buffer_address(const struct backend_buffer *m)
{
        return m ? m->memory->address + m->at : 0;
}

cl_int launch_prepare(struct command *k, const struct backend_kernel *kernel)
{
        const struct unit *u = k->queue->unit;
        const struct backend_command *c = &k->c;
        const uint32_t *grid = &k->packet.grid_x;
        size_t end = 0;
        k->packet = (struct almaif_dispatch){
                .header = bytes_le16(ALMAIF_PACKET_DISPATCH),
                .dimensions = bytes_le16((uint16_t)c->dims),
                .group_x = bytes_le16(c->local ? (uint16_t)c->local[0] : 1),
                .group_y = bytes_le16(c->local && c->dims > 1 ? (uint16_t)c->local[1] : 1),
                .group_z = bytes_le16(c->local && c->dims > 2 ? (uint16_t)c->local[2] : 1),
        };
        for (unsigned i = 0; i < 3; i++)
                bytes_put_u32((uint8_t *)&k->packet +
                                      ((const uint8_t *)(grid + i) - (const uint8_t *)&k->packet),
                              i < c->dims ? (uint32_t)c->global[i] : 1);
        if (kernel->code)
                return code_launch_prepare(k, kernel->code);
        k->packet.kernel = bytes_le64((uint64_t)kernel->kernel->id);
        k->args = mem_zalloc(u->args.size);
        if (!k->args)
                return CL_OUT_OF_HOST_MEMORY;
        for (unsigned i = 0; i < registry_arg_count(kernel->kernel); i++) {
                const struct registry_arg *a = &kernel->kernel->args[i];
                const struct kernel_arg *have = &kernel->args[i];
                size_t size = a->buffer ? u->accel.pointer_size : a->size;
                size_t at = arg_at(u->accel.spec->args, i, end, size);
                uint64_t address = bytes_le64(buffer_address(have->buffer));
                memcpy(k->args + at, a->buffer ? &address : &have->value, size);
                k->buffers[i] = buffer_ref(have->buffer);
                end = at + size;
        }
        k->args_size = end;
        return CL_SUCCESS;
}

/* ---- into the ring -------------------------------------------------------------------------- */

/* The signal that a device can wait for instead of `e`; -1: there is none yet. */
static int signal_of(struct backend_event *e) REQUIRES(almaif_held)
{
        if (e->unit)
                return e->pushed ? e->signal : -1;
        if (e->signal < 0)
                e->signal = signal_take(e->domain);
        return e->signal;
}

/* A device may have said so already, and this host not have noticed. */
static bool has_failed(const struct backend_event *e)
{
        const struct domain *d = e->domain;
        if (e->status <= CL_COMPLETE || !e->pushed)
                return e->status < 0;
        return signal_state(d->memories[0].window, signal_at(d, e->signal), d->zero) ==
               SIGNAL_FAILURE;
}

cl_int launch_dependencies(const struct command *k)
{
        for (size_t i = 0; i < k->dep_count; i++)
                if (!k->deps[i].order && has_failed(k->deps[i].event))
                        return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        return CL_SUCCESS;
}

/* Find the signals that the command has to wait for in the ring. Earlier commands of the same ring
 * need none, because they complete before it. False: a dependency is not in a ring yet, or no
 * signal is free. */
static bool find_barriers(struct command *k) REQUIRES(almaif_held)
{
        k->barrier_count = 0;
        for (size_t i = 0; i < k->dep_count; i++) {
                struct backend_event *e = k->deps[i].event;
                if (e->status <= CL_COMPLETE || (e->unit == k->queue->unit && e->pushed))
                        continue;
                int signal = signal_of(e);
                if (signal < 0)
                        return false;
                k->barriers[k->barrier_count++] = signal;
        }
        return true;
}

static size_t packets_of(const struct command *k)
{
        return (k->barrier_count + ALMAIF_BARRIER_DEPS - 1) / ALMAIF_BARRIER_DEPS + 1;
}

static void push_packets(struct unit *u, struct command *k)
{
        struct domain *d = u->domain;
        for (size_t i = 0; i < k->barrier_count; i += ALMAIF_BARRIER_DEPS) {
                struct almaif_barrier b = { .header = bytes_le16(ALMAIF_PACKET_BARRIER) };
                for (size_t j = 0; j < ALMAIF_BARRIER_DEPS && i + j < k->barrier_count; j++)
                        b.deps[j] = bytes_le64(signal_address(d, k->barriers[i + j]));
                accel_push(&u->accel, &b);
        }
        accel_push(&u->accel, &k->packet);
}

static void place_args(struct unit *u, struct command *k)
{
        struct memory *m = &u->domain->memories[0];
        uint64_t at = u->args.at + k->args_block % u->args.count * u->args.size;
        window_write(m->window, m->at + at, k->args, k->args_size);
        k->packet.arguments = bytes_le64(m->address + at);
        k->packet.completion = bytes_le64(signal_address(u->domain, k->event->signal));
}

/* False: not now. */
static bool push(struct unit *u, struct command *k) REQUIRES(almaif_held)
{
        uint64_t room;
        if (u->recovering || u->args.taken - u->args.given == u->args.count || !find_barriers(k))
                return false;
        if (accel_room(&u->accel, &room) < 0) {
                u->faulty = true;
                condition_signal(&u->watch.work);
                return false;
        }
        if (packets_of(k) > room)
                return false;
        k->event->signal = signal_take(u->domain);
        if (k->event->signal < 0)
                return false;
        for (size_t i = 0; i < k->barrier_count; i++)
                signal_ref(u->domain, k->barriers[i]);
        k->args_block = u->args.taken++;
        place_args(u, k);
        push_packets(u, k);
        k->event->pushed = true;
        return true;
}

/* To the host, which ends it. */
static void give_up(struct unit *u, struct command *k, cl_int status) REQUIRES(almaif_held)
{
        list_remove(&k->link);
        k->status = status;
        list_append(&u->backend->host, &k->link);
        condition_signal(&u->backend->changed);
}

void launch_head(struct unit *u)
{
        uint64_t at = NO_HEAD;
        if (!list_empty(&u->in_flight) && !u->recovering) {
                struct command *k = list_entry(u->in_flight.next, struct command, link);
                at = signal_at(u->domain, k->event->signal);
        }
        atomic_store(&u->head_at, at);
}

/* True: it moved on. */
static bool pump_unit(struct unit *u) REQUIRES(almaif_held)
{
        bool moved = false, pushed = false;
        while (!list_empty(&u->backlog)) {
                struct command *k = list_entry(u->backlog.next, struct command, link);
                cl_int status = u->dead ? u->dead : launch_dependencies(k);
                if (status < 0) {
                        give_up(u, k, status);
                } else {
                        if (!push(u, k))
                                break;
                        list_remove(&k->link);
                        if (list_empty(&u->in_flight) && !u->backend->polling)
                                condition_signal(&u->watch.work);
                        list_append(&u->in_flight, &k->link);
                        pushed = true;
                }
                moved = true;
        }
        if (pushed) {
                launch_head(u);
                accel_kick(&u->accel);
        }
        return moved;
}

/* A kernel that one unit got may be one that another unit's kernel waits for, so repeat until
 * nothing moves. */
void launch_pump(struct domain *d)
{
        for (bool moved = true; moved;) {
                moved = false;
                for (unsigned i = 0; i < d->unit_count; i++)
                        moved |= pump_unit(d->units[i]);
        }
}

/* ---- out of it ------------------------------------------------------------------------------ */

void launch_release(struct command *k)
{
        struct unit *u = k->queue->unit;
        if (!k->event->pushed)
                return;
        for (size_t i = 0; i < k->barrier_count; i++)
                signal_unref(u->domain, k->barriers[i]);
        k->barrier_count = 0;
        u->args.given++;
}

/* The ring is empty, and had room for all of it before. Signals that were held stay so. */
void launch_again(struct unit *u)
{
        list_each(k, &u->in_flight, struct command, link)
        {
                k->head_since_ns = 0;
                push_packets(u, k);
        }
        accel_kick(&u->accel);
}
