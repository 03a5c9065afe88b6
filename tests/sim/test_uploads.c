/* Data that a server has from an earlier write, over links that break. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/link/server.h"
#include "os/folder.h"
#include "support/setup.h"

enum { CHUNK = WIRE_UPLOAD_CHUNK, COUNT = 5 };
#define SIZE ((size_t)COUNT * CHUNK + 1000)

static char folder[] = "/tmp/spancl-test-uploads.XXXXXX";

/* No chunk is like another, nor like those of other seeds. */
static void fill(uint8_t *data, size_t chunk, uint64_t seed)
{
        struct rng rng = { seed * (COUNT + 1) + chunk + 1 };
        size_t begin = chunk * CHUNK, end = begin + CHUNK < SIZE ? begin + CHUNK : SIZE;
        for (size_t i = begin; i < end; i += 8) {
                uint64_t word = rng_u64(&rng);
                memcpy(data + i, &word, end - i < 8 ? end - i : 8);
        }
}

/* The bytes of bulk data that the client has sent. */
static uint64_t sent(struct setup *s) LOCK_UNCHECKED
{
        struct client *c = sim_client(s->sim);
        return session_get_stats(c->servers[0]->session)->bulk_sent;
}

static void write_and_check(struct setup *s, const uint8_t *data, bool blocking)
{
        cl_int r;
        uint8_t *got = malloc(SIZE);
        cl_mem m = clCreateBuffer(s->context, CL_MEM_READ_WRITE, SIZE, NULL, &r);
        assert_int_equal(r, CL_SUCCESS);
        assert_non_null(got);
        assert_int_equal(
                clEnqueueWriteBuffer(s->queues[0], m, blocking, 0, SIZE, data, 0, NULL, NULL),
                CL_SUCCESS);
        assert_int_equal(clEnqueueReadBuffer(s->queues[0], m, CL_TRUE, 0, SIZE, got, 0, NULL, NULL),
                         CL_SUCCESS);
        assert_memory_equal(got, data, SIZE);
        assert_int_equal(clReleaseMemObject(m), CL_SUCCESS);
        free(got);
}

TEST(writes_are_right_whatever_the_server_has_and_whenever_links_break)
{
        uint8_t *data = malloc(SIZE);
        struct setup s;
        assert_non_null(data);
        assert_non_null(mkdtemp(folder));
        for (size_t i = 0; i <= COUNT; i++)
                fill(data, i, 0);
        setup_begin(&s, &(struct sim_params){ .seed = 1, .servers = 1, .uploads = folder });
        write_and_check(&s, data, true);
        uint64_t all = sent(&s);
        assert_true(all > 0); /* frames may be packed */
        write_and_check(&s, data, false);
        assert_int_equal(sent(&s), all);
        setup_end(&s);
        for (uint64_t seed = 1; seed <= 24; seed++) {
                struct rng rng = { seed };
                setup_begin(&s, &(struct sim_params){ .seed = seed,
                                                      .servers = 1,
                                                      .uploads = folder,
                                                      .reconnect_ns = 60000000000,
                                                      .wait_ns = UINT64_MAX });
                sim_cut_often(s.sim, seed % 3 ? 20 : 0, (unsigned)(seed % 5));
                for (size_t i = 0; i <= COUNT; i++)
                        fill(data, i, rng_chance(&rng, 50) ? seed : 0);
                write_and_check(&s, data, seed & 1);
                setup_end(&s);
        }
        free(data);
        folder_remove(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(writes_are_right_whatever_the_server_has_and_whenever_links_break),
        };
        log_threshold = LOG_ERROR; /* lost links are warnings */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
