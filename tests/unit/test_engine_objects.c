/* Buffers, sub-buffers, images and shared virtual memory. */
#include "support/check.h"

#include "support/world.h"

/* ---- shared virtual memory ---------------------------------------------------------------------- */

#define SVM(n)  object_id(OBJECT_SVM, n)
#define ADDRESS ((uint64_t)0x4200000000)

static void launch_at(struct world *w, uint64_t queue, uint64_t event, uint64_t address, int32_t by)
{
        struct buf args = { 0 };
        assert_int_equal(
                args_put(&args, &(struct arg){ .index = 0, .kind = ARG_SVM, .object = address }),
                0);
        assert_int_equal(
                args_put(&args,
                         &(struct arg){ .index = 1, .kind = ARG_VALUE, .size = 4, .value = &by }),
                0);
        send(w, 0, kernel_launch, .event = event, .queue = queue, .flags = COMMAND_NOTIFY,
             .kernel = KERNEL(1), .global = WAITS(16), .args = bytes_of(args.data, args.size));
        buf_fini(&args);
}

TEST(shared_virtual_memory_is_one_for_pointers_and_buffers_of_every_domain)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, svm_create, .request = 1, .svm = SVM(1), .address = ADDRESS, .size = 65536);
        world_run(w);
        assert_int_equal(w->nodes[0].answer, CL_SUCCESS);
        assert_int_equal(bytes_get_u64(w->nodes[0].info.data), ADDRESS);
        send(w, 0, svm_buffer_create, .buffer = BUFFER(8), .svm = SVM(1), .offset = 512,
             .size = 64);
        send(w, 0, svm_buffer_create, .buffer = BUFFER(9), .svm = SVM(1), .offset = 520,
             .size = 56);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(8), 64);
        launch_at(w, QUEUE(1), EVENT(2), ADDRESS + 512, 5);
        world_run(w);
        launch_at(w, QUEUE(3), EVENT(3), ADDRESS + 512, 2);
        launch_at(w, QUEUE(3), EVENT(4), ADDRESS - 8, 2);
        launch(w, 0, QUEUE(3), EVENT(5), BUFFER(8), 1);
        struct data *whole = read_buffer(w, 0, QUEUE(3), EVENT(6), BUFFER(8), 64);
        world_run(w);
        struct data *part = read_buffer(w, 0, QUEUE(1), EVENT(7), BUFFER(9), 56);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(4)), CL_INVALID_ARG_VALUE); /* nothing is there */
        assert_int_equal(number(whole, 0), 8);
        assert_int_equal(number(whole, 15), 8);
        assert_int_equal(number(part, 13), 8);
        send(w, 0, release, .object = SVM(1)); /* buffers have it still */
        struct data *after = read_buffer(w, 0, QUEUE(1), EVENT(8), BUFFER(8), 64);
        world_run(w);
        assert_int_equal(number(after, 3), 8);
        send(w, 0, release, .object = BUFFER(8));
        send(w, 0, release, .object = BUFFER(9));
        release_objects(w, 0);
        world_free(w);
}

TEST(shared_virtual_memory_that_cannot_be_had_is_told_of)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        /* These devices choose no address. */
        send(w, 0, svm_create, .request = 1, .svm = SVM(1), .size = 65536);
        world_run(w);
        assert_int_equal(w->nodes[0].answer, CL_INVALID_OPERATION);
        send(w, 0, svm_create, .request = 2, .svm = SVM(1), .address = ADDRESS,
             .size = (uint64_t)1 << 40);
        world_run(w);
        assert_true(w->nodes[0].answer < 0);
        send(w, 0, svm_create, .request = 3, .svm = SVM(1), .address = ADDRESS, .size = 65536);
        world_run(w);
        assert_int_equal(w->nodes[0].answer, CL_SUCCESS);
        send(w, 0, release, .object = SVM(1));
        release_objects(w, 0);
        world_free(w);
}

/* ---- objects ------------------------------------------------------------------------------------ */

/* A launch with this buffer as its argument is untracked, and on its way when the last object over the shared
 * virtual memory and the memory itself are released: the memory stays until the launch is over. */
static void keeps_the_memory(struct world *w, uint64_t arg, uint64_t over)
{
        struct buf args = { 0 };
        put_args(&args, arg, 1);
        send(w, 0, kernel_launch, .event = EVENT(1), .queue = QUEUE(1), .kernel = KERNEL(1),
             .global = WAITS(16), .args = bytes_of(args.data, args.size));
        buf_fini(&args);
        send(w, 0, release, .object = over);
        send(w, 0, release, .object = SVM(1), .request = 7);
        pump(w);
        assert_int_not_equal(w->nodes[0].released, 7);
        world_run(w);
        assert_int_equal(w->nodes[0].released, 7);
}

/* The client releases the buffer first, and does not ask about it. */
TEST(untracked_launches_keep_the_memory_that_a_released_buffer_is_over)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, svm_create, .request = 1, .svm = SVM(1), .address = ADDRESS, .size = 65536);
        world_run(w);
        send(w, 0, svm_buffer_create, .buffer = BUFFER(8), .svm = SVM(1), .size = 64);
        keeps_the_memory(w, BUFFER(8), BUFFER(8));
        release_objects(w, 0);
        world_free(w);
}

/* An image of an image of a buffer is the last over the memory. The engine does not know which buffers a launch
 * uses. */
TEST(untracked_launches_keep_the_memory_below_images_of_images)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, svm_create, .request = 1, .svm = SVM(1), .address = ADDRESS, .size = 65536);
        world_run(w);
        send(w, 0, svm_buffer_create, .buffer = BUFFER(8), .svm = SVM(1), .size = 4096);
        for (unsigned i = 8; i < 10; i++)
                send(w, 0, image_create, .image = BUFFER(i + 1), .type = CL_MEM_OBJECT_IMAGE2D,
                     .order = CL_RGBA, .data_type = CL_UNSIGNED_INT8, .width = 16, .height = 16,
                     .row_pitch = i == 8 ? 256 : 0, .parent = BUFFER(i));
        send(w, 0, release, .object = BUFFER(8));
        send(w, 0, release, .object = BUFFER(9));
        world_run(w);
        keeps_the_memory(w, BUFFER(1), BUFFER(10));
        release_objects(w, 0);
        world_free(w);
}

TEST(commands_in_flight_keep_released_objects)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, sub_buffer_create, .buffer = BUFFER(3), .parent = BUFFER(2), .size = 64);
        send(w, 0, event_import, .event = EVENT(100));
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(3), 64);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(3), 1);
        launch_after(w, 0, QUEUE(1), EVENT(3), 0, 0, (struct wire_u64s)WAITS(EVENT(100)));
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(4), BUFFER(3), 64);
        pump(w);
        send(w, 0, release, .object = BUFFER(3));
        const uint64_t ids[] = { QUEUE(1),  QUEUE(2),  QUEUE(3),  BUFFER(1),
                                 BUFFER(2), KERNEL(1), KERNEL(2), PROGRAM };
        for (size_t k = 0; k < array_size(ids); k++)
                send(w, 0, release, .object = ids[k]);
        world_run(w);
        assert_int_equal(counts(w, 0).objects, 0);
        assert_int_equal(counts(w, 0).commands_held, 2);
        send(w, 0, event_done, .event = EVENT(100));
        world_run(w);
        assert_int_equal(number(got, 0), 2);
        expect_idle(w);
        world_free(w);
}

TEST(sub_buffers_are_parts_of_their_parent_and_may_be_misaligned)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 1024);
        send(w, 0, sub_buffer_create, .buffer = BUFFER(3), .parent = BUFFER(1), .origin = 512,
             .size = 512);
        send(w, 0, sub_buffer_create, .buffer = BUFFER(4), .parent = BUFFER(1), .origin = 3,
             .size = 8);
        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 1024, 1);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(2), BUFFER(3), 512);
        fill_zero(w, 0, QUEUE(1), EVENT(3), BUFFER(4), 8);
        world_run(w);
        assert_memory_equal(got->bytes, d->bytes + 512, 512);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_MISALIGNED_SUB_BUFFER_OFFSET);
        send(w, 0, release, .object = BUFFER(3));
        send(w, 0, release, .object = BUFFER(4));
        release_objects(w, 0);
        world_free(w);
}

TEST(storage_that_can_not_be_made_fails_its_commands)
{
        struct world *w = world_new(1);
        make_objects(w, 0, (size_t)1 << 40);
        fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64);
        launch(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 1);
        world_run(w);
        assert_true(status_of(w, 0, EVENT(1)) < 0);
        assert_int_equal(status_of(w, 0, EVENT(2)), status_of(w, 0, EVENT(1)));
        release_objects(w, 0);
        world_free(w);
}

/* ---- what goes wrong ---------------------------------------------------------------------------- */

/* The reference backend's devices have none: their commands fail with that, bytes are swallowed, those
 * asked for come as zeros or not at all, and nothing is left. */
TEST(images_fail_where_there_are_none)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        make_image(w, BUFFER(9), 0);
        send(w, 0, sampler_create, .sampler = object_id(OBJECT_SAMPLER, 1),
             .addressing = CL_ADDRESS_CLAMP, .filter = CL_FILTER_NEAREST);
        send(w, 0, image_write, .event = EVENT(1), .queue = QUEUE(1), .image = BUFFER(9),
             .origin = WAITS(0, 0, 0), .region = WAITS(3, 2, 1), .transfer = EVENT(1));
        send_data(w, 0, EVENT(1), data_new(w, 24, 1), 24);
        const uint8_t color[16] = { 0 };
        send(w, 0, image_fill, .event = EVENT(2), .queue = QUEUE(1), .image = BUFFER(9),
             .origin = WAITS(0, 0, 0), .region = WAITS(3, 2, 1),
             .color = bytes_of(color, sizeof(color)));
        send(w, 0, image_copy, .event = EVENT(3), .queue = QUEUE(1), .src = BUFFER(9),
             .dst = BUFFER(9), .src_origin = WAITS(0, 0, 0), .dst_origin = WAITS(2, 0, 0),
             .region = WAITS(1, 1, 1));
        send(w, 0, image_to_buffer, .event = EVENT(4), .queue = QUEUE(1), .image = BUFFER(9),
             .buffer = BUFFER(1), .origin = WAITS(0, 0, 0), .region = WAITS(3, 2, 1));
        send(w, 0, buffer_to_image, .event = EVENT(5), .queue = QUEUE(1), .image = BUFFER(9),
             .buffer = BUFFER(1), .origin = WAITS(0, 0, 0), .region = WAITS(3, 2, 1));
        /* out of bounds: known before the device is asked */
        send(w, 0, image_fill, .event = EVENT(6), .queue = QUEUE(1), .image = BUFFER(9),
             .origin = WAITS(1, 0, 0), .region = WAITS(3, 2, 1),
             .color = bytes_of(color, sizeof(color)));
        send(w, 0, buffer_to_image, .event = EVENT(7), .queue = QUEUE(1), .image = BUFFER(9),
             .buffer = BUFFER(1), .origin = WAITS(0, 0, 0), .region = WAITS(3, 2, 1), .offset = 41);
        world_run(w);
        for (unsigned i = 1; i <= 5; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), CL_INVALID_OPERATION);
        for (unsigned i = 6; i <= 7; i++)
                assert_int_equal(status_of(w, 0, EVENT(i)), CL_INVALID_VALUE);
        send(w, 0, release, .object = BUFFER(9));
        send(w, 0, release, .object = object_id(OBJECT_SAMPLER, 1));
        release_objects(w, 0);
        world_run(w);
        assert_int_equal(counts(w, 0).objects, 0);
        expect_idle(w);
        world_free(w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        shared_virtual_memory_is_one_for_pointers_and_buffers_of_every_domain),
                cmocka_unit_test(shared_virtual_memory_that_cannot_be_had_is_told_of),
                cmocka_unit_test(untracked_launches_keep_the_memory_that_a_released_buffer_is_over),
                cmocka_unit_test(untracked_launches_keep_the_memory_below_images_of_images),
                cmocka_unit_test(commands_in_flight_keep_released_objects),
                cmocka_unit_test(sub_buffers_are_parts_of_their_parent_and_may_be_misaligned),
                cmocka_unit_test(storage_that_can_not_be_made_fails_its_commands),
                cmocka_unit_test(images_fail_where_there_are_none),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
