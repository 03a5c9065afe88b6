/* The limits of one client's use of an engine: objects, bytes in transfers, time. */
#include "support/check.h"

#include <semaphore.h>
#include <stdlib.h>

#include "base/log.h"
#include "support/world.h"

static struct world *world_limited(enum engine_limit which, uint64_t max)
{
        limits.max[which] = max;
        struct world *w = world_new(1);
        limits = (struct engine_limits){ 0 };
        return w;
}

TEST(more_objects_than_allowed_can_be_made_but_not_used)
{
        log_threshold = LOG_ERROR;
        struct world *w = world_limited(LIMIT_OBJECTS, 7);
        make_objects(w, 0, 64); /* the second buffer is one too many */
        send(w, 0, queue_create, .queue = QUEUE(9), .device = 0);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        fill_zero(w, 0, QUEUE(1), EVENT(2), BUFFER(2), 64);
        launch(w, 0, QUEUE(1), EVENT(3), BUFFER(1), 1);
        launch(w, 0, QUEUE(1), EVENT(4), BUFFER(2), 1);
        launch(w, 0, QUEUE(9), EVENT(5), BUFFER(1), 1);
        send(w, 0, svm_create, .request = 1, .svm = object_id(OBJECT_SVM, 1), .size = 65536);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(status_of(w, 0, EVENT(5)), CL_OUT_OF_RESOURCES);
        assert_int_equal(w->nodes[0].answer, CL_MEM_OBJECT_ALLOCATION_FAILURE);
        send(w, 0, release, .object = QUEUE(9));
        release_objects(w, 0);
        world_free(w);
}

TEST(storage_that_could_not_be_made_does_not_count)
{
        struct world *w = world_limited(LIMIT_STORAGE, (1ull << 50) + 64);
        make_objects(w, 0, 64);
        send(w, 0, buffer_create, .buffer = BUFFER(9), .flags = CL_MEM_READ_WRITE,
             .size = 1ull << 50);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(9), 64);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 1);
        launch(w, 0, QUEUE(1), EVENT(3), BUFFER(2), 1);
        world_run(w);
        assert_true(status_of(w, 0, EVENT(1)) < 0); /* more than this host has */
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        send(w, 0, release, .object = BUFFER(9));
        release_objects(w, 0);
        world_free(w);
}

/* A device that is full until the test says otherwise. */
static bool device_is_full;

static cl_int full_create(struct backend *b, unsigned domain, cl_mem_flags flags, size_t size,
                          struct backend_buffer **ret)
{
        return device_is_full ? CL_MEM_OBJECT_ALLOCATION_FAILURE
                              : backend_reference.buffer.create(b, domain, flags, size, ret);
}

static int expire(struct world *w)
{
        struct engine *e = w->nodes[0].engine;
        engine_lock(e);
        int r = engine_expire(e, now_ns);
        engine_unlock(e);
        return r;
}

static uint64_t deadline(struct world *w)
{
        struct engine *e = w->nodes[0].engine;
        engine_lock(e);
        uint64_t d = engine_deadline(e);
        engine_unlock(e);
        return d;
}

TEST(commands_wait_for_device_memory_and_fail_when_it_takes_too_long)
{
        struct backend_ops ops = backend_reference;
        struct world *w = calloc(1, sizeof(*w));
        ops.buffer.create = full_create;
        w->count = 1;
        limits.room_wait_ns = 1000000000;
        assert_int_equal(node_init_on(&w->nodes[0], &ops, true, NULL), 0);
        limits = (struct engine_limits){ 0 };
        device_is_full = true;
        make_objects(w, 0, 64);
        launch(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 1);
        struct data *a = write_buffer(w, 0, QUEUE(2), EVENT(3), BUFFER(2), 64, 1);
        world_run(w);
        for (unsigned i = 1; i <= 3; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), PENDING);
        for (unsigned i = 0; i < 4; i++) {
                assert_true(deadline(w) <= now_ns + 100000000);
                now_ns = deadline(w) > now_ns ? deadline(w) : now_ns;
                assert_int_equal(expire(w), 0);
                world_run(w);
                assert_int_equal(status_of(w, 0, EVENT(1)), PENDING);
        }
        device_is_full = false;
        now_ns = deadline(w);
        assert_int_equal(expire(w), 0);
        world_run(w);
        for (unsigned i = 1; i <= 3; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), CL_SUCCESS);
        struct data *got = read_buffer(w, 0, QUEUE(2), EVENT(4), BUFFER(2), 64);
        world_run(w);
        expect_same(a, got);
        assert_true(deadline(w) == UINT64_MAX);

        device_is_full = true;
        send(w, 0, buffer_create, .buffer = BUFFER(9), .flags = CL_MEM_READ_WRITE, .size = 64);
        launch(w, 0, QUEUE(1), EVENT(5), BUFFER(9), 1);
        launch(w, 0, QUEUE(1), EVENT(6), BUFFER(1), 1);
        world_run(w);
        now_ns += 999999999;
        assert_int_equal(expire(w), 0);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(6)), PENDING);
        now_ns += 100000000;
        assert_int_equal(expire(w), 0);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(5)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(status_of(w, 0, EVENT(6)), CL_SUCCESS);
        /* A session that ends does not wait. */
        launch(w, 0, QUEUE(1), EVENT(7), BUFFER(9), 1);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(7)), PENDING);
        world_free(w);
        device_is_full = false;
}

TEST(an_account_holds_what_the_sessions_of_a_client_hold)
{
        static struct account_page page;
        static bool taken[ACCOUNT_SLOTS];
        struct account a = { .page = &page, .max = 200, .timed = true };
        memset(&page, 0, sizeof(page));
        assert_true(account_open(&page, taken, ACCOUNT_DEVICES, &a.slot));
        struct world *w = world_new(1);
        engine_lock(w->nodes[0].engine);
        engine_use_account(w->nodes[0].engine, &a);
        engine_unlock(w->nodes[0].engine);
        make_objects(w, 0, 64);
        page.held[1] = 100; /* another session's */
        page.used = 2;
        launch(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1);
        fill_zero(w, 0, QUEUE(1), EVENT(2), BUFFER(2), 64);
        pump(w);
        now_ns += 1000;
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(account_sum(&page), 164);
        assert_true(page.time.busy_ns >= 1000);
        page.held[1] = 0;
        page.time.paused = 1;
        send(w, 0, buffer_fill, .event = EVENT(3), .flags = COMMAND_NOTIFY, .queue = QUEUE(2),
             .buffer = BUFFER(2), .size = 64, .pattern = bytes_of("", 1));
        launch(w, 0, QUEUE(1), EVENT(4), BUFFER(1), 1);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS); /* it is no kernel */
        assert_int_equal(status_of(w, 0, EVENT(4)), PENDING);
        page.time.paused = 0;
        now_ns = deadline(w);
        assert_int_equal(expire(w), 0);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
        release_objects(w, 0);
        assert_int_equal(account_sum(&page), 0);
        world_free(w);
}

/* The devices of the reference backend, in one native context. */
static unsigned one_domain(struct backend *b, unsigned device)
{
        (void)b, (void)device;
        return 0;
}

static cl_int one_queue_create(struct backend *b, unsigned device,
                               cl_command_queue_properties props, struct backend_queue **ret)
{
        (void)device;
        return backend_reference.queue.create(b, 0, props, ret);
}

/* Device 1 has column 3 of the page. */
enum { COLUMN = 3 };

static struct account_page device_page;

static struct world *world_with_device_limit(const struct backend_ops *ops,
                                             struct account_device device)
{
        static bool taken[ACCOUNT_SLOTS];
        struct account a = { .page = &device_page, .max = UINT64_MAX, .device_count = 2 };
        memset(&device_page, 0, sizeof(device_page));
        memset(taken, 0, sizeof(taken));
        a.devices[0] =
                (struct account_device){ .number = 77, .max = 1 }; /* it has no such device */
        a.devices[1] = device;
        assert_true(account_open(&device_page, taken, ACCOUNT_DEVICES, &a.slot));
        struct world *w = calloc(1, sizeof(*w));
        w->count = 1;
        assert_int_equal(node_init_on(&w->nodes[0], ops, true, NULL), 0);
        limits = (struct engine_limits){ 0 };
        engine_lock(w->nodes[0].engine);
        engine_use_account(w->nodes[0].engine, &a);
        engine_unlock(w->nodes[0].engine);
        make_objects(w, 0, 64);
        return w;
}

static uint64_t on_device(void)
{
        return account_device_sum(&device_page, COLUMN);
}

TEST(a_device_has_a_limit_of_memory_of_its_own)
{
        struct world *w = world_with_device_limit(
                &backend_reference,
                (struct account_device){ .number = 1, .column = COLUMN, .max = 100 });
        send(w, 0, sub_buffer_create, .buffer = BUFFER(3), .parent = BUFFER(1), .size = 64);
        launch(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(2), 1);
        world_run(w);
        assert_int_equal(on_device(), 0);
        assert_int_equal(account_sum(&device_page), 128);
        launch(w, 0, QUEUE(3), EVENT(3), BUFFER(3), 1);
        launch(w, 0, QUEUE(3), EVENT(4), BUFFER(1), 1);
        fill_zero(w, 0, QUEUE(3), EVENT(5), BUFFER(2), 64);
        launch(w, 0, QUEUE(1), EVENT(6), BUFFER(2), 1);
        send(w, 0, svm_create, .request = 1, .svm = object_id(OBJECT_SVM, 1), .device = 1,
             .size = 65536);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(5)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(status_of(w, 0, EVENT(6)), CL_SUCCESS);
        assert_int_equal(w->nodes[0].answer, CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(on_device(), 64);
        assert_int_equal(account_sum(&device_page), 192);
        /* The parent stays while a part of it is there; then there is room for another buffer. */
        send(w, 0, release, .object = BUFFER(1));
        fill_zero(w, 0, QUEUE(3), EVENT(7), BUFFER(2), 64);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(7)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        send(w, 0, release, .object = BUFFER(3));
        launch(w, 0, QUEUE(3), EVENT(8), BUFFER(2), 1);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(8)), CL_SUCCESS);
        send(w, 0, buffer_create, .buffer = BUFFER(1), .flags = CL_MEM_READ_WRITE, .size = 64);
        release_objects(w, 0);
        assert_int_equal(on_device(), 0);
        assert_int_equal(account_sum(&device_page), 0);
        world_free(w);
}

TEST(a_buffer_counts_on_each_device_of_a_native_context_that_uses_it)
{
        struct backend_ops ops = backend_reference;
        ops.device.domain = one_domain;
        ops.queue.create = one_queue_create;
        struct world *w = world_with_device_limit(
                &ops, (struct account_device){ .number = 1, .column = COLUMN, .max = 100 });
        /* All is made, and set as the kernel's argument, by device 0. */
        launch(w, 0, QUEUE(1), EVENT(1), BUFFER(2), 1);
        launch_unnamed(w, EVENT(2), BUFFER(1), 1);
        world_run(w);
        assert_int_equal(on_device(), 0);
        send(w, 0, kernel_launch, .event = EVENT(3), .queue = QUEUE(3), .kernel = KERNEL(1),
             .global = WAITS(16)); /* with the same arguments */
        world_run(w);
        assert_int_equal(on_device(), 64);
        launch(w, 0, QUEUE(3), EVENT(4), BUFFER(2), 1);
        launch(w, 0, QUEUE(1), EVENT(5), BUFFER(2), 1);
        launch(w, 0, QUEUE(3), EVENT(6), 0, 1);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(status_of(w, 0, EVENT(5)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(6)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(on_device(), 64);
        assert_int_equal(account_sum(&device_page), 128); /* storage counts once for all devices */
        /* All devices can use addresses of the context. */
        send(w, 0, svm_create, .request = 1, .svm = object_id(OBJECT_SVM, 1), .device = 0,
             .size = 65536);
        pump(w);
        assert_int_equal(w->nodes[0].answer, CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_int_equal(account_sum(&device_page), 128);
        release_objects(w, 0);
        assert_int_equal(on_device(), 0);
        world_free(w);
}

/* Sub-devices 2 and 3 of device 1. */
static unsigned divided_domain(struct backend *b, unsigned device)
{
        return backend_reference.device.domain(b, device > 1 ? 1 : device);
}

static int divided_info(struct backend *b, unsigned device, struct buf *out)
{
        return backend_reference.device.info(b, device > 1 ? 1 : device, out);
}

static cl_int divided_partition(struct backend *b, unsigned device,
                                const cl_device_partition_property *properties, unsigned *ret_first,
                                unsigned *ret_count)
{
        (void)b, (void)properties;
        assert_int_equal(device, 1);
        *ret_first = *ret_count = 2;
        return CL_SUCCESS;
}

static void divided_release(struct backend *b, unsigned device)
{
        (void)b, (void)device;
}

static cl_int query_kernel(struct world *w, unsigned device, uint64_t kernel, uint64_t buffer)
{
        struct buf args = { 0 };
        put_args(&args, buffer, 1);
        send(w, 0, kernel_query, .request = 1, .kernel = kernel, .device = device,
             .name = CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, .input = WAITS(16), .size = 8,
             .args = bytes_of(args.data, args.size));
        pump(w);
        buf_fini(&args);
        assert_false(w->nodes[0].died);
        return w->nodes[0].answer;
}

TEST(a_released_sub_device_takes_no_memory_and_answers_no_query)
{
        struct backend_ops ops = backend_reference;
        struct buf parts = { 0 };
        const uint64_t program = object_id(OBJECT_PROGRAM, 2);
        ops.device.domain = divided_domain;
        ops.device.info = divided_info;
        ops.device.partition = divided_partition;
        ops.device.release = divided_release;
        struct world *w = world_with_device_limit(
                &ops, (struct account_device){ .number = 1, .column = COLUMN, .max = 100 });
        send(w, 0, device_partition, .request = 1, .device = 1,
             .properties = WAITS(CL_DEVICE_PARTITION_EQUALLY, 1));
        pump(w);
        assert_int_equal(w->nodes[0].answer, CL_SUCCESS);
        assert_int_equal(info_put(&parts, INFO_PART, "spancl.inc.i32", 14), 0);
        send(w, 0, program_create, .program = program, .kind = 3, .devices = WAITS(3),
             .parts = bytes_of(parts.data, parts.size));
        send(w, 0, program_build, .request = 2, .program = program, .devices = WAITS(3));
        send(w, 0, kernel_create, .kernel = KERNEL(9), .program = program,
             .name = bytes_str("spancl.inc.i32"));
        buf_fini(&parts);
        /* The reference backend has no queries, but the engine makes the argument's storage. */
        assert_int_equal(query_kernel(w, 3, KERNEL(9), BUFFER(1)), CL_INVALID_OPERATION);
        assert_int_equal(on_device(), 64);
        send(w, 0, release, .object = BUFFER(1));
        send(w, 0, device_release, .device = 3);
        assert_int_equal(query_kernel(w, 3, KERNEL(9), BUFFER(2)), CL_INVALID_DEVICE);
        assert_int_equal(query_kernel(w, 2, KERNEL(9), BUFFER(2)), CL_INVALID_DEVICE);
        assert_int_equal(on_device(), 0);
        assert_int_equal(account_sum(&device_page), 0);
        send(w, 0, device_release, .device = 2);
        send(w, 0, release, .object = KERNEL(9));
        send(w, 0, release, .object = program);
        send(w, 0, buffer_create, .buffer = BUFFER(1), .flags = CL_MEM_READ_WRITE, .size = 64);
        release_objects(w, 0);
        world_free(w);
}

static void launch_untracked(struct world *w, uint64_t queue, uint64_t event, uint64_t buffer)
{
        struct buf args = { 0 };
        put_args(&args, buffer, 1);
        send(w, 0, kernel_launch, .event = event, .queue = queue, .kernel = KERNEL(1),
             .global = WAITS(16), .args = bytes_of(args.data, args.size));
        buf_fini(&args);
}

TEST(memory_that_commands_in_flight_use_stays_in_the_account)
{
        struct world *w = world_with_device_limit(
                &backend_reference,
                (struct account_device){ .number = 1, .column = COLUMN, .max = 100 });
        world_run(w);
        for (unsigned i = 1; i <= 2; i++) {
                if (i == 1)
                        launch(w, 0, QUEUE(3), EVENT(1), BUFFER(i), 1);
                else
                        launch_untracked(w, QUEUE(3), EVENT(2), BUFFER(i));
                pump(w);
                assert_int_equal(on_device(), 64);
                send(w, 0, release, .object = BUFFER(i));
                pump(w);
                assert_int_equal(on_device(), 64);
                world_run(w);
                assert_int_equal(on_device(), 0);
                send(w, 0, buffer_create, .buffer = BUFFER(i), .flags = CL_MEM_READ_WRITE,
                     .size = 64);
        }
        release_objects(w, 0);
        world_free(w);
}

TEST(commands_wait_for_memory_of_one_device_and_not_for_more_than_its_limit)
{
        limits.room_wait_ns = 1000000000;
        struct world *w = world_with_device_limit(
                &backend_reference,
                (struct account_device){ .number = 1, .column = COLUMN, .max = 100 });
        send(w, 0, buffer_create, .buffer = BUFFER(9), .flags = CL_MEM_READ_WRITE, .size = 101);
        device_page.device_held[COLUMN][1] = 90; /* another session's */
        device_page.used = 2;
        launch(w, 0, QUEUE(3), EVENT(1), BUFFER(1), 1);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 1);
        launch(w, 0, QUEUE(2), EVENT(3), BUFFER(9), 1);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), PENDING);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        device_page.device_held[COLUMN][1] = 0; /* its process has ended */
        now_ns = deadline(w);
        assert_int_equal(expire(w), 0);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        fill_zero(w, 0, QUEUE(3), EVENT(4), BUFFER(9), 64);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        /* Nonsense in the page makes takes fail, and nothing else. */
        memset(device_page.device_held, 0xff, sizeof(device_page.device_held));
        device_page.used = UINT64_MAX;
        fill_zero(w, 0, QUEUE(3), EVENT(5), BUFFER(2), 64);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(5)), PENDING);
        now_ns += 2000000000;
        assert_int_equal(expire(w), 0);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(5)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
        send(w, 0, release, .object = BUFFER(9));
        release_objects(w, 0);
        world_free(w);
}

TEST(a_device_has_a_limit_of_time_of_its_own)
{
        struct world *w = world_with_device_limit(
                &backend_reference,
                (struct account_device){
                        .number = 1, .column = COLUMN, .max = UINT64_MAX, .timed = true });
        const struct account_time *t = &device_page.device_time[COLUMN];
        struct buf usage = { 0 };
        launch(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1);
        pump(w);
        now_ns += 500;
        world_run(w);
        assert_int_equal(t->busy_ns, 0);
        launch(w, 0, QUEUE(3), EVENT(2), BUFFER(1), 1);
        pump(w);
        now_ns += 1000;
        /* A session that ends now has used that time, though the command is not complete. */
        engine_lock(w->nodes[0].engine);
        assert_int_equal(engine_get_usage(w->nodes[0].engine, 0, &usage), 0);
        engine_unlock(w->nodes[0].engine);
        assert_int_equal(t->busy_ns, 1000);
        now_ns += 500;
        world_run(w);
        assert_int_equal(t->busy_ns, 1500);
        assert_int_equal(device_page.time.busy_ns, 0); /* it has no limit */
        device_page.device_time[COLUMN].paused = 1;
        launch(w, 0, QUEUE(3), EVENT(3), BUFFER(1), 1);
        launch(w, 0, QUEUE(1), EVENT(4), BUFFER(2), 1);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(3)), PENDING);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_SUCCESS);
        device_page.device_time[COLUMN].paused = 0;
        now_ns = deadline(w);
        assert_int_equal(expire(w), 0);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        buf_fini(&usage);
        release_objects(w, 0);
        world_free(w);
}

/* Launches are handed to the server all at once: on device 0, whose time is limited, and on device 1. */
static void launch_backlog(struct world *w)
{
        send(w, 0, queue_create, .queue = QUEUE(4), .device = 0);
        for (unsigned i = 1; i <= 6; i++)
                launch(w, 0,
                       i % 3    ? QUEUE(2)
                       : i == 3 ? QUEUE(1)
                                : QUEUE(4),
                       EVENT(i), BUFFER(1), 1);
        for (unsigned i = 7; i <= 10; i++)
                launch(w, 0, QUEUE(3), EVENT(i), BUFFER(2), 1);
        pump(w);
}

static unsigned completed(struct world *w, unsigned first, unsigned last)
{
        unsigned count = 0;
        for (unsigned i = first; i <= last; i++)
                count += status_of(w, 0, EVENT(i)) == CL_SUCCESS;
        return count;
}

TEST(a_backlog_of_kernels_does_not_escape_the_limit_of_time)
{
        for (unsigned total = 0; total < 2; total++) {
                struct world *w = world_with_device_limit(
                        &backend_reference, (struct account_device){ .number = 0,
                                                                     .column = COLUMN,
                                                                     .max = UINT64_MAX,
                                                                     .timed = !total });
                struct account_time *t =
                        total ? &device_page.time : &device_page.device_time[COLUMN];
                if (total) {
                        struct account a = { .page = &device_page,
                                             .max = UINT64_MAX,
                                             .timed = true };
                        engine_lock(w->nodes[0].engine);
                        engine_use_account(w->nodes[0].engine, &a);
                        engine_unlock(w->nodes[0].engine);
                }
                launch_backlog(w);
                assert_int_equal(counts(w, 0).commands_running, total ? 4 : 6);
                t->paused = 1; /* while two kernels run there */
                world_run(w);
                assert_int_equal(completed(w, 1, 6), 2);
                assert_int_equal(completed(w, 7, 10), total ? 2 : 4);
                t->paused = 0;
                now_ns = deadline(w);
                assert_int_equal(expire(w), 0);
                world_run(w); /* the end of one lets the next go; no more time passes */
                assert_int_equal(completed(w, 1, 10), 10);
                assert_true(deadline(w) == UINT64_MAX);
                send(w, 0, release, .object = QUEUE(4));
                release_objects(w, 0);
                world_free(w);
        }
}

TEST(kernels_that_wait_for_others_to_end_fail_and_end_as_all_do)
{
        struct world *w = world_with_device_limit(
                &backend_reference,
                (struct account_device){
                        .number = 0, .column = COLUMN, .max = UINT64_MAX, .timed = true });
        launch_backlog(w);
        send(w, 0, release, .object = BUFFER(1));        /* commands hold it */
        launch(w, 0, QUEUE(2), EVENT(11), BUFFER(9), 1); /* there is no such buffer */
        launch_after(w, 0, QUEUE(2), EVENT(12), BUFFER(2), 1,
                     (struct wire_u64s)WAITS(EVENT(5), EVENT(6)));
        world_run(w);
        assert_int_equal(completed(w, 1, 10), 10);
        assert_int_equal(status_of(w, 0, EVENT(11)), CL_INVALID_MEM_OBJECT);
        assert_int_equal(status_of(w, 0, EVENT(12)), CL_SUCCESS);
        send(w, 0, buffer_create, .buffer = BUFFER(1), .flags = CL_MEM_READ_WRITE, .size = 64);
        for (unsigned i = 13; i <= 20; i++)
                launch(w, 0, QUEUE(2), EVENT(i), BUFFER(1), 1);
        pump(w);
        world_free(w); /* the session ends while kernels wait */
}

TEST(a_recording_waits_for_device_time)
{
        struct world *w = world_with_device_limit(
                &backend_reference,
                (struct account_device){
                        .number = 0, .column = COLUMN, .max = UINT64_MAX, .timed = true });
        record(w, 0);
        device_page.device_time[COLUMN].paused = 1;
        run_recording(w, 0, QUEUE(1), EVENT(10), (struct wire_u64s){ NULL, 0 });
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(10)), PENDING);
        device_page.device_time[COLUMN].paused = 0;
        now_ns = deadline(w);
        assert_int_equal(expire(w), 0);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(10)), CL_SUCCESS);
        send(w, 0, release, .object = RECORDING);
        release_objects(w, 0);
        world_free(w);
}

TEST(sessions_that_come_and_go_leave_nothing_in_an_account)
{
        static struct account_page page;
        static bool taken[ACCOUNT_SLOTS];
        (void)state;
        struct account stays = { .page = &page, .max = 100 };
        memset(&page, 0, sizeof(page));
        memset(taken, 0, sizeof(taken));
        assert_true(account_open(&page, taken, ACCOUNT_DEVICES, &stays.slot));
        assert_true(account_take(&stays, 40));
        for (unsigned i = 0; i < 1000; i++) {
                struct account a = { .page = &page, .max = 100 };
                assert_true(account_open(&page, taken, ACCOUNT_DEVICES, &a.slot));
                assert_false(account_take(&a, 61));
                assert_true(account_take(&a, 60));
                assert_false(account_take(&stays, 1));
                /* It is killed, some with more than they said. */
                page.held[a.slot] = i % 2 ? UINT64_MAX : page.held[a.slot];
                page.used = i % 3 ? page.used : UINT64_MAX;
                account_close(&page, taken, ACCOUNT_DEVICES, a.slot);
        }
        assert_int_equal(account_sum(&page), 40);
        account_give(&stays, 40);
        assert_int_equal(account_sum(&page), 0);
        /* If others write nonsense into the page, takes fail, and nothing else happens. */
        page.held[7] = page.held[8] = UINT64_MAX;
        page.used = UINT64_MAX;
        assert_true(account_sum(&page) == UINT64_MAX);
        assert_false(account_take(&stays, 1));
        unsigned slot = 0, count = 1;
        while (account_open(&page, taken, ACCOUNT_DEVICES, &slot))
                count++;
        assert_int_equal(count, ACCOUNT_SLOTS);
        assert_int_equal(slot, ACCOUNT_SLOTS - 1);
}

TEST(more_programs_than_allowed_are_not_built)
{
        struct world *w = world_limited(LIMIT_PROGRAMS, 1);
        struct node *n = &w->nodes[0];
        struct buf parts = { 0 };
        make_objects(w, 0, 64);
        pump(w);
        assert_int_equal(n->answer, CL_SUCCESS);
        assert_int_equal(info_put(&parts, INFO_PART, "spancl.noop", 11), 0);
        for (unsigned i = 0; i < 2; i++) {
                uint64_t second = object_id(OBJECT_PROGRAM, 2);
                send(w, 0, program_create, .program = second, .kind = 3, .devices = WAITS(0),
                     .parts = bytes_of(parts.data, parts.size));
                send(w, 0, program_build, .request = 2, .program = second, .devices = WAITS(0));
                pump(w);
                assert_int_equal(n->answer, i ? CL_SUCCESS : CL_OUT_OF_RESOURCES);
                send(w, 0, release, .object = second);
                if (!i) { /* then there is room */
                        launch(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1);
                        send(w, 0, release, .object = KERNEL(1));
                        send(w, 0, release, .object = KERNEL(2));
                        send(w, 0, release, .object = PROGRAM);
                        world_run(w);
                        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
                }
        }
        buf_fini(&parts);
        world_run(w);
        expect_idle(w);
        world_free(w);
}

TEST(transfers_wait_for_each_other_within_their_limit)
{
        enum { LIMIT = 4 * MIB, SIZE = 9 * MIB };
        struct world *w = world_limited(LIMIT_TRANSFERS, LIMIT);
        struct data *got[4];
        make_objects(w, 0, SIZE);
        struct data *a = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), SIZE, 1);
        struct data *b = write_buffer(w, 0, QUEUE(2), EVENT(2), BUFFER(2), SIZE, 2);
        for (size_t moved = 1; moved;) {
                pump(w);
                assert_true(counts(w, 0).transfer_bytes <= LIMIT);
                moved = step(w, 0, 1);
        }
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        for (unsigned i = 0; i < 4; i++)
                got[i] =
                        read_buffer(w, 0, QUEUE(1 + i % 2), EVENT(10 + i), BUFFER(1 + i % 2), SIZE);
        for (size_t moved = 1; moved;) {
                pump(w);
                assert_true(counts(w, 0).transfer_bytes <= LIMIT);
                moved = step(w, 0, 1);
        }
        for (unsigned i = 0; i < 4; i++) {
                assert_int_equal(status_of(w, 0, EVENT(10 + i)), CL_SUCCESS);
                expect_same(i % 2 ? b : a, got[i]);
        }
        release_objects(w, 0);
        world_free(w);
}

TEST(a_transfer_that_would_have_to_wait_for_commands_fails)
{
        struct world *w = world_limited(LIMIT_TRANSFERS, 4 * MIB);
        make_objects(w, 0, 9 * MIB);
        send(w, 0, event_import, .event = EVENT(1));
        for (unsigned i = 0; i < 2; i++) {
                send(w, 0, buffer_write, .event = EVENT(2 + i), .queue = QUEUE(2),
                     .flags = COMMAND_NOTIFY, .buffer = BUFFER(1 + i), .size = 3 * MIB,
                     .transfer = EVENT(2 + i), .waits = WAITS(EVENT(1)));
                send_data(w, 0, EVENT(2 + i), data_new(w, 3 * MIB, 1), 3 * MIB);
        }
        world_run(w);
        assert_true(counts(w, 0).transfer_bytes <= 4 * MIB);
        assert_int_equal(status_of(w, 0, EVENT(2)), PENDING);
        send(w, 0, event_done, .event = EVENT(1));
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_OUT_OF_RESOURCES);
        release_objects(w, 0);
        world_free(w);
}

TEST(inline_data_neither_waits_for_larger_transfers_nor_fails)
{
        struct world *w = world_limited(LIMIT_TRANSFERS, 4 * MIB);
        make_objects(w, 0, 9 * MIB);
        struct data *large = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 9 * MIB, 1);
        pump(w);
        assert_int_equal(counts(w, 0).transfer_bytes, 4 * MIB);
        struct data *small = write_buffer(w, 0, QUEUE(2), EVENT(2), BUFFER(2), 1000, 2);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        struct data *a = read_buffer(w, 0, QUEUE(1), EVENT(3), BUFFER(1), 9 * MIB);
        struct data *b = read_buffer(w, 0, QUEUE(1), EVENT(4), BUFFER(2), 1000);
        world_run(w);
        expect_same(large, a);
        expect_same(small, b);
        release_objects(w, 0);
        world_free(w);
}

TEST(early_data_of_another_server_does_not_end_its_session_at_the_limit)
{
        limits.max[LIMIT_TRANSFERS] = 4 * MIB;
        struct world *w = two_servers(9 * MIB);
        memset(&limits, 0, sizeof(limits));
        send(w, 1, event_import, .event = EVENT(1));
        send(w, 1, buffer_write, .event = EVENT(2), .queue = QUEUE(2), .buffer = BUFFER(1),
             .size = 4 * MIB, .transfer = EVENT(2), .waits = WAITS(EVENT(1)));
        send_data(w, 1, EVENT(2), data_new(w, 4 * MIB, 1), 4 * MIB);
        world_run(w);
        assert_int_equal(counts(w, 1).transfer_bytes, 4 * MIB);
        send(w, 0, buffer_read, .event = EVENT(3), .queue = QUEUE(2), .buffer = BUFFER(1),
             .size = 1000, .peer = PEER(2), .transfer = EVENT(4));
        world_run(w);
        send(w, 1, buffer_write, .event = EVENT(4), .queue = QUEUE(2), .flags = COMMAND_NOTIFY,
             .buffer = BUFFER(2), .size = 1000, .peer = PEER(1), .transfer = EVENT(4));
        world_run(w);
        assert_int_equal(status_of(w, 1, EVENT(4)), CL_SUCCESS);
        send(w, 1, event_done, .event = EVENT(1));
        world_run(w);
        release_objects(w, 0);
        release_objects(w, 1);
        world_free(w);
}

TEST(a_command_that_runs_too_long_ends_the_session_and_a_long_queue_does_not)
{
        enum { LIMIT = 1000 };
        struct world *w = world_limited(LIMIT_RUN_NS, LIMIT);
        make_objects(w, 0, 64);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        for (unsigned i = 2; i < 10; i++)
                launch_unnamed(w, EVENT(i), i == 2 ? BUFFER(1) : 0, 1);
        assert_true(deadline(w) == UINT64_MAX);
        pump(w);
        for (unsigned i = 0; i < 5; i++) {
                now_ns += LIMIT - 1;
                assert_int_equal(expire(w), 0);
                assert_int_equal(step(w, 0, 1), 1);
                assert_true(deadline(w) == now_ns + LIMIT);
                pump(w);
        }
        now_ns += LIMIT;
        assert_int_equal(expire(w), SP_E_LIMIT);
        pump(w);
        for (unsigned i = 6; i < 10; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), CL_OUT_OF_RESOURCES);
        assert_int_equal(status_of(w, 0, EVENT(5)), PENDING); /* it was good, and nobody asked */
        world_free(w);
}

/* Builds take as long as the test wants. */
static sem_t builds_begin, builds_may_end;

static cl_int slow_build(struct backend_program *p, const unsigned *devices, size_t count,
                         const char *options, struct buf *info)
{
        sem_post(&builds_begin);
        sem_wait(&builds_may_end);
        return backend_reference.program.build(p, devices, count, options, info);
}

static void build(struct world *w, unsigned i)
{
        struct buf parts = { 0 };
        assert_int_equal(info_put(&parts, INFO_PART, "spancl.noop", 11), 0);
        send(w, 0, program_create, .program = object_id(OBJECT_PROGRAM, i), .kind = 3,
             .devices = WAITS(0), .parts = bytes_of(parts.data, parts.size));
        send(w, 0, program_build, .request = i, .program = object_id(OBJECT_PROGRAM, i),
             .devices = WAITS(0));
        pump(w);
        buf_fini(&parts);
}

TEST(a_build_that_takes_too_long_has_failed)
{
        enum { LIMIT = 1000 };
        struct backend_ops ops = backend_reference;
        struct world *w = calloc(1, sizeof(*w));
        struct node *n = &w->nodes[0];
        struct bytes inner, log;
        ops.program.build = slow_build;
        sem_init(&builds_begin, 0, 0);
        sem_init(&builds_may_end, 0, 0);
        w->count = 1;
        limits.max[LIMIT_BUILD_NS] = LIMIT;
        assert_int_equal(node_init_on(n, &ops, false, NULL), 0);
        limits = (struct engine_limits){ 0 };

        build(w, 1);
        sem_wait(&builds_begin);
        now_ns += LIMIT - 1;
        assert_int_equal(expire(w), 0);
        pump(w);
        assert_int_equal(n->answers, 0);
        now_ns++;
        assert_true(deadline(w) == now_ns);
        assert_int_equal(expire(w), 0);
        pump(w);
        assert_int_equal(n->answers, 1);
        assert_int_equal(n->answer, CL_BUILD_PROGRAM_FAILURE);
        assert_true(info_find(bytes_of(n->info.data, n->info.size), INFO_BUILD, &inner));
        assert_true(info_find(inner, CL_PROGRAM_BUILD_LOG, &log));
        assert_non_null(memmem(log.data, log.size, "--session-build-time", 20));

        /* Nobody is notified of its completion, and the next one works as before. */
        build(w, 2);
        sem_wait(&builds_begin);
        sem_post(&builds_may_end);
        sem_post(&builds_may_end);
        await(w, &n->answers, 2);
        assert_int_equal(n->answer, CL_SUCCESS);

        /* When there is no thread left, the others fail, too. */
        for (unsigned i = 3; i < 9; i++)
                build(w, i);
        for (unsigned i = 0; i < 4; i++)
                sem_wait(&builds_begin);
        now_ns += LIMIT;
        assert_int_equal(expire(w), 0);
        build(w, 9);
        pump(w);
        assert_int_equal(n->answers, 9);
        assert_int_equal(n->answer, CL_BUILD_PROGRAM_FAILURE);
        for (unsigned i = 0; i < 4; i++)
                sem_post(&builds_may_end);
        assert_false(n->died);
        world_free(w);
        sem_destroy(&builds_begin);
        sem_destroy(&builds_may_end);
}

TEST(a_program_is_built_for_all_domains_at_the_same_time)
{
        struct backend_ops ops = backend_reference;
        struct world *w = calloc(1, sizeof(*w));
        struct node *n = &w->nodes[0];
        ops.program.build = slow_build;
        sem_init(&builds_begin, 0, 0);
        sem_init(&builds_may_end, 0, 0);
        w->count = 1;
        assert_int_equal(node_init_on(n, &ops, false, NULL), 0);
        make_program(w, 0);
        pump(w);
        sem_wait(&builds_begin);
        sem_wait(&builds_begin); /* before the first has ended */
        sem_post(&builds_may_end);
        sem_post(&builds_may_end);
        await(w, &n->answers, 1);
        assert_int_equal(n->answer, CL_SUCCESS);
        world_free(w);
        sem_destroy(&builds_begin);
        sem_destroy(&builds_may_end);
}

TEST(builds_of_a_client_take_turns)
{
        static struct account_page page;
        static bool taken[ACCOUNT_SLOTS];
        struct account a = { .page = &page, .builds_max = 2 }, b = a, free = { 0 };
        memset(&page, 0, sizeof(page));
        assert_true(account_open(&page, taken, ACCOUNT_DEVICES, &a.slot) &&
                    account_open(&page, taken, ACCOUNT_DEVICES, &b.slot));
        assert_true(account_build_take(&a) && account_build_take(&a));
        assert_false(account_build_take(&a));
        assert_false(account_build_take(&b));
        assert_true(account_build_give(&a)); /* b waits */
        assert_true(account_build_take(&b));
        assert_false(account_build_take(&a));
        assert_true(account_build_give(&b)); /* now a does */
        assert_true(account_build_take(&a) && a.builds == 2);
        assert_false(account_build_take(&b));
        account_close(&page, taken, ACCOUNT_DEVICES, a.slot); /* its process was killed */
        assert_true(account_build_take(&b) && account_build_take(&b));
        /* The worst that a compromised session can do to those of its client. */
        page.builds[a.slot] = UINT64_MAX;
        page.used = UINT64_MAX;
        assert_false(account_build_take(&b));
        assert_true(account_build_give(&b));
        assert_true(account_build_take(&free) && !account_build_give(&free));
}

TEST(the_limits_are_those_of_the_options)
{
        (void)state;
        const struct config_options o = { .values = { [CONFIG_session_programs] = "7",
                                                      [CONFIG_session_transfers] = "5",
                                                      [CONFIG_session_run_time] = "2" } };
        struct engine_limits l = engine_limits_of(&o);
        assert_int_equal(l.max[LIMIT_OBJECTS], 1048576);
        assert_int_equal(l.max[LIMIT_PROGRAMS], 7);
        assert_int_equal(l.max[LIMIT_TRANSFERS], 5 << 20);
        assert_int_equal(l.max[LIMIT_RUN_NS], 2000000000);
        assert_int_equal(l.max[LIMIT_STORAGE], 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(more_objects_than_allowed_can_be_made_but_not_used),
                cmocka_unit_test(storage_that_could_not_be_made_does_not_count),
                cmocka_unit_test(commands_wait_for_device_memory_and_fail_when_it_takes_too_long),
                cmocka_unit_test(an_account_holds_what_the_sessions_of_a_client_hold),
                cmocka_unit_test(a_device_has_a_limit_of_memory_of_its_own),
                cmocka_unit_test(a_buffer_counts_on_each_device_of_a_native_context_that_uses_it),
                cmocka_unit_test(a_released_sub_device_takes_no_memory_and_answers_no_query),
                cmocka_unit_test(memory_that_commands_in_flight_use_stays_in_the_account),
                cmocka_unit_test(
                        commands_wait_for_memory_of_one_device_and_not_for_more_than_its_limit),
                cmocka_unit_test(a_device_has_a_limit_of_time_of_its_own),
                cmocka_unit_test(a_backlog_of_kernels_does_not_escape_the_limit_of_time),
                cmocka_unit_test(kernels_that_wait_for_others_to_end_fail_and_end_as_all_do),
                cmocka_unit_test(a_recording_waits_for_device_time),
                cmocka_unit_test(sessions_that_come_and_go_leave_nothing_in_an_account),
                cmocka_unit_test(more_programs_than_allowed_are_not_built),
                cmocka_unit_test(transfers_wait_for_each_other_within_their_limit),
                cmocka_unit_test(a_transfer_that_would_have_to_wait_for_commands_fails),
                cmocka_unit_test(inline_data_neither_waits_for_larger_transfers_nor_fails),
                cmocka_unit_test(
                        early_data_of_another_server_does_not_end_its_session_at_the_limit),
                cmocka_unit_test(
                        a_command_that_runs_too_long_ends_the_session_and_a_long_queue_does_not),
                cmocka_unit_test(a_build_that_takes_too_long_has_failed),
                cmocka_unit_test(a_program_is_built_for_all_domains_at_the_same_time),
                cmocka_unit_test(builds_of_a_client_take_turns),
                cmocka_unit_test(the_limits_are_those_of_the_options),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
