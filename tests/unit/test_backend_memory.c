/* Buffers, images, shared virtual memory and what moves their bytes: over each backend. */
#include "support/check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/native/native.h"
#include "base/mem.h"
#include "os/vm.h"
#include "support/backends.h"

/* ---- transfers ---------------------------------------------------------------------------------- */

TEST(written_data_is_read)
{
        struct fixture *f = fixture(state);
        uint8_t in[BYTES], out[BYTES] = { 0 };
        fill_counting(in, BYTES);
        struct backend_buffer *m = fixture_buffer(f, BYTES);
        execute(f, write_of(m, 0, in, BYTES));
        execute(f, write_of(m, 100, in, 50));
        execute(f, read_of(m, 0, out, BYTES));
        uint8_t expected[BYTES];
        memcpy(expected, in, BYTES);
        memcpy(expected + 100, in, 50);
        assert_memory_equal(out, expected, BYTES);
        f->ops->buffer.release(m);
}

TEST(host_memory_serves_transfers_until_the_end)
{
        struct fixture *f = fixture(state);
        if (f->native)
                f->b->domains[0].apart = true; /* whatever devices there are */
        for (int i = 0; i < 2; i++) {
                uint8_t any[2 * BYTES];
                void *at = any;
                cl_int r = f->ops->host_memory(f->b, 0, 2 * BYTES, NULL, &at);
                assert_int_equal(r, f->ops == &backend_almaif ? CL_INVALID_OPERATION : CL_SUCCESS);
                uint8_t *in = at, *out = in + BYTES;
                fill_counting(in, BYTES);
                memset(out, 0, BYTES);
                struct backend_buffer *m = fixture_buffer(f, BYTES);
                execute(f, write_of(m, 0, in, BYTES));
                execute(f, read_of(m, 0, out, BYTES));
                assert_memory_equal(in, out, BYTES);
                f->ops->buffer.release(m);
        }
}

/* A file's memory, which another process may have mapped, too. */
TEST(memory_that_is_given_serves_transfers)
{
        struct fixture *f = fixture(state);
        enum { SIZE = 1 << 20 };
        static struct quirks quirks;
        int fd = memfd_create("given", MFD_CLOEXEC);
        assert_int_equal(ftruncate(fd, SIZE), 0);
        uint8_t *given = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
                *theirs = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_ptr_not_equal(given, MAP_FAILED);
        assert_ptr_not_equal(theirs, MAP_FAILED);
        close(fd);
        void *at;
        if (f->native) {
                f->b->domains[0].apart = true; /* whatever devices there are */
                assert_int_equal(f->ops->host_memory(f->b, 0, SIZE, given, &at),
                                 CL_INVALID_OPERATION);
                quirks = *f->b->domains[0].quirks;
                quirks.given_memory = GIVEN_MEMORY_PINNED;
                f->b->domains[0].quirks = &quirks;
        }
        cl_int r = f->ops->host_memory(f->b, 0, SIZE, given, &at);
        assert_int_equal(r, f->ops == &backend_almaif ? CL_INVALID_OPERATION : CL_SUCCESS);
        struct backend_buffer *m = fixture_buffer(f, SIZE / 2);
        fill_counting(theirs, SIZE / 2);
        execute(f, write_of(m, 0, given, SIZE / 2));
        execute(f, read_of(m, 0, given + SIZE / 2, SIZE / 2));
        assert_memory_equal(theirs + SIZE / 2, theirs, SIZE / 2);
        f->ops->buffer.release(m);
        munmap(theirs, SIZE); /* the other one until the backend is closed */
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
                struct backend_buffer *m = fixture_buffer(f, size);
                memset(data, 0xee, size);
                execute(f, read_of(m, 0, data, size));
                expect_zeros(data, size);
                memset(data, 0xa5, size);
                execute(f, write_of(m, 0, data, size));
                f->ops->buffer.release(m);
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
                if (f->ops->buffer.create_image(f->b, 0, CL_MEM_READ_WRITE, &d, NULL, &m) !=
                    CL_SUCCESS)
                        break;
                struct backend_command c = { .op = BACKEND_READ_IMAGE,
                                             .buffer = m,
                                             .host = data,
                                             .region = { SIDE, SIDE, 1 } };
                memset(data, 0xee, IMAGE);
                execute(f, c);
                expect_zeros(data, IMAGE);
                memset(data, 0xa5, IMAGE);
                c.op = BACKEND_WRITE_IMAGE;
                execute(f, c);
                f->ops->buffer.release(m);
        }
        free(data);
}

TEST(new_memory_is_clear_where_that_is_wanted)
{
        static const size_t sizes[] = { 7, 24, 4096, 1 << 20 };
        struct fixture *f = fixture(state), own = *f;
        backends_clear = "on";
        int r = open_backend(f->ops, NULL, 1, &own.b);
        backends_clear = "off";
        assert_int_equal(r, 0);
        own.queue = fixture_queue(&own, 0);
        for (size_t i = 0; i < array_size(sizes); i++)
                buffers_are_clear(&own, sizes[i]);
        images_are_clear(&own);
        f->ops->queue.release(own.queue);
        f->ops->close(own.b);
}

TEST(boxes_are_written_copied_and_read)
{
        struct fixture *f = fixture(state);
        enum { ROW = 32, ROWS = 8, SLICES = 4, SIZE = ROW * ROWS * SLICES };
        uint8_t zeros[SIZE] = { 0 }, in[5 * 3 * 2], expected[SIZE] = { 0 }, out[SIZE];
        fill_counting(in, sizeof(in));
        struct backend_buffer *a = fixture_buffer(f, SIZE), *b = fixture_buffer(f, SIZE);
        execute(f, write_of(a, 0, zeros, SIZE));
        execute(f, write_of(b, 0, zeros, SIZE));

        struct backend_box at = { { 3, 2, 1 }, ROW, ROW * ROWS };
        struct backend_box to = { { 7, 4, 2 }, ROW, ROW * ROWS };
        execute(f, (struct backend_command){ .op = BACKEND_WRITE_RECT,
                                             .buffer = a,
                                             .host = in,
                                             .box = at,
                                             .region = { 5, 3, 2 } });
        execute(f, (struct backend_command){ .op = BACKEND_COPY_RECT,
                                             .buffer = b,
                                             .source = a,
                                             .box = to,
                                             .source_box = at,
                                             .region = { 5, 3, 2 } });
        execute(f, read_of(b, 0, out, SIZE));
        for (int z = 0; z < 2; z++)
                for (int y = 0; y < 3; y++)
                        memcpy(expected + (2 + z) * ROW * ROWS + (4 + y) * ROW + 7,
                               in + (z * 3 + y) * 5, 5);
        assert_memory_equal(out, expected, SIZE);

        uint8_t back[sizeof(in)] = { 0 };
        execute(f, (struct backend_command){ .op = BACKEND_READ_RECT,
                                             .buffer = b,
                                             .host = back,
                                             .box = to,
                                             .region = { 5, 3, 2 } });
        assert_memory_equal(back, in, sizeof(in));
        f->ops->buffer.release(a);
        f->ops->buffer.release(b);
}

TEST(patterns_fill_and_ranges_are_copied)
{
        struct fixture *f = fixture(state);
        uint8_t out[256], expected[256] = { 0 };
        struct backend_buffer *m = fixture_buffer(f, 256), *n = fixture_buffer(f, 256);
        uint32_t pattern = 0xA1B2C3D4;
        execute(f, write_of(m, 0, expected, 256));
        execute(f, write_of(n, 0, expected, 256));
        struct backend_event *e = fixture_submit(f, f->queue,
                                                 (struct backend_command){ .op = BACKEND_FILL,
                                                                           .buffer = m,
                                                                           .pattern = &pattern,
                                                                           .pattern_size = 4,
                                                                           .offset_bytes = 16,
                                                                           .size = 64 });
        pattern = 0; /* was copied */
        execute(f, (struct backend_command){ .op = BACKEND_COPY,
                                             .buffer = n,
                                             .source = m,
                                             .source_offset = 16,
                                             .offset_bytes = 100,
                                             .size = 60 });
        execute(f, read_of(n, 0, out, 256));
        for (int i = 0; i < 15; i++)
                memcpy(expected + 100 + i * 4, &(uint32_t){ 0xA1B2C3D4 }, 4);
        assert_memory_equal(out, expected, 256);
        f->ops->event.release(e);
        f->ops->buffer.release(m);
        f->ops->buffer.release(n);
}

TEST(a_sub_buffer_is_part_of_its_parent)
{
        struct fixture *f = fixture(state);
        uint8_t in[BYTES], out[128];
        fill_counting(in, BYTES);
        struct backend_buffer *m = fixture_buffer(f, BYTES), *sub, *none;
        assert_int_equal(f->ops->buffer.create_sub(f->b, m, 0, 1024, 128, &sub), CL_SUCCESS);
        assert_int_equal(f->ops->buffer.create_sub(f->b, m, 0, 1024, BYTES, &none),
                         CL_INVALID_VALUE);
        execute(f, write_of(m, 0, in, BYTES));
        execute(f, read_of(sub, 0, out, 128));
        assert_memory_equal(out, in + 1024, 128);
        f->ops->buffer.release(m); /* lives on in `sub` */
        execute(f, write_of(sub, 64, in, 64));
        execute(f, read_of(sub, 0, out, 128));
        assert_memory_equal(out + 64, in, 64);
        f->ops->buffer.release(sub);
}

TEST(bytes_of_a_buffer_are_what_commands_find)
{
        struct fixture *f = fixture(state);
        uint8_t in[BYTES], out[BYTES];
        backend_reference_bytes = true;
        struct fixture own = *f;
        int r = open_backend(f->ops, NULL, 1, &own.b);
        backend_reference_bytes = false;
        assert_int_equal(r, 0);
        own.queue = fixture_queue(&own, 0);
        fill_counting(in, BYTES);
        struct backend_buffer *m = fixture_buffer(&own, BYTES), *sub;
        assert_int_equal(f->ops->buffer.create_sub(own.b, m, 0, 1024, 128, &sub), CL_SUCCESS);
        uint8_t *at = f->ops->buffer.bytes ? f->ops->buffer.bytes(m) : NULL;
        if (at) {
                assert_ptr_equal(f->ops->buffer.bytes(sub), at + 1024);
                memcpy(at, in, BYTES);
                execute(&own, read_of(m, 0, out, BYTES));
                assert_memory_equal(in, out, BYTES);
                execute(&own, write_of(sub, 8, out, 100));
                assert_memory_equal(at + 1032, out, 100);
                struct backend_command now = read_of(sub, 8, in, 100);
                struct report report = { 0 };
                now.now = true;
                now.cookie = &report;
                struct backend_event *e = fixture_submit(&own, own.queue, now);
                f->ops->queue.flush(own.queue);
                if (e)
                        report_wait(&report);
                f->ops->event.release(e);
                assert_memory_equal(in, out, 100);
        }
        f->ops->buffer.release(m);
        if (at)
                memset(at + 1024, 1, 128); /* lives on in `sub` */
        f->ops->buffer.release(sub);
        f->ops->queue.release(own.queue);
        f->ops->close(own.b);
}

TEST(a_command_that_cannot_start_is_not_reported)
{
        struct fixture *f = fixture(state);
        uint8_t data[64] = { 0 };
        struct report r = { 0 };
        struct backend_event *e;
        struct backend_buffer *m = fixture_buffer(f, 64);
        struct backend_command c = read_of(m, 32, data, 64);
        c.cookie = &r;
        unsigned before = atomic_load(&reports_all);
        assert_int_equal(try_submit(f, f->queue, c, &e), CL_INVALID_VALUE);
        execute(f, write_of(m, 0, data, 64));
        assert_int_equal(atomic_load(&reports_all), before + 1);
        assert_false(r.done);
        f->ops->buffer.release(m);
}

/* ---- programs and kernels ----------------------------------------------------------------------- */

/* The device's INFO_DEVICE_SVM. */
static enum info_svm svm_of(struct fixture *f)
{
        struct buf info = { 0 };
        assert_int_equal(f->ops->device.info(f->b, 0, &info), 0);
        enum info_svm how = (enum info_svm)info_u64(block_of(&info), INFO_DEVICE_SVM, 0);
        buf_fini(&info);
        return how;
}

static void set_pointer(struct fixture *f, struct backend_kernel *k, uint64_t address)
{
        struct arg a = { .index = 0, .kind = ARG_SVM, .size = 8, .object = address };
        assert_int_equal(f->ops->kernel.set_arg(k, &a, NULL, NULL), CL_SUCCESS);
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
                                f->ops->svm.create(f->b, 0, wanted, size, false, &svm, &at),
                                CL_INVALID_HOST_PTR);
                        assert_int_equal(*(char *)(uintptr_t)wanted, 0);
                }
                vm_unmap(wanted, 2 * size);
        }
        assert_int_equal(f->ops->svm.create(f->b, 0, wanted, size, false, &svm, &at), CL_SUCCESS);
        if (wanted)
                assert_int_equal(at, wanted);
        assert_int_equal(
                f->ops->svm.create(f->b, 0, wanted ? at + size : 0, size, false, &other, &at),
                CL_SUCCESS);
        f->ops->svm.release(other);
        at = wanted ? wanted : at;

        for (int i = 0; i < COUNT; i++)
                data[i] = i;
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, inc_name(f));
        assert_int_equal(
                f->ops->svm.create_buffer(f->b, 0, svm, CL_MEM_READ_WRITE, 4096, BYTES, &m),
                CL_SUCCESS);
        execute(f, write_of(m, 0, data, BYTES));
        set_inc(f, k, m, 5);
        execute(f, launch_all(k));
        if (wanted) {
                set_pointer(f, k, wanted + 4096);
                execute(f, launch_all(k));
        }
        execute(f, read_of(m, 0, out, BYTES));
        for (int i = 0; i < COUNT; i++)
                assert_int_equal(out[i], i + (wanted ? 10 : 5));
        f->ops->kernel.release(k);
        f->ops->buffer.release(m);
        f->ops->svm.release(svm);
        unbuild(f, &x);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ALL(written_data_is_read),
                AT_ONCE(host_memory_serves_transfers_until_the_end),
                AT_ONCE(memory_that_is_given_serves_transfers),
                ALL(new_memory_is_clear_where_that_is_wanted),
                ALL(boxes_are_written_copied_and_read),
                ALL(patterns_fill_and_ranges_are_copied),
                AT_ONCE(a_sub_buffer_is_part_of_its_parent),
                ALL(bytes_of_a_buffer_are_what_commands_find),
                AT_ONCE(a_command_that_cannot_start_is_not_reported),
                ALL(shared_virtual_memory_lies_where_it_is_wanted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
