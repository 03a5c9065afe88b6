#include "backend/reference/executor.h"

#include <string.h>

#include "backend/reference/reference.h"
#include "backend/reference/submit.h"
#include "os/clock.h"

enum { LOOK_AHEAD = 64 };

uint64_t executor_clock_ns(struct backend *b)
{
        if (b->manual)
                return b->ticks += 1000;
        return clock_now_ns();
}

static void copy_box(const struct backend_box *to, uint8_t *to_base, const struct backend_box *from,
                     uint8_t *from_base, const size_t region[3])
{
        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                        memmove(ref_box_row(to, to_base, y, z), ref_box_row(from, from_base, y, z),
                                region[0]);
}

static cl_int run_kernel(struct ref_command *k)
{
        struct registry_launch launch;
        launch.dims = k->c.dims;
        memcpy(launch.offset, k->offset, sizeof(launch.offset));
        memcpy(launch.global, k->global, sizeof(launch.global));
        launch.user = k->queue->backend->devices.user;
        for (unsigned i = 0; i < k->arg_count; i++) {
                struct backend_buffer *m = k->args[i].buffer;
                struct registry_value *v = &launch.args[i];
                *v = (struct registry_value){ 0 };
                if (!k->kernel->args[i].buffer)
                        *v = (struct registry_value){ &k->args[i].value, 8, NULL };
                else if (m)
                        *v = (struct registry_value){ m->data, m->size,
                                                      m->parent ? NULL : &m->attachment };
        }
        return k->kernel->run(&launch);
}

static cl_int run_command(struct ref_command *k)
{
        const struct backend_command *c = &k->c;
        struct backend_box packed = { .row_pitch = c->region[0],
                                      .slice_pitch = c->region[0] * c->region[1] };
        switch (c->op) {
        case BACKEND_KERNEL:
                return run_kernel(k);
        case BACKEND_WRITE:
                memcpy(c->buffer->data + c->offset_bytes, c->host, c->size);
                return CL_SUCCESS;
        case BACKEND_READ:
                memcpy(c->host, c->buffer->data + c->offset_bytes, c->size);
                return CL_SUCCESS;
        case BACKEND_WRITE_RECT:
                copy_box(&c->box, c->buffer->data, &packed, c->host, c->region);
                return CL_SUCCESS;
        case BACKEND_READ_RECT:
                copy_box(&packed, c->host, &c->box, c->buffer->data, c->region);
                return CL_SUCCESS;
        case BACKEND_COPY:
                memcpy(c->buffer->data + c->offset_bytes, c->source->data + c->source_offset,
                       c->size);
                return CL_SUCCESS;
        case BACKEND_COPY_RECT:
                copy_box(&c->box, c->buffer->data, &c->source_box, c->source->data, c->region);
                return CL_SUCCESS;
        case BACKEND_FILL:
                for (size_t i = 0; i < c->size; i += c->pattern_size)
                        memcpy(c->buffer->data + c->offset_bytes + i, k->pattern, c->pattern_size);
                return CL_SUCCESS;
        case BACKEND_MARKER:
        case BACKEND_BARRIER:
                return CL_SUCCESS;
        /* Not submitted: there are no images. */
        case BACKEND_WRITE_IMAGE:
        case BACKEND_READ_IMAGE:
        case BACKEND_COPY_IMAGE:
        case BACKEND_IMAGE_TO_BUFFER:
        case BACKEND_BUFFER_TO_IMAGE:
        case BACKEND_FILL_IMAGE:
                break;
        }
        return CL_INVALID_OPERATION;
}

static bool after_all(const struct ref_command *k)
{
        return (k->c.op == BACKEND_MARKER || k->c.op == BACKEND_BARRIER) && !k->c.dep_count;
}

/* May `k` run, given what is pending before it? */
static bool command_ready(struct backend *b, const struct ref_command *k) REQUIRES(b->lock)
{
        if (k->running)
                return false;
        for (size_t i = 0; i < k->c.dep_count; i++)
                if (k->deps[i]->status > CL_COMPLETE)
                        return false;
        bool in_order = !(k->queue->props & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        list_each(before, &b->pending, struct ref_command, link)
        {
                if (before == k)
                        break;
                if (before->queue == k->queue &&
                    (in_order || after_all(k) || before->c.op == BACKEND_BARRIER))
                        return false;
        }
        return true;
}

static uint64_t next_random(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

/* The next command to run; it stays in the list. The oldest that does not run is ready, unless one
 * that runs holds it up. */
static struct ref_command *choose(struct backend *b) REQUIRES(b->lock)
{
        struct ref_command *ready[LOOK_AHEAD];
        size_t count = 0, seen = 0;
        list_each(k, &b->pending, struct ref_command, link)
        {
                if (command_ready(b, k))
                        ready[count++] = k;
                if ((count && !b->random) || ++seen == LOOK_AHEAD)
                        break;
        }
        if (!count)
                return NULL;
        return ready[count > 1 ? next_random(&b->random) % count : 0];
}

/* Run one command and report it. False: none is ready, or all executors work. The lock is released
 * while it works. */
static bool execute_one(struct backend *b) REQUIRES(b->lock)
{
        struct ref_command *k = b->executing < b->devices.executors ? choose(b) : NULL;
        if (!k)
                return false;
        cl_int status = CL_SUCCESS;
        for (size_t i = 0; i < k->c.dep_count; i++)
                if (k->deps[i]->status < 0)
                        status = k->reports ? k->deps[i]->status
                                            : CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        bool *failed = &b->failed[k->queue->domain];
        if (*failed && status == CL_SUCCESS)
                status = CL_OUT_OF_RESOURCES;
        struct backend_times times = { .submit_ns = k->submit_ns,
                                       .start_ns = executor_clock_ns(b) };
        b->executing++;
        k->running = true;
        lock_release(&b->lock);

        if (status == CL_SUCCESS)
                status = run_command(k);

        lock_take(&b->lock);
        times.end_ns = executor_clock_ns(b);
        k->event.status = status;
        *failed |= b->failure_stays && status < 0;
        list_remove(&k->link);
        b->executing--;
        if (b->thread_count > 1)
                condition_broadcast(&b->changed);
        lock_release(&b->lock);

        if (!(k->queue->props & CL_QUEUE_PROFILING_ENABLE))
                times = (struct backend_times){ 0 };
        void *cookie = k->c.cookie;
        ref_command_free(k);
        if (cookie)
                b->complete(b->user, cookie, status, &times);
        lock_take(&b->lock);
        return true;
}

static void *thread_main(void *arg)
{
        struct backend *b = arg;
        lock_take(&b->lock);
        for (;;) {
                if (execute_one(b))
                        continue;
                if (b->stop && list_empty(&b->pending))
                        break;
                condition_wait(&b->changed, &b->lock);
        }
        lock_release(&b->lock);
        return NULL;
}

size_t backend_reference_step(struct backend *b, size_t max)
{
        size_t ran = 0;
        lock_take(&b->lock);
        while (ran < max && execute_one(b))
                ran++;
        lock_release(&b->lock);
        return ran;
}

int executor_start(struct backend *b)
{
        lock_init(&b->lock);
        condition_init(&b->changed);
        while (!b->manual && b->thread_count < b->devices.executors) {
                if (thread_start_with_signals(&b->threads[b->thread_count], thread_main, b)) {
                        executor_stop(b);
                        return SP_E_NOMEM;
                }
                b->thread_count++;
        }
        return 0;
}

void executor_stop(struct backend *b)
{
        if (b->manual) {
                backend_reference_step(b, SIZE_MAX);
        } else {
                lock_take(&b->lock);
                b->stop = true;
                condition_broadcast(&b->changed);
                lock_release(&b->lock);
                for (unsigned i = 0; i < b->thread_count; i++)
                        thread_join(b->threads[i]);
        }
        condition_fini(&b->changed);
        lock_fini(&b->lock);
}

void executor_wake(struct backend *b)
{
        if (!b->manual)
                condition_signal(&b->changed);
}
