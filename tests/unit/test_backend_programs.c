/* Programs, kernels and their arguments: over each backend. */
#include "support/check.h"

#include <pthread.h>
#include <string.h>

#include "support/backends.h"

/* ---- programs and kernels ----------------------------------------------------------------------- */

TEST(a_kernel_runs_with_its_arguments)
{
        struct fixture *f = fixture(state);
        int data[COUNT], out[COUNT];
        for (int i = 0; i < COUNT; i++)
                data[i] = i;
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        struct backend_buffer *m = fixture_buffer(f, BYTES);
        execute(f, write_of(m, 0, data, BYTES));
        set_inc(f, k, m, 5);
        struct backend_event *e = fixture_submit(f, f->queue, launch_all(k));
        set_inc(f, k, m, 1000); /* the next launch's */
        const size_t offset[1] = { 512 }, part[1] = { 256 }, local[1] = { 64 };
        struct backend_command c = launch_all(k);
        c.offset = offset;
        c.global = part;
        c.local = local;
        size_t first = offset[0];
        if (f->ops == &backend_almaif) { /* whose packets have no place for an offset */
                struct backend_event *none;
                assert_int_equal(try_submit(f, f->queue, c, &none), CL_INVALID_GLOBAL_OFFSET);
                c.offset = NULL;
                first = 0;
        }
        execute(f, c);
        execute(f, read_of(m, 0, out, BYTES));
        for (size_t i = 0; i < COUNT; i++)
                assert_int_equal(out[i], i + 5 + (i >= first && i < first + part[0] ? 1000 : 0));
        f->ops->event.release(e);
        f->ops->kernel.release(k);
        f->ops->buffer.release(m);
        unbuild(f, &x);
}

TEST(wrong_arguments_are_refused)
{
        struct fixture *f = fixture(state);
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f)), *none;
        struct backend_event *e;
        assert_int_equal(f->ops->kernel.create(x.program, "nonsense", &none),
                         CL_INVALID_KERNEL_NAME);
        assert_int_equal(try_submit(f, f->queue, launch_all(k), &e), CL_INVALID_KERNEL_ARGS);
        assert_int_equal(set_value(f, k, 2, "12345678", 4), CL_INVALID_ARG_INDEX);
        assert_int_equal(set_value(f, k, 1, "12345678", 8), CL_INVALID_ARG_SIZE);
        f->ops->kernel.release(k);
        unbuild(f, &x);
}

TEST(a_failed_build_has_a_log)
{
        struct fixture *f = fixture(state);
        static const char broken[] = "__kernel void k(__global int *x) { y = 1; }";
        struct built x = build_with(f, 0, broken, strlen(broken), "");
        assert_int_equal(x.status,
                         f->native ? CL_BUILD_PROGRAM_FAILURE : CL_COMPILER_NOT_AVAILABLE);
        struct bytes b;
        assert_true(info_find(block_of(&x.info), INFO_BUILD, &b));
        assert_int_equal(info_u64(b, INFO_BUILD_DEVICE, 99), 0);
        assert_int_equal((cl_int)uint_in(b, CL_PROGRAM_BUILD_STATUS), CL_BUILD_ERROR);
        assert_true(strlen(text_in(b, CL_PROGRAM_BUILD_LOG)) > 10);
        struct backend_kernel *none;
        assert_int_equal(f->ops->kernel.create(x.program, "k", &none),
                         CL_INVALID_PROGRAM_EXECUTABLE);
        unbuild(f, &x);
}

TEST(a_build_describes_its_kernels)
{
        struct fixture *f = fixture(state);
        struct built x = build(f);
        struct bytes b, v;
        assert_true(info_find(block_of(&x.info), INFO_BUILD, &b));
        assert_int_equal((cl_int)uint_in(b, CL_PROGRAM_BUILD_STATUS), CL_BUILD_SUCCESS);
        assert_int_equal(uint_in(b, CL_PROGRAM_BINARY_TYPE), CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
        struct bytes k = kernel_info(&x, inc_name(f));
        assert_int_equal(uint_in(k, CL_KERNEL_NUM_ARGS), 2);
        assert_int_equal(info_u64(k, INFO_ARG_NATIVE_INFO, 0), 1);
        struct bytes data = arg_info(k, 0), by = arg_info(k, 1);
        assert_int_equal(info_u64(data, INFO_ARG_KIND, 0), ARG_BUFFER);
        assert_int_equal(info_u64(data, INFO_ARG_SIZE, 0), 8);
        assert_int_equal(uint_in(data, CL_KERNEL_ARG_ADDRESS_QUALIFIER),
                         CL_KERNEL_ARG_ADDRESS_GLOBAL);
        assert_string_equal(text_in(data, CL_KERNEL_ARG_TYPE_NAME), "int*");
        assert_string_equal(text_in(data, CL_KERNEL_ARG_NAME), "data");
        assert_int_equal(info_u64(by, INFO_ARG_KIND, 0), ARG_VALUE);
        assert_int_equal(info_u64(by, INFO_ARG_SIZE, 0), 4);
        assert_string_equal(text_in(by, CL_KERNEL_ARG_NAME), "by");
        assert_true(info_find(k, INFO_KERNEL_DEVICE, &b));
        assert_true(info_find(b, CL_KERNEL_WORK_GROUP_SIZE, &v) && v.size == 8);
        unbuild(f, &x);
}

/* NVIDIA's compiler fails at one with -cl-kernel-arg-info, which we add. */
TEST(kernels_without_arguments_build)
{
        struct fixture *f = fixture(state);
        static const char text[] =
                "__kernel void noop(void) {}\n"
                "__kernel void inc(__global int *data, int by) { data[0] += by; }";
        static const char names[] = "spancl.inc.i32;spancl.noop";
        struct built x = f->native ? build_with(f, 0, text, strlen(text), "")
                                   : build_with(f, 3, names, strlen(names), "");
        assert_int_equal(x.status, CL_SUCCESS);
        struct bytes none = kernel_info(&x, f->native ? "noop" : "spancl.noop");
        assert_int_equal(uint_in(none, CL_KERNEL_NUM_ARGS), 0);
        struct bytes inc = kernel_info(&x, inc_name(f));
        assert_int_equal(info_u64(arg_info(inc, 0), INFO_ARG_KIND, 0), ARG_BUFFER);
        assert_int_equal(info_u64(arg_info(inc, 1), INFO_ARG_KIND, 0), ARG_VALUE);
        assert_int_equal(info_u64(arg_info(inc, 1), INFO_ARG_SIZE, 0), 4);
        unbuild(f, &x);
}

/* ---- lifetimes, reports, times ------------------------------------------------------------------ */

static void *build_again(void *arg)
{
        struct fixture *f = arg;
        for (int i = 0; i < 3; i++) {
                struct built x = build(f);
                unbuild(f, &x);
        }
        return NULL;
}

TEST(builds_run_beside_commands)
{
        struct fixture *f = fixture(state);
        pthread_t thread;
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        struct backend_buffer *m = fixture_buffer(f, BYTES);
        assert_int_equal(pthread_create(&thread, NULL, build_again, f), 0);
        for (int i = 0; i < 100; i++) {
                set_inc(f, k, m, i);
                execute(f, launch_all(k));
        }
        pthread_join(thread, NULL);
        f->ops->kernel.release(k);
        f->ops->buffer.release(m);
        unbuild(f, &x);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ALL(a_kernel_runs_with_its_arguments), AT_ONCE(wrong_arguments_are_refused),
                AT_ONCE(a_failed_build_has_a_log),     ALL(a_build_describes_its_kernels),
                ALL(kernels_without_arguments_build),  ALL(builds_run_beside_commands),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
