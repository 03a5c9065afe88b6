/* Large transfers between two engines that use one device: through memory of the device that both have, or through the
 * host's if that does not work. Peers may be hostile. */
#include "support/check.h"

#include "base/mem.h"
#include "engine/transfer/device_staging.h"
#include "engine/transfer/peer.h"
#include "engine/transfer/transfer.h"
#include "os/file.h"
#include "os/shared_memory.h"
#include "support/world.h"

enum { LARGE = 3 * MIB, LARGER = 6 * MIB };

static struct peer *peer_at(struct world *w, unsigned i) LOCK_UNCHECKED
{
        return engine_peer_find(w->nodes[i].engine, i ? PEER(1) : PEER(2));
}

/* Node 0 and node 1 are on one host. */
static struct world *two_near(size_t size) LOCK_UNCHECKED
{
        struct world *w = two_servers(size);
        peer_at(w, 0)->staging.near = peer_at(w, 1)->staging.near = true;
        return w;
}

static void end(struct world *w)
{
        release_objects(w, 0);
        release_objects(w, 1);
        world_free(w);
}

static uint64_t bulk_sent(struct world *w)
{
        return session_get_stats(w->nodes[0].dialled)->bulk_sent;
}

/* Send `size` bytes of node 0's buffer 1 as transfer `id`. */
static void read_to_peer(struct world *w, unsigned id, uint64_t queue, size_t size)
{
        send(w, 0, buffer_read, .event = EVENT(id), .flags = COMMAND_NOTIFY, .queue = queue,
             .buffer = BUFFER(1), .size = size, .peer = PEER(2), .transfer = EVENT(id));
}

static void write_from_peer(struct world *w, unsigned id, uint64_t queue, size_t size)
{
        send(w, 1, buffer_write, .event = EVENT(id), .flags = COMMAND_NOTIFY, .queue = queue,
             .buffer = BUFFER(1), .size = size, .peer = PEER(1), .transfer = EVENT(id));
}

/* Fill buffer 1 of node 0 anew and move it to node 1. Returns how many bytes went as bulk, in whole MiB. */
static uint64_t move(struct world *w, unsigned id, uint64_t from, uint64_t queue, size_t size)
{
        struct data *d = write_buffer(w, 0, from, EVENT(id), BUFFER(1), size, (uint8_t)id);
        uint64_t before = bulk_sent(w);
        read_to_peer(w, id + 1, from, size);
        write_from_peer(w, id + 1, queue, size);
        world_run(w);
        uint64_t sent = bulk_sent(w) - before;
        assert_int_equal(status_of(w, 0, EVENT(id + 1)), CL_SUCCESS);
        assert_int_equal(status_of(w, 1, EVENT(id + 1)), CL_SUCCESS);
        struct data *got = read_buffer(w, 1, queue, EVENT(id + 2), BUFFER(1), size);
        world_run(w);
        expect_same(d, got);
        expect_idle(w);
        return sent - sent % MIB;
}

/* From now on the test plays the peers. */
static void cut_link(struct world *w)
{
        w->nodes[0].dialled = NULL;
}

TEST(later_large_transfers_go_through_device_memory)
{
        struct world *w = two_near(LARGE + 3);
        assert_int_equal(move(w, 10, QUEUE(1), QUEUE(1), LARGE),
                         LARGE); /* the offer is on its way */
        assert_int_equal(peer_at(w, 0)->staging.out.state, DEVICE_STAGING_READY);
        assert_int_equal(move(w, 20, QUEUE(1), QUEUE(1), LARGE), 0);
        assert_int_equal(move(w, 30, QUEUE(1), QUEUE(2), LARGE + 3), 0);
        assert_int_equal(move(w, 40, QUEUE(1), QUEUE(1), MIB), MIB);
        /* That of another device takes its place. */
        assert_int_equal(move(w, 50, QUEUE(3), QUEUE(3), LARGE), LARGE);
        assert_int_equal(move(w, 60, QUEUE(3), QUEUE(3), LARGE), 0);
        assert_int_equal(peer_at(w, 0)->staging.out.number, 3);
        end(w);
}

TEST(a_transfer_larger_than_the_memory_goes_in_pieces)
{
        engine_device_staging_size = 4 * MIB;
        struct world *w = two_near(LARGER);
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        assert_int_equal(move(w, 20, QUEUE(1), QUEUE(1), LARGER), 0);
        engine_device_staging_size = WIRE_STAGING_MAX;
        end(w);
}

TEST(a_piece_may_come_before_its_command)
{
        struct world *w = two_near(LARGE);
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(20), BUFFER(1), LARGE, 20);
        read_to_peer(w, 21, QUEUE(1), LARGE);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(21)), PENDING);
        /* Other transfers do not wait for it. */
        read_to_peer(w, 22, QUEUE(1), MIB);
        send(w, 0, buffer_read, .event = EVENT(23), .queue = QUEUE(2), .buffer = BUFFER(2),
             .size = LARGE, .peer = PEER(2), .transfer = EVENT(23));
        send(w, 1, buffer_write, .event = EVENT(23), .flags = COMMAND_NOTIFY, .queue = QUEUE(2),
             .buffer = BUFFER(2), .size = LARGE, .peer = PEER(1), .transfer = EVENT(23));
        world_run(w);
        assert_int_equal(status_of(w, 1, EVENT(23)), CL_SUCCESS);
        write_from_peer(w, 21, QUEUE(1), LARGE);
        write_from_peer(w, 22, QUEUE(3), MIB);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(21)), CL_SUCCESS);
        struct data *got = read_buffer(w, 1, QUEUE(1), EVENT(30), BUFFER(1), LARGE);
        world_run(w);
        expect_same(d, got);
        assert_int_equal(move(w, 40, QUEUE(1), QUEUE(1), LARGE), 0);
        end(w);
}

TEST(a_write_on_another_device_takes_the_way_through_the_host)
{
        struct world *w = two_near(LARGE);
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        peer_at(w, 0)->staging.out.refusals = DEVICE_STAGING_REFUSALS - 2;
        for (unsigned i = 2; i < 4; i++) {
                assert_int_equal(peer_at(w, 0)->staging.out.state, DEVICE_STAGING_READY);
                assert_int_equal(move(w, 10 * i, QUEUE(1), QUEUE(3), LARGE), LARGE);
        }
        assert_int_equal(peer_at(w, 0)->staging.out.state, DEVICE_STAGING_OFF);
        assert_null(peer_at(w, 1)->staging.in.buffer);
        assert_int_equal(move(w, 200, QUEUE(1), QUEUE(1), LARGE), LARGE);
        end(w);
}

TEST(the_memory_is_free_again_after_failures)
{
        struct world *w = two_near(LARGE);
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        /* The write fails. */
        send(w, 1, event_import, .event = EVENT(20));
        read_to_peer(w, 21, QUEUE(1), LARGE);
        send(w, 1, buffer_write, .event = EVENT(21), .flags = COMMAND_NOTIFY, .queue = QUEUE(2),
             .buffer = BUFFER(1), .size = LARGE, .peer = PEER(1), .transfer = EVENT(21),
             .waits = WAITS(EVENT(20)));
        world_run(w);
        send(w, 1, event_done, .event = EVENT(20), .status = CL_OUT_OF_RESOURCES);
        world_run(w);
        assert_int_equal(status_of(w, 1, EVENT(21)), -14);
        assert_int_equal(status_of(w, 0, EVENT(21)), CL_SUCCESS);
        assert_int_equal(move(w, 30, QUEUE(1), QUEUE(1), LARGE), 0);
        /* The read fails. */
        send(w, 0, event_import, .event = EVENT(40));
        send(w, 0, buffer_read, .event = EVENT(41), .flags = COMMAND_NOTIFY, .queue = QUEUE(1),
             .buffer = BUFFER(1), .size = LARGE, .peer = PEER(2), .transfer = EVENT(41),
             .waits = WAITS(EVENT(40)));
        write_from_peer(w, 41, QUEUE(1), LARGE);
        send(w, 0, event_done, .event = EVENT(40), .status = CL_OUT_OF_RESOURCES);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(41)), -14);
        assert_true(status_of(w, 1, EVENT(41)) < 0);
        assert_int_equal(move(w, 50, QUEUE(1), QUEUE(1), LARGE), 0);
        end(w);
}

TEST(a_lost_peer_ends_transfers_on_both_sides)
{
        struct world *w = two_near(LARGE);
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        read_to_peer(w, 21, QUEUE(1), LARGE); /* its piece waits for the command there */
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(21)), PENDING);
        send(w, 0, peer_lost, .peer = PEER(2), .status = SP_E_LINK);
        send(w, 1, peer_lost, .peer = PEER(1), .status = SP_E_LINK);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(21)), CL_DEVICE_NOT_AVAILABLE);
        assert_null(peer_at(w, 0)->staging.out.buffer);
        assert_null(peer_at(w, 1)->staging.in.buffer);
        end(w);
}

/* A command behind the read may be what the write waits for. */
TEST(a_read_does_not_wait_for_what_its_write_waits_for)
{
        struct world *w = two_near(LARGER);
        engine_device_staging_size = 4 * MIB;
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        for (unsigned i = 0; i < 3; i++) {
                unsigned id = 20 + 10 * i;
                size_t size = i < 2 ? LARGE : LARGER;
                struct data *d =
                        write_buffer(w, 0, QUEUE(1), EVENT(id), BUFFER(1), size, (uint8_t)id);
                world_run(w);
                send(w, 1, event_import, .event = EVENT(id + 2));
                read_to_peer(w, id + 1, QUEUE(1), size);
                if (i == 1)
                        world_run(w); /* the piece comes before its command */
                send(w, 1, buffer_write, .event = EVENT(id + 1), .flags = COMMAND_NOTIFY,
                     .queue = QUEUE(1), .buffer = BUFFER(1), .size = size, .peer = PEER(1),
                     .transfer = EVENT(id + 1), .waits = WAITS(EVENT(id + 2)));
                world_run(w);
                assert_int_equal(status_of(w, 0, EVENT(id + 1)), CL_SUCCESS);
                assert_int_equal(status_of(w, 1, EVENT(id + 1)), PENDING);
                assert_int_equal(peer_at(w, 1)->staging.in.piece.taken, i < 2);
                send(w, 1, event_done, .event = EVENT(id + 2));
                world_run(w);
                assert_int_equal(status_of(w, 1, EVENT(id + 1)), CL_SUCCESS);
                struct data *got = read_buffer(w, 1, QUEUE(1), EVENT(id + 3), BUFFER(1), size);
                world_run(w);
                expect_same(d, got);
        }
        assert_int_equal(move(w, 60, QUEUE(1), QUEUE(1), LARGE), 0);
        engine_device_staging_size = WIRE_STAGING_MAX;
        end(w);
}

TEST(a_piece_that_a_write_has_outlives_the_peer)
{
        struct world *w = two_near(LARGE);
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        struct data *d = write_buffer(w, 0, QUEUE(1), EVENT(20), BUFFER(1), LARGE, 20);
        send(w, 1, event_import, .event = EVENT(22));
        read_to_peer(w, 21, QUEUE(1), LARGE);
        send(w, 1, buffer_write, .event = EVENT(21), .flags = COMMAND_NOTIFY, .queue = QUEUE(1),
             .buffer = BUFFER(1), .size = LARGE, .peer = PEER(1), .transfer = EVENT(21),
             .waits = WAITS(EVENT(22)));
        world_run(w);
        assert_true(peer_at(w, 1)->staging.in.piece.taken);
        send(w, 1, peer_lost, .peer = PEER(1), .status = SP_E_LINK);
        pump(w);
        send(w, 1, event_done, .event = EVENT(22));
        world_run(w);
        assert_int_equal(status_of(w, 1, EVENT(21)), CL_SUCCESS);
        assert_null(peer_at(w, 1)->staging.in.buffer);
        struct data *got = read_buffer(w, 1, QUEUE(1), EVENT(23), BUFFER(1), LARGE);
        world_run(w);
        expect_same(d, got);
        world_free(w);
}

TEST(without_a_way_for_descriptors_all_goes_through_the_host)
{
        struct world *w = two_near(LARGE);
        w->nodes[0].far = true;
        assert_int_equal(move(w, 10, QUEUE(1), QUEUE(1), LARGE), LARGE);
        peer_at(w, 0)->staging.out.number = DEVICE_STAGING_OFFERS - 1;
        for (unsigned i = 2; i < 4; i++)
                assert_int_equal(move(w, 10 * i, QUEUE(1), QUEUE(1), LARGE), LARGE);
        assert_int_equal(peer_at(w, 0)->staging.out.number, DEVICE_STAGING_OFFERS);
        end(w);
}

TEST(unused_memory_is_given_up_when_memory_is_short) LOCK_UNCHECKED
{
        struct world *w = two_near(LARGE);
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        assert_non_null(peer_at(w, 1)->staging.in.buffer);
        engine_device_staging_trim(w->nodes[0].engine);
        world_run(w);
        assert_null(peer_at(w, 0)->staging.out.buffer);
        assert_null(peer_at(w, 1)->staging.in.buffer);
        assert_int_equal(move(w, 20, QUEUE(1), QUEUE(1), LARGE), LARGE);
        end(w);
}

/* ---- hostile peers ---------------------------------------------------------------------------- */

static int offer(struct world *w, uint64_t size, const char *device) LOCK_UNCHECKED
{
        return engine_handle_staging_offer(
                peer_at(w, 1), &(struct wire_staging_offer){
                                       .number = 1, .size = size, .device = bytes_of(device, 16) });
}

TEST(an_offer_without_the_memory_is_refused)
{
        static const char reference[16] = "reference", other[16] = "another";
        struct world *w = two_near(LARGE);
        const struct {
                int fd;
                uint64_t size;
                const char *device;
        } all[] = {
                { -1, 32 * MIB, reference },
                { file_duplicate(0), 32 * MIB, reference },
                { shared_memory_new(16 * MIB), 32 * MIB, reference }, /* less than it says */
                { shared_memory_new(32 * MIB), 32 * MIB, other },
                { shared_memory_new(32 * MIB), 32 * MIB - 1, reference },
        };
        for (size_t i = 0; i < array_size(all); i++) {
                w->nodes[1].passed = all[i].fd;
                assert_int_equal(offer(w, all[i].size, all[i].device), 0);
                assert_int_equal(w->nodes[1].passed, -1);
                assert_null(peer_at(w, 1)->staging.in.buffer);
        }
        world_run(w);
        /* So many are imported, and no more. */
        for (unsigned i = 0; i < 2 * DEVICE_STAGING_OFFERS; i++) {
                w->nodes[1].passed = shared_memory_new(32 * MIB);
                assert_int_equal(offer(w, 32 * MIB, reference), 0);
        }
        assert_null(peer_at(w, 1)->staging.in.buffer);
        world_run(w);
        assert_int_equal(move(w, 10, QUEUE(1), QUEUE(1), LARGE), LARGE);
        assert_int_equal(move(w, 20, QUEUE(1), QUEUE(1), LARGE), LARGE);
        end(w);
}

static int filled(struct world *w, unsigned id, uint64_t offset, uint64_t size) LOCK_UNCHECKED
{
        const struct wire_staging_filled m = { .transfer = EVENT(id),
                                               .offset = offset,
                                               .size = size };
        return engine_handle_staging_filled(peer_at(w, 1), &m);
}

static int emptied(struct world *w, unsigned id, uint64_t to, int64_t status) LOCK_UNCHECKED
{
        const struct wire_staging_emptied m = { .transfer = EVENT(id),
                                                .end = to,
                                                .status = status };
        return engine_handle_staging_emptied(peer_at(w, 0), &m);
}

TEST(pieces_that_break_the_protocol_end_the_peer)
{
        struct world *w = two_near(LARGE);
        assert_int_equal(filled(w, 5, 0, LARGE), SP_E_PROTO); /* there is no memory */
        assert_int_equal(emptied(w, 5, LARGE, 0), SP_E_PROTO);
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        cut_link(w);
        write_from_peer(w, 21, QUEUE(1), LARGE);
        pump(w);
        const uint64_t bad[][2] = {
                { 0, 1 },         { 1, LARGE - 1 },         { 0, LARGE + 1 },
                { LARGE, 1 },     { WIRE_BULK_MAX, 1 },     { 0, WIRE_STAGING_MAX },
                { 0, LARGE - 1 }, { WIRE_BULK_MAX, LARGE },
        };
        for (size_t i = 0; i < array_size(bad); i++) {
                assert_int_equal(filled(w, 21, bad[i][0], bad[i][1]), SP_E_PROTO);
                peer_at(w, 1)->staging.in.piece.size_bytes = 0;
        }
        /* An offer must not replace memory with a piece in it, and a piece comes once. */
        assert_int_equal(filled(w, 21, 0, LARGE), 0);
        assert_int_equal(filled(w, 21, 0, LARGE), SP_E_PROTO);
        assert_int_equal(offer(w, 0, "               "), SP_E_PROTO);
        world_run(w);
        assert_int_equal(status_of(w, 1, EVENT(21)), CL_SUCCESS);
        end(w);
}

TEST(a_cut_leaves_the_bytes_that_came) LOCK_UNCHECKED
{
        struct world *w = two_near(LARGER);
        engine_device_staging_size = 4 * MIB;
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        cut_link(w);
        write_from_peer(w, 21, QUEUE(1), LARGER);
        world_run(w);
        assert_int_equal(filled(w, 21, 0, 4 * MIB), 0);
        const struct wire_transfer_cut cut[] = { { .transfer = EVENT(21), .size = 0 },
                                                 { .transfer = EVENT(21), .size = MIB } };
        for (size_t i = 0; i < array_size(cut); i++)
                assert_int_equal(engine_handle_transfer_cut(peer_at(w, 1), &cut[i]), SP_E_PROTO);
        engine_device_staging_size = WIRE_STAGING_MAX;
        world_free(w);
}

TEST(a_transfer_does_not_change_to_other_memory)
{
        static const struct {
                uint64_t size;
                char device[16];
        } all[] = {
                { 2 * MIB, { "reference" } }, /* smaller */
                { 4 * MIB, { "reference\0\0\0\0\0\0\1" } },
        };
        for (size_t i = 0; i < array_size(all); i++) {
                struct world *w = two_near(LARGER);
                engine_device_staging_size = 4 * MIB;
                move(w, 10, QUEUE(1), QUEUE(1), LARGE);
                cut_link(w);
                write_from_peer(w, 21, QUEUE(1), LARGER);
                pump(w);
                assert_int_equal(filled(w, 21, 0, 4 * MIB), 0);
                world_run(w);
                w->nodes[1].passed = shared_memory_new(all[i].size);
                assert_int_equal(offer(w, all[i].size, all[i].device), 0);
                assert_non_null(peer_at(w, 1)->staging.in.buffer);
                assert_int_equal(filled(w, 21, 4 * MIB, 2 * MIB), SP_E_PROTO);
                engine_device_staging_size = WIRE_STAGING_MAX;
                world_free(w);
        }
}

TEST(a_piece_that_does_not_fit_its_command_fails_the_command_alone)
{
        struct world *w = two_near(LARGE);
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        cut_link(w);
        assert_int_equal(filled(w, 21, 0, LARGE - 1), 0); /* its command has not come */
        write_from_peer(w, 21, QUEUE(1), LARGE);
        world_run(w);
        assert_true(status_of(w, 1, EVENT(21)) < 0);
        assert_false(w->nodes[1].died);
        world_free(w);
}

TEST(answers_that_nobody_waits_for_end_the_peer)
{
        struct world *w = two_near(LARGE);
        move(w, 10, QUEUE(1), QUEUE(1), LARGE);
        cut_link(w);
        read_to_peer(w, 21, QUEUE(1), LARGE);
        pump(w);
        assert_int_equal(emptied(w, 21, LARGE, 0), SP_E_PROTO); /* the copy has not run */
        world_run(w);
        assert_int_equal(emptied(w, 22, LARGE, 0), SP_E_PROTO);
        assert_int_equal(emptied(w, 21, LARGE - 1, 0), SP_E_PROTO);
        assert_int_equal(emptied(w, 21, LARGE, STAGING_ACCEPTED + 1), SP_E_PROTO);
        assert_int_equal(emptied(w, 21, LARGE, STAGING_ACCEPTED), 0);
        assert_int_equal(emptied(w, 21, LARGE, STAGING_ACCEPTED), SP_E_PROTO);
        assert_int_equal(emptied(w, 21, LARGE, SP_E_UNSUPP), SP_E_PROTO);
        assert_int_equal(emptied(w, 21, LARGE, 0), 0);
        assert_int_equal(emptied(w, 21, LARGE, 0), SP_E_PROTO);
        pump(w);
        pump(w);
        assert_int_equal(status_of(w, 0, EVENT(21)), CL_SUCCESS);
        world_free(w);
}

int main(void)
{
        engine_device_staging_above = MIB;
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(later_large_transfers_go_through_device_memory),
                cmocka_unit_test(a_transfer_larger_than_the_memory_goes_in_pieces),
                cmocka_unit_test(a_piece_may_come_before_its_command),
                cmocka_unit_test(a_write_on_another_device_takes_the_way_through_the_host),
                cmocka_unit_test(the_memory_is_free_again_after_failures),
                cmocka_unit_test(a_lost_peer_ends_transfers_on_both_sides),
                cmocka_unit_test(a_read_does_not_wait_for_what_its_write_waits_for),
                cmocka_unit_test(a_piece_that_a_write_has_outlives_the_peer),
                cmocka_unit_test(without_a_way_for_descriptors_all_goes_through_the_host),
                cmocka_unit_test(unused_memory_is_given_up_when_memory_is_short),
                cmocka_unit_test(an_offer_without_the_memory_is_refused),
                cmocka_unit_test(pieces_that_break_the_protocol_end_the_peer),
                cmocka_unit_test(a_cut_leaves_the_bytes_that_came),
                cmocka_unit_test(a_transfer_does_not_change_to_other_memory),
                cmocka_unit_test(a_piece_that_does_not_fit_its_command_fails_the_command_alone),
                cmocka_unit_test(answers_that_nobody_waits_for_end_the_peer),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
