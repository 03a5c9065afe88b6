/* Chunks of writes that the server has from an earlier write, and clients that misuse them. */
#include "support/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/blake2bp.h"
#include "support/world.h"

enum { CHUNK = WIRE_UPLOAD_CHUNK, NAME = WIRE_UPLOAD_NAME, COUNT = 4, TAIL = 1000 };
#define SIZE ((size_t)(COUNT - 1) * CHUNK + TAIL)

static char folder[] = "/tmp/spancl-test-uploads.XXXXXX";

/* The files of the store; with `empties` they are removed. */
static unsigned files(bool empties)
{
        char path[512];
        unsigned count = 0;
        DIR *d = opendir(folder);
        assert_non_null(d);
        for (struct dirent *e; (e = readdir(d));) {
                if (e->d_name[0] == '.')
                        continue;
                count++;
                snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
                assert_true(!empties || !unlink(path));
        }
        closedir(d);
        return count;
}

/* A server with an empty store, or with what it had. */
static struct world *upload_world(bool empty)
{
        upload_dir = folder;
        if (empty)
                files(true);
        struct world *w = world_new(1);
        upload_dir = NULL;
        make_objects(w, 0, 4 * MIB);
        return w;
}

static void end(struct world *w)
{
        release_objects(w, 0);
        world_free(w);
}

static void name_chunks(const struct data *d, uint8_t names[COUNT][NAME])
{
        for (size_t i = 0; i < COUNT; i++) {
                size_t left = d->size - i * CHUNK;
                blake2bp_of(bytes_of(d->bytes + i * CHUNK, left < CHUNK ? left : CHUNK), names[i]);
        }
}

static const uint64_t *held; /* bits of the present write's chunks that the server has */

static uint64_t lacks(const struct session_bulk *b, uint64_t offset, uint64_t *ret_end)
{
        uint64_t chunk = offset / CHUNK;
        while (chunk < COUNT && *held >> chunk & 1)
                chunk++;
        uint64_t begin = chunk * CHUNK > offset ? chunk * CHUNK : offset;
        while (chunk < COUNT && !(*held >> chunk & 1))
                chunk++;
        *ret_end = chunk * CHUNK;
        return begin < b->total ? begin : b->total;
}

/* No chunk is like another. */
static struct data *chunks_new(struct world *w, uint8_t seed, uint8_t names[COUNT][NAME])
{
        struct data *d = data_new(w, SIZE, seed);
        for (size_t i = 0; i < COUNT; i++)
                d->bytes[i * CHUNK + 1] = (uint8_t)i;
        name_chunks(d, names);
        return d;
}

/* A write whose chunks may be named; those that the server lacks are sent after its answers, and `ready` bytes now. */
static struct data *begin_write(struct world *w, uint64_t event, uint64_t offset, uint8_t seed,
                                uint8_t names[COUNT][NAME], size_t ready)
{
        struct node *n = &w->nodes[0];
        struct data *d = chunks_new(w, seed, names);
        n->uploads = n->uploads_held = 0;
        held = &n->uploads_held;
        send(w, 0, buffer_write, .event = event, .queue = QUEUE(1), .flags = COMMAND_NOTIFY,
             .buffer = BUFFER(1), .offset = offset, .size = d->size, .transfer = event);
        send_data(w, 0, event, d, ready);
        d->bulk.lacks = lacks;
        n->uploading = &d->bulk;
        return d;
}

static void offer(struct world *w, uint64_t transfer, uint8_t names[COUNT][NAME])
{
        send(w, 0, upload_offer, .transfer = transfer,
             .names = bytes_of(names, (size_t)COUNT * NAME));
}

/* Write the data of `seed` with names, and read it back. Returns the bits of the chunks that the server had. */
static uint64_t upload(struct world *w, uint64_t event, uint8_t seed)
{
        uint8_t names[COUNT][NAME];
        struct data *d = begin_write(w, EVENT(event), 0, seed, names, 0);
        offer(w, EVENT(event), names);
        world_run(w);
        assert_int_equal(w->nodes[0].uploads, COUNT);
        assert_int_equal(status_of(w, 0, EVENT(event)), CL_SUCCESS);
        assert_true(d->acked);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(event + 1), BUFFER(1), SIZE);
        world_run(w);
        expect_same(d, got);
        return w->nodes[0].uploads_held;
}

TEST(chunks_of_an_earlier_write_are_not_sent_again)
{
        struct world *w = upload_world(true);
        assert_int_equal(upload(w, 1, 1), 0);
        assert_int_equal(files(false), COUNT);
        assert_int_equal(upload(w, 3, 1), 15);
        assert_int_equal(upload(w, 5, 2), 0);
        end(w);
        w = upload_world(false);
        assert_int_equal(upload(w, 1, 2), 15);
        end(w);
}

TEST(chunks_go_straight_into_a_buffer_in_host_memory)
{
        backend_reference_bytes = true;
        struct world *w = upload_world(true);
        backend_reference_bytes = false;
        assert_int_equal(upload(w, 1, 1), 0);
        assert_int_equal(upload(w, 3, 1), 15);
        end(w);
}

TEST(a_chunk_that_is_damaged_comes_again)
{
        char path[512], text[2 * NAME + 1] = "";
        uint8_t names[COUNT][NAME];
        struct world *w = upload_world(true);
        assert_int_equal(upload(w, 1, 1), 0);
        chunks_new(w, 1, names);
        for (size_t i = 0; i < NAME; i++)
                snprintf(text + 2 * i, 3, "%02x", names[2][i]);
        snprintf(path, sizeof(path), "%s/%s", folder, text);
        FILE *f = fopen(path, "r+");
        assert_non_null(f);
        assert_int_equal(fputc(7, f), 7);
        fclose(f);
        assert_int_equal(upload(w, 3, 1), 11);
        assert_int_equal(upload(w, 5, 1), 15);
        end(w);
}

TEST(a_chunk_under_a_false_name_is_not_stored)
{
        struct world *w = upload_world(true);
        uint8_t names[COUNT][NAME];
        begin_write(w, EVENT(1), 0, 1, names, 0);
        names[1][0] ^= 1;
        offer(w, EVENT(1), names);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        assert_int_equal(files(false), COUNT - 1);
        assert_int_equal(upload(w, 3, 1), 13);
        end(w);
}

TEST(a_client_that_does_not_wait_for_the_answer_gets_what_it_sent)
{
        struct world *w = upload_world(true);
        uint8_t names[COUNT][NAME];
        upload(w, 1, 1);
        begin_write(w, EVENT(3), 0, 1, names, CHUNK / 2);
        world_run(w);
        offer(w, EVENT(3), names);
        world_run(w);
        assert_int_equal(w->nodes[0].uploads_held, 14);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        end(w);
}

TEST(chunks_without_names_are_sent_after_the_others)
{
        struct world *w = upload_world(true);
        uint8_t names[COUNT][NAME];
        upload(w, 1, 1);
        struct data *d = begin_write(w, EVENT(3), 0, 1, names, 0);
        send(w, 0, upload_offer, .transfer = EVENT(3), .names = bytes_of(names, (size_t)2 * NAME));
        world_run(w);
        assert_int_equal(w->nodes[0].uploads, 2);
        assert_int_equal(w->nodes[0].uploads_held, 3);
        session_bulk_ready(w->nodes[0].client, &d->bulk, SIZE);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_true(d->acked);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(4), BUFFER(1), SIZE);
        world_run(w);
        expect_same(d, got);
        end(w);
}

/* Offer after a write, as the client of each case does, and check that its session has ended. */
static void expect_end(uint64_t transfer, uint64_t first, size_t name_bytes, unsigned times)
{
        struct world *w = upload_world(true);
        static uint8_t names[WIRE_UPLOAD_CHUNKS][NAME];
        begin_write(w, EVENT(1), 0, 1, names, 0);
        for (unsigned i = 0; i < times; i++)
                send(w, 0, upload_offer, .transfer = transfer, .first = first,
                     .names = bytes_of(names, name_bytes));
        world_run(w);
        assert_true(w->nodes[0].died);
        world_free(w);
}

TEST(offers_out_of_place_end_the_session)
{
        expect_end(EVENT(2), 0, NAME, 1);               /* no such transfer */
        expect_end(EVENT(1), 1, NAME, 1);               /* a chunk is left out */
        expect_end(EVENT(1), 0, NAME, 2);               /* twice */
        expect_end(EVENT(1), 0, 0, 1);                  /* no name */
        expect_end(EVENT(1), 0, NAME - 1, 1);           /* not a whole name */
        expect_end(EVENT(1), 0, (COUNT + 1) * NAME, 1); /* more than there are */
}

TEST(without_a_store_an_offer_ends_the_session)
{
        struct world *w = world_new(1);
        uint8_t names[COUNT][NAME];
        make_objects(w, 0, 4 * MIB);
        begin_write(w, EVENT(1), 0, 1, names, 0);
        send(w, 0, upload_offer, .transfer = EVENT(1), .names = bytes_of(names, NAME));
        world_run(w);
        assert_true(w->nodes[0].died);
        world_free(w);
}

TEST(a_write_that_failed_stores_nothing)
{
        struct world *w = upload_world(true);
        uint8_t names[COUNT][NAME];
        begin_write(w, EVENT(1), 4 * MIB - 1, 1, names, 0); /* beyond the buffer */
        offer(w, EVENT(1), names);
        world_run(w);
        assert_true(status_of(w, 0, EVENT(1)) < 0);
        assert_int_equal(files(false), 0);
        end(w);
}

static int make(void **state)
{
        (void)state;
        return mkdtemp(folder) ? 0 : -1;
}

static int clean(void **state)
{
        (void)state;
        files(true);
        return rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(chunks_of_an_earlier_write_are_not_sent_again),
                cmocka_unit_test(chunks_go_straight_into_a_buffer_in_host_memory),
                cmocka_unit_test(a_chunk_that_is_damaged_comes_again),
                cmocka_unit_test(a_chunk_under_a_false_name_is_not_stored),
                cmocka_unit_test(a_client_that_does_not_wait_for_the_answer_gets_what_it_sent),
                cmocka_unit_test(chunks_without_names_are_sent_after_the_others),
                cmocka_unit_test(offers_out_of_place_end_the_session),
                cmocka_unit_test(without_a_store_an_offer_ends_the_session),
                cmocka_unit_test(a_write_that_failed_stores_nothing),
        };
        return cmocka_run_group_tests(tests, make, clean);
}
