/* Every claim of backend.h, over each backend: the reference, the native one with what this host has
 * (skipped without an OpenCL implementation), and AlmaIF over emulated accelerators. */
#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/backend.h"
#include "backend/builtin/registry.h"
#include "backend/filter.h"
#include "backend/native/kernelinfo.h"
#include "backend/native/kernellist.h"
#include "backend/native/native.h"
#include "base/vm.h"
#include "support/accelerator.h"

/* ---- fixture -------------------------------------------------------------------------------- */

enum { COUNT = 1024, BYTES = COUNT * 4 };

struct fixture {
        const struct backend_ops *ops;
        struct backend *b;
        bool native;
        struct backend_queue *queue;
};

/* One for the fixture, one for what a test opens beside it: only one backend at a time uses each. */
static struct accelerator accelerators[2];
static char places[2][ACCELERATOR_PATH_SIZE + 8];

/* What a cookie points to. */
struct report {
        bool done;
        cl_int status;
        struct backend_times times;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Thread_local bool inside; /* an operation of the backend */
static atomic_uint reports, reports_inside;

static void on_complete(void *user, void *cookie, cl_int status, const struct backend_times *t)
{
        struct report *r = cookie;
        atomic_fetch_add(&reports, 1);
        if (inside)
                atomic_fetch_add(&reports_inside, 1);
        pthread_mutex_lock(&lock);
        *r = (struct report){ true, status, *t };
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

static struct report wait_for(struct report *r)
{
        pthread_mutex_lock(&lock);
        while (!r->done)
                pthread_cond_wait(&changed, &lock);
        struct report copy = *r;
        pthread_mutex_unlock(&lock);
        return copy;
}

/* For backends that are opened now. */
static enum backend_clear clear;

static int open_backend(const struct backend_ops *ops, const char *devices, unsigned place,
                        struct backend **ret)
{
        struct backend_params params = { .devices = devices,
                                         .accelerators = places[place],
                                         .host = &backend_reference,
                                         .clear = clear,
                                         .complete = on_complete };
        return ops->open(&params, ret);
}

static struct backend_queue *queue_of(struct fixture *f, cl_command_queue_properties props)
{
        struct backend_queue *q;
        assert_int_equal(f->ops->queue_create(f->b, 0, props, &q), CL_SUCCESS);
        return q;
}

static int set_up(void **state, const struct backend_ops *ops)
{
        static struct fixture f;
        f = (struct fixture){ .ops = ops, .native = ops == &backend_native };
        atomic_store(&reports_inside, 0);
        if (open_backend(ops, NULL, 0, &f.b) == 0)
                f.queue = queue_of(&f, 0);
        *state = &f;
        return 0;
}

static int set_up_reference(void **state)
{
        return set_up(state, &backend_reference);
}

static int set_up_native(void **state)
{
        return set_up(state, &backend_native);
}

static int set_up_emulated(void **state, const struct backend_ops *ops)
{
        static const char *const options[] = { "--data", "4194304", NULL };
        for (unsigned i = 0; i < array_size(places); i++) {
                accelerator_start(&accelerators[i], NULL, options);
                snprintf(places[i], sizeof(places[i]), "shm:%s", accelerators[i].path);
        }
        return set_up(state, ops);
}

static int set_up_almaif(void **state)
{
        return set_up_emulated(state, &backend_almaif);
}

/* The reference's devices, and behind them an accelerator. */
static int set_up_joined(void **state)
{
        return set_up_emulated(state, &backend_joined);
}

static int tear_down(void **state)
{
        struct fixture *f = *state;
        if (f->b) {
                f->ops->queue_release(f->queue);
                f->ops->close(f->b);
        }
        for (unsigned i = 0; i < array_size(places); i++)
                accelerator_stop(&accelerators[i]);
        return atomic_load(&reports_inside) ? -1 : 0;
}

static struct fixture *fixture(void **state)
{
        struct fixture *f = *state;
        if (!f->b)
                skip();
        return f;
}

/* ---- shorthands ----------------------------------------------------------------------------- */

static cl_int try_submit(struct fixture *f, struct backend_queue *q, struct backend_command c,
                         struct backend_event **ret)
{
        inside = true;
        cl_int r = f->ops->submit(q, &c, ret);
        inside = false;
        return r;
}

static struct backend_event *submit(struct fixture *f, struct backend_queue *q,
                                    struct backend_command c)
{
        struct backend_event *e;
        assert_int_equal(try_submit(f, q, c, &e), CL_SUCCESS);
        return e;
}

/* Submit, wait, and return the status. */
static cl_int run_on(struct fixture *f, struct backend_queue *q, struct backend_command c)
{
        struct report r = { 0 };
        c.cookie = &r;
        struct backend_event *e = submit(f, q, c);
        f->ops->queue_flush(q);
        cl_int status = wait_for(&r).status;
        f->ops->event_release(e);
        return status;
}

static void run(struct fixture *f, struct backend_command c)
{
        assert_int_equal(run_on(f, f->queue, c), CL_SUCCESS);
}

static struct backend_buffer *buffer_of(struct fixture *f, size_t size)
{
        struct backend_buffer *m;
        assert_int_equal(f->ops->buffer_create(f->b, 0, CL_MEM_READ_WRITE, size, &m), CL_SUCCESS);
        return m;
}

static struct backend_command write_of(struct backend_buffer *m, size_t at, void *p, size_t size)
{
        return (struct backend_command){
                .op = BACKEND_WRITE, .buffer = m, .offset_bytes = at, .host = p, .size = size
        };
}

static struct backend_command read_of(struct backend_buffer *m, size_t at, void *p, size_t size)
{
        return (struct backend_command){
                .op = BACKEND_READ, .buffer = m, .offset_bytes = at, .host = p, .size = size
        };
}

static void fill_counting(uint8_t *p, size_t size)
{
        for (size_t i = 0; i < size; i++)
                p[i] = (uint8_t)(i * 7 + i / 251);
}

static const char source[] =
        "typedef struct { int a; float b[4]; char c; } item;\n"
        "typedef struct { char x[3]; } three;\n"
        "__kernel void inc(__global int *data, int by) { data[get_global_id(0)] += by; }\n"
        "__kernel void spin(__global int *data, int by) {\n"
        "  int v = data[0]; for (int i = 0; i < by; i++) v = v * 1664525 + 1013904223;\n"
        "  data[0] = v; }\n"
        "__kernel __attribute__((reqd_work_group_size(4, 2, 1)))\n"
        "void every(__global const float4 *a, __constant int *b, __local short *c, uint3 d, char e,\n"
        "         double f, item g, __global item *h, size_t_like i, three j, ulong16 k) { c[0] = e; }\n";

struct built {
        struct backend_program *program;
        struct buf info;
        cl_int status;
};

/* A program with the kernel `inc_name(f)`. */
static struct built build_with(struct fixture *f, unsigned kind, const void *part, size_t size,
                               const char *options)
{
        struct built x = { 0 };
        struct buf parts = { 0 };
        unsigned device = 0;
        assert_int_equal(info_put(&parts, INFO_PART, part, size), 0);
        assert_int_equal(f->ops->program_create(f->b, 0, kind, &device, 1,
                                                bytes_of(parts.data, parts.size), &x.program),
                         CL_SUCCESS);
        buf_fini(&parts);
        x.status = f->ops->program_build(x.program, &device, 1, options, &x.info);
        assert_int_equal(info_check(bytes_of(x.info.data, x.info.size)), 0);
        return x;
}

static struct built build(struct fixture *f)
{
        static const char names[] = "spancl.inc.i32;spancl.noop";
        struct built x = f->native ? build_with(f, 0, source, strlen(source), "-Dsize_t_like=ulong")
                                   : build_with(f, 3, names, strlen(names), "");
        assert_int_equal(x.status, CL_SUCCESS);
        return x;
}

static void unbuild(struct fixture *f, struct built *x)
{
        f->ops->program_release(x->program);
        buf_fini(&x->info);
}

static const char *inc_name(struct fixture *f)
{
        return f->native ? "inc" : "spancl.inc.i32";
}

static struct backend_kernel *kernel_of(struct fixture *f, struct built *x, const char *name)
{
        struct backend_kernel *k;
        assert_int_equal(f->ops->kernel_create(x->program, name, &k), CL_SUCCESS);
        return k;
}

static cl_int set_buffer(struct fixture *f, struct backend_kernel *k, unsigned i,
                         struct backend_buffer *m)
{
        struct arg a = { .index = i, .kind = ARG_BUFFER, .size = 8, .object = 1 };
        return f->ops->kernel_set_arg(k, &a, m, NULL);
}

static cl_int set_value(struct fixture *f, struct backend_kernel *k, unsigned i, const void *value,
                        size_t size)
{
        struct arg a = { .index = i, .kind = ARG_VALUE, .size = size, .value = value };
        return f->ops->kernel_set_arg(k, &a, NULL, NULL);
}

static void set_inc(struct fixture *f, struct backend_kernel *k, struct backend_buffer *m, int by)
{
        assert_int_equal(set_buffer(f, k, 0, m), CL_SUCCESS);
        assert_int_equal(set_value(f, k, 1, &by, sizeof(by)), CL_SUCCESS);
}

static const size_t whole[1] = { COUNT };

static struct backend_command launch_of(struct backend_kernel *k)
{
        return (struct backend_command){
                .op = BACKEND_KERNEL, .kernel = k, .dims = 1, .global = whole
        };
}

static struct bytes block_of(const struct buf *b)
{
        return bytes_of(b->data, b->size);
}

static const char *text_in(struct bytes block, uint32_t key)
{
        struct bytes v;
        if (!info_find(block, key, &v) || !v.size)
                return "(none)";
        assert_int_equal(((const char *)v.data)[v.size - 1], 0);
        return v.data;
}

static cl_uint uint_in(struct bytes block, uint32_t key)
{
        struct bytes v;
        assert_true(info_find(block, key, &v));
        assert_int_equal(v.size, 4);
        return bytes_get_u32(v.data);
}

/* The INFO_KERNEL block of that name. */
static struct bytes kernel_info(const struct built *x, const char *name)
{
        struct bytes all = block_of(&x->info);
        struct info_entry e;
        while (info_next(&all, &e))
                if (e.key == INFO_KERNEL &&
                    !strcmp(text_in(e.value, CL_KERNEL_FUNCTION_NAME), name))
                        return e.value;
        fail_msg("no kernel %s", name);
        return bytes_of(NULL, 0);
}

static struct bytes arg_info(struct bytes kernel, unsigned index)
{
        struct info_entry e;
        while (info_next(&kernel, &e))
                if (e.key == INFO_KERNEL_ARG && !index--)
                        return e.value;
        fail_msg("no such argument");
        return bytes_of(NULL, 0);
}

/* ---- devices -------------------------------------------------------------------------------- */

TEST(a_device_says_what_it_is)
{
        struct fixture *f = fixture(state);
        for (unsigned i = 0; i < f->ops->device_count(f->b); i++) {
                struct buf info = { 0 };
                assert_int_equal(f->ops->device_info(f->b, i, &info), 0);
                struct bytes block = block_of(&info), v;
                assert_int_equal(info_check(block), 0);
                assert_string_not_equal(text_in(block, CL_DEVICE_NAME), "");
                assert_memory_equal(text_in(block, CL_DEVICE_VERSION), "OpenCL ", 7);
                assert_true(info_find(block, CL_DEVICE_TYPE, &v) && v.size == 8);
                assert_true(info_find(block, CL_DEVICE_MAX_WORK_ITEM_SIZES, &v) && v.size == 24);
                assert_true(info_find(block, CL_DEVICE_MAX_WORK_GROUP_SIZE, &v) && v.size == 8);
                assert_int_equal(uint_in(block, CL_DEVICE_AVAILABLE), CL_TRUE);
                assert_false(info_find(block, CL_DEVICE_PLATFORM, &v));
                assert_int_equal(info_u64(block, INFO_DEVICE_DOMAIN, 99),
                                 f->ops->device_domain(f->b, i));
                assert_true(f->ops->device_domain(f->b, i) < f->ops->domain_count(f->b));
                assert_true(info_find(block, INFO_DEVICE_PLATFORM, &v));
                assert_int_equal(info_check(v), 0);
                assert_string_not_equal(text_in(v, CL_PLATFORM_NAME), "(none)");
                buf_fini(&info);
        }
}

TEST(every_query_of_opencl_3_is_there)
{
        struct fixture *f = fixture(state);
        static const cl_device_info first_and_last[][2] = {
                { CL_DEVICE_TYPE, CL_DEVICE_EXTENSIONS },
                { CL_DEVICE_DOUBLE_FP_CONFIG, CL_DEVICE_DOUBLE_FP_CONFIG },
                { CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, CL_DEVICE_PARTITION_TYPE },
                { CL_DEVICE_PREFERRED_INTEROP_USER_SYNC, CL_DEVICE_NUMERIC_VERSION },
                { CL_DEVICE_EXTENSIONS_WITH_VERSION, CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT },
                { CL_DEVICE_OPENCL_C_FEATURES, CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED },
        };
        struct buf info = { 0 };
        assert_int_equal(f->ops->device_info(f->b, 0, &info), 0);
        struct bytes block = block_of(&info), v;
        bool is_3 = !strncmp(text_in(block, CL_DEVICE_VERSION), "OpenCL 3", 8);
        for (size_t i = 0; is_3 && i < array_size(first_and_last); i++) {
                for (cl_device_info key = first_and_last[i][0]; key <= first_and_last[i][1];
                     key++) {
                        bool ours =
                                key == CL_DEVICE_PARENT_DEVICE || key == CL_DEVICE_REFERENCE_COUNT;
                        /* 0x102D is CL_DRIVER_VERSION; 0x1049 to 0x1072 may fail on PoCL. */
                        if (!ours && !info_find(block, key, &v)) {
                                if (!f->native)
                                        fail_msg("no answer for 0x%x", key);
                                print_message("native: no answer for 0x%x\n", key);
                        }
                }
        }
        buf_fini(&info);
}

TEST(the_filter_leaves_the_devices_it_names)
{
        struct fixture *f = fixture(state);
        struct backend *b;
        assert_int_equal(open_backend(f->ops, "0", 1, &b), 0);
        assert_int_equal(f->ops->device_count(b), 1);
        assert_int_equal(f->ops->domain_count(b), 1);
        f->ops->close(b);
        assert_int_equal(open_backend(f->ops, "4000", 1, &b), SP_E_NODEV);
        assert_int_equal(open_backend(f->ops, "no such name", 1, &b), SP_E_NODEV);
}

TEST(the_filter_has_numbers_types_and_names)
{
        (void)state;
        const cl_device_type cpu = CL_DEVICE_TYPE_CPU, gpu = CL_DEVICE_TYPE_GPU;
        assert_true(filter_match(NULL, 3, cpu, "x"));
        assert_true(filter_match(" , ", 3, cpu, "x"));
        assert_true(filter_match("0,3", 3, cpu, "x"));
        assert_false(filter_match("0,33", 3, cpu, "x"));
        assert_false(filter_match("4294967299", 3, cpu, "x"));
        assert_true(filter_match("GPU", 3, gpu, "x"));
        assert_false(filter_match("gpu", 3, cpu, "my gpu"));
        assert_true(filter_match("epyc, radeon ", 3, gpu, "AMD Radeon VII"));
        assert_true(filter_match("3090", 3090, gpu, "x"));
        assert_true(filter_match("all", 3, gpu, "x"));
}

/* ---- transfers ------------------------------------------------------------------------------ */

TEST(what_was_written_is_read)
{
        struct fixture *f = fixture(state);
        uint8_t in[BYTES], out[BYTES] = { 0 };
        fill_counting(in, BYTES);
        struct backend_buffer *m = buffer_of(f, BYTES);
        run(f, write_of(m, 0, in, BYTES));
        run(f, write_of(m, 100, in, 50));
        run(f, read_of(m, 0, out, BYTES));
        uint8_t expected[BYTES];
        memcpy(expected, in, BYTES);
        memcpy(expected + 100, in, 50);
        assert_memory_equal(out, expected, BYTES);
        f->ops->buffer_release(m);
}

TEST(host_memory_serves_transfers_until_the_end)
{
        struct fixture *f = fixture(state);
        if (f->native)
                f->b->domains[0].apart = true; /* whatever devices there are */
        for (int i = 0; i < 2; i++) {
                uint8_t any[2 * BYTES];
                void *at = any;
                cl_int r = f->ops->host_memory(f->b, 0, 2 * BYTES, &at);
                assert_int_equal(r, f->ops == &backend_almaif ? CL_INVALID_OPERATION : CL_SUCCESS);
                uint8_t *in = at, *out = in + BYTES;
                fill_counting(in, BYTES);
                memset(out, 0, BYTES);
                struct backend_buffer *m = buffer_of(f, BYTES);
                run(f, write_of(m, 0, in, BYTES));
                run(f, read_of(m, 0, out, BYTES));
                assert_memory_equal(in, out, BYTES);
                f->ops->buffer_release(m);
        }
}

static void expect_zeros(const uint8_t *data, size_t size)
{
        for (size_t i = 0; i < size; i++)
                assert_int_equal(data[i], 0);
}

static void buffers_are_clear(struct fixture *f, size_t size)
{
        uint8_t *data = malloc(size);
        assert_non_null(data);
        for (int i = 0; i < 4; i++) {
                struct backend_buffer *m = buffer_of(f, size);
                memset(data, 0xee, size);
                run(f, read_of(m, 0, data, size));
                expect_zeros(data, size);
                memset(data, 0xa5, size);
                run(f, write_of(m, 0, data, size));
                f->ops->buffer_release(m);
        }
        free(data);
}

static void images_are_clear(struct fixture *f)
{
        enum { SIDE = 64, IMAGE = SIDE * SIDE * 16 };
        static const struct image_desc d = { .type = CL_MEM_OBJECT_IMAGE2D,
                                             .order = CL_RGBA,
                                             .data_type = CL_FLOAT,
                                             .width = SIDE,
                                             .height = SIDE };
        uint8_t *data = malloc(IMAGE);
        assert_non_null(data);
        for (int i = 0; i < 4; i++) {
                struct backend_buffer *m;
                if (f->ops->image_create(f->b, 0, CL_MEM_READ_WRITE, &d, NULL, &m) != CL_SUCCESS)
                        break;
                struct backend_command c = { .op = BACKEND_READ_IMAGE,
                                             .buffer = m,
                                             .host = data,
                                             .region = { SIDE, SIDE, 1 } };
                memset(data, 0xee, IMAGE);
                run(f, c);
                expect_zeros(data, IMAGE);
                memset(data, 0xa5, IMAGE);
                c.op = BACKEND_WRITE_IMAGE;
                run(f, c);
                f->ops->buffer_release(m);
        }
        free(data);
}

TEST(new_memory_is_clear_where_that_is_wanted)
{
        static const size_t sizes[] = { 7, 24, 4096, 1 << 20 };
        struct fixture *f = fixture(state), own = *f;
        clear = BACKEND_CLEAR_ALL;
        int r = open_backend(f->ops, NULL, 1, &own.b);
        clear = BACKEND_CLEAR_OFF;
        assert_int_equal(r, 0);
        own.queue = queue_of(&own, 0);
        for (size_t i = 0; i < array_size(sizes); i++)
                buffers_are_clear(&own, sizes[i]);
        images_are_clear(&own);
        f->ops->queue_release(own.queue);
        f->ops->close(own.b);
}

TEST(boxes_are_written_copied_and_read)
{
        struct fixture *f = fixture(state);
        enum { ROW = 32, ROWS = 8, SLICES = 4, SIZE = ROW * ROWS * SLICES };
        uint8_t zeros[SIZE] = { 0 }, in[5 * 3 * 2], expected[SIZE] = { 0 }, out[SIZE];
        fill_counting(in, sizeof(in));
        struct backend_buffer *a = buffer_of(f, SIZE), *b = buffer_of(f, SIZE);
        run(f, write_of(a, 0, zeros, SIZE));
        run(f, write_of(b, 0, zeros, SIZE));

        struct backend_box at = { { 3, 2, 1 }, ROW, ROW * ROWS };
        struct backend_box to = { { 7, 4, 2 }, ROW, ROW * ROWS };
        run(f, (struct backend_command){ .op = BACKEND_WRITE_RECT,
                                         .buffer = a,
                                         .host = in,
                                         .box = at,
                                         .region = { 5, 3, 2 } });
        run(f, (struct backend_command){ .op = BACKEND_COPY_RECT,
                                         .buffer = b,
                                         .source = a,
                                         .box = to,
                                         .source_box = at,
                                         .region = { 5, 3, 2 } });
        run(f, read_of(b, 0, out, SIZE));
        for (int z = 0; z < 2; z++)
                for (int y = 0; y < 3; y++)
                        memcpy(expected + (2 + z) * ROW * ROWS + (4 + y) * ROW + 7,
                               in + (z * 3 + y) * 5, 5);
        assert_memory_equal(out, expected, SIZE);

        uint8_t back[sizeof(in)] = { 0 };
        run(f, (struct backend_command){ .op = BACKEND_READ_RECT,
                                         .buffer = b,
                                         .host = back,
                                         .box = to,
                                         .region = { 5, 3, 2 } });
        assert_memory_equal(back, in, sizeof(in));
        f->ops->buffer_release(a);
        f->ops->buffer_release(b);
}

TEST(patterns_fill_and_ranges_are_copied)
{
        struct fixture *f = fixture(state);
        uint8_t out[256], expected[256] = { 0 };
        struct backend_buffer *m = buffer_of(f, 256), *n = buffer_of(f, 256);
        uint32_t pattern = 0xA1B2C3D4;
        run(f, write_of(m, 0, expected, 256));
        run(f, write_of(n, 0, expected, 256));
        struct backend_event *e = submit(f, f->queue,
                                         (struct backend_command){ .op = BACKEND_FILL,
                                                                   .buffer = m,
                                                                   .pattern = &pattern,
                                                                   .pattern_size = 4,
                                                                   .offset_bytes = 16,
                                                                   .size = 64 });
        pattern = 0; /* was copied */
        run(f, (struct backend_command){ .op = BACKEND_COPY,
                                         .buffer = n,
                                         .source = m,
                                         .source_offset = 16,
                                         .offset_bytes = 100,
                                         .size = 60 });
        run(f, read_of(n, 0, out, 256));
        for (int i = 0; i < 15; i++)
                memcpy(expected + 100 + i * 4, &(uint32_t){ 0xA1B2C3D4 }, 4);
        assert_memory_equal(out, expected, 256);
        f->ops->event_release(e);
        f->ops->buffer_release(m);
        f->ops->buffer_release(n);
}

TEST(a_sub_buffer_is_part_of_its_parent)
{
        struct fixture *f = fixture(state);
        uint8_t in[BYTES], out[128];
        fill_counting(in, BYTES);
        struct backend_buffer *m = buffer_of(f, BYTES), *sub, *none;
        assert_int_equal(f->ops->sub_buffer_create(f->b, m, 0, 1024, 128, &sub), CL_SUCCESS);
        assert_int_equal(f->ops->sub_buffer_create(f->b, m, 0, 1024, BYTES, &none),
                         CL_INVALID_VALUE);
        run(f, write_of(m, 0, in, BYTES));
        run(f, read_of(sub, 0, out, 128));
        assert_memory_equal(out, in + 1024, 128);
        f->ops->buffer_release(m); /* lives on in `sub` */
        run(f, write_of(sub, 64, in, 64));
        run(f, read_of(sub, 0, out, 128));
        assert_memory_equal(out + 64, in, 64);
        f->ops->buffer_release(sub);
}

TEST(a_command_that_cannot_start_is_not_reported)
{
        struct fixture *f = fixture(state);
        uint8_t data[64] = { 0 };
        struct report r = { 0 };
        struct backend_event *e;
        struct backend_buffer *m = buffer_of(f, 64);
        struct backend_command c = read_of(m, 32, data, 64);
        c.cookie = &r;
        unsigned before = atomic_load(&reports);
        assert_int_equal(try_submit(f, f->queue, c, &e), CL_INVALID_VALUE);
        run(f, write_of(m, 0, data, 64));
        assert_int_equal(atomic_load(&reports), before + 1);
        assert_false(r.done);
        f->ops->buffer_release(m);
}

/* ---- programs and kernels ------------------------------------------------------------------- */

TEST(a_kernel_runs_with_its_arguments)
{
        struct fixture *f = fixture(state);
        int data[COUNT], out[COUNT];
        for (int i = 0; i < COUNT; i++)
                data[i] = i;
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        struct backend_buffer *m = buffer_of(f, BYTES);
        run(f, write_of(m, 0, data, BYTES));
        set_inc(f, k, m, 5);
        struct backend_event *e = submit(f, f->queue, launch_of(k));
        set_inc(f, k, m, 1000); /* the next launch's */
        const size_t offset[1] = { 512 }, part[1] = { 256 }, local[1] = { 64 };
        struct backend_command c = launch_of(k);
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
        run(f, c);
        run(f, read_of(m, 0, out, BYTES));
        for (size_t i = 0; i < COUNT; i++)
                assert_int_equal(out[i], i + 5 + (i >= first && i < first + part[0] ? 1000 : 0));
        f->ops->event_release(e);
        f->ops->kernel_release(k);
        f->ops->buffer_release(m);
        unbuild(f, &x);
}

/* What INFO_DEVICE_SVM says. */
static enum info_svm svm_of(struct fixture *f)
{
        struct buf info = { 0 };
        assert_int_equal(f->ops->device_info(f->b, 0, &info), 0);
        enum info_svm how = (enum info_svm)info_u64(block_of(&info), INFO_DEVICE_SVM, 0);
        buf_fini(&info);
        return how;
}

static void set_pointer(struct fixture *f, struct backend_kernel *k, uint64_t address)
{
        struct arg a = { .index = 0, .kind = ARG_SVM, .size = 8, .object = address };
        assert_int_equal(f->ops->kernel_set_arg(k, &a, NULL, NULL), CL_SUCCESS);
}

/* At a place that was free, as a client would have found it. */
TEST(shared_virtual_memory_lies_where_it_is_wanted)
{
        struct fixture *f = fixture(state);
        enum info_svm how = svm_of(f);
        if (how == INFO_SVM_NONE)
                skip();
        int data[COUNT], out[COUNT];
        uint64_t wanted = 0, at;
        struct backend_svm *svm, *other;
        struct backend_buffer *m;
        const size_t size = (size_t)4 * VM_GRANULE;
        if (how == INFO_SVM_FOLLOWS) {
                assert_int_equal(vm_map(0, 2 * size, &wanted), 0);
                if (f->native) {
                        assert_int_equal(
                                f->ops->svm_create(f->b, 0, wanted, size, false, &svm, &at),
                                CL_INVALID_HOST_PTR);
                        assert_int_equal(*(char *)(uintptr_t)wanted, 0);
                }
                vm_unmap(wanted, 2 * size);
        }
        assert_int_equal(f->ops->svm_create(f->b, 0, wanted, size, false, &svm, &at), CL_SUCCESS);
        if (wanted)
                assert_int_equal(at, wanted);
        assert_int_equal(
                f->ops->svm_create(f->b, 0, wanted ? at + size : 0, size, false, &other, &at),
                CL_SUCCESS);
        f->ops->svm_release(other);
        at = wanted ? wanted : at;

        for (int i = 0; i < COUNT; i++)
                data[i] = i;
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        assert_int_equal(
                f->ops->svm_buffer_create(f->b, 0, svm, CL_MEM_READ_WRITE, 4096, BYTES, &m),
                CL_SUCCESS);
        run(f, write_of(m, 0, data, BYTES));
        set_inc(f, k, m, 5);
        run(f, launch_of(k));
        if (wanted) {
                set_pointer(f, k, wanted + 4096);
                run(f, launch_of(k));
        }
        run(f, read_of(m, 0, out, BYTES));
        for (int i = 0; i < COUNT; i++)
                assert_int_equal(out[i], i + (wanted ? 10 : 5));
        f->ops->kernel_release(k);
        f->ops->buffer_release(m);
        f->ops->svm_release(svm);
        unbuild(f, &x);
}

TEST(wrong_arguments_are_refused)
{
        struct fixture *f = fixture(state);
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f)), *none;
        struct backend_event *e;
        assert_int_equal(f->ops->kernel_create(x.program, "nonsense", &none),
                         CL_INVALID_KERNEL_NAME);
        assert_int_equal(try_submit(f, f->queue, launch_of(k), &e), CL_INVALID_KERNEL_ARGS);
        assert_int_equal(set_value(f, k, 2, "12345678", 4), CL_INVALID_ARG_INDEX);
        assert_int_equal(set_value(f, k, 1, "12345678", 8), CL_INVALID_ARG_SIZE);
        f->ops->kernel_release(k);
        unbuild(f, &x);
}

TEST(what_does_not_build_says_why)
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
        assert_int_equal(f->ops->kernel_create(x.program, "k", &none),
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

/* ---- order ---------------------------------------------------------------------------------- */

/* On an out-of-order queue and a second queue, dependencies are all that keeps the order. */
TEST(dependencies_order_a_chain_over_queues)
{
        struct fixture *f = fixture(state);
        enum { LINKS = 100 };
        struct backend_queue *q[2] = { queue_of(f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
                                       queue_of(f, 0) };
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        struct backend_buffer *m[2] = { buffer_of(f, BYTES), buffer_of(f, BYTES) };
        int zeros[COUNT] = { 0 }, out[COUNT];
        run(f, write_of(m[0], 0, zeros, BYTES));

        struct backend_event *events[2 * LINKS];
        for (int i = 0; i < LINKS; i++) {
                set_inc(f, k, m[i % 2], i);
                struct backend_command launch = launch_of(k);
                struct backend_command copy = { .op = BACKEND_COPY,
                                                .buffer = m[(i + 1) % 2],
                                                .source = m[i % 2],
                                                .size = BYTES };
                launch.deps = i ? &events[2 * i - 1] : NULL;
                launch.dep_count = i ? 1 : 0;
                events[2 * i] = submit(f, q[i % 2], launch);
                copy.deps = &events[2 * i];
                copy.dep_count = 1;
                events[2 * i + 1] = submit(f, q[(i / 2) % 2], copy);
        }
        struct backend_command last = read_of(m[LINKS % 2], 0, out, BYTES);
        last.deps = events; /* more than a few */
        last.dep_count = 2 * LINKS;
        run(f, last);
        assert_int_equal(out[0], LINKS * (LINKS - 1) / 2);
        assert_int_equal(out[COUNT - 1], LINKS * (LINKS - 1) / 2);

        for (int i = 0; i < 2 * LINKS; i++)
                f->ops->event_release(events[i]);
        for (int i = 0; i < 2; i++) {
                f->ops->buffer_release(m[i]);
                f->ops->queue_release(q[i]);
        }
        f->ops->kernel_release(k);
        unbuild(f, &x);
}

TEST(markers_and_barriers_wait_for_what_came_before)
{
        struct fixture *f = fixture(state);
        struct backend_queue *q = queue_of(f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        struct backend_buffer *m = buffer_of(f, BYTES);
        int out[COUNT];
        static const int zero = 0;
        set_inc(f, k, m, 3);
        struct backend_command barrier = { .op = BACKEND_BARRIER };
        struct backend_event *e[5] = {
                submit(f, q,
                       (struct backend_command){ .op = BACKEND_FILL,
                                                 .buffer = m,
                                                 .pattern = &zero,
                                                 .pattern_size = 4,
                                                 .size = BYTES }),
                submit(f, q, barrier),
                submit(f, q, launch_of(k)),
                submit(f, q, barrier),
                submit(f, q, read_of(m, 0, out, BYTES)),
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
                f->ops->event_release(e[i]);
        f->ops->queue_release(q);
        f->ops->kernel_release(k);
        f->ops->buffer_release(m);
        unbuild(f, &x);
}

/* ---- lifetimes, reports, times -------------------------------------------------------------- */

TEST(commands_in_flight_keep_what_they_use)
{
        struct fixture *f = fixture(state);
        struct backend_queue *q = queue_of(f, 0);
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        struct backend_buffer *m = buffer_of(f, BYTES);
        int zeros[COUNT] = { 0 }, out[COUNT] = { 0 };
        struct report r = { 0 };
        set_inc(f, k, m, 1);
        f->ops->event_release(submit(f, q, write_of(m, 0, zeros, BYTES)));
        for (int i = 0; i < 50; i++)
                f->ops->event_release(submit(f, q, launch_of(k)));
        struct backend_command last = read_of(m, 0, out, BYTES);
        last.cookie = &r;
        f->ops->event_release(submit(f, q, last));
        f->ops->kernel_release(k);
        f->ops->buffer_release(m);
        unbuild(f, &x);
        f->ops->queue_release(q);
        assert_int_equal(wait_for(&r).status, CL_SUCCESS);
        assert_int_equal(out[7], 50);
}

TEST(close_waits_for_commands_in_flight)
{
        struct fixture *f = fixture(state);
        uint8_t *data = calloc(1, 1 << 20);
        struct backend_buffer *m = buffer_of(f, 1 << 20);
        struct report r[20] = { 0 };
        for (int i = 0; i < 20; i++) {
                struct backend_command c = read_of(m, 0, data, 1 << 20);
                c.cookie = i % 2 ? &r[i] : NULL;
                f->ops->event_release(submit(f, f->queue, c));
        }
        f->ops->buffer_release(m);
        f->ops->queue_release(f->queue);
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
        unsigned before = atomic_load(&reports);
        for (int i = 0; i < MANY; i++) {
                struct backend_command c = { .op = BACKEND_MARKER, .cookie = &r[i] };
                f->ops->event_release(submit(f, f->queue, c));
        }
        f->ops->queue_flush(f->queue);
        for (int i = 0; i < MANY; i++)
                assert_int_equal(wait_for(&r[i]).status, CL_SUCCESS);
        assert_int_equal(atomic_load(&reports), before + MANY);
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
                r->f->ops->event_release(r->last);
        r->last = e;
        if (r->submitted % 4 == 0)
                r->f->ops->queue_flush(q);
}

static void on_relay_complete(void *user, void *cookie, cl_int status,
                              const struct backend_times *t)
{
        struct relay *r = user;
        pthread_mutex_lock(&r->engine);
        r->failed += status != CL_SUCCESS || inside;
        r->ended_count++;
        if (r->submitted < RELAY_COMMANDS)
                relay_submit(r);
        pthread_cond_signal(&r->ended);
        pthread_mutex_unlock(&r->engine);
}

static bool is_reported(struct report *r)
{
        pthread_mutex_lock(&lock);
        bool done = r->done;
        pthread_mutex_unlock(&lock);
        return done;
}

TEST(completions_come_while_somebody_polls_and_when_he_has_stopped)
{
        struct fixture *f = fixture(state);
        const struct backend_ops *ops = f->ops;
        if (!ops->poll)
                skip();
        struct backend_queue *queues[] = { f->queue,
                                           queue_of(f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) };
        struct backend_event *events[3 * array_size(queues)];
        struct report r[3 * array_size(queues)] = { 0 };
        /* Polled for, left over to the backend, and submitted when nobody polls. */
        for (size_t i = 0; i < array_size(r); i++) {
                struct backend_queue *q = queues[i % array_size(queues)];
                size_t phase = i / array_size(queues);
                struct backend_command c = { .op = BACKEND_MARKER, .cookie = &r[i] };
                ops->poll(f->b, phase == 2);
                events[i] = submit(f, q, c);
                ops->queue_flush(q);
                while (phase == 0 && !is_reported(&r[i]))
                        ops->poll(f->b, false);
        }
        for (size_t i = 0; i < array_size(r); i++) {
                assert_int_equal(wait_for(&r[i]).status, CL_SUCCESS);
                ops->event_release(events[i]);
        }
        ops->queue_release(queues[1]);
}

TEST(completions_can_be_asked_for_later)
{
        struct fixture *f = fixture(state);
        if (!f->ops->event_report)
                skip();
        struct backend_queue *q = queue_of(f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        struct backend_buffer *m = buffer_of(f, 64);
        uint8_t bytes[64] = { 1 };
        struct report r[3] = { 0 };
        struct backend_event *e[2];
        e[0] = submit(f, q, write_of(m, 0, bytes, 64));
        struct backend_event *const deps[] = { e[0] };
        struct backend_command second = read_of(m, 0, bytes, 64);
        second.deps = deps;
        second.dep_count = 1;
        e[1] = submit(f, q, second);
        inside = true;
        assert_int_equal(f->ops->event_report(q, e[1], &r[0]), CL_SUCCESS);
        inside = false;
        f->ops->queue_flush(q);
        assert_int_equal(wait_for(&r[0]).status, CL_SUCCESS);
        /* Of one that is complete, too. */
        inside = true;
        assert_int_equal(f->ops->event_status(e[0]), CL_COMPLETE);
        assert_int_equal(f->ops->event_report(q, e[0], &r[1]), CL_SUCCESS);
        inside = false;
        assert_int_equal(wait_for(&r[1]).status, CL_SUCCESS);
        for (size_t i = 0; i < 2; i++)
                f->ops->event_release(e[i]);
        f->ops->buffer_release(m);
        f->ops->queue_release(q);
}

TEST(completions_may_wait_for_operations_and_submit_more)
{
        struct fixture *f = fixture(state);
        struct relay r = { .engine = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };
        struct backend_params params = { .accelerators = places[1],
                                         .host = &backend_reference,
                                         .complete = on_relay_complete,
                                         .user = &r };
        struct fixture g = { .ops = f->ops, .native = f->native };
        assert_int_equal(f->ops->open(&params, &g.b), 0);
        r.f = &g;
        r.queues[0] = queue_of(&g, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        r.queues[1] = queue_of(&g, 0);
        r.buffer = buffer_of(&g, sizeof(r.data));

        pthread_mutex_lock(&r.engine);
        while (r.submitted < RELAY_COMMANDS) {
                relay_submit(&r);
                pthread_mutex_unlock(&r.engine);
                sched_yield();
                pthread_mutex_lock(&r.engine);
        }
        for (int i = 0; i < 2; i++)
                g.ops->queue_flush(r.queues[i]);
        while (r.ended_count < r.submitted)
                pthread_cond_wait(&r.ended, &r.engine);
        pthread_mutex_unlock(&r.engine);
        assert_int_equal(r.failed, 0);

        g.ops->event_release(r.last);
        g.ops->buffer_release(r.buffer);
        for (int i = 0; i < 2; i++)
                g.ops->queue_release(r.queues[i]);
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
        struct backend_queue *q = queue_of(f, CL_QUEUE_PROFILING_ENABLE);
        struct backend_buffer *m = buffer_of(f, BYTES);
        uint8_t data[BYTES] = { 0 };
        for (int i = 0; i < 10; i++) {
                struct report r = { 0 };
                struct backend_command c = write_of(m, 0, data, BYTES);
                c.cookie = &r;
                uint64_t before = now_ns();
                struct backend_event *e = submit(f, q, c);
                f->ops->queue_flush(q);
                struct backend_times t = wait_for(&r).times;
                uint64_t after = now_ns();
                assert_true(t.submit_ns <= t.start_ns && t.start_ns <= t.end_ns);
                assert_true(t.submit_ns >= before);
                assert_true(t.end_ns <= after);
                f->ops->event_release(e);
        }
        struct report r = { 0 };
        struct backend_command c = write_of(m, 0, data, BYTES);
        c.cookie = &r;
        f->ops->event_release(submit(f, f->queue, c));
        f->ops->queue_flush(f->queue);
        struct backend_times t = wait_for(&r).times;
        assert_int_equal(t.submit_ns | t.start_ns | t.end_ns, 0);
        f->ops->buffer_release(m);
        f->ops->queue_release(q);
}

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
        struct backend_buffer *m = buffer_of(f, BYTES);
        assert_int_equal(pthread_create(&thread, NULL, build_again, f), 0);
        for (int i = 0; i < 100; i++) {
                set_inc(f, k, m, i);
                run(f, launch_of(k));
        }
        pthread_join(thread, NULL);
        f->ops->kernel_release(k);
        f->ops->buffer_release(m);
        unbuild(f, &x);
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
        assert_int_equal(info_put(&parts, INFO_PART, f->native ? source : name,
                                  strlen(f->native ? source : name)),
                         0);
        struct fixture g = { .ops = f->ops, .native = f->native };
        mem_fail_at(n);
        bool ok =
                open_backend(g.ops, NULL, 1, &g.b) == 0 && g.ops->device_info(g.b, 0, &info) == 0 &&
                g.ops->queue_create(g.b, 0, 0, &q) == CL_SUCCESS &&
                g.ops->buffer_create(g.b, 0, 0, BYTES, &m) == CL_SUCCESS &&
                g.ops->program_create(g.b, 0, g.native ? 0 : 3, &device, 1, block_of(&parts), &p) ==
                        CL_SUCCESS &&
                g.ops->program_build(p, &device, 1, "-Dsize_t_like=ulong", &info) == CL_SUCCESS &&
                g.ops->program_binary(p, 0, &info) == CL_SUCCESS &&
                g.ops->kernel_create(p, name, &k) == CL_SUCCESS &&
                set_buffer(&g, k, 0, m) == CL_SUCCESS &&
                set_value(&g, k, 1, "1234", 4) == CL_SUCCESS &&
                try_submit(&g, q, launch_of(k), &e[submitted]) == CL_SUCCESS && ++submitted;
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
                g.ops->queue_flush(q);
                assert_int_equal(wait_for(&r).status, CL_SUCCESS);
        }
        for (unsigned i = 0; i < submitted; i++)
                g.ops->event_release(e[i]);
        g.ops->kernel_release(k);
        g.ops->program_release(p);
        g.ops->buffer_release(m);
        if (q)
                g.ops->queue_release(q);
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

/* ---- the reference backend alone ------------------------------------------------------------ */

static struct fixture *open_manual(uint64_t seed)
{
        static struct fixture f;
        f = (struct fixture){ .ops = &backend_reference };
        backend_reference_manual = true;
        backend_reference_seed = seed;
        assert_int_equal(open_backend(f.ops, NULL, 0, &f.b), 0);
        backend_reference_manual = false;
        backend_reference_seed = 0;
        f.queue = queue_of(&f, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        return &f;
}

TEST(steps_run_commands_on_the_calling_thread)
{
        (void)state;
        struct fixture *f = open_manual(0);
        struct report r[3] = { 0 };
        for (int i = 0; i < 3; i++)
                f->ops->event_release(
                        submit(f, f->queue,
                               (struct backend_command){ .op = BACKEND_MARKER, .cookie = &r[i] }));
        assert_false(r[0].done);
        assert_int_equal(backend_reference_step(f->b, 1), 1);
        assert_true(r[0].done && !r[1].done);
        assert_int_equal(backend_reference_step(f->b, 10), 2);
        assert_true(r[2].done);
        assert_int_equal(backend_reference_step(f->b, 10), 0);
        f->ops->queue_release(f->queue);
        f->ops->close(f->b);
}

/* Eight independent writes to one byte: which one is last depends on the order alone. */
static uint8_t last_writer(uint64_t seed, bool chained)
{
        struct fixture *f = open_manual(seed);
        uint8_t values[8] = { 0, 1, 2, 3, 4, 5, 6, 7 }, out = 99;
        struct backend_event *e[9];
        struct backend_buffer *m = buffer_of(f, 1);
        for (int i = 0; i < 8; i++) {
                struct backend_command c = write_of(m, 0, &values[i], 1);
                c.deps = chained && i ? &e[i - 1] : NULL;
                c.dep_count = chained && i ? 1 : 0;
                e[i] = submit(f, f->queue, c);
        }
        struct backend_command c = read_of(m, 0, &out, 1);
        c.deps = e;
        c.dep_count = 8;
        e[8] = submit(f, f->queue, c);
        assert_int_equal(backend_reference_step(f->b, 100), 9);
        for (int i = 0; i < 9; i++)
                f->ops->event_release(e[i]);
        f->ops->buffer_release(m);
        f->ops->queue_release(f->queue);
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
        struct backend_buffer *m = buffer_of(f, 4);
        struct report r[2] = { 0 };
        set_inc(f, k, m, 1);
        struct backend_command c = launch_of(k); /* 1024 work-items on one element */
        c.cookie = &r[0];
        struct backend_event *e = submit(f, f->queue, c);
        f->ops->event_release(submit(
                f, f->queue,
                (struct backend_command){
                        .op = BACKEND_MARKER, .deps = &e, .dep_count = 1, .cookie = &r[1] }));
        backend_reference_step(f->b, 2);
        assert_int_equal(r[0].status, CL_OUT_OF_RESOURCES);
        assert_int_equal(r[1].status, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        f->ops->event_release(e);
        f->ops->kernel_release(k);
        f->ops->buffer_release(m);
        unbuild(f, &x);
        f->ops->queue_release(f->queue);
        f->ops->close(f->b);
}

TEST(domains_do_not_mix)
{
        struct fixture *f = fixture(state);
        struct backend_buffer *other;
        struct backend_event *e;
        uint8_t data[4] = { 0 };
        assert_int_equal(f->ops->domain_count(f->b), 2);
        assert_int_equal(f->ops->buffer_create(f->b, 1, 0, 4, &other), CL_SUCCESS);
        assert_int_equal(try_submit(f, f->queue, write_of(other, 0, data, 4), &e),
                         CL_INVALID_CONTEXT);
        f->ops->buffer_release(other);
}

/* ---- the native backend alone --------------------------------------------------------------- */

TEST(kernels_are_found_in_ptx)
{
        static const char text[] =
                "//\n.version 8.4\n.target sm_90\n.global .u32 x.entry;\n"
                ".visible .entry first(\n\t.param .u64 first_param_0\n)\n{ ret; }\n"
                ".entry\t_b$2%x (.param .u64 p) { ret; }\n.entry";
        struct bytes rest = bytes_str(text), name;
        assert_true(kernellist_next_entry(&rest, &name));
        assert_int_equal(name.size, 5);
        assert_memory_equal(name.data, "first", 5);
        assert_true(kernellist_next_entry(&rest, &name));
        assert_int_equal(name.size, 6);
        assert_memory_equal(name.data, "_b$2%x", 6);
        assert_false(kernellist_next_entry(&rest, &name));
        rest = bytes_of(NULL, 0);
        assert_false(kernellist_next_entry(&rest, &name));
}

TEST(type_names_give_sizes)
{
        (void)state;
        assert_int_equal(kernelinfo_type_size("uchar"), 1);
        assert_int_equal(kernelinfo_type_size("unsigned short"), 2);
        assert_int_equal(kernelinfo_type_size("float3"), 16);
        assert_int_equal(kernelinfo_type_size("ulong16"), 128);
        assert_int_equal(kernelinfo_type_size("double2"), 16);
        assert_int_equal(kernelinfo_type_size("float5"), 0);
        assert_int_equal(kernelinfo_type_size("float_t"), 0);
        assert_int_equal(kernelinfo_type_size("struct float4"), 0);
}

static const struct {
        uint32_t kind;
        size_t size;
        bool record;
} expected_args[] = {
        { ARG_BUFFER, 8, false }, { ARG_BUFFER, 8, false },  { ARG_LOCAL, 0, false },
        { ARG_VALUE, 16, false }, { ARG_VALUE, 1, false },   { ARG_VALUE, 8, false },
        { ARG_VALUE, 24, true },  { ARG_BUFFER, 8, false },  { ARG_VALUE, 8, false },
        { ARG_VALUE, 3, true },   { ARG_VALUE, 128, false },
};

TEST(arguments_of_all_kinds_are_described)
{
        struct fixture *f = fixture(state);
        struct built x = build(f);
        struct bytes k = kernel_info(&x, "every"), v;
        for (unsigned i = 0; i < array_size(expected_args); i++) {
                struct bytes a = arg_info(k, i);
                assert_int_equal(info_u64(a, INFO_ARG_KIND, 0), expected_args[i].kind);
                /* the size of a struct is told by trying, if the implementation checks it */
                uint64_t size = info_u64(a, INFO_ARG_SIZE, 99);
                assert_true(size == expected_args[i].size || (!size && expected_args[i].record));
        }
        assert_string_equal(text_in(arg_info(k, 6), CL_KERNEL_ARG_TYPE_NAME), "item");
        assert_true(info_find(arg_info(k, 0), CL_KERNEL_ARG_TYPE_QUALIFIER, &v));
        assert_int_equal(bytes_get_u64(v.data), CL_KERNEL_ARG_TYPE_CONST);
        assert_true(info_find(k, INFO_KERNEL_DEVICE, &k));
        assert_true(info_find(k, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, &v));
        assert_memory_equal(v.data, ((size_t[3]){ 4, 2, 1 }), 24);
        unbuild(f, &x);
}

/* Where there is no argument information, trying finds the same. */
TEST(probing_finds_what_argument_information_says)
{
        struct fixture *f = fixture(state);
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, "every");
        struct backend_buffer *m = buffer_of(f, 64);
        for (unsigned i = 0; i < array_size(expected_args); i++) {
                struct kernelinfo_probe p =
                        kernelinfo_probe_arg(k->domain->api, k->kernel, i, m->mem);
                if (p.kind != expected_args[i].kind || p.size != expected_args[i].size)
                        print_message("argument %u: kind %u size %zu\n", i, p.kind, p.size);
                assert_true(!p.kind || p.kind == expected_args[i].kind);
                assert_true(!p.kind || !p.size || p.size == expected_args[i].size);
        }
        f->ops->buffer_release(m);
        f->ops->kernel_release(k);
        unbuild(f, &x);
}

TEST(a_binary_makes_the_same_program)
{
        struct fixture *f = fixture(state);
        struct built x = build(f);
        struct buf parts = { 0 };
        struct bytes part;
        assert_int_equal(f->ops->program_binary(x.program, 0, &parts), CL_SUCCESS);
        assert_true(info_find(block_of(&parts), INFO_PART, &part));
        assert_true(part.size > 0);
        struct built y = build_with(f, 1, part.data, part.size, "");
        assert_int_equal(y.status, CL_SUCCESS);
        kernel_info(&y, "inc");
        struct backend_kernel *k = kernel_of(f, &y, "inc");
        f->ops->kernel_release(k);
        unbuild(f, &y);
        unbuild(f, &x);
        buf_fini(&parts);
}

static unsigned devices_with(const char *variable, const char *value)
{
        struct backend *b;
        setenv(variable, value, 1);
        int r = open_backend(&backend_native, NULL, 0, &b);
        unsetenv(variable);
        assert_true(r == 0 || r == SP_E_NODEV);
        if (r < 0)
                return 0;
        unsigned n = backend_native.device_count(b);
        backend_native.close(b);
        return n;
}

TEST(implementations_are_found_where_the_environment_says)
{
        struct fixture *f = fixture(state);
        unsigned n = f->ops->device_count(f->b);
        if (getenv("OCL_ICD_FILENAMES") || getenv("OCL_ICD_VENDORS"))
                skip(); /* whoever set them wants others than the usual ones */
        char folder[] = "/tmp/spancl-test-XXXXXX", command[1024];
        assert_non_null(mkdtemp(folder));
        assert_int_equal(devices_with("OCL_ICD_VENDORS", folder), 0);
        assert_int_equal(devices_with("OCL_ICD_VENDORS", "/nonexistent"), 0);
        assert_int_equal(devices_with("OPENCL_VENDOR_PATH", folder), 0);
        assert_int_equal(devices_with("OCL_ICD_VENDORS", "/etc/OpenCL/vendors"), n);
        assert_int_equal(devices_with("OPENCL_VENDOR_PATH", "/etc/OpenCL/vendors/"), n);
        /* a second mention, and what is no ICD, add nothing */
        snprintf(command, sizeof(command),
                 "cp /etc/OpenCL/vendors/*.icd %s/ && for i in /etc/OpenCL/vendors/*.icd; do "
                 "cp $i %s/again-$(basename $i); done && echo libm.so.6 > %s/no.icd && "
                 "echo /no/such.so > %s/none.icd && : > %s/empty.icd",
                 folder, folder, folder, folder, folder);
        assert_int_equal(system(command), 0);
        assert_int_equal(devices_with("OCL_ICD_VENDORS", folder), n);
        snprintf(command, sizeof(command), "rm -r %s", folder);
        assert_int_equal(system(command), 0);
}

/* A library of ours must never be used, or a server would be its own client. Who names it alone means
 * the program, not what SpanCL forwards to. */
TEST(our_own_library_is_left_out)
{
        struct fixture *f = fixture(state);
        if (getenv("OCL_ICD_FILENAMES"))
                skip();
        const char *build_dir = getenv("SPANCL_BUILD_DIR");
        char path[4096];
        snprintf(path, sizeof(path), "%s/lib/libspancl.so", build_dir ? build_dir : ".");
        FILE *library = fopen(path, "r");
        if (!library)
                skip();
        fclose(library);
        const unsigned usual = f->ops->device_count(f->b);
        assert_int_equal(devices_with("OCL_ICD_VENDORS", path), usual);
        assert_int_equal(devices_with("OCL_ICD_FILENAMES", path), usual);
}

static void end_by_waiting(struct fixture *f, enum completion completion)
{
        /* The same backend, with completions noticed the other way. */
        static struct quirks q;
        q = *f->b->domains[0].quirks;
        q.completion = completion;
        f->b->domains[0].quirks = &q;
        for (int i = 0; i < 3; i++) {
                f->ops->queue_release(f->queue);
                f->queue = queue_of(f, i & 1 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
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

/* ---- the matrix ----------------------------------------------------------------------------- */

#define ALL(test)                                                           \
        { "reference: " #test, test, set_up_reference, tear_down, NULL },   \
                { "almaif: " #test, test, set_up_almaif, tear_down, NULL }, \
                { "joined: " #test, test, set_up_joined, tear_down, NULL }, \
        {                                                                   \
                "native: " #test, test, set_up_native, tear_down, NULL      \
        }
#define REFERENCE(test)                                                      \
        {                                                                    \
                "reference: " #test, test, set_up_reference, tear_down, NULL \
        }
#define NATIVE(test)                                                   \
        {                                                              \
                "native: " #test, test, set_up_native, tear_down, NULL \
        }

int main(void)
{
        const struct CMUnitTest tests[] = {
                ALL(a_device_says_what_it_is),
                ALL(every_query_of_opencl_3_is_there),
                ALL(the_filter_leaves_the_devices_it_names),
                ALL(what_was_written_is_read),
                ALL(host_memory_serves_transfers_until_the_end),
                ALL(new_memory_is_clear_where_that_is_wanted),
                ALL(boxes_are_written_copied_and_read),
                ALL(patterns_fill_and_ranges_are_copied),
                ALL(a_sub_buffer_is_part_of_its_parent),
                ALL(a_command_that_cannot_start_is_not_reported),
                ALL(a_kernel_runs_with_its_arguments),
                ALL(shared_virtual_memory_lies_where_it_is_wanted),
                ALL(wrong_arguments_are_refused),
                ALL(what_does_not_build_says_why),
                ALL(a_build_describes_its_kernels),
                ALL(kernels_without_arguments_build),
                ALL(dependencies_order_a_chain_over_queues),
                ALL(markers_and_barriers_wait_for_what_came_before),
                ALL(commands_in_flight_keep_what_they_use),
                ALL(close_waits_for_commands_in_flight),
                ALL(each_command_with_a_cookie_is_reported_once),
                ALL(completions_come_while_somebody_polls_and_when_he_has_stopped),
                ALL(completions_can_be_asked_for_later),
                ALL(completions_may_wait_for_operations_and_submit_more),
                ALL(times_are_this_hosts_when_asked_for),
                ALL(builds_run_beside_commands),
                ALL(each_allocation_may_fail),
                cmocka_unit_test(the_filter_has_numbers_types_and_names),
                cmocka_unit_test(steps_run_commands_on_the_calling_thread),
                cmocka_unit_test(a_seed_shows_missing_dependencies_and_repeats),
                cmocka_unit_test(a_failed_dependency_fails_the_command),
                REFERENCE(domains_do_not_mix),
                cmocka_unit_test(kernels_are_found_in_ptx),
                cmocka_unit_test(type_names_give_sizes),
                NATIVE(arguments_of_all_kinds_are_described),
                NATIVE(probing_finds_what_argument_information_says),
                NATIVE(a_binary_makes_the_same_program),
                NATIVE(implementations_are_found_where_the_environment_says),
                NATIVE(our_own_library_is_left_out),
                NATIVE(completions_come_by_callback_or_by_waiting),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
