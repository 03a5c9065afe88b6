/* The reference backend's manual mode: commands run when the test says so. */
#include "support/check.h"

#include "support/backends.h"

static struct fixture *open_manual(uint64_t seed)
{
        static struct fixture f;
        f = (struct fixture){ .ops = &backend_reference };
        backend_reference_manual = true;
        backend_reference_seed = seed;
        assert_int_equal(open_backend(f.ops, NULL, 0, &f.b), 0);
        backend_reference_manual = false;
        backend_reference_seed = 0;
        f.queue = fixture_queue(&f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        return &f;
}

TEST(steps_run_commands_on_the_calling_thread)
{
        (void)state;
        struct fixture *f = open_manual(0);
        struct report r[3] = { 0 };
        for (int i = 0; i < 3; i++)
                f->ops->event.release(fixture_submit(
                        f, f->queue,
                        (struct backend_command){ .op = BACKEND_MARKER, .cookie = &r[i] }));
        assert_false(r[0].done);
        assert_int_equal(backend_reference_step(f->b, 1), 1);
        assert_true(r[0].done && !r[1].done);
        assert_int_equal(backend_reference_step(f->b, 10), 2);
        assert_true(r[2].done);
        assert_int_equal(backend_reference_step(f->b, 10), 0);
        f->ops->queue.release(f->queue);
        f->ops->close(f->b);
}

/* Eight independent writes to one byte: which one is last depends on the order alone. */
static uint8_t last_writer(uint64_t seed, bool chained)
{
        struct fixture *f = open_manual(seed);
        uint8_t values[8] = { 0, 1, 2, 3, 4, 5, 6, 7 }, out = 99;
        struct backend_event *e[9];
        struct backend_buffer *m = fixture_buffer(f, 1);
        for (int i = 0; i < 8; i++) {
                struct backend_command c = write_of(m, 0, &values[i], 1);
                c.deps = chained && i ? &e[i - 1] : NULL;
                c.dep_count = chained && i ? 1 : 0;
                e[i] = fixture_submit(f, f->queue, c);
        }
        struct backend_command c = read_of(m, 0, &out, 1);
        c.deps = e;
        c.dep_count = 8;
        e[8] = fixture_submit(f, f->queue, c);
        assert_int_equal(backend_reference_step(f->b, 100), 9);
        for (int i = 0; i < 9; i++)
                f->ops->event.release(e[i]);
        f->ops->buffer.release(m);
        f->ops->queue.release(f->queue);
        f->ops->close(f->b);
        return out;
}

TEST(a_seed_shows_missing_dependencies_and_repeats)
{
        (void)state;
        bool differs = false;
        for (uint64_t seed = 1; seed < 20; seed++) {
                assert_int_equal(last_writer(seed, true), 7);
                assert_int_equal(last_writer(seed, false), last_writer(seed, false));
                differs |= last_writer(seed, false) != 7;
        }
        assert_int_equal(last_writer(0, false), 7);
        assert_true(differs);
}

TEST(a_failed_dependency_fails_the_command)
{
        (void)state;
        struct fixture *f = open_manual(0);
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, "spancl.inc.i32");
        struct backend_buffer *m = fixture_buffer(f, 4);
        struct report r[2] = { 0 };
        set_inc(f, k, m, 1);
        struct backend_command c = launch_all(k); /* 1024 work-items on one element */
        c.cookie = &r[0];
        struct backend_event *e = fixture_submit(f, f->queue, c);
        f->ops->event.release(fixture_submit(
                f, f->queue,
                (struct backend_command){
                        .op = BACKEND_MARKER, .deps = &e, .dep_count = 1, .cookie = &r[1] }));
        backend_reference_step(f->b, 2);
        assert_int_equal(r[0].status, CL_OUT_OF_RESOURCES);
        assert_int_equal(r[1].status, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        f->ops->event.release(e);
        f->ops->kernel.release(k);
        f->ops->buffer.release(m);
        unbuild(f, &x);
        f->ops->queue.release(f->queue);
        f->ops->close(f->b);
}

TEST(domains_do_not_mix)
{
        struct fixture *f = fixture(state);
        struct backend_buffer *other;
        struct backend_event *e;
        uint8_t data[4] = { 0 };
        assert_int_equal(f->ops->domain_count(f->b), 2);
        assert_int_equal(f->ops->buffer.create(f->b, 1, 0, 4, &other), CL_SUCCESS);
        assert_int_equal(try_submit(f, f->queue, write_of(other, 0, data, 4), &e),
                         CL_INVALID_CONTEXT);
        f->ops->buffer.release(other);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(steps_run_commands_on_the_calling_thread),
                cmocka_unit_test(a_seed_shows_missing_dependencies_and_repeats),
                cmocka_unit_test(a_failed_dependency_fails_the_command),
                REFERENCE(domains_do_not_mix),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
