/* A backend's device queries, and its choice of devices to offer: over each backend. */
#include "support/check.h"

#include "backend/filter.h"
#include "base/mem.h"
#include "support/backends.h"

TEST(a_device_says_what_it_is)
{
        struct fixture *f = fixture(state);
        for (unsigned i = 0; i < f->ops->device.count(f->b); i++) {
                struct buf info = { 0 };
                assert_int_equal(f->ops->device.info(f->b, i, &info), 0);
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
                                 f->ops->device.domain(f->b, i));
                assert_true(f->ops->device.domain(f->b, i) < f->ops->domain_count(f->b));
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
        assert_int_equal(f->ops->device.info(f->b, 0, &info), 0);
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
        assert_int_equal(f->ops->device.count(b), 1);
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
        assert_false(filter_match("!3", 3, gpu, "x"));
        assert_true(filter_match("!3", 33, gpu, "x"));
        assert_false(filter_match("gpu,!3", 3, gpu, "x"));
        assert_false(filter_match("!3, gpu", 3, gpu, "x"));
        assert_true(filter_match("gpu,!3", 2, gpu, "x"));
        assert_false(filter_match("gpu,!3", 2, cpu, "x"));
        assert_false(filter_match("!radeon", 2, gpu, "AMD Radeon VII"));
        assert_true(filter_match("!", 0, gpu, "Ready!"));
        assert_false(filter_match("!", 0, gpu, "x"));
}

/* Reference backends that show one of their two devices, until that is divided. */
static struct {
        struct backend *b;
        unsigned count;
} divisible[2];
static unsigned divisible_parts;

static int divisible_open(const struct backend_params *params, struct backend **ret)
{
        int r = backend_reference.open(params, ret);
        unsigned i = divisible[0].b != NULL;
        divisible[i].b = *ret;
        divisible[i].count = 1;
        return r;
}

static unsigned divisible_count(struct backend *b)
{
        return divisible[divisible[1].b == b].count;
}

static cl_int divisible_partition(struct backend *b, unsigned device,
                                  const cl_device_partition_property *properties,
                                  unsigned *ret_first, unsigned *ret_count)
{
        (void)properties;
        assert_int_equal(device, 0);
        *ret_first = divisible[divisible[1].b == b].count;
        *ret_count = divisible_parts;
        divisible[divisible[1].b == b].count += divisible_parts;
        return CL_SUCCESS;
}

static void divisible_release(struct backend *b, unsigned device)
{
        (void)b;
        (void)device;
}

TEST(a_composite_numbers_the_devices_of_all_its_parts)
{
        (void)state;
        struct backend_ops dividing = backend_reference;
        memset(divisible, 0, sizeof(divisible));
        divisible_parts = 1;
        dividing.open = divisible_open;
        dividing.device.count = dividing.domain_count = divisible_count;
        dividing.device.partition = divisible_partition;
        const struct backend_ops *const ops = &backend_composite;
        const struct backend_ops *const parts[] = { &dividing, &backend_reference, &dividing,
                                                    NULL };
        struct backend *b;
        assert_int_equal(ops->open(&(struct backend_params){ .parts = parts }, &b), 0);
        assert_int_equal(ops->device.count(b), 4);
        static const unsigned labels[] = { 0, 1000, 1001, 2000 };
        for (unsigned i = 0; i < 4; i++) {
                unsigned number;
                char name[32];
                assert_true(ops->device.label(b, i, &number, name, sizeof(name)));
                assert_int_equal(number, labels[i]);
                assert_int_equal(ops->device.domain(b, i), i);
        }

        /* Later devices come behind all others, whichever part has them. */
        unsigned first, count;
        assert_int_equal(ops->device.partition(b, 3, NULL, &first, &count), CL_SUCCESS);
        assert_int_equal(first, 4);
        assert_int_equal(ops->device.partition(b, 0, NULL, &first, &count), CL_SUCCESS);
        assert_int_equal(first, 5);
        assert_int_equal(count, 1);
        assert_int_equal(ops->device.partition(b, 1, NULL, &first, &count), CL_INVALID_VALUE);
        assert_int_equal(ops->device.count(b), 6);
        assert_int_equal(ops->domain_count(b), 6);
        for (unsigned i = 0; i < 6; i++) {
                struct buf info = { 0 };
                assert_int_equal(ops->device.domain(b, i), i);
                assert_int_equal(ops->device.info(b, i, &info), 0);
                assert_int_equal(info_u64(block_of(&info), INFO_DEVICE_DOMAIN, 99), i);
                buf_fini(&info);
        }

        struct backend_buffer *m;
        struct backend_queue *q[2];
        struct backend_event *e;
        const cl_uint pattern = 7;
        struct backend_command fill = {
                .op = BACKEND_FILL, .size = 4, .pattern = &pattern, .pattern_size = 4
        };
        assert_int_equal(ops->buffer.create(b, 5, 0, 4, &m), CL_SUCCESS);
        fill.buffer = m;
        for (unsigned i = 0; i < 2; i++)
                assert_int_equal(ops->queue.create(b, 4 + i, 0, &q[i]), CL_SUCCESS);
        assert_int_equal(ops->submit(q[0], &fill, &e), CL_INVALID_CONTEXT);
        assert_int_equal(ops->submit(q[1], &fill, &e), CL_SUCCESS);
        ops->event.release(e);
        for (unsigned i = 0; i < 2; i++)
                ops->queue.release(q[i]);
        ops->buffer.release(m);
        ops->close(b);
}

TEST(a_composite_refuses_more_devices_than_it_can_number)
{
        (void)state;
        enum { MOST = 1 << 16 };
        struct backend_ops dividing = backend_reference;
        memset(divisible, 0, sizeof(divisible));
        dividing.open = divisible_open;
        dividing.device.count = dividing.domain_count = divisible_count;
        dividing.device.partition = divisible_partition;
        dividing.device.release = divisible_release;
        const struct backend_ops *const ops = &backend_composite;
        const struct backend_ops *const parts[] = { &dividing, &backend_reference, NULL };
        struct backend *b;
        unsigned first, count;
        assert_int_equal(ops->open(&(struct backend_params){ .parts = parts }, &b), 0);
        assert_int_equal(ops->device.count(b), 3);
        divisible_parts = MOST - 4;
        assert_int_equal(ops->device.partition(b, 0, NULL, &first, &count), CL_SUCCESS);
        /* The part numbers these, and does not use the numbers again. */
        divisible_parts = 2;
        for (int i = 0; i < 3; i++)
                assert_int_equal(ops->device.partition(b, 0, NULL, &first, &count),
                                 CL_OUT_OF_RESOURCES);
        divisible_parts = 1;
        assert_int_equal(ops->device.partition(b, 0, NULL, &first, &count), CL_OUT_OF_RESOURCES);
        assert_int_equal(ops->device.count(b), MOST - 1);
        ops->close(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ALL(a_device_says_what_it_is),
                ALL(every_query_of_opencl_3_is_there),
                ALL(the_filter_leaves_the_devices_it_names),
                cmocka_unit_test(the_filter_has_numbers_types_and_names),
                cmocka_unit_test(a_composite_numbers_the_devices_of_all_its_parts),
                cmocka_unit_test(a_composite_refuses_more_devices_than_it_can_number),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
