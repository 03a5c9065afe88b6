/* Compressed bulk data arrives unchanged, between client and servers and between servers, in
 * fewer bytes on the wire. Data that does not get smaller, or that is not to be compressed, takes
 * as many bytes as it has. The program runs itself and reads SPANCL_STATS. Servers have
 * `--compression lz4` and clients SPANCL_COMPRESSION=lz4, or neither. The work of `auto` depends
 * on how busy the host is, but it never takes more bytes. */

#include "api.h"
#include "stats.h"

enum { SIZE = (4 << 20) + 1003, ROW = 1024, ROWS = 700, PITCH = 1500 };

static void make(uint8_t *data, const char *kind)
{
        uint32_t x = 12345;
        for (size_t i = 0; i < SIZE; i++) {
                x = x * 1664525 + 1013904223;
                /* "mixed": every other 300,000 bytes. */
                int noise = !strcmp(kind, "noise") || (!strcmp(kind, "mixed") && i / 300000 % 2);
                data[i] = noise ? (uint8_t)(x >> 24) : (uint8_t)(i / 100);
        }
}

/* To the first device, from there to the last, and back. */
static int move(const char *kind)
{
        struct api a = api_open(0);
        uint8_t *data = api_alloc(SIZE), *got = api_alloc(SIZE);
        make(data, kind);
        cl_command_queue first = a.queues[0], last = a.queues[a.count - 1];
        cl_mem m = api_buffer(&a, CL_MEM_READ_WRITE, SIZE, NULL);
        OK(clEnqueueWriteBuffer(first, m, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
        OK(clEnqueueMigrateMemObjects(last, 1, &m, 0, 0, NULL, NULL));
        OK(clFinish(last));
        OK(clEnqueueReadBuffer(last, m, CL_TRUE, 0, SIZE, got, 0, NULL, NULL));
        CHECK(!memcmp(got, data, SIZE));
        /* Rows with gaps between them. */
        static const size_t origin[3] = { 3, 0, 0 }, region[3] = { ROW, ROWS, 1 };
        memset(got, 0, SIZE);
        OK(clEnqueueReadBufferRect(last, m, CL_TRUE, origin, origin, region, PITCH, 0, PITCH, 0,
                                   got, 0, NULL, NULL));
        for (size_t i = 0; i < (size_t)ROWS * PITCH; i++)
                CHECK(got[i] == (i % PITCH >= 3 && i % PITCH < 3 + ROW ? data[i] : 0));
        OK(clReleaseMemObject(m));
        free(data);
        free(got);
        api_close(&a);
        return 0;
}

/* Bulk bytes on all links. */
static long bulk(char *program, char *kind)
{
        char *argv[] = { program, kind, NULL }, report[STATS_MAX];
        long sum = 0;
        stats_run(argv, report);
        for (const char *at = report; (at = strstr(at, "\"bulk_bytes\": ")); at++)
                sum += stats_number(at, "bulk_bytes");
        printf("%s: %ld bytes\n", kind, sum);
        return sum;
}

int main(int argc, char **argv)
{
        if (argc > 1)
                return move(argv[1]);
        const char *how = getenv("SPANCL_COMPRESSION");
        int packs = how && !strcmp(how, "lz4");
        long even = bulk(argv[0], "even"), noise = bulk(argv[0], "noise");
        long mixed = bulk(argv[0], "mixed");
        if (!packs) {
                enum { HEADERS = 10000 };
                CHECK(even < noise + HEADERS && mixed < noise + HEADERS);
                return 0;
        }
        long all = 3L * SIZE + (long)ROW * ROWS;
        CHECK(noise >= all - SIZE && noise < all + all / 100);
        CHECK(even < noise / 10);
        CHECK(mixed < noise * 2 / 3);
        return 0;
}
