#include "support/program_state.h"

static void write_part(struct program *p, struct queue *q, const struct view *v, struct use u,
                       bool blocking)
{
        size_t size = u.end - u.begin;
        uint8_t *data = program_random_bytes(p, size);
        cl_event e, *want = program_event_for(p, q, &e);
        program_prepare(p, q, &u, 1);
        if (blocking)
                program_release_all(p);
        say(p, "%u write root %td [%zu, %zu) queue %td%s\n", p->command, v->root - p->roots,
            u.begin, u.end, q - p->queues, blocking ? " blocking" : "");
        memcpy(u.root->truth + u.begin, data, size);
        if (program_as_svm(p, v))
                ok(p, clEnqueueSVMMemcpy(q->q, blocking, u.root->svm + u.begin, data, size,
                                         p->wait_count, program_waits(p), want));
        else
                ok(p, clEnqueueWriteBuffer(q->q, v->mem, blocking, u.begin - v->origin, size, data,
                                           p->wait_count, program_waits(p), want));
        program_enqueued(p, q, e, &u, 1);
        if (blocking) {
                memset(data, 0xEE, size); /* it is ours again */
                free(data);
        } else {
                program_keep(p, data);
        }
}

void program_do_write(struct program *p)
{
        struct queue *q = program_any_queue(p);
        struct view *v = program_any_view(p);
        struct use u = program_any_part(p, v, true, 1);
        write_part(p, q, v, u, rng_chance(&p->rng, 20));
}

static void expect_read(struct program *p, uint8_t *got, const uint8_t *expected, size_t size,
                        bool now)
{
        if (now) {
                program_compare(p, got, expected, size, p->command, "blocking read");
                free(got);
                return;
        }
        struct pending *r = program_need(p, malloc(sizeof(*r)));
        *r = (struct pending){ p->pending, got, program_copy_of(p, expected, size), size,
                               p->command };
        p->pending = r;
}

static void read_part(struct program *p, struct queue *q, const struct view *v, struct use u,
                      bool blocking)
{
        size_t size = u.end - u.begin;
        uint8_t *got = program_need(p, calloc(1, size));
        cl_event e, *want = program_event_for(p, q, &e);
        program_prepare(p, q, &u, 1);
        if (blocking)
                program_release_all(p);
        say(p, "%u read root %td [%zu, %zu) queue %td%s\n", p->command, v->root - p->roots, u.begin,
            u.end, q - p->queues, blocking ? " blocking" : "");
        if (program_as_svm(p, v))
                ok(p, clEnqueueSVMMemcpy(q->q, blocking, got, u.root->svm + u.begin, size,
                                         p->wait_count, program_waits(p), want));
        else
                ok(p, clEnqueueReadBuffer(q->q, v->mem, blocking, u.begin - v->origin, size, got,
                                          p->wait_count, program_waits(p), want));
        if (blocking && e && !p->broken) {
                cl_int status = 1;
                ok(p, clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                                     NULL));
                if (status != CL_COMPLETE)
                        program_fail(p, "not complete after a blocking read", status);
        }
        program_enqueued(p, q, e, &u, 1);
        expect_read(p, got, u.root->truth + u.begin, size, blocking);
}

void program_do_read(struct program *p)
{
        struct queue *q = program_any_queue(p);
        struct view *v = program_any_view(p);
        struct use u = program_any_part(p, v, false, 1);
        read_part(p, q, v, u, rng_chance(&p->rng, 20));
}

/* A blocking read of an in-order queue has returned: all its commands are complete, and later commands of all queues
 * rely on that. */
static void rely_on(struct program *p, const struct queue *q)
{
        for (unsigned i = 0; i < p->root_count && q->in_order; i++) {
                for (struct access *a = p->roots[i].accesses; a; a = a->next) {
                        cl_int status = CL_COMPLETE;
                        if (a->queue != q || a->waited)
                                continue;
                        if (a->event)
                                ok(p, clGetEventInfo(a->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                     sizeof(status), &status, NULL));
                        if (status != CL_COMPLETE && !p->broken)
                                program_fail(p, "not complete after a later read", status);
                        a->waited = true;
                }
        }
}

/* Enqueue another command between those of a step, often a write of bytes that the step reads. */
static void disturb(struct program *p, const struct view *v, struct use u)
{
        static void (*const others[])(struct program *) = { program_do_write,  program_do_fill,
                                                            program_do_copy,   program_do_map,
                                                            program_do_kernel, program_do_read };
        uint64_t kind = rng_below(&p->rng, 2 * array_size(others));
        if (kind < array_size(others)) {
                others[kind](p);
                return;
        }
        struct queue *q = program_any_queue(p);
        u.write = true;
        write_part(p, q, v, u, rng_chance(&p->rng, 30));
        if (rng_chance(&p->rng, 50))
                program_finish(p, q);
}

void program_do_steps(struct program *p)
{
        struct queue *q = program_any_queue(p);
        struct kernel *k;
        const struct view *written = program_choose_kernel(p, &k);
        if (!written)
                return;
        const struct view v = *written; /* another launch may choose other arguments */
        struct use u = program_any_part(p, &v, false, 1);
        if (u.end - u.begin > 4096 && rng_chance(&p->rng, 80))
                u.end = u.begin + rng_range(&p->rng, 1, 4096);
        uint64_t launches = rng_range(&p->rng, 1, 3), reads = rng_range(&p->rng, 1, 2);
        bool finishes = rng_chance(&p->rng, 50);
        for (uint64_t steps = rng_range(&p->rng, 3, 9); steps; steps--) {
                for (uint64_t i = 0; i < launches; i++)
                        program_launch(p, q, k);
                if (rng_chance(&p->rng, 15))
                        disturb(p, &v, u);
                if (finishes)
                        program_finish(p, q);
                if (rng_chance(&p->rng, 15))
                        disturb(p, &v, u);
                if (rng_chance(&p->rng, 10))
                        continue;
                for (uint64_t i = 0; i < reads; i++) {
                        bool blocking = rng_chance(&p->rng, 80);
                        struct queue *reader = rng_chance(&p->rng, 5) ? program_any_queue(p) : q;
                        read_part(p, reader, &v, u, blocking);
                        if (blocking)
                                rely_on(p, reader);
                }
        }
}

void program_do_fill(struct program *p)
{
        static const size_t sizes[] = { 1, 2, 4, 8, 16, 32, 64, 128 };
        struct queue *q = program_any_queue(p);
        struct view *v = program_any_view(p);
        size_t unit = sizes[rng_below(&p->rng, 8)];
        if (v->size < unit)
                return;
        struct use u = program_any_part(p, v, true, unit);
        uint8_t *pattern = program_random_bytes(p, unit);
        cl_event e, *want = program_event_for(p, q, &e);
        program_prepare(p, q, &u, 1);
        say(p, "%u fill view %td [%zu, %zu) by %zu queue %td\n", p->command, v - p->views, u.begin,
            u.end, unit, q - p->queues);
        for (size_t i = u.begin; i < u.end; i++)
                u.root->truth[i] = pattern[(i - u.begin) % unit];
        /* The address has to be a multiple of the pattern's size. */
        if (u.begin % unit == 0 && program_as_svm(p, v))
                ok(p, clEnqueueSVMMemFill(q->q, u.root->svm + u.begin, pattern, unit,
                                          u.end - u.begin, p->wait_count, program_waits(p), want));
        else
                ok(p, clEnqueueFillBuffer(q->q, v->mem, pattern, unit, u.begin - v->origin,
                                          u.end - u.begin, p->wait_count, program_waits(p), want));
        free(pattern);
        program_enqueued(p, q, e, &u, 1);
}

void program_do_copy(struct program *p)
{
        struct queue *q = program_any_queue(p);
        struct view *from = program_any_view(p), *to = program_any_view(p);
        struct use u[2] = { program_any_part(p, from, false, 1), program_any_part(p, to, true, 1) };
        size_t size = u[0].end - u[0].begin, other = u[1].end - u[1].begin;
        size = size < other ? size : other;
        u[0].end = u[0].begin + size;
        u[1].end = u[1].begin + size;
        if (u[0].root == u[1].root && u[0].begin < u[1].end && u[1].begin < u[0].end)
                return;
        cl_event e, *want = program_event_for(p, q, &e);
        program_prepare(p, q, u, 2);
        say(p, "%u copy view %td [%zu, %zu) to view %td %zu queue %td\n", p->command,
            from - p->views, u[0].begin, u[0].end, to - p->views, u[1].begin, q - p->queues);
        memcpy(u[1].root->truth + u[1].begin, u[0].root->truth + u[0].begin, size);
        if (to->root->svm && program_as_svm(p, from))
                ok(p, clEnqueueSVMMemcpy(q->q, CL_FALSE, to->root->svm + u[1].begin,
                                         from->root->svm + u[0].begin, size, p->wait_count,
                                         program_waits(p), want));
        else
                ok(p, clEnqueueCopyBuffer(q->q, from->mem, to->mem, u[0].begin - from->origin,
                                          u[1].begin - to->origin, size, p->wait_count,
                                          program_waits(p), want));
        program_enqueued(p, q, e, u, 2);
}

/* A box in `size` bytes, and its pitches. False: too small. */
static bool any_box(struct program *p, size_t size, const size_t *region, size_t origin[3],
                    size_t *row_pitch, size_t *slice_pitch)
{
        *row_pitch = region[0] + rng_below(&p->rng, 9);
        *slice_pitch = *row_pitch * (region[1] + rng_below(&p->rng, 3));
        origin[0] = rng_below(&p->rng, *row_pitch - region[0] + 1);
        origin[1] = rng_below(&p->rng, *slice_pitch / *row_pitch - region[1] + 1);
        origin[2] = rng_below(&p->rng, 2);
        return (origin[2] + region[2] - 1) * *slice_pitch +
                       (origin[1] + region[1] - 1) * *row_pitch + origin[0] + region[0] <=
               size;
}

static uint8_t *box_row(uint8_t *base, const size_t origin[3], size_t row_pitch, size_t slice_pitch,
                        size_t y, size_t z)
{
        return base + (origin[2] + z) * slice_pitch + (origin[1] + y) * row_pitch + origin[0];
}

void program_do_rect(struct program *p)
{
        struct queue *q = program_any_queue(p);
        struct view *v = program_any_view(p);
        size_t region[3] = { rng_range(&p->rng, 1, 80), rng_range(&p->rng, 1, 20),
                             rng_range(&p->rng, 1, 3) };
        size_t b_origin[3], b_row, b_slice, h_origin[3], h_row, h_slice;
        any_box(p, SIZE_MAX, region, h_origin, &h_row, &h_slice);
        if (!any_box(p, v->size, region, b_origin, &b_row, &b_slice))
                return;
        size_t host_size = (h_origin[2] + region[2]) * h_slice + h_row;
        bool write = rng_chance(&p->rng, 50), blocking = rng_chance(&p->rng, 20);
        uint8_t *host = program_random_bytes(p, host_size);
        uint8_t *expected = program_copy_of(p, host, host_size);
        struct use u = program_whole(v, write);
        cl_event e, *want = program_event_for(p, q, &e);
        program_prepare(p, q, &u, 1);
        if (blocking)
                program_release_all(p);
        say(p, "%u %s rect view %td %zux%zux%zu queue %td%s\n", p->command,
            write ? "write" : "read", v - p->views, region[0], region[1], region[2], q - p->queues,
            blocking ? " blocking" : "");
        uint8_t *truth = v->root->truth + v->origin;
        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++) {
                        uint8_t *b = box_row(truth, b_origin, b_row, b_slice, y, z);
                        uint8_t *h = box_row(expected, h_origin, h_row, h_slice, y, z);
                        memcpy(write ? b : h, write ? h : b, region[0]);
                }
        if (write)
                ok(p, clEnqueueWriteBufferRect(q->q, v->mem, blocking, b_origin, h_origin, region,
                                               b_row, b_slice, h_row, h_slice, host, p->wait_count,
                                               program_waits(p), want));
        else
                ok(p, clEnqueueReadBufferRect(q->q, v->mem, blocking, b_origin, h_origin, region,
                                              b_row, b_slice, h_row, h_slice, host, p->wait_count,
                                              program_waits(p), want));
        program_enqueued(p, q, e, &u, 1);
        if (write)
                program_keep(p, host);
        else
                expect_read(p, host, expected, host_size, blocking);
        free(expected);
}

void program_do_copy_rect(struct program *p)
{
        struct queue *q = program_any_queue(p);
        struct view *from = program_any_view(p), *to = program_any_view(p);
        size_t region[3] = { rng_range(&p->rng, 1, 80), rng_range(&p->rng, 1, 20),
                             rng_range(&p->rng, 1, 3) };
        size_t f_origin[3], f_row, f_slice, t_origin[3], t_row, t_slice;
        if (from->root == to->root || !any_box(p, from->size, region, f_origin, &f_row, &f_slice) ||
            !any_box(p, to->size, region, t_origin, &t_row, &t_slice))
                return;
        struct use u[2] = { program_whole(from, false), program_whole(to, true) };
        cl_event e, *want = program_event_for(p, q, &e);
        program_prepare(p, q, u, 2);
        say(p, "%u copy rect view %td to view %td queue %td\n", p->command, from - p->views,
            to - p->views, q - p->queues);
        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                        memcpy(box_row(to->root->truth + to->origin, t_origin, t_row, t_slice, y,
                                       z),
                               box_row(from->root->truth + from->origin, f_origin, f_row, f_slice,
                                       y, z),
                               region[0]);
        ok(p,
           clEnqueueCopyBufferRect(q->q, from->mem, to->mem, f_origin, t_origin, region, f_row,
                                   f_slice, t_row, t_slice, p->wait_count, program_waits(p), want));
        program_enqueued(p, q, e, u, 2);
}

void program_do_migrate(struct program *p)
{
        struct queue *q = program_any_queue(p);
        struct view *v = program_any_view(p);
        struct use u = program_whole(v, true); /* nobody else may use it meanwhile */
        cl_event e, *want = program_event_for(p, q, &e);
        cl_mem_migration_flags flags = rng_chance(&p->rng, 20) ? CL_MIGRATE_MEM_OBJECT_HOST : 0;
        program_prepare(p, q, &u, 1);
        say(p, "%u migrate view %td queue %td\n", p->command, v - p->views, q - p->queues);
        if (program_as_svm(p, v)) {
                const void *at = v->root->svm + v->origin;
                ok(p, clEnqueueSVMMigrateMem(q->q, 1, &at, &v->size, flags, p->wait_count,
                                             program_waits(p), want));
        } else {
                ok(p, clEnqueueMigrateMemObjects(q->q, 1, &v->mem, flags, p->wait_count,
                                                 program_waits(p), want));
        }
        program_enqueued(p, q, e, &u, 1);
}

void program_do_marker(struct program *p)
{
        struct queue *q = program_any_queue(p);
        bool barrier = rng_chance(&p->rng, 60);
        cl_event e, *want = program_event_for(p, q, &e);
        p->wait_count = 0;
        say(p, "%u %s queue %td\n", p->command, barrier ? "barrier" : "marker", q - p->queues);
        if (barrier)
                ok(p, clEnqueueBarrierWithWaitList(q->q, 0, NULL, want));
        else
                ok(p, clEnqueueMarkerWithWaitList(q->q, 0, NULL, want));
        if (barrier)
                q->barrier = q->number;
        program_enqueued(p, q, e, NULL, 0);
}

void program_do_map(struct program *p)
{
        static const cl_map_flags kinds[] = { CL_MAP_READ, CL_MAP_WRITE, CL_MAP_READ | CL_MAP_WRITE,
                                              CL_MAP_WRITE_INVALIDATE_REGION };
        struct queue *q = program_any_queue(p);
        struct view *v = program_any_view(p);
        cl_map_flags flags = kinds[rng_below(&p->rng, 4)];
        bool write = flags != CL_MAP_READ, blocking = rng_chance(&p->rng, 70);
        struct use u = program_any_part(p, v, write, 1);
        size_t size = u.end - u.begin;
        uint8_t *truth = u.root->truth + u.begin;
        cl_event e;
        cl_int err;
        program_prepare(p, q, &u, 1);
        program_release_all(p);
        say(p, "%u map view %td [%zu, %zu) flags %d queue %td\n", p->command, v - p->views, u.begin,
            u.end, (int)flags, q - p->queues);
        bool svm = program_as_svm(p, v);
        uint8_t *m;
        if (svm) {
                m = u.root->svm + u.begin;
                err = clEnqueueSVMMap(q->q, blocking, flags, m, size, p->wait_count,
                                      program_waits(p), &e);
                m = err == CL_SUCCESS ? m : NULL;
        } else {
                m = clEnqueueMapBuffer(q->q, v->mem, blocking, flags, u.begin - v->origin, size,
                                       p->wait_count, program_waits(p), &e, &err);
        }
        ok(p, err);
        if (!m)
                return;
        if (!blocking)
                ok(p, clWaitForEvents(1, &e));
        program_enqueued(p, q, e, &u, 1);
        if (u.root->host && m != u.root->host + u.begin)
                program_fail(p, "the mapping is not in host_ptr", 0);
        if (flags != CL_MAP_WRITE_INVALIDATE_REGION)
                program_compare(p, m, truth, size, p->command, "map");
        if (write) {
                uint8_t *data = program_random_bytes(p, size);
                size_t from = 0, to = size;
                if (flags != CL_MAP_WRITE_INVALIDATE_REGION) { /* only some of it */
                        from = rng_below(&p->rng, size);
                        to = rng_range(&p->rng, from, size);
                }
                memcpy(m + from, data + from, to - from);
                memcpy(truth + from, data + from, to - from);
                free(data);
        }
        struct queue *uq = rng_chance(&p->rng, 70) ? q : program_any_queue(p);
        cl_event *want = program_event_for(p, uq, &e);
        p->wait_count = 0;
        if (svm)
                ok(p, clEnqueueSVMUnmap(uq->q, m, 0, NULL, want));
        else
                ok(p, clEnqueueUnmapMemObject(uq->q, v->mem, m, 0, NULL, want));
        program_enqueued(p, uq, e, &u, 1);
}

void program_do_wait(struct program *p)
{
        cl_event some[RECENT];
        cl_uint n = 0;
        for (unsigned i = 0; i < RECENT; i++)
                if (p->recent[i] && rng_chance(&p->rng, 50))
                        some[n++] = p->recent[i];
        switch (rng_below(&p->rng, 5)) {
        case 0:
                if (!n)
                        return;
                say(p, "%u wait for %u events\n", p->command, n);
                program_wait(p, n, some);
                break;
        case 1: {
                struct queue *q = program_any_queue(p);
                say(p, "%u finish queue %td\n", p->command, q - p->queues);
                program_finish(p, q);
                break;
        }
        case 2:
                ok(p, clFlush(program_any_queue(p)->q));
                break;
        case 3:
                program_open_gates(p);
                break;
        default:
                sim_run(p->sim, rng_below(&p->rng, 3000000));
                break;
        }
}
