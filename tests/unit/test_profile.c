/* src/core/profile: the tables of the ledger are bounded, and count everything nevertheless. */
#include "support/check.h"

#include <stdio.h>
#include <string.h>

#include "core/command/command.h"
#include "core/energy.h"
#include "core/link/server.h"
#include "core/memory/placement.h"
#include "core/profile/ledger.h"
#include "proto/info.h"

/* No other thread is here. */
static void kernels_are_counted_by_name_and_server(void **state) LOCK_UNCHECKED;
static void more_kernels_than_the_table_has_rows_are_summed_up(void **state) LOCK_UNCHECKED;
static void more_moves_than_the_table_has_are_summed_up(void **state) LOCK_UNCHECKED;

static void reset(void) LOCK_UNCHECKED
{
        memset(&profile_ledger, 0, sizeof(profile_ledger));
}

static void launch(struct server *s, char *name) LOCK_UNCHECKED
{
        const struct enqueue q = { .type = CL_COMMAND_NDRANGE_KERNEL };
        struct kernel_info k = { .name = name };
        struct command m = { .server = s,
                             .enqueue = &q,
                             .profile = { .begin_ns = 1, .kernel = &k, .bytes = 3 } };
        profile_sent(&m);
}

TEST(kernels_are_counted_by_name_and_server)
{
        static struct server a = { .index = 0 }, b = { .index = 7 };
        unsigned found = 0;
        reset();
        for (int i = 0; i < 5; i++)
                launch(&a, "one");
        launch(&b, "one");
        launch(&b, "two");
        for (size_t i = 0; i < LEDGER_ROWS; i++) {
                const struct ledger_row *r = &profile_ledger.rows[i];
                if (!r->used)
                        continue;
                found++;
                assert_true(r->kernel);
                assert_int_equal(r->count, r->server ? 1 : 5);
                assert_int_equal(r->bytes, 3 * r->count);
        }
        assert_int_equal(found, 3);
        assert_int_equal(profile_ledger.awaited[0], 5);
        assert_int_equal(profile_ledger.awaited[7], 2);
}

TEST(more_kernels_than_the_table_has_rows_are_summed_up)
{
        enum { KERNELS = 20000 };
        static struct server s = { .index = 1 };
        uint64_t sum = 0;
        char name[LEDGER_NAME * 2];
        reset();
        for (int i = 0; i < KERNELS; i++) {
                /* Also names that are longer than a row's. */
                memset(name, 'n', sizeof(name));
                snprintf(name, sizeof(name), "%d", i);
                name[strlen(name)] = i % 2 ? 'n' : 0;
                name[sizeof(name) - 1] = 0;
                launch(&s, name);
        }
        for (size_t i = 0; i < LEDGER_ROWS; i++)
                sum += profile_ledger.rows[i].count;
        assert_int_equal(sum, KERNELS);
        assert_true(profile_ledger.rows[0].count > KERNELS / 2);
        assert_string_equal(profile_ledger.rows[0].name, "(others)");
}

TEST(more_moves_than_the_table_has_are_summed_up)
{
        enum { OBJECTS = 20000 };
        static struct server to = { .index = 2 };
        static struct _cl_mem m;
        uint64_t sum = 0, bytes = 0;
        reset();
        for (uint64_t i = 0; i < OBJECTS; i++) {
                const struct share part = { { 10, 14 }, i % 2 ? PLACEMENT_HOST : 1, 0 };
                m.id = i / 2 + 1;
                profile_move(&m, &part, &to, 0);
        }
        for (size_t i = 0; i < LEDGER_MOVES; i++) {
                sum += profile_ledger.moves[i].count;
                bytes += profile_ledger.moves[i].bytes;
        }
        assert_int_equal(sum, OBJECTS);
        assert_int_equal(bytes, OBJECTS * 4);
}

static void put_energy(struct buf *b, uint64_t device, uint64_t uj, uint64_t sample,
                       const char *name)
{
        size_t mark;
        assert_int_equal(info_begin(b, INFO_ENERGY, &mark), 0);
        assert_int_equal(info_put_u64(b, INFO_ENERGY_DEVICE, device), 0);
        assert_int_equal(info_put(b, INFO_ENERGY_NAME, name, strlen(name)), 0);
        assert_int_equal(info_put_u64(b, INFO_ENERGY_UJ, uj), 0);
        assert_int_equal(info_put_u64(b, INFO_ENERGY_SAMPLE, sample), 0);
        info_end(b, mark);
}

TEST(energy_that_a_server_tells_is_bounded)
{
        auto_clean(buf_fini) struct buf b = { 0 };
        struct energy_device devices[ENERGY_DEVICES];
        size_t count = 0, mark;
        char name[300];
        memset(name, 'x', sizeof(name));
        name[sizeof(name) - 1] = 0;
        name[5] = '\n';
        assert_int_equal(info_begin(&b, INFO_LINK, &mark), 0); /* of other kinds */
        info_end(&b, mark);
        put_energy(&b, 3, 17, 9, "one");
        put_energy(&b, UINT64_MAX, UINT64_MAX, 8, name);
        assert_int_equal(energy_take(1, bytes_of(b.data, b.size), devices, &count), 8);
        assert_int_equal(count, 2);
        assert_int_equal(devices[0].energy_uj, 17);
        assert_int_equal(devices[1].energy_uj, ENERGY_MAX_UJ);
        assert_int_equal(strlen(devices[1].name), ENERGY_NAME - 1);
        assert_null(strchr(devices[1].name, '\n'));
        /* The next answer of the server replaces this one; that of another does not. */
        assert_int_equal(energy_take(1, bytes_of(b.data, b.size), devices, &count), 8);
        assert_int_equal(count, 2);
        for (int i = 0; i < 1000; i++)
                put_energy(&b, 4, 1, 9, "");
        assert_int_equal(energy_take(2, bytes_of(b.data, b.size), devices, &count), 8);
        assert_int_equal(count, ENERGY_DEVICES);
        /* Cut off anywhere. */
        for (size_t i = 0; i < 200; i++)
                (void)energy_take(2, bytes_of(b.data, i), devices, &count);
        assert_int_equal(energy_take(2, bytes_of(NULL, 0), devices, &count), UINT64_MAX);
        assert_int_equal(count, 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(kernels_are_counted_by_name_and_server),
                cmocka_unit_test(more_kernels_than_the_table_has_rows_are_summed_up),
                cmocka_unit_test(more_moves_than_the_table_has_are_summed_up),
                cmocka_unit_test(energy_that_a_server_tells_is_bounded),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
