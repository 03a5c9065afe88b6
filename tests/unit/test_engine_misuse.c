/* Clients that break the protocol, and engines that are closed or run out of memory at any
 * point. */
#include "support/check.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "support/world.h"

/* One message that no client of ours would send. */
static void send_bad(struct world *w, unsigned which)
{
        switch (which) {
        case 0:
                send(w, 0, release, .object = BUFFER(9));
                break;
        case 1:
                send(w, 0, buffer_create, .buffer = BUFFER(1), .size = 1);
                break;
        case 2:
                send(w, 0, queue_create, .queue = QUEUE(9), .device = 2);
                break;
        case 3:
                fill_zero(w, 0, QUEUE(9), EVENT(1), BUFFER(1), 64);
                break;
        case 4:
                fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(9), 64);
                break;
        case 5:
                fill_zero(w, 0, QUEUE(1), EVENT(100), BUFFER(1), 64);
                break;
        case 6:
                send(w, 0, event_import, .event = EVENT(100));
                break;
        case 7:
                send(w, 0, peer_expect, .peer = PEER_SELF);
                break;
        case 8:
                send(w, 0, event_subscribe, .event = EVENT(1), .peer = PEER(9));
                break;
        case 9:
                send(w, 0, sub_buffer_create, .buffer = BUFFER(9), .parent = BUFFER(1),
                     .origin = 60, .size = 5);
                break;
        case 10:
                send(w, 0, kernel_launch, .event = EVENT(1), .queue = QUEUE(1), .kernel = KERNEL(9),
                     .global = WAITS(1));
                break;
        case 11:
                send(w, 0, kernel_launch, .event = EVENT(1), .queue = QUEUE(1), .kernel = KERNEL(2),
                     .global = WAITS(1), .local = WAITS(1, 1));
                break;
        case 12:
                send(w, 0, program_create, .program = PROGRAM, .devices = WAITS(0));
                break;
        case 13:
                send(w, 0, kernel_create, .kernel = KERNEL(9),
                     .program = object_id(OBJECT_PROGRAM, 9));
                break;
        case 14:
                send(w, 0, buffer_read_rect, .event = EVENT(1), .queue = QUEUE(1),
                     .buffer = BUFFER(1), .origin = WAITS(0), .region = WAITS(1, 1, 1),
                     .row_pitch = 1, .slice_pitch = 1, .transfer = 1);
                break;
        case 15:
                send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(1), .buffer = BUFFER(1),
                     .size = 4, .peer = PEER(5), .transfer = 1);
                break;
        case 16: /* bytes of nobody */
                send_data(w, 0, 55, data_new(w, 8, 0), 8);
                break;
        case 17: /* more bytes than announced */
                send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(1), .buffer = BUFFER(1),
                     .size = 4, .transfer = 1);
                send_data(w, 0, 1, data_new(w, 8, 0), 8);
                break;
        case 18: /* two writes of one transfer */
                for (unsigned i = 1; i <= 2; i++)
                        send(w, 0, buffer_write, .event = EVENT(i), .queue = QUEUE(1),
                             .buffer = BUFFER(1), .size = 4, .transfer = 1);
                break;
        case 19:
                send(w, 0, server_info, .request = 1);
                break;
        case 20:
                send(w, 0, program_build, .request = 1, .program = PROGRAM + 1);
                break;
        case 21:
                send(w, 0, queue_flush, .queue = QUEUE(9));
                break;
        case 31: /* a link of what there is not */
                send(w, 0, program_link, .request = 1, .program = PROGRAM + 1, .devices = WAITS(0),
                     .inputs = WAITS(PROGRAM + 2));
                break;
        case 32: /* of nothing */
                send(w, 0, program_link, .request = 1, .program = PROGRAM + 1, .devices = WAITS(0));
                break;
        case 33:
                send(w, 0, kernel_query, .request = 1, .kernel = KERNEL(7));
                break;
        case 22:
                send(w, 0, release, .object = EVENT(100));
                break;
        case 23: /* a buffer is no image, */
                send(w, 0, image_write, .event = EVENT(1), .queue = QUEUE(1), .image = BUFFER(1),
                     .origin = WAITS(0, 0, 0), .region = WAITS(1, 1, 1), .transfer = 1);
                break;
        case 24: /* nor an image a buffer, */
                make_image(w, BUFFER(9), 0);
                fill_zero(w, 0, QUEUE(1), EVENT(1), BUFFER(9), 64);
                break;
        case 25: /* and has no parts. */
                make_image(w, BUFFER(9), 0);
                send(w, 0, sub_buffer_create, .buffer = BUFFER(10), .parent = BUFFER(9), .size = 4);
                break;
        case 26: /* larger than the buffer that it would be of */
                send(w, 0, image_create, .image = BUFFER(9), .type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                     .order = CL_RGBA, .data_type = CL_FLOAT, .width = 5, .parent = BUFFER(1));
                break;
        case 27: /* a pixel of no size */
                send(w, 0, image_create, .image = BUFFER(9), .type = CL_MEM_OBJECT_IMAGE2D,
                     .order = CL_RGBA, .data_type = 1, .width = 5, .height = 5);
                break;
        case 28: /* more bytes than can be counted */
                send(w, 0, image_create, .image = BUFFER(9), .type = CL_MEM_OBJECT_IMAGE3D,
                     .order = CL_RGBA, .data_type = CL_FLOAT, .width = UINT32_MAX,
                     .height = UINT32_MAX, .depth = UINT32_MAX);
                break;
        case 29: /* the region has to have three coordinates */
                make_image(w, BUFFER(9), 0);
                send(w, 0, image_read, .event = EVENT(1), .queue = QUEUE(1), .image = BUFFER(9),
                     .origin = WAITS(0, 0, 0), .region = WAITS(1, 1), .transfer = 1);
                break;
        case 34: /* bytes of a buffer as an image's, which come in other parts */
                send(w, 0, image_create, .image = BUFFER(9), .type = CL_MEM_OBJECT_IMAGE2D,
                     .order = CL_RGBA, .data_type = CL_UNSIGNED_INT8, .width = 1000,
                     .height = 2000);
                send(w, 0, buffer_read, .event = EVENT(1), .queue = QUEUE(1), .buffer = BUFFER(1),
                     .size = 8000000, .peer = PEER_SELF, .transfer = 7, .waits = WAITS(EVENT(100)));
                send(w, 0, image_write, .event = EVENT(2), .queue = QUEUE(1), .image = BUFFER(9),
                     .origin = WAITS(0, 0, 0), .region = WAITS(1000, 2000, 1), .peer = PEER_SELF,
                     .transfer = 7);
                break;
        case 30: /* a buffer as the parent of a 2D image without a pitch */
                make_image(w, BUFFER(9), BUFFER(1));
                break;
        case 35: /* an answer that nobody asked for */
                send(w, 0, transfer_reroute, .event = EVENT(100), .transfer = 7);
                break;
        case 36: /* commands that wait for themselves, */
                launch_after(w, 0, QUEUE(2), EVENT(1), BUFFER(1), 1,
                             (struct wire_u64s)WAITS(EVENT(100), EVENT(1)));
                break;
        case 37: /* markers that do, */
                send(w, 0, marker, .event = EVENT(1), .queue = QUEUE(1), .waits = WAITS(EVENT(1)));
                break;
        case 38: /* and barriers, */
                send(w, 0, marker, .event = EVENT(1), .queue = QUEUE(2), .flags = COMMAND_BARRIER,
                     .waits = WAITS(EVENT(1)));
                break;
        case 39: /* a recorded one, */
                send(w, 0, recording_create, .recording = object_id(OBJECT_RECORDING, 1),
                     .slots = WAITS(QUEUE(9)), .devices = WAITS(0));
                send(w, 0, marker, .event = EVENT(1), .queue = QUEUE(9), .waits = WAITS(EVENT(1)));
                break;
        case 40: /* and a run. */
                record(w, 0);
                run_recording(w, 0, QUEUE(1), EVENT(108), (struct wire_u64s)WAITS(EVENT(108)));
                break;
        case 41: /* built-in kernels have no binaries, */
                send(w, 0, program_inspect, .request = 1, .program = PROGRAM, .devices = WAITS(0));
                break;
        case 42: /* nor does what there is not */
                send(w, 0, program_inspect, .request = 1, .program = PROGRAM + 1);
                break;
        case 43: /* too many images with the pixels of one */
                make_image(w, BUFFER(9), 0);
                for (unsigned i = 0; i < IMAGE_PARENTS_MAX; i++)
                        make_image(w, BUFFER(10 + i), BUFFER(9 + i));
                pump(w);
                assert_false(w->nodes[0].died);
                make_image(w, BUFFER(10 + IMAGE_PARENTS_MAX), BUFFER(9 + IMAGE_PARENTS_MAX));
                break;
        default:
                fail();
        }
}

TEST(a_client_that_breaks_the_protocol_loses_its_session_alone)
{
        for (unsigned which = 0; which <= 43; which++) {
                struct world *w = world_new(1);
                make_objects(w, 0, 64);
                send(w, 0, event_import, .event = EVENT(100));
                pump(w);
                assert_false(w->nodes[0].died);
                send_bad(w, which);
                pump(w);
                if (!w->nodes[0].died)
                        print_error("bad message %u was taken\n", which);
                assert_true(w->nodes[0].died);
                world_free(w);
        }
}

TEST(an_engine_can_be_freed_at_any_time)
{
        for (size_t ran = 0; ran < 12; ran++) {
                struct world *w = two_servers(4 * MIB);
                send(w, 0, event_import, .event = EVENT(100));
                struct data *d = data_new(w, 4 * MIB, 3);
                send(w, 0, buffer_write, .event = EVENT(1), .queue = QUEUE(2), .buffer = BUFFER(1),
                     .size = d->size, .transfer = 5);
                send_data(w, 0, 5, d, 2 * MIB);
                launch(w, 0, QUEUE(1), EVENT(2), BUFFER(2), 1);
                write_buffer(w, 0, QUEUE(1), EVENT(3), BUFFER(2), 3 * MIB, 1);
                read_buffer(w, 0, QUEUE(1), EVENT(4), BUFFER(2), 4 * MIB);
                send(w, 0, buffer_read, .event = EVENT(5), .queue = QUEUE(1), .buffer = BUFFER(2),
                     .size = 4 * MIB, .peer = PEER(2), .transfer = 6);
                launch_after(w, 0, QUEUE(1), EVENT(6), BUFFER(1), 1,
                             (struct wire_u64s)WAITS(EVENT(100), EVENT(5)));
                launch(w, 0, QUEUE(1), EVENT(7), BUFFER(1), 1);
                record(w, 0);
                run_recording(w, 0, QUEUE(2), EVENT(108), (struct wire_u64s)WAITS(EVENT(100)));
                run_recording(w, 0, QUEUE(2), EVENT(109), (struct wire_u64s){ NULL, 0 });
                pump(w);
                step(w, 0, ran);
                w->nodes[0].bulk_cut = ran % 2;
                if (ran % 3)
                        pump(w);
                world_free(w);
        }
}

/* Each allocation of a whole session fails in turn. The session may end; nothing else may
 * happen. */
static bool life(unsigned long fail_at)
{
        struct world *w = calloc(1, sizeof(*w));
        struct node *n = &w->nodes[0];
        w->count = 1;
        backend_reference_manual = true;
        assert_int_equal(node_init(n, true, NULL), 0);
        make_objects(w, 0, 256 << 10);
        send(w, 0, event_import, .event = EVENT(100));
        write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 200 << 10, 1);
        launch_after(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 1,
                     (struct wire_u64s)WAITS(EVENT(100), EVENT(1)));
        launch(w, 0, QUEUE(3), EVENT(3), 0, 0);
        read_buffer(w, 0, QUEUE(1), EVENT(4), BUFFER(1), 100);
        read_buffer(w, 0, QUEUE(1), EVENT(5), BUFFER(1), 256 << 10);
        record(w, 0);
        run_recording(w, 0, QUEUE(2), EVENT(6), (struct wire_u64s)WAITS(EVENT(100)));
        run_recording(w, 0, QUEUE(1), EVENT(7), (struct wire_u64s){ NULL, 0 });
        send(w, 0, event_done, .event = EVENT(100));
        /* The sessions' own buffers are not the point here. */
        mem_fail_at(fail_at);
        for (int i = 0; i < 8 && !n->died; i++) {
                pump(w);
                step(w, 0, SIZE_MAX);
        }
        mem_fail_at(0);
        bool whole = !n->died && status_of(w, 0, EVENT(5)) == CL_SUCCESS;
        world_free(w);
        return whole;
}

TEST(lack_of_memory_is_survived)
{
        log_threshold = LOG_ERROR;
        unsigned long n = 1;
        unsigned good = 0;
        for (; n < 3000 && good < 100; n++)
                good = life(n) ? good + 1 : 0;
        assert_true(good == 100); /* past the last allocation */
        assert_true(n > 160);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_client_that_breaks_the_protocol_loses_its_session_alone),
                cmocka_unit_test(an_engine_can_be_freed_at_any_time),
                cmocka_unit_test(lack_of_memory_is_survived),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
