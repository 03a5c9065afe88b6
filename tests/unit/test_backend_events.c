/* The order in which commands run, and the reports of their completions: over each backend. */
#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/native/completion_flag.h"
#include "backend/native/notify.h"
#include "base/mem.h"
#include "support/backends.h"

/* ---- order -------------------------------------------------------------------------------------- */

/* On an out-of-order queue and a second queue, dependencies are all that keeps the order. */
TEST(dependencies_order_a_chain_over_queues)
{
        struct fixture *f = fixture(state);
        enum { LINKS = 100 };
        struct backend_queue *q[2] = { fixture_queue(f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
                                       fixture_queue(f, 0) };
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        struct backend_buffer *m[2] = { fixture_buffer(f, BYTES), fixture_buffer(f, BYTES) };
        int zeros[COUNT] = { 0 }, out[COUNT];
        execute(f, write_of(m[0], 0, zeros, BYTES));

        struct backend_event *events[2 * LINKS];
        for (int i = 0; i < LINKS; i++) {
                set_inc(f, k, m[i % 2], i);
                struct backend_command launch = launch_all(k);
                struct backend_command copy = { .op = BACKEND_COPY,
                                                .buffer = m[(i + 1) % 2],
                                                .source = m[i % 2],
                                                .size = BYTES };
                launch.deps = i ? &events[2 * i - 1] : NULL;
                launch.dep_count = i ? 1 : 0;
                events[2 * i] = fixture_submit(f, q[i % 2], launch);
                copy.deps = &events[2 * i];
                copy.dep_count = 1;
                events[2 * i + 1] = fixture_submit(f, q[(i / 2) % 2], copy);
        }
        struct backend_command last = read_of(m[LINKS % 2], 0, out, BYTES);
        last.deps = events; /* more than a few */
        last.dep_count = 2 * LINKS;
        execute(f, last);
        assert_int_equal(out[0], LINKS * (LINKS - 1) / 2);
        assert_int_equal(out[COUNT - 1], LINKS * (LINKS - 1) / 2);

        for (int i = 0; i < 2 * LINKS; i++)
                f->ops->event.release(events[i]);
        for (int i = 0; i < 2; i++) {
                f->ops->buffer.release(m[i]);
                f->ops->queue.release(q[i]);
        }
        f->ops->kernel.release(k);
        unbuild(f, &x);
}

TEST(markers_and_barriers_wait_for_what_came_before)
{
        struct fixture *f = fixture(state);
        struct backend_queue *q = fixture_queue(f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        struct backend_buffer *m = fixture_buffer(f, BYTES);
        int out[COUNT];
        static const int zero = 0;
        set_inc(f, k, m, 3);
        struct backend_command barrier = { .op = BACKEND_BARRIER };
        struct backend_event *e[5] = {
                fixture_submit(f, q,
                               (struct backend_command){ .op = BACKEND_FILL,
                                                         .buffer = m,
                                                         .pattern = &zero,
                                                         .pattern_size = 4,
                                                         .size = BYTES }),
                fixture_submit(f, q, barrier),
                fixture_submit(f, q, launch_all(k)),
                fixture_submit(f, q, barrier),
                fixture_submit(f, q, read_of(m, 0, out, BYTES)),
        };
        assert_int_equal(run_on(f, q, (struct backend_command){ .op = BACKEND_MARKER }),
                         CL_SUCCESS);
        for (int i = 0; i < COUNT; i++)
                assert_int_equal(out[i], 3);
        assert_int_equal(
                run_on(f, q,
                       (struct backend_command){ .op = BACKEND_MARKER, .deps = e, .dep_count = 5 }),
                CL_SUCCESS);
        for (int i = 0; i < 5; i++)
                f->ops->event.release(e[i]);
        f->ops->queue.release(q);
        f->ops->kernel.release(k);
        f->ops->buffer.release(m);
        unbuild(f, &x);
}

/* ---- lifetimes, reports, times ------------------------------------------------------------------ */

TEST(commands_in_flight_keep_what_they_use)
{
        struct fixture *f = fixture(state);
        struct backend_queue *q = fixture_queue(f, 0);
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        struct backend_buffer *m = fixture_buffer(f, BYTES);
        int zeros[COUNT] = { 0 }, out[COUNT] = { 0 };
        struct report r = { 0 };
        set_inc(f, k, m, 1);
        f->ops->event.release(fixture_submit(f, q, write_of(m, 0, zeros, BYTES)));
        for (int i = 0; i < 50; i++)
                f->ops->event.release(fixture_submit(f, q, launch_all(k)));
        struct backend_command last = read_of(m, 0, out, BYTES);
        last.cookie = &r;
        f->ops->event.release(fixture_submit(f, q, last));
        f->ops->kernel.release(k);
        f->ops->buffer.release(m);
        unbuild(f, &x);
        f->ops->queue.release(q);
        assert_int_equal(report_wait(&r).status, CL_SUCCESS);
        assert_int_equal(out[7], 50);
}

TEST(close_waits_for_commands_in_flight)
{
        struct fixture *f = fixture(state);
        uint8_t *data = calloc(1, 1 << 20);
        struct backend_buffer *m = fixture_buffer(f, 1 << 20);
        struct report r[20] = { 0 };
        for (int i = 0; i < 20; i++) {
                struct backend_command c = read_of(m, 0, data, 1 << 20);
                c.cookie = i % 2 ? &r[i] : NULL;
                f->ops->event.release(fixture_submit(f, f->queue, c));
        }
        f->ops->buffer.release(m);
        f->ops->queue.release(f->queue);
        f->ops->close(f->b);
        f->b = NULL;
        for (int i = 1; i < 20; i += 2)
                assert_true(r[i].done);
        free(data); /* nobody writes there any more: a sanitizer would tell */
}

TEST(each_command_with_a_cookie_is_reported_once)
{
        struct fixture *f = fixture(state);
        enum { MANY = 500 };
        struct report r[MANY] = { 0 };
        unsigned before = atomic_load(&reports_all);
        for (int i = 0; i < MANY; i++) {
                struct backend_command c = { .op = BACKEND_MARKER, .cookie = &r[i] };
                f->ops->event.release(fixture_submit(f, f->queue, c));
        }
        f->ops->queue.flush(f->queue);
        for (int i = 0; i < MANY; i++)
                assert_int_equal(report_wait(&r[i]).status, CL_SUCCESS);
        assert_int_equal(atomic_load(&reports_all), before + MANY);
        assert_int_equal(atomic_load(&reports_inside), 0);
}

/* As the engine does it: operations run under a lock, which `complete` takes, too, and from there the
 * next commands are submitted. */
struct relay {
        struct fixture *f;
        struct backend_queue *queues[2];
        struct backend_buffer *buffer;
        pthread_mutex_t engine;
        pthread_cond_t ended;
        struct backend_event *last; /* dependency of the next command */
        unsigned submitted, ended_count, failed;
        uint8_t data[64];
};

enum { RELAY_COMMANDS = 3000 };

static void relay_submit(struct relay *r)
{
        static int cookie;
        struct backend_command c = write_of(r->buffer, 0, r->data, sizeof(r->data));
        c.cookie = &cookie;
        c.deps = r->last ? &r->last : NULL;
        c.dep_count = r->last ? 1 : 0;
        struct backend_event *e = NULL;
        struct backend_queue *q = r->queues[r->submitted++ % 2];
        if (try_submit(r->f, q, c, &e) != CL_SUCCESS) {
                r->failed++;
                r->ended_count++;
                return;
        }
        if (r->last)
                r->f->ops->event.release(r->last);
        r->last = e;
        if (r->submitted % 4 == 0)
                r->f->ops->queue.flush(q);
}

static void on_relay_complete(void *user, void *cookie, cl_int status,
                              const struct backend_times *t)
{
        struct relay *r = user;
        pthread_mutex_lock(&r->engine);
        r->failed += status != CL_SUCCESS || in_backend;
        r->ended_count++;
        if (r->submitted < RELAY_COMMANDS)
                relay_submit(r);
        pthread_cond_signal(&r->ended);
        pthread_mutex_unlock(&r->engine);
}

TEST(completions_come_while_somebody_polls_and_when_he_has_stopped)
{
        struct fixture *f = fixture(state);
        const struct backend_ops *ops = f->ops;
        if (!ops->poll)
                skip();
        struct backend_queue *queues[] = {
                f->queue, fixture_queue(f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        };
        struct backend_event *events[3 * array_size(queues)];
        struct report r[3 * array_size(queues)] = { 0 };
        /* Polled for, left over to the backend, and submitted when nobody polls. */
        for (size_t i = 0; i < array_size(r); i++) {
                struct backend_queue *q = queues[i % array_size(queues)];
                size_t phase = i / array_size(queues);
                struct backend_command c = { .op = BACKEND_MARKER, .cookie = &r[i] };
                ops->poll(f->b, phase == 2);
                events[i] = fixture_submit(f, q, c);
                ops->queue.flush(q);
                while (phase == 0 && !report_done(&r[i]))
                        ops->poll(f->b, false);
        }
        for (size_t i = 0; i < array_size(r); i++) {
                assert_int_equal(report_wait(&r[i]).status, CL_SUCCESS);
                ops->event.release(events[i]);
        }
        ops->queue.release(queues[1]);
}

TEST(completions_can_be_asked_for_later)
{
        struct fixture *f = fixture(state);
        if (!f->ops->event.report)
                skip();
        struct backend_queue *q = fixture_queue(f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        struct backend_buffer *m = fixture_buffer(f, 64);
        uint8_t bytes[64] = { 1 };
        struct report r[3] = { 0 };
        struct backend_event *e[2];
        e[0] = fixture_submit(f, q, write_of(m, 0, bytes, 64));
        struct backend_event *const deps[] = { e[0] };
        struct backend_command second = read_of(m, 0, bytes, 64);
        second.deps = deps;
        second.dep_count = 1;
        e[1] = fixture_submit(f, q, second);
        in_backend = true;
        assert_int_equal(f->ops->event.report(q, e[1], &r[0]), CL_SUCCESS);
        in_backend = false;
        f->ops->queue.flush(q);
        assert_int_equal(report_wait(&r[0]).status, CL_SUCCESS);
        /* A complete command can be asked for, too. */
        in_backend = true;
        assert_int_equal(f->ops->event.status(e[0]), CL_COMPLETE);
        assert_int_equal(f->ops->event.report(q, e[0], &r[1]), CL_SUCCESS);
        in_backend = false;
        assert_int_equal(report_wait(&r[1]).status, CL_SUCCESS);
        for (size_t i = 0; i < 2; i++)
                f->ops->event.release(e[i]);
        f->ops->buffer.release(m);
        f->ops->queue.release(q);
}

TEST(completions_may_wait_for_operations_and_submit_more)
{
        struct fixture *f = fixture(state);
        struct relay r = { .engine = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };
        struct config_options options = {
                .values = { [CONFIG_almaif] = backend_places[1], [CONFIG_driver_calls] = "thread" }
        };
        struct backend_params params = { .options = &options,
                                         .parts = backend_parts,
                                         .complete = on_relay_complete,
                                         .user = &r };
        struct fixture g = { .ops = f->ops, .native = f->native };
        assert_int_equal(f->ops->open(&params, &g.b), 0);
        r.f = &g;
        r.queues[0] = fixture_queue(&g, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        r.queues[1] = fixture_queue(&g, 0);
        r.buffer = fixture_buffer(&g, sizeof(r.data));

        pthread_mutex_lock(&r.engine);
        while (r.submitted < RELAY_COMMANDS) {
                relay_submit(&r);
                pthread_mutex_unlock(&r.engine);
                sched_yield();
                pthread_mutex_lock(&r.engine);
        }
        for (int i = 0; i < 2; i++)
                g.ops->queue.flush(r.queues[i]);
        while (r.ended_count < r.submitted)
                pthread_cond_wait(&r.ended, &r.engine);
        pthread_mutex_unlock(&r.engine);
        assert_int_equal(r.failed, 0);

        g.ops->event.release(r.last);
        g.ops->buffer.release(r.buffer);
        for (int i = 0; i < 2; i++)
                g.ops->queue.release(r.queues[i]);
        g.ops->close(g.b);
}

static uint64_t now_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

TEST(times_are_this_hosts_when_asked_for)
{
        struct fixture *f = fixture(state);
        struct backend_queue *q = fixture_queue(f, CL_QUEUE_PROFILING_ENABLE);
        struct backend_buffer *m = fixture_buffer(f, BYTES);
        uint8_t data[BYTES] = { 0 };
        for (int i = 0; i < 10; i++) {
                struct report r = { 0 };
                struct backend_command c = write_of(m, 0, data, BYTES);
                c.cookie = &r;
                uint64_t before = now_ns();
                struct backend_event *e = fixture_submit(f, q, c);
                f->ops->queue.flush(q);
                struct backend_times t = report_wait(&r).times;
                uint64_t after = now_ns();
                assert_true(t.submit_ns <= t.start_ns && t.start_ns <= t.end_ns);
                assert_true(t.submit_ns >= before);
                assert_true(t.end_ns <= after);
                f->ops->event.release(e);
        }
        struct report r = { 0 };
        struct backend_command c = write_of(m, 0, data, BYTES);
        c.cookie = &r;
        f->ops->event.release(fixture_submit(f, f->queue, c));
        f->ops->queue.flush(f->queue);
        struct backend_times t = report_wait(&r).times;
        assert_int_equal(t.submit_ns | t.start_ns | t.end_ns, 0);
        f->ops->buffer.release(m);
        f->ops->queue.release(q);
}

/* Everything once, with the n-th allocation failing; false: an error came out of it. */
static bool use_all(struct fixture *f, unsigned long n)
{
        const char *name = inc_name(f);
        struct backend_queue *q = NULL;
        struct backend_buffer *m = NULL;
        struct backend_program *p = NULL;
        struct backend_kernel *k = NULL;
        struct backend_event *e[40] = { NULL };
        struct buf info = { 0 }, parts = { 0 };
        struct report r = { 0 };
        unsigned device = 0, submitted = 0;
        uint8_t pattern = 0;
        assert_int_equal(info_put(&parts, INFO_PART, f->native ? inc_source : name,
                                  strlen(f->native ? inc_source : name)),
                         0);
        struct fixture g = { .ops = f->ops, .native = f->native };
        mem_fail_at(n);
        bool ok =
                open_backend(g.ops, NULL, 1, &g.b) == 0 && g.ops->device.info(g.b, 0, &info) == 0 &&
                g.ops->queue.create(g.b, 0, 0, &q) == CL_SUCCESS &&
                g.ops->buffer.create(g.b, 0, 0, BYTES, &m) == CL_SUCCESS &&
                g.ops->program.create(g.b, 0, g.native ? 0 : 3, &device, 1, block_of(&parts), &p) ==
                        CL_SUCCESS &&
                g.ops->program.build(p, &device, 1, "-Dsize_t_like=ulong", &info) == CL_SUCCESS &&
                g.ops->program.binary(p, 0, &info) == CL_SUCCESS &&
                g.ops->kernel.create(p, name, &k) == CL_SUCCESS &&
                fixture_set_buffer(&g, k, 0, m) == CL_SUCCESS &&
                set_value(&g, k, 1, "1234", 4) == CL_SUCCESS &&
                try_submit(&g, q, launch_all(k), &e[submitted]) == CL_SUCCESS && ++submitted;
        struct backend_command fill = { .op = BACKEND_FILL,
                                        .buffer = m,
                                        .pattern = &pattern,
                                        .pattern_size = 1,
                                        .size = 1,
                                        .deps = e };
        for (; ok && submitted < array_size(e); submitted += ok) {
                fill.dep_count = submitted;
                fill.cookie = submitted + 1 == array_size(e) ? &r : NULL;
                ok = try_submit(&g, q, fill, &e[submitted]) == CL_SUCCESS;
        }
        mem_fail_at(0);
        if (ok) {
                g.ops->queue.flush(q);
                assert_int_equal(report_wait(&r).status, CL_SUCCESS);
        }
        for (unsigned i = 0; i < submitted; i++)
                g.ops->event.release(e[i]);
        g.ops->kernel.release(k);
        g.ops->program.release(p);
        g.ops->buffer.release(m);
        if (q)
                g.ops->queue.release(q);
        if (g.b)
                g.ops->close(g.b);
        buf_fini(&info);
        buf_fini(&parts);
        return ok;
}

TEST(each_allocation_may_fail)
{
        struct fixture *f = fixture(state);
        /* some failures are survived: what they leave out is optional */
        unsigned long n = 0;
        for (int good = 0; good < 5 && n < 1000;)
                good = use_all(f, ++n) ? good + 1 : 0;
        assert_in_range(n, 20, 999);
}

static void end_by_waiting(struct fixture *f, enum completion completion)
{
        /* The same backend, with completions noticed the other way. */
        static struct quirks q;
        q = *f->b->domains[0].quirks;
        q.completion = completion;
        f->b->domains[0].quirks = &q;
        for (int i = 0; i < 3; i++) {
                f->ops->queue.release(f->queue);
                f->queue = fixture_queue(f, i & 1 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
                assert_int_equal(!f->queue->notifier, completion == COMPLETION_CALLBACK);
                void *state = f;
                each_command_with_a_cookie_is_reported_once(&state);
                commands_in_flight_keep_what_they_use(&state);
                completions_come_while_somebody_polls_and_when_he_has_stopped(&state);
                completions_can_be_asked_for_later(&state);
        }
}

TEST(completions_come_by_callback_or_by_waiting)
{
        struct fixture *f = fixture(state);
        end_by_waiting(f, COMPLETION_WAIT);
        assert_int_equal(f->b->notifier_count, 2 + 1);
        end_by_waiting(f, COMPLETION_CALLBACK);
}

/* Where an implementation may wait for ever when a queue ends. */
TEST(queues_that_may_not_end_are_used_again)
{
        struct fixture *f = fixture(state);
        static struct quirks q;
        q = *f->b->domains[0].quirks;
        q.queues = QUEUES_STAY;
        f->b->domains[0].quirks = &q;
        const cl_command_queue_properties out_of_order = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        struct backend_queue *used = fixture_queue(f, 0), *unused = fixture_queue(f, 0);
        cl_command_queue native = used->queue;
        struct report r = { 0 };
        f->ops->event.release(fixture_submit(
                f, used, (struct backend_command){ .op = BACKEND_MARKER, .cookie = &r }));
        f->ops->queue.flush(used);
        assert_int_equal(report_wait(&r).status, CL_SUCCESS);
        f->ops->queue.release(used);
        f->ops->queue.release(unused);
        notify_wait_idle(f->b);

        struct backend_queue *other = fixture_queue(f, out_of_order);
        assert_ptr_not_equal(other->queue, native);
        struct backend_queue *again = fixture_queue(f, 0), *second = fixture_queue(f, 0);
        assert_ptr_equal(again->queue, native);
        assert_ptr_not_equal(second->queue, native);
        r = (struct report){ 0 };
        f->ops->event.release(fixture_submit(
                f, again, (struct backend_command){ .op = BACKEND_MARKER, .cookie = &r }));
        f->ops->queue.flush(again);
        assert_int_equal(report_wait(&r).status, CL_SUCCESS);
        f->ops->queue.release(again);
        f->ops->queue.release(second);
        f->ops->queue.release(other);
        notify_wait_idle(f->b);
        /* This implementation's may end: nothing is left of it. */
        q.queues = QUEUES_GO;
        again = fixture_queue(f, 0);
        assert_ptr_equal(again->queue, native);
        f->ops->queue.release(again);
}

/* ---- completion flags ----------------------------------------------------------------------------------- */

/* A queue of the same backend as if its devices worked elsewhere, and a driver were slow to tell. */
static struct backend_queue *completion_flag_queue(struct fixture *f,
                                                   cl_command_queue_properties props)
{
        static struct quirks quirks;
        quirks = *f->b->domains[0].quirks;
        quirks.completion = COMPLETION_WAIT;
        f->b->domains[0].quirks = &quirks;
        f->b->domains[0].apart = true;
        if (!f->b->domains[0].completion_flags)
                completion_flags_begin(f->b, &f->b->domains[0]);
        struct backend_queue *q = fixture_queue(f, props);
        f->ops->poll(f->b, false);
        return q;
}

/* Submit, and look until it is over, which nobody else does now. True: it was seen in the completion flag. */
static bool lands(struct fixture *f, struct backend_queue *q, struct backend_command c)
{
        struct report r = { 0 };
        c.cookie = &r;
        struct backend_event *e = fixture_submit(f, q, c);
        bool so = e->completion_flag.at;
        f->ops->queue.flush(q);
        while (!report_done(&r))
                f->ops->poll(f->b, false);
        assert_int_equal(report_wait(&r).status, CL_SUCCESS);
        assert_true(f->b->domains[0].completion_flags_free == UINT64_MAX);
        f->ops->event.release(e);
        return so;
}

static void land(struct fixture *f, cl_command_queue_properties props)
{
        enum { ALL_OF_THEM = 64, SIZE = COMPLETION_FLAG_MAX + 64 };
        struct backend_queue *q = completion_flag_queue(f, props);
        struct backend_buffer *m = fixture_buffer(f, SIZE);
        static const struct {
                size_t offset, size;
                bool lands;
        } reads[] = {
                { 0, 4, true },
                { 4, 64, true },
                { 8, 1024, true },
                { 8, 1028, true },
                { 6, 4, false },
                { 0, 6, false },
                { 0, COMPLETION_FLAG_MAX, true },
                { 1, 1023, false },
                { 0, COMPLETION_FLAG_MAX + 4, false },
        };
        assert_non_null(f->b->domains[0].completion_flags);
        static uint8_t bytes[SIZE], got[SIZE];
        for (size_t i = 0; i < SIZE; i++)
                bytes[i] = (uint8_t)(i * 7 + i / 256);
        (void)lands(f, q, write_of(m, 0, bytes, SIZE));
        for (size_t i = 0; i < array_size(reads); i++) {
                size_t size = reads[i].size;
                memset(got, 0xaa, sizeof(got));
                struct backend_command c = read_of(m, reads[i].offset, got, size);
                assert_int_equal(lands(f, q, c), reads[i].lands);
                assert_memory_equal(got, bytes + reads[i].offset, size);
                assert_int_equal(got[size], 0xaa);
        }

        /* Bytes that are there before they have come: only their event tells. */
        uint32_t word = f->b->domains[0].completion_flag_fill * 1664525 + 1013904223, back = 0;
        (void)lands(f, q, write_of(m, 0, &word, 4));
        assert_true(lands(f, q, read_of(m, 0, &back, 4)));
        assert_int_equal(f->b->domains[0].completion_flag_fill, word);
        assert_int_equal(back, word);

        /* There are so many at a time. */
        struct report many[ALL_OF_THEM + 6] = { 0 };
        uint32_t words[array_size(many)];
        for (size_t i = 0; i < array_size(many); i++) {
                struct backend_command c = read_of(m, 4 * i, &words[i], 4);
                c.cookie = &many[i];
                struct backend_event *e = fixture_submit(f, q, c);
                assert_int_equal(e->completion_flag.at != NULL, i < ALL_OF_THEM);
                f->ops->event.release(e);
        }
        f->ops->queue.flush(q);
        for (size_t i = 0; i < array_size(many); i++) {
                while (!report_done(&many[i]))
                        f->ops->poll(f->b, false);
                assert_int_equal(report_wait(&many[i]).status, CL_SUCCESS);
                if (i)
                        assert_memory_equal(&words[i], bytes + 4 * i, 4);
        }

        /* Where kernels print, the event is asked, or the read waited for; what nobody waits for comes elsewhere. */
        struct backend_command prints = read_of(m, 0, &back, 4);
        prints.prints = true;
        back = 0;
        assert_true(lands(f, q, prints));
        assert_int_equal(back, word);
        prints.now = true;
        assert_false(completion_flag_takes(q, &prints));
        struct backend_event *e;
        assert_int_equal(try_submit(f, q, read_of(m, 0, &back, 4), &e), CL_SUCCESS);
        assert_false(e->completion_flag.at);
        f->ops->event.release(e);

        /* One that can't be submitted leaves it free. */
        struct report r = { 0 };
        struct backend_command beyond = read_of(m, SIZE, got, 4);
        beyond.cookie = &r;
        assert_int_equal(try_submit(f, q, beyond, &e), CL_INVALID_VALUE);
        assert_true(f->b->domains[0].completion_flags_free == UINT64_MAX);
        f->ops->buffer.release(m);
        f->ops->queue.release(q);
}

TEST(small_reads_are_seen_where_they_land)
{
        struct fixture *f = fixture(state);
        land(f, 0);
        land(f, CL_QUEUE_PROFILING_ENABLE);
        land(f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

TEST(a_thread_that_stops_polling_leaves_completion_flags_to_others)
{
        struct fixture *f = fixture(state);
        struct backend_queue *q = completion_flag_queue(f, 0);
        struct backend_buffer *m = fixture_buffer(f, 64);
        struct report r[2] = { 0 };
        int in[16] = { 1, 2, 3 }, out[2][16] = { 0 };
        (void)lands(f, q, write_of(m, 0, in, sizeof(in)));
        struct backend_command c = read_of(m, 0, out[0], sizeof(in));
        c.cookie = &r[0];
        struct backend_event *e[2] = { fixture_submit(f, q, c) };
        assert_true(e[0]->completion_flag.at);
        f->ops->poll(f->b, true);
        c = read_of(m, 0, out[1], sizeof(in)); /* and nobody polls */
        c.cookie = &r[1];
        assert_true(completion_flag_takes(q, &c));
        e[1] = fixture_submit(f, q, c);
        f->ops->queue.flush(q);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(report_wait(&r[i]).status, CL_SUCCESS);
                assert_memory_equal(out[i], in, sizeof(in));
                f->ops->event.release(e[i]);
        }

        /* The read returns the word that marks a read as incomplete. A thread that waited for the
         * event still reports the completion. */
        f->ops->poll(f->b, false);
        uint32_t word = f->b->domains[0].completion_flag_fill * 1664525 + 1013904223, back = 0;
        (void)lands(f, q, write_of(m, 0, &word, 4));
        struct report same = { 0 };
        c = read_of(m, 0, &back, 4);
        c.cookie = &same;
        e[0] = fixture_submit(f, q, c);
        f->ops->queue.flush(q);
        f->ops->poll(f->b, true);
        assert_int_equal(report_wait(&same).status, CL_SUCCESS);
        assert_int_equal(f->b->domains[0].completion_flag_fill, word);
        assert_int_equal(back, word);
        f->ops->event.release(e[0]);
        f->ops->buffer.release(m);
        f->ops->queue.release(q);
}

TEST(a_launch_alone_is_seen_in_a_completion_flag)
{
        struct fixture *f = fixture(state);
        struct backend_queue *q = completion_flag_queue(f, 0);
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        struct backend_buffer *m = fixture_buffer(f, BYTES);
        int zeros[COUNT] = { 0 }, out[COUNT];
        (void)lands(f, q, write_of(m, 0, zeros, BYTES));
        set_inc(f, k, m, 1);
        struct backend_command alone = launch_all(k);
        alone.alone = true;
        for (int i = 0; i < 20; i++)
                assert_true(lands(f, q, alone));
        /* A launch with a command behind it uses no completion flag, because that command would
         * wait for the flag's read. */
        assert_false(lands(f, q, launch_all(k)));
        (void)lands(f, q, read_of(m, 0, out, BYTES));
        assert_int_equal(out[COUNT - 1], 21);

        struct backend_command prints = alone;
        prints.prints = true;
        assert_false(lands(f, q, prints));

        /* Without order the read would not come behind it. */
        struct backend_queue *any = fixture_queue(f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        assert_false(lands(f, any, alone));
        f->ops->queue.release(any);
        f->ops->kernel.release(k);
        f->ops->buffer.release(m);
        unbuild(f, &x);
        f->ops->queue.release(q);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ALL(dependencies_order_a_chain_over_queues),
                ALL(markers_and_barriers_wait_for_what_came_before),
                ALL(commands_in_flight_keep_what_they_use),
                ALL(close_waits_for_commands_in_flight),
                ALL(each_command_with_a_cookie_is_reported_once),
                ALL(completions_come_while_somebody_polls_and_when_he_has_stopped),
                ALL(completions_can_be_asked_for_later),
                ALL(completions_may_wait_for_operations_and_submit_more),
                ALL(times_are_this_hosts_when_asked_for),
                AT_ONCE(each_allocation_may_fail),
                NATIVE(completions_come_by_callback_or_by_waiting),
                NATIVE(queues_that_may_not_end_are_used_again),
                NATIVE(small_reads_are_seen_where_they_land),
                NATIVE(a_thread_that_stops_polling_leaves_completion_flags_to_others),
                NATIVE(a_launch_alone_is_seen_in_a_completion_flag),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
