/* The compile cache's folder and its keys' hash. */
#include "support/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/blake2bp.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/program/cache.h"
#include "engine/program/include.h"

/* RFC 7693 has one vector of BLAKE2b-512; these are of other implementations (Python's hashlib), of
 * bytes (7 i + 1) mod 256, around the size of a block. */
TEST(hash_is_blake2b)
{
        static const struct {
                size_t size;
                const char *digest;
        } vectors[] = {
                { 0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8" },
                { 3, "e43d000b0a37d6fcddcd15640107181a908675e1820dd5ae307155ffff196ba5" },
                { 127, "3b03a73c3c02e3eef11be3e2e16c12ccf6090dea00aa861ded320910892e13ac" },
                { 128, "6b89237e0a469a721c700b8bbcb51b6231c48e71ff023e0e3444ec84882ae32e" },
                { 129, "524a9dc9d008a9ce1d9d2a111bcd10d2461a02dadf30ec5a47225501608a87eb" },
                { 256, "e7001e3026924e6650fcd5b274bc3ddf556a6c7fedfe038383c0f4ad5f26cfc9" },
                { 1000, "1d16566788d72e44f7c8ca9aaf73edc64bb03fc69322cb735f49974d7c9ce383" },
        };
        uint8_t data[1000];
        for (size_t i = 0; i < sizeof(data); i++)
                data[i] = (uint8_t)(i * 7 + 1);
        for (size_t v = 0; v < array_size(vectors); v++) {
                for (size_t piece = 1; piece < 300; piece += 37) {
                        struct blake2b b;
                        uint8_t digest[BLAKE2B_SIZE];
                        char text[2 * BLAKE2B_SIZE + 1];
                        blake2b_init(&b);
                        for (size_t at = 0; at < vectors[v].size; at += piece) {
                                size_t n = vectors[v].size - at;
                                blake2b_update(&b, data + at, n < piece ? n : piece);
                        }
                        blake2b_final(&b, digest);
                        for (size_t i = 0; i < BLAKE2B_SIZE; i++)
                                snprintf(text + 2 * i, 3, "%02x", digest[i]);
                        assert_string_equal(text, vectors[v].digest);
                }
        }
}

/* By Python's hashlib, of bytes 7 i + i / 251 mod 256: around the size of a stripe, and a whole chunk. */
TEST(names_of_bulk_data_are_blake2b_in_a_tree)
{
        static const struct {
                size_t size;
                const char *digest;
        } vectors[] = {
                { 0, "7fb3222c1bce0810eb69450cc6ddfc6f5822c2e5b2fe0927e27f0e292e4e45a1" },
                { 1, "059720da71e632734692dfdb787bbecce94809e6b5b4d4be718e63dc1d9524ce" },
                { 512, "072aaf6fc5019cfa6290859f8d5610d7e0e4b5dd53c3d3413686cc1f99835ed4" },
                { 897, "524de83b4e5eefa577106133ecb178236e01eee53b524eb84e20e6182b0e1896" },
                { 898, "56d7e5ec384b96cca69ae670988948c0bdbb96fee00434009b28be140335521f" },
                { 4099, "43fced5cc8f1be9c63fec9dc5708907505fbb5868a3ac5e6604aaa8163825bfe" },
                { 1048576, "50f039bdf52fc6fcf8ee37fe4fdd8edf4f864164be778b1e31f10bf874607dfe" },
        };
        uint8_t *data = malloc(1048576), digest[2][BLAKE2B_SIZE];
        assert_non_null(data);
        for (size_t i = 0; i < 1048576; i++)
                data[i] = (uint8_t)(i * 7 + i / 251);
        for (size_t v = 0; v < array_size(vectors); v++) {
                blake2bp_of(bytes_of(data, vectors[v].size), digest[0]);
                blake2bp_portably(bytes_of(data, vectors[v].size), digest[1]);
                for (size_t k = 0; k < 2; k++) {
                        char text[2 * BLAKE2B_SIZE + 1];
                        for (size_t i = 0; i < BLAKE2B_SIZE; i++)
                                snprintf(text + 2 * i, 3, "%02x", digest[k][i]);
                        assert_string_equal(text, vectors[v].digest);
                }
        }
        free(data);
}

static char folder[64];

static int setup(void **state)
{
        (void)state;
        log_threshold = LOG_NONE;
        snprintf(folder, sizeof(folder), "/tmp/spancl-cache-XXXXXX");
        return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
        (void)state;
        engine_include_remove(folder);
        return 0;
}

static struct cache *make(uint64_t limit)
{
        struct cache *c;
        char path[80];
        snprintf(path, sizeof(path), "%s/a/b", folder);
        assert_int_equal(cache_new(path, limit, &c), 0);
        return c;
}

static struct cache_key key_of(uint8_t number)
{
        struct cache_key k;
        memset(k.bytes, number, sizeof(k.bytes));
        return k;
}

static void put(struct cache *c, uint8_t number, size_t size)
{
        struct cache_key k = key_of(number);
        uint8_t *value = mem_alloc(size);
        assert_non_null(value);
        memset(value, number, size);
        cache_put(c, &k, bytes_of(value, size));
        mem_free(value);
}

/* -1: there is none. */
static long get(struct cache *c, uint8_t number)
{
        struct cache_key k = key_of(number);
        struct buf b = { 0 };
        int r = cache_get(c, &k, &b);
        long size = r < 0 ? -1 : (long)b.size;
        for (size_t i = 0; r == 0 && i < b.size; i++)
                assert_int_equal(b.data[i], number);
        buf_fini(&b);
        return size;
}

static void file_path(uint8_t number, char path[256])
{
        int n = snprintf(path, 256, "%s/a/b/", folder);
        for (size_t i = 0; i < BLAKE2B_SIZE; i++)
                n += snprintf(path + n, 256 - (size_t)n, "%02x", number);
        snprintf(path + n, 256 - (size_t)n, ".program");
}

TEST(one_sessions_entry_serves_another)
{
        struct cache *a = make(1 << 20), *b = make(1 << 20);
        assert_int_equal(get(a, 1), -1);
        put(a, 1, 1000);
        assert_int_equal(get(a, 1), 1000);
        assert_int_equal(get(b, 1), 1000);
        assert_int_equal(get(b, 2), -1);
        struct cache_key k = key_of(1);
        cache_drop(b, &k);
        assert_int_equal(get(b, 1), -1);
        cache_free(a);
        a = make(1 << 20);
        assert_int_equal(get(a, 1), -1);
        cache_free(a);
        cache_free(b);
}

TEST(incomplete_entries_are_removed)
{
        char path[256];
        struct stat st;
        for (int how = 0; how < 4; how++) {
                struct cache *c = make(1 << 20);
                put(c, 3, 500);
                cache_free(c);
                file_path(3, path);
                assert_int_equal(stat(path, &st), 0);
                int fd = open(path, O_RDWR);
                assert_true(fd >= 0);
                off_t at = how == 1 ? 0 : how == 2 ? 20 : st.st_size - 1;
                if (how == 0)
                        assert_int_equal(ftruncate(fd, st.st_size - 1), 0);
                else
                        assert_int_equal(pwrite(fd, "?", 1, at), 1);
                close(fd);
                c = make(1 << 20);
                assert_int_equal(get(c, 3), -1);
                assert_int_equal(stat(path, &st), -1);
                cache_free(c);
        }
}

TEST(the_least_recently_used_entry_goes)
{
        struct cache *c = make(3500);
        char path[256];
        for (uint8_t i = 1; i <= 3; i++) {
                put(c, i, 1000);
                file_path(i, path);
                struct timespec t[2] = { { 1000 + i, 0 }, { 1000 + i, 0 } };
                assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
        }
        cache_free(c);
        c = make(3500);
        assert_int_equal(get(c, 1), 1000); /* so it was used now */
        put(c, 4, 1000);
        cache_free(c);
        c = make(3500);
        assert_int_equal(get(c, 2), -1);
        assert_int_equal(get(c, 1), 1000);
        assert_int_equal(get(c, 3), 1000);
        assert_int_equal(get(c, 4), 1000);
        put(c, 5, 5000); /* more than all */
        cache_free(c);
        c = make(3500);
        assert_int_equal(get(c, 5), -1);
        assert_int_equal(get(c, 4), 1000);
        cache_free(c);
}

TEST(a_folder_that_can_not_be_made_keeps_nothing)
{
        char path[80];
        snprintf(path, sizeof(path), "%s/a", folder);
        int fd = open(path, O_CREAT | O_WRONLY, 0600);
        assert_true(fd >= 0);
        close(fd);
        struct cache *c = make(1 << 20);
        put(c, 1, 100);
        cache_free(c);
        c = make(1 << 20);
        assert_int_equal(get(c, 1), -1);
        cache_free(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(hash_is_blake2b),
                cmocka_unit_test(names_of_bulk_data_are_blake2b_in_a_tree),
                cmocka_unit_test_setup_teardown(one_sessions_entry_serves_another, setup, teardown),
                cmocka_unit_test_setup_teardown(incomplete_entries_are_removed, setup, teardown),
                cmocka_unit_test_setup_teardown(the_least_recently_used_entry_goes, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_folder_that_can_not_be_made_keeps_nothing, setup,
                                                teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
