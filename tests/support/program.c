#include "support/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/builtin/registry.h"
#include "base/mem.h"

enum {
        ROOTS = 5,
        SUBS = 4,
        QUEUES = 8,
        KERNELS = 8,
        DEVICES = 32,
        WAITS = 1000,
        RECENT = 8,
        SIZE_MAX_LOG2 = 17,
};

/* A command's use of bytes [begin, end) of a root buffer. */
struct access {
        struct access *next;
        size_t begin, end;
        bool write;
        struct queue *queue;
        unsigned number; /* of the command in its queue */
        cl_event event;  /* held; NULL: none was asked for (in-order queues) */
};

struct root {
        cl_mem mem;
        size_t size;
        uint8_t *truth;
        uint8_t *host; /* USE_HOST_PTR */
        uint8_t *svm;  /* shared virtual memory, over which `mem` lies; NULL: none */
        struct access *accesses;
};

/* A buffer object: a root, or a part of one. */
struct view {
        cl_mem mem;
        struct root *root;
        size_t origin, size;
};

struct queue {
        cl_command_queue q;
        bool in_order;
        unsigned number;  /* of commands enqueued */
        unsigned barrier; /* commands up to it are before all that follow */
};

struct kernel {
        cl_kernel k;
        const struct registry_kernel *r;
        struct view args[REGISTRY_ARGS_MAX]; /* as last set; root NULL: not yet */
        bool pointers[REGISTRY_ARGS_MAX];    /* set as pointers into shared virtual memory */
        uint32_t values[REGISTRY_ARGS_MAX];
        bool set;
};

/* A read that has not been compared yet. */
struct pending {
        struct pending *next;
        uint8_t *got, *expected;
        size_t size;
        unsigned command;
};

/* Memory that a command reads until it is complete. */
struct source {
        struct source *next;
        uint8_t *data;
};

/* A user event that is set; the wait list of the command being made may still name it. */
struct opened {
        struct opened *next;
        cl_event event;
};

struct program {
        struct sim *sim;
        struct rng rng;
        const struct program_params *params;
        unsigned command; /* number of the command, for messages */
        bool broken;      /* something was broken: calls may fail, contents are unknown */
        cl_device_id devices[DEVICES];
        cl_uint device_count;
        cl_context context;
        cl_program program;
        struct root roots[ROOTS];
        struct view views[ROOTS + SUBS];
        unsigned view_count, root_count;
        struct queue queues[QUEUES];
        unsigned queue_count;
        struct kernel kernels[KERNELS];
        unsigned kernel_count;
        cl_event gates[4]; /* user events not yet set */
        unsigned gate_count;
        struct opened *opened;
        cl_event recent[RECENT];
        struct pending *pending;
        struct source *sources;
        unsigned callbacks_asked, callbacks_called, destroyed;
        /* The wait list of the command being made. */
        cl_event waits[WAITS];
        cl_uint wait_count;
};

static void fail(const struct program *p, const char *what, long value)
{
        sim_fail(p->sim, "command %u: %s (%ld)", p->command, what, value);
}

#define ok(p, call)                                    \
        do {                                           \
                cl_int ok_ = (call);                   \
                if (ok_ != CL_SUCCESS && !(p)->broken) \
                        fail(p, #call, ok_);           \
        } while (0)

#define say(p, ...)                                   \
        do {                                          \
                if ((p)->params->verbose)             \
                        fprintf(stderr, __VA_ARGS__); \
        } while (0)

static void *need(struct program *p, void *memory)
{
        if (!memory)
                fail(p, "out of memory", 0);
        return memory;
}

static void *copy_of(struct program *p, const void *data, size_t size)
{
        return memcpy(need(p, malloc(size)), data, size);
}

static uint8_t *random_bytes(struct program *p, size_t size)
{
        uint8_t *data = need(p, malloc(size));
        uint64_t x = rng_u64(&p->rng);
        for (size_t i = 0; i < size; i++)
                data[i] = (uint8_t)(x >> (i & 7) * 8) ^ (uint8_t)(i * 167 >> 3);
        return data;
}

static void keep(struct program *p, uint8_t *data)
{
        struct source *s = need(p, malloc(sizeof(*s)));
        *s = (struct source){ p->sources, data };
        p->sources = s;
}

/* ---- dependencies --------------------------------------------------------------------------- */

static void wait_for(struct program *p, cl_event e)
{
        for (cl_uint i = 0; i < p->wait_count; i++)
                if (p->waits[i] == e)
                        return;
        if (!e)
                return; /* could not be had */
        if (p->wait_count == WAITS)
                fail(p, "wait list too long", WAITS);
        p->waits[p->wait_count++] = e;
}

/* Does the queue itself run `a` before a command enqueued now? */
static bool ordered(const struct queue *q, const struct access *a)
{
        return a->queue == q && (q->in_order || a->number <= q->barrier);
}

/* Make the next command of `q` wait for everything that conflicts with this use. */
static void depend(struct program *p, struct queue *q, struct root *root, size_t begin, size_t end,
                   bool write)
{
        for (struct access *a = root->accesses; a; a = a->next) {
                if (a->end <= begin || end <= a->begin || !(a->write || write))
                        continue;
                if (ordered(q, a) && (!a->event || rng_chance(&p->rng, 70)))
                        continue;
                if (!a->event) {
                        /* Its queue is in order: a marker behind it is complete after it. */
                        ok(p, clEnqueueMarkerWithWaitList(a->queue->q, 0, NULL, &a->event));
                        a->queue->number++;
                }
                wait_for(p, a->event);
        }
}

/* What a command does, until it is enqueued. */
struct use {
        struct root *root;
        size_t begin, end;
        bool write;
};

static void prepare(struct program *p, struct queue *q, const struct use *uses, unsigned count)
{
        p->wait_count = 0;
        for (unsigned i = 0; i < count; i++)
                depend(p, q, uses[i].root, uses[i].begin, uses[i].end, uses[i].write);
        if (rng_chance(&p->rng, 10) && p->recent[0]) {
                cl_event e = p->recent[rng_below(&p->rng, RECENT)];
                if (e)
                        wait_for(p, e);
        }
        if (rng_chance(&p->rng, 4) && p->gate_count < 4) {
                cl_int err;
                cl_event gate = clCreateUserEvent(p->context, &err);
                ok(p, err);
                if (gate)
                        p->gates[p->gate_count++] = gate;
                wait_for(p, gate);
        } else if (rng_chance(&p->rng, 4) && p->gate_count) {
                wait_for(p, p->gates[rng_below(&p->rng, p->gate_count)]);
        }
}

static cl_event *waits(struct program *p)
{
        return p->wait_count ? p->waits : NULL;
}

/* Where the command's event goes: sometimes nowhere, if order alone tells when it is complete. */
static cl_event *event_for(struct program *p, struct queue *q, cl_event *e)
{
        *e = NULL;
        return q->in_order && rng_chance(&p->rng, 40) ? NULL : e;
}

static void CL_CALLBACK on_complete(cl_event e, cl_int status, void *user)
{
        struct program *p = user;
        if (status != CL_COMPLETE && !p->broken)
                fail(p, "callback: the command failed", status);
        p->callbacks_called++;
}

/* The command was enqueued: remember what it uses. */
static void enqueued(struct program *p, struct queue *q, cl_event e, const struct use *uses,
                     unsigned count)
{
        q->number++;
        for (unsigned i = 0; i < count; i++) {
                struct access *a = need(p, malloc(sizeof(*a)));
                *a = (struct access){ uses[i].root->accesses,
                                      uses[i].begin,
                                      uses[i].end,
                                      uses[i].write,
                                      q,
                                      q->number,
                                      e };
                uses[i].root->accesses = a;
                if (e)
                        ok(p, clRetainEvent(e));
        }
        if (!e)
                return;
        if (rng_chance(&p->rng, 10)) {
                cl_int r = clSetEventCallback(e, CL_COMPLETE, on_complete, p);
                ok(p, r);
                p->callbacks_asked += r == CL_SUCCESS;
        }
        cl_event *slot = &p->recent[rng_below(&p->rng, RECENT)];
        if (*slot)
                ok(p, clReleaseEvent(*slot));
        *slot = e;
}

/* ---- what blocks ---------------------------------------------------------------------------- */

static void open_gates(struct program *p)
{
        while (p->gate_count) {
                cl_event gate = p->gates[--p->gate_count];
                ok(p, clSetUserEventStatus(gate, CL_COMPLETE));
                struct opened *o = need(p, malloc(sizeof(*o)));
                *o = (struct opened){ p->opened, gate };
                p->opened = o;
        }
}

/* Before a call that blocks: everything it could wait for is on its way. */
static void release_all(struct program *p)
{
        open_gates(p);
        for (unsigned i = 0; i < p->queue_count; i++)
                ok(p, clFlush(p->queues[i].q));
}

static void drop_accesses(struct program *p)
{
        for (unsigned i = 0; i < p->root_count; i++) {
                struct access *a;
                while ((a = p->roots[i].accesses)) {
                        p->roots[i].accesses = a->next;
                        if (a->event)
                                ok(p, clReleaseEvent(a->event));
                        free(a);
                }
        }
}

static void compare(struct program *p, const uint8_t *got, const uint8_t *expected, size_t size,
                    unsigned command, const char *what)
{
        for (size_t i = 0; i < size && !p->broken; i++)
                if (got[i] != expected[i])
                        sim_fail(p->sim, "command %u: %s: byte %zu of %zu is 0x%02x, not 0x%02x",
                                 command, what, i, size, got[i], expected[i]);
}

static void compare_pending(struct program *p)
{
        struct pending *r;
        while ((r = p->pending)) {
                p->pending = r->next;
                compare(p, r->got, r->expected, r->size, r->command, "read");
                free(r->got);
                free(r->expected);
                free(r);
        }
        struct opened *o;
        while ((o = p->opened)) {
                p->opened = o->next;
                ok(p, clReleaseEvent(o->event));
                free(o);
        }
        struct source *s;
        while ((s = p->sources)) {
                p->sources = s->next;
                free(s->data);
                free(s);
        }
}

static void finish_all(struct program *p)
{
        say(p, "%u finish all\n", p->command);
        release_all(p);
        for (unsigned i = 0; i < p->queue_count; i++)
                ok(p, clFinish(p->queues[i].q));
        for (unsigned i = 0; i < p->root_count; i++) {
                for (struct access *a = p->roots[i].accesses; a; a = a->next) {
                        cl_int status = 1;
                        if (!a->event)
                                continue;
                        ok(p, clGetEventInfo(a->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                             sizeof(status), &status, NULL));
                        /* Its server may be away: the session is over soon, and what was in it. */
                        for (unsigned n = 0; status > 0 && p->broken && p->params->restart; n++) {
                                sim_run(p->sim, 1000000);
                                if (n == 100000)
                                        fail(p, "still open", status);
                                ok(p, clGetEventInfo(a->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                     sizeof(status), &status, NULL));
                        }
                        if ((status > CL_COMPLETE && !p->params->broken) || (status && !p->broken))
                                fail(p, "not complete after clFinish", status);
                }
        }
        drop_accesses(p);
        if (!p->params->broken) /* else commands may be open, whatever clFinish was told */
                compare_pending(p);
}

/* ---- choices -------------------------------------------------------------------------------- */

static struct queue *any_queue(struct program *p)
{
        return &p->queues[rng_below(&p->rng, p->queue_count)];
}

static struct view *any_view(struct program *p)
{
        return &p->views[rng_below(&p->rng, p->view_count)];
}

static size_t any_length(struct program *p, size_t max)
{
        return rng_chance(&p->rng, 30) ? max : rng_range(&p->rng, 1, max);
}

/* A part of a view, in bytes. */
static struct use any_part(struct program *p, const struct view *v, bool write, size_t unit)
{
        size_t units = v->size / unit, n = any_length(p, units);
        size_t at = rng_below(&p->rng, units - n + 1);
        size_t begin = v->origin + at * unit;
        return (struct use){ v->root, begin, begin + n * unit, write };
}

static struct use whole(const struct view *v, bool write)
{
        return (struct use){ v->root, v->origin, v->origin + v->size, write };
}

/* Is the command on this view to be one on shared virtual memory? */
static bool as_svm(struct program *p, const struct view *v)
{
        return v->root->svm && rng_chance(&p->rng, 60);
}

/* ---- commands ------------------------------------------------------------------------------- */

static void do_write(struct program *p)
{
        struct queue *q = any_queue(p);
        struct view *v = any_view(p);
        struct use u = any_part(p, v, true, 1);
        size_t size = u.end - u.begin;
        bool blocking = rng_chance(&p->rng, 20);
        uint8_t *data = random_bytes(p, size);
        cl_event e, *want = event_for(p, q, &e);
        prepare(p, q, &u, 1);
        if (blocking)
                release_all(p);
        say(p, "%u write view %td [%zu, %zu) queue %td%s\n", p->command, v - p->views, u.begin,
            u.end, q - p->queues, blocking ? " blocking" : "");
        memcpy(u.root->truth + u.begin, data, size);
        if (as_svm(p, v))
                ok(p, clEnqueueSVMMemcpy(q->q, blocking, u.root->svm + u.begin, data, size,
                                         p->wait_count, waits(p), want));
        else
                ok(p, clEnqueueWriteBuffer(q->q, v->mem, blocking, u.begin - v->origin, size, data,
                                           p->wait_count, waits(p), want));
        enqueued(p, q, e, &u, 1);
        if (blocking) {
                memset(data, 0xEE, size); /* it is ours again */
                free(data);
        } else {
                keep(p, data);
        }
}

static void expect_read(struct program *p, uint8_t *got, const uint8_t *expected, size_t size,
                        bool now)
{
        if (now) {
                compare(p, got, expected, size, p->command, "blocking read");
                free(got);
                return;
        }
        struct pending *r = need(p, malloc(sizeof(*r)));
        *r = (struct pending){ p->pending, got, copy_of(p, expected, size), size, p->command };
        p->pending = r;
}

static void do_read(struct program *p)
{
        struct queue *q = any_queue(p);
        struct view *v = any_view(p);
        struct use u = any_part(p, v, false, 1);
        size_t size = u.end - u.begin;
        bool blocking = rng_chance(&p->rng, 20);
        uint8_t *got = need(p, calloc(1, size));
        cl_event e, *want = event_for(p, q, &e);
        prepare(p, q, &u, 1);
        if (blocking)
                release_all(p);
        say(p, "%u read view %td [%zu, %zu) queue %td%s\n", p->command, v - p->views, u.begin,
            u.end, q - p->queues, blocking ? " blocking" : "");
        if (as_svm(p, v))
                ok(p, clEnqueueSVMMemcpy(q->q, blocking, got, u.root->svm + u.begin, size,
                                         p->wait_count, waits(p), want));
        else
                ok(p, clEnqueueReadBuffer(q->q, v->mem, blocking, u.begin - v->origin, size, got,
                                          p->wait_count, waits(p), want));
        enqueued(p, q, e, &u, 1);
        expect_read(p, got, u.root->truth + u.begin, size, blocking);
}

static void do_fill(struct program *p)
{
        static const size_t sizes[] = { 1, 2, 4, 8, 16, 32, 64, 128 };
        struct queue *q = any_queue(p);
        struct view *v = any_view(p);
        size_t unit = sizes[rng_below(&p->rng, 8)];
        if (v->size < unit)
                return;
        struct use u = any_part(p, v, true, unit);
        uint8_t *pattern = random_bytes(p, unit);
        cl_event e, *want = event_for(p, q, &e);
        prepare(p, q, &u, 1);
        say(p, "%u fill view %td [%zu, %zu) by %zu queue %td\n", p->command, v - p->views, u.begin,
            u.end, unit, q - p->queues);
        for (size_t i = u.begin; i < u.end; i++)
                u.root->truth[i] = pattern[(i - u.begin) % unit];
        /* The address has to be a multiple of the pattern's size. */
        if (u.begin % unit == 0 && as_svm(p, v))
                ok(p, clEnqueueSVMMemFill(q->q, u.root->svm + u.begin, pattern, unit,
                                          u.end - u.begin, p->wait_count, waits(p), want));
        else
                ok(p, clEnqueueFillBuffer(q->q, v->mem, pattern, unit, u.begin - v->origin,
                                          u.end - u.begin, p->wait_count, waits(p), want));
        free(pattern);
        enqueued(p, q, e, &u, 1);
}

static void do_copy(struct program *p)
{
        struct queue *q = any_queue(p);
        struct view *from = any_view(p), *to = any_view(p);
        struct use u[2] = { any_part(p, from, false, 1), any_part(p, to, true, 1) };
        size_t size = u[0].end - u[0].begin, other = u[1].end - u[1].begin;
        size = size < other ? size : other;
        u[0].end = u[0].begin + size;
        u[1].end = u[1].begin + size;
        if (u[0].root == u[1].root && u[0].begin < u[1].end && u[1].begin < u[0].end)
                return;
        cl_event e, *want = event_for(p, q, &e);
        prepare(p, q, u, 2);
        say(p, "%u copy view %td [%zu, %zu) to view %td %zu queue %td\n", p->command,
            from - p->views, u[0].begin, u[0].end, to - p->views, u[1].begin, q - p->queues);
        memcpy(u[1].root->truth + u[1].begin, u[0].root->truth + u[0].begin, size);
        if (to->root->svm && as_svm(p, from))
                ok(p, clEnqueueSVMMemcpy(q->q, CL_FALSE, to->root->svm + u[1].begin,
                                         from->root->svm + u[0].begin, size, p->wait_count,
                                         waits(p), want));
        else
                ok(p, clEnqueueCopyBuffer(q->q, from->mem, to->mem, u[0].begin - from->origin,
                                          u[1].begin - to->origin, size, p->wait_count, waits(p),
                                          want));
        enqueued(p, q, e, u, 2);
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

static void do_rect(struct program *p)
{
        struct queue *q = any_queue(p);
        struct view *v = any_view(p);
        size_t region[3] = { rng_range(&p->rng, 1, 80), rng_range(&p->rng, 1, 20),
                             rng_range(&p->rng, 1, 3) };
        size_t b_origin[3], b_row, b_slice, h_origin[3], h_row, h_slice;
        any_box(p, SIZE_MAX, region, h_origin, &h_row, &h_slice);
        if (!any_box(p, v->size, region, b_origin, &b_row, &b_slice))
                return;
        size_t host_size = (h_origin[2] + region[2]) * h_slice + h_row;
        bool write = rng_chance(&p->rng, 50), blocking = rng_chance(&p->rng, 20);
        uint8_t *host = random_bytes(p, host_size);
        uint8_t *expected = copy_of(p, host, host_size);
        struct use u = whole(v, write);
        cl_event e, *want = event_for(p, q, &e);
        prepare(p, q, &u, 1);
        if (blocking)
                release_all(p);
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
                                               waits(p), want));
        else
                ok(p, clEnqueueReadBufferRect(q->q, v->mem, blocking, b_origin, h_origin, region,
                                              b_row, b_slice, h_row, h_slice, host, p->wait_count,
                                              waits(p), want));
        enqueued(p, q, e, &u, 1);
        if (write)
                keep(p, host);
        else
                expect_read(p, host, expected, host_size, blocking);
        free(expected);
}

static void do_copy_rect(struct program *p)
{
        struct queue *q = any_queue(p);
        struct view *from = any_view(p), *to = any_view(p);
        size_t region[3] = { rng_range(&p->rng, 1, 80), rng_range(&p->rng, 1, 20),
                             rng_range(&p->rng, 1, 3) };
        size_t f_origin[3], f_row, f_slice, t_origin[3], t_row, t_slice;
        if (from->root == to->root || !any_box(p, from->size, region, f_origin, &f_row, &f_slice) ||
            !any_box(p, to->size, region, t_origin, &t_row, &t_slice))
                return;
        struct use u[2] = { whole(from, false), whole(to, true) };
        cl_event e, *want = event_for(p, q, &e);
        prepare(p, q, u, 2);
        say(p, "%u copy rect view %td to view %td queue %td\n", p->command, from - p->views,
            to - p->views, q - p->queues);
        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                        memcpy(box_row(to->root->truth + to->origin, t_origin, t_row, t_slice, y,
                                       z),
                               box_row(from->root->truth + from->origin, f_origin, f_row, f_slice,
                                       y, z),
                               region[0]);
        ok(p, clEnqueueCopyBufferRect(q->q, from->mem, to->mem, f_origin, t_origin, region, f_row,
                                      f_slice, t_row, t_slice, p->wait_count, waits(p), want));
        enqueued(p, q, e, u, 2);
}

/* Views in one kernel are the same or do not meet. */
static bool meets(const struct view *a, const struct view *b)
{
        return a->root == b->root && a->origin < b->origin + b->size &&
               b->origin < a->origin + a->size && (a->origin != b->origin || a->size != b->size);
}

static bool choose_args(struct program *p, struct kernel *k)
{
        struct view args[REGISTRY_ARGS_MAX] = { 0 };
        for (unsigned i = 0; k->r->args[i].name; i++) {
                if (!k->r->args[i].buffer)
                        continue;
                args[i] = *any_view(p);
                if (args[i].size < k->r->args[i].size)
                        return false;
                for (unsigned n = 0; n < i; n++)
                        if (k->r->args[n].buffer && meets(&args[i], &args[n]))
                                return false;
        }
        for (unsigned i = 0; k->r->args[i].name; i++) {
                if (k->r->args[i].buffer) {
                        k->args[i] = args[i];
                        k->pointers[i] = as_svm(p, &args[i]);
                        if (k->pointers[i])
                                ok(p, clSetKernelArgSVMPointer(k->k, i,
                                                               args[i].root->svm + args[i].origin));
                        else
                                ok(p, clSetKernelArg(k->k, i, sizeof(cl_mem), &args[i].mem));
                } else {
                        k->values[i] = (uint32_t)rng_u64(&p->rng);
                        ok(p, clSetKernelArg(k->k, i, sizeof(uint32_t), &k->values[i]));
                }
        }
        k->set = true;
        return true;
}

/* The same again and again, each time after the time before. */
static void run_chain(struct program *p, struct queue *q, struct kernel *k,
                      const struct registry_launch *l, const struct use *uses, unsigned count,
                      cl_event before)
{
        if (rng_chance(&p->rng, 50)) { /* what it waits for is complete, or in flight */
                release_all(p);
                sim_run(p->sim, rng_range(&p->rng, 1, 20000000));
        }
        for (uint64_t i = rng_range(&p->rng, 1, 16); i-- && before;) {
                cl_event e = NULL;
                p->wait_count = 0;
                wait_for(p, before);
                if (k->r->run(l) != CL_SUCCESS)
                        fail(p, "the oracle refuses a kernel", 0);
                ok(p, clEnqueueNDRangeKernel(q->q, k->k, l->dims, l->offset, l->global, NULL,
                                             p->wait_count, waits(p), &e));
                enqueued(p, q, e, uses, count);
                before = e;
        }
}

static void do_kernel(struct program *p)
{
        struct queue *q = any_queue(p);
        struct kernel *k = &p->kernels[rng_below(&p->rng, p->kernel_count)];
        struct use uses[REGISTRY_ARGS_MAX];
        unsigned count = 0;
        /* With the arguments of the launch before, sometimes. */
        if ((!k->set || rng_chance(&p->rng, 70)) && !choose_args(p, k))
                return;
        size_t items = SIZE_MAX;
        struct registry_launch l = { .dims = (unsigned)rng_range(&p->rng, 1, 3) };
        for (unsigned i = 0; k->r->args[i].name; i++) {
                const struct view *v = &k->args[i];
                if (!k->r->args[i].buffer) {
                        l.args[i] = (struct registry_value){ &k->values[i], 8 };
                        continue;
                }
                bool scalar = !strcmp(k->r->args[i].name, "count");
                size_t have = v->size / k->r->args[i].size;
                items = !scalar && have < items ? have : items;
                bool write = k->r->args[i].access != REGISTRY_IN;
                /* With a pointer, the kernel may use all of the allocation. */
                uses[count++] = k->pointers[i] ? (struct use){ v->root, 0, v->root->size, write }
                                               : whole(v, write);
                l.args[i] = (struct registry_value){ v->root->truth + v->origin, v->size };
        }
        items = items == SIZE_MAX ? 8 : items;
        size_t n = any_length(p, items);
        l.offset[0] = rng_chance(&p->rng, 50) ? 0 : rng_below(&p->rng, items - n + 1);
        for (unsigned i = 0; i < 3; i++)
                l.global[i] = 1;
        for (unsigned i = 1; i < l.dims && n > 1; i++) { /* the same work in more dimensions */
                size_t side = rng_range(&p->rng, 1, n < 8 ? n : 8);
                l.global[i] = side;
                n /= side;
        }
        l.global[0] = n;
        cl_event e, *want = event_for(p, q, &e);
        prepare(p, q, uses, count);
        say(p, "%u %s %zux%zux%zu at %zu queue %td\n", p->command, k->r->name, l.global[0],
            l.global[1], l.global[2], l.offset[0], q - p->queues);
        if (k->r->run(&l) != CL_SUCCESS)
                fail(p, "the oracle refuses a kernel", 0);
        ok(p, clEnqueueNDRangeKernel(q->q, k->k, l.dims,
                                     l.offset[0] || rng_chance(&p->rng, 30) ? l.offset : NULL,
                                     l.global, NULL, p->wait_count, waits(p), want));
        enqueued(p, q, e, uses, count);
        if (!q->in_order && rng_chance(&p->rng, 50))
                run_chain(p, q, k, &l, uses, count, e);
}

static void do_migrate(struct program *p)
{
        struct queue *q = any_queue(p);
        struct view *v = any_view(p);
        struct use u = whole(v, true); /* nobody else may use it meanwhile */
        cl_event e, *want = event_for(p, q, &e);
        cl_mem_migration_flags flags = rng_chance(&p->rng, 20) ? CL_MIGRATE_MEM_OBJECT_HOST : 0;
        prepare(p, q, &u, 1);
        say(p, "%u migrate view %td queue %td\n", p->command, v - p->views, q - p->queues);
        if (as_svm(p, v)) {
                const void *at = v->root->svm + v->origin;
                ok(p, clEnqueueSVMMigrateMem(q->q, 1, &at, &v->size, flags, p->wait_count, waits(p),
                                             want));
        } else {
                ok(p, clEnqueueMigrateMemObjects(q->q, 1, &v->mem, flags, p->wait_count, waits(p),
                                                 want));
        }
        enqueued(p, q, e, &u, 1);
}

static void do_marker(struct program *p)
{
        struct queue *q = any_queue(p);
        bool barrier = rng_chance(&p->rng, 60);
        cl_event e, *want = event_for(p, q, &e);
        p->wait_count = 0;
        say(p, "%u %s queue %td\n", p->command, barrier ? "barrier" : "marker", q - p->queues);
        if (barrier)
                ok(p, clEnqueueBarrierWithWaitList(q->q, 0, NULL, want));
        else
                ok(p, clEnqueueMarkerWithWaitList(q->q, 0, NULL, want));
        if (barrier)
                q->barrier = q->number;
        enqueued(p, q, e, NULL, 0);
}

static void do_map(struct program *p)
{
        static const cl_map_flags kinds[] = { CL_MAP_READ, CL_MAP_WRITE, CL_MAP_READ | CL_MAP_WRITE,
                                              CL_MAP_WRITE_INVALIDATE_REGION };
        struct queue *q = any_queue(p);
        struct view *v = any_view(p);
        cl_map_flags flags = kinds[rng_below(&p->rng, 4)];
        bool write = flags != CL_MAP_READ, blocking = rng_chance(&p->rng, 70);
        struct use u = any_part(p, v, write, 1);
        size_t size = u.end - u.begin;
        uint8_t *truth = u.root->truth + u.begin;
        cl_event e;
        cl_int err;
        prepare(p, q, &u, 1);
        release_all(p);
        say(p, "%u map view %td [%zu, %zu) flags %d queue %td\n", p->command, v - p->views, u.begin,
            u.end, (int)flags, q - p->queues);
        bool svm = as_svm(p, v);
        uint8_t *m;
        if (svm) {
                m = u.root->svm + u.begin;
                err = clEnqueueSVMMap(q->q, blocking, flags, m, size, p->wait_count, waits(p), &e);
                m = err == CL_SUCCESS ? m : NULL;
        } else {
                m = clEnqueueMapBuffer(q->q, v->mem, blocking, flags, u.begin - v->origin, size,
                                       p->wait_count, waits(p), &e, &err);
        }
        ok(p, err);
        if (!m)
                return;
        if (!blocking)
                ok(p, clWaitForEvents(1, &e));
        enqueued(p, q, e, &u, 1);
        if (u.root->host && m != u.root->host + u.begin)
                fail(p, "the mapping is not in host_ptr", 0);
        if (flags != CL_MAP_WRITE_INVALIDATE_REGION)
                compare(p, m, truth, size, p->command, "map");
        if (write) {
                uint8_t *data = random_bytes(p, size);
                size_t from = 0, to = size;
                if (flags != CL_MAP_WRITE_INVALIDATE_REGION) { /* only some of it */
                        from = rng_below(&p->rng, size);
                        to = rng_range(&p->rng, from, size);
                }
                memcpy(m + from, data + from, to - from);
                memcpy(truth + from, data + from, to - from);
                free(data);
        }
        struct queue *uq = rng_chance(&p->rng, 70) ? q : any_queue(p);
        cl_event *want = event_for(p, uq, &e);
        p->wait_count = 0;
        if (svm)
                ok(p, clEnqueueSVMUnmap(uq->q, m, 0, NULL, want));
        else
                ok(p, clEnqueueUnmapMemObject(uq->q, v->mem, m, 0, NULL, want));
        enqueued(p, uq, e, &u, 1);
}

static void do_wait(struct program *p)
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
                release_all(p);
                ok(p, clWaitForEvents(n, some));
                break;
        case 1: {
                struct queue *q = any_queue(p);
                say(p, "%u finish queue %td\n", p->command, q - p->queues);
                release_all(p);
                ok(p, clFinish(q->q));
                break;
        }
        case 2:
                ok(p, clFlush(any_queue(p)->q));
                break;
        case 3:
                open_gates(p);
                break;
        default:
                sim_run(p->sim, rng_below(&p->rng, 3000000));
                break;
        }
}

/* ---- objects -------------------------------------------------------------------------------- */

static void CL_CALLBACK on_destroyed(cl_mem m, void *user)
{
        struct program *p = user;
        p->destroyed++;
}

static void root_new(struct program *p, struct root *r)
{
        cl_int err;
        size_t log2 = rng_range(&p->rng, 8, SIZE_MAX_LOG2);
        r->size = rng_range(&p->rng, 200, (size_t)1 << log2);
        r->truth = random_bytes(p, r->size);
        r->accesses = NULL;
        r->host = NULL;
        r->svm = NULL;
        cl_mem_flags flags = CL_MEM_READ_WRITE;
        void *host = NULL;
        switch (rng_below(&p->rng, 5)) {
        case 0:
                flags |= CL_MEM_COPY_HOST_PTR;
                host = r->truth;
                break;
        case 1:
                flags |= CL_MEM_USE_HOST_PTR;
                host = r->host = copy_of(p, r->truth, r->size);
                sim_keep(p->sim, host); /* until the destructor callback it is the buffer's */
                break;
        case 2:
                flags |= CL_MEM_ALLOC_HOST_PTR;
                break;
        case 3:
                r->svm = clSVMAlloc(p->context, CL_MEM_READ_WRITE, r->size, 0);
                if (!r->svm && !p->broken)
                        fail(p, "no shared virtual memory", (long)r->size);
                break;
        default:
                break;
        }
        r->mem = clCreateBuffer(p->context, flags | (r->svm ? CL_MEM_USE_HOST_PTR : 0), r->size,
                                r->svm ? r->svm : host, &err);
        ok(p, err);
        if (!p->broken) /* else it might be called after the program's end */
                ok(p, clSetMemObjectDestructorCallback(r->mem, on_destroyed, p));
        p->views[p->view_count++] = (struct view){ r->mem, r, 0, r->size };
        if (host)
                return;
        struct queue *q = any_queue(p);
        ok(p, clEnqueueWriteBuffer(q->q, r->mem, CL_TRUE, 0, r->size, r->truth, 0, NULL, NULL));
        ok(p, clFinish(q->q)); /* a blocking write only gives its memory back */
}

static void sub_new(struct program *p)
{
        struct root *r = &p->roots[rng_below(&p->rng, p->root_count)];
        cl_uint align_bits = 0;
        cl_int err;
        for (cl_uint i = 0; i < p->device_count; i++) {
                cl_uint bits = 0;
                ok(p, clGetDeviceInfo(p->devices[i], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits),
                                      &bits, NULL));
                align_bits = bits > align_bits ? bits : align_bits;
        }
        size_t align = align_bits < 8 ? 1 : align_bits / 8, slots = r->size / align;
        if (slots < 2)
                return;
        size_t origin = rng_below(&p->rng, slots) * align;
        cl_buffer_region region = { origin, rng_range(&p->rng, 1, r->size - origin) };
        cl_mem m = clCreateSubBuffer(r->mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                     &region, &err);
        ok(p, err);
        p->views[p->view_count++] = (struct view){ m, r, region.origin, region.size };
}

static void queues_new(struct program *p)
{
        p->queue_count = (unsigned)rng_range(&p->rng, 1, QUEUES);
        for (unsigned i = 0; i < p->queue_count; i++) {
                struct queue *q = &p->queues[i];
                cl_int err;
                q->in_order = rng_chance(&p->rng, 50);
                cl_queue_properties props[3] = { CL_QUEUE_PROPERTIES };
                props[1] = (q->in_order ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) |
                           (rng_chance(&p->rng, 30) ? CL_QUEUE_PROFILING_ENABLE : 0);
                q->q = clCreateCommandQueueWithProperties(
                        p->context, p->devices[rng_below(&p->rng, p->device_count)], props, &err);
                ok(p, err);
        }
}

static void kernels_new(struct program *p)
{
        static const char *const names[] = { "pocl.copy.i8",  "pocl.add.i32",  "pocl.mul.i32",
                                             "pocl.countred", "pocl.add.i8",   "pocl.mul.i16",
                                             "spancl.noop",   "spancl.inc.i32" };
        char all[512] = "";
        cl_int err;
        for (size_t i = 0; i < array_size(names); i++) {
                strcat(all, i ? ";" : "");
                strcat(all, names[i]);
        }
        p->program = clCreateProgramWithBuiltInKernels(p->context, p->device_count, p->devices, all,
                                                       &err);
        ok(p, err);
        ok(p, clBuildProgram(p->program, p->device_count, p->devices, NULL, NULL, NULL));
        for (size_t i = 0; i < array_size(names); i++) {
                struct kernel *k = &p->kernels[p->kernel_count++];
                k->r = registry_find(names[i], strlen(names[i]));
                k->k = clCreateKernel(p->program, names[i], &err);
                ok(p, err);
        }
}

static void begin(struct program *p)
{
        cl_int err;
        cl_device_id all[DEVICES];
        cl_uint count = 0;
        ok(p, clGetDeviceIDs(sim_platform(p->sim), CL_DEVICE_TYPE_CUSTOM, DEVICES, all, &count));
        for (cl_uint i = 0; i < count && i < DEVICES; i++)
                if (rng_chance(&p->rng, 80) || (i + 1 == count && !p->device_count))
                        p->devices[p->device_count++] = all[i];
        p->context = clCreateContext(NULL, p->device_count, p->devices, NULL, NULL, &err);
        ok(p, err);
        queues_new(p);
        p->root_count = (unsigned)rng_range(&p->rng, 1, ROOTS);
        for (unsigned i = 0; i < p->root_count; i++)
                root_new(p, &p->roots[i]);
        for (uint64_t n = rng_below(&p->rng, SUBS + 1); n; n--)
                sub_new(p);
        kernels_new(p);
}

static void check_all(struct program *p)
{
        finish_all(p);
        for (unsigned i = 0; i < p->root_count; i++) {
                struct root *r = &p->roots[i];
                uint8_t *got = need(p, malloc(r->size));
                ok(p, clEnqueueReadBuffer(p->queues[0].q, r->mem, CL_TRUE, 0, r->size, got, 0, NULL,
                                          NULL));
                compare(p, got, r->truth, r->size, p->command, "whole buffer");
                free(got);
        }
}

static void end(struct program *p)
{
        mem_fail_at(0);
        check_all(p);
        if (p->params->broken) {
                for (unsigned i = 0; i < sim_servers(p->sim); i++)
                        sim_kill_server(p->sim, i);
                sim_run(p->sim, 1000000000);
                compare_pending(p);
        }
        sim_run(p->sim, 1000);
        /* What is open ends with the session that is over. */
        for (unsigned n = 0;
             p->params->restart && p->callbacks_called != p->callbacks_asked && n < 100000; n++)
                sim_run(p->sim, 1000000);
        /* Also of what failed; without memory one may be lost, which is logged. */
        if (p->callbacks_called != p->callbacks_asked && !p->params->no_memory)
                fail(p, "callbacks missing", (long)p->callbacks_asked - p->callbacks_called);
        for (unsigned i = 0; i < RECENT; i++)
                if (p->recent[i])
                        ok(p, clReleaseEvent(p->recent[i]));
        for (unsigned i = 0; i < p->kernel_count; i++)
                ok(p, clReleaseKernel(p->kernels[i].k));
        for (unsigned i = p->view_count; i-- > 0;)
                ok(p, clReleaseMemObject(p->views[i].mem));
        for (unsigned i = 0; i < p->root_count; i++) {
                free(p->roots[i].truth);
                clSVMFree(p->context, p->roots[i].svm);
        }
        for (unsigned i = 0; i < p->queue_count; i++)
                ok(p, clReleaseCommandQueue(p->queues[i].q));
        /* Transfers of commands that failed end with their server. */
        for (unsigned i = 0; i < sim_servers(p->sim) && p->broken; i++) {
                if (p->params->restart)
                        sim_restart_server(p->sim, i, NULL);
                else
                        sim_kill_server(p->sim, i);
        }
        /* A link that was cut just now comes back first. */
        for (unsigned n = 0;
             n < 100 && (!n || (p->destroyed != p->root_count && !p->params->broken)); n++)
                sim_run(p->sim, 1000000000);
        if (p->destroyed != p->root_count && !p->params->broken)
                fail(p, "destructors missing", (long)p->root_count - p->destroyed);
        ok(p, clReleaseProgram(p->program));
        ok(p, clReleaseContext(p->context));
}

static void break_something(struct program *p)
{
        unsigned n = sim_servers(p->sim), i = (unsigned)rng_below(&p->rng, n);
        if (p->params->restart) {
                say(p, "%u restart server %u\n", p->command, i);
                sim_restart_server(p->sim, i, NULL);
        } else if (n > 1 && rng_chance(&p->rng, 40)) {
                unsigned k = (i + 1) % n;
                say(p, "%u cut the link between servers %u and %u\n", p->command, i, k);
                sim_cut_peers(p->sim, i, k);
        } else {
                say(p, "%u kill server %u\n", p->command, i);
                sim_kill_server(p->sim, i);
        }
        p->broken = true;
}

void program_run(struct sim *sim, const struct program_params *params)
{
        static void (*const actions[])(struct program *) = {
                do_write, do_read, do_fill,    do_copy,   do_rect,   do_copy_rect,
                do_map,   do_wait, do_kernel,  do_kernel, do_kernel, do_kernel,
                do_write, do_read, do_migrate, do_marker,
        };
        struct program p = {
                .sim = sim, .rng = { params->seed }, .params = params, .broken = params->broken
        };
        unsigned commands =
                params->commands ? params->commands : (unsigned)rng_range(&p.rng, 1, 120);
        begin(&p);
        for (p.command = 1; p.command <= commands; p.command++) {
                actions[rng_below(&p.rng, array_size(actions))](&p);
                if (rng_chance(&p.rng, 3))
                        finish_all(&p);
                if (params->check_each)
                        check_all(&p);
                if (params->no_memory)
                        mem_fail_at(rng_below(&p.rng, 40));
                if (p.command == params->break_after)
                        break_something(&p);
        }
        end(&p);
}
