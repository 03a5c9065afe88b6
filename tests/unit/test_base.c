/* bytes, map, list, mem, markup and protobuf_writer of src/base. */
#include "support/check.h"

#include <stdio.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/map.h"
#include "base/markup.h"
#include "base/mem.h"
#include "base/monotone.h"
#include "base/protobuf_writer.h"
#include "base/status.h"
#include "os/vm.h"
#include "support/random.h"

TEST(little_endian_whatever_the_host)
{
        uint8_t b[8];
        bytes_put_u64(b, 0x1122334455667788u);
        assert_int_equal(b[0], 0x88);
        assert_int_equal(b[7], 0x11);
        assert_int_equal(bytes_get_u32(b), 0x55667788u);
        assert_int_equal(bytes_get_u16(b + 1), 0x6677);
        assert_true(bytes_get_u64(b) == 0x1122334455667788u);
        assert_int_equal(bytes_str(NULL).size, 0);
        assert_int_equal(bytes_pad8(0), 0);
        assert_int_equal(bytes_pad8(1), 8);
        assert_int_equal(bytes_pad8(16), 16);
}

TEST(buffer_appends_pads_and_consumes_like_an_array)
{
        struct rng rng = { 1 };
        struct buf b = { 0 };
        static uint8_t model[1 << 16];
        size_t size = 0;
        for (int i = 0; i < 5000; i++) {
                uint8_t piece[64];
                size_t n = rng_below(&rng, sizeof(piece));
                for (size_t k = 0; k < n; k++)
                        piece[k] = (uint8_t)rng_u64(&rng);
                if (rng_chance(&rng, 40) || size + 72 > sizeof(model)) {
                        size_t drop = rng_below(&rng, size + 10);
                        buf_consume(&b, drop);
                        drop = drop < size ? drop : size;
                        memmove(model, model + drop, size - drop);
                        size -= drop;
                } else if (rng_chance(&rng, 50)) {
                        assert_int_equal(buf_put(&b, piece, n), 0);
                        memcpy(model + size, piece, n);
                        size += n;
                } else {
                        assert_int_equal(buf_put_padded(&b, piece, n), 0);
                        memset(model + size, 0, bytes_pad8(n));
                        memcpy(model + size, piece, n);
                        size += bytes_pad8(n);
                }
                assert_int_equal(b.size, size);
                if (size)
                        assert_memory_equal(b.data, model, size);
        }
        buf_fini(&b);
        assert_null(b.data);
        assert_int_equal(buf_put(&b, NULL, 0), 0);
        buf_fini(&b);
}

TEST(buffer_refuses_what_can_not_be)
{
        struct buf b = { 0 };
        assert_int_equal(buf_put_u64(&b, 7), 0);
        assert_int_equal(buf_reserve(&b, SIZE_MAX), SP_E_NOMEM);
        assert_int_equal(buf_put_padded(&b, "", SIZE_MAX), SP_E_NOMEM);
        mem_fail_at(1);
        assert_int_equal(buf_reserve(&b, 1 << 20), SP_E_NOMEM);
        assert_int_equal(b.size, 8);
        assert_int_equal(bytes_get_u64(b.data), 7);
        buf_fini(&b);
}

enum { KEYS = 512 };

/* Few keys, so that they meet again; some far apart, some that differ in their top byte only. */
static uint64_t key_of(uint64_t i)
{
        return i % 3 ? (i % 7 + 1) << 56 | (i + 1) : i + 1;
}

TEST(texts_of_others_cannot_control_a_terminal)
{
        char text[] = "a\x1b[31mb\nc\x7f\xc2\x9b"
                      "d \xc3\xa4\xe2\x82\xac";
        assert_string_equal(bytes_tame(text, sizeof(text)),
                            "a?[31mb?c?\xc2?d \xc3\xa4\xe2\x82\xac");
}

TEST(map_is_what_a_table_of_all_keys_says)
{
        static char things[KEYS];
        for (uint64_t seed = 0; seed < 20; seed++) {
                struct rng rng = { seed };
                struct map m = { 0 };
                void *model[KEYS] = { 0 };
                size_t count = 0;
                unsigned fill = (unsigned)rng_range(&rng, 20, 80);
                for (int step = 0; step < 4000; step++) {
                        uint64_t i = rng_below(&rng, KEYS);
                        if (rng_chance(&rng, fill)) {
                                void *v = &things[rng_below(&rng, KEYS)];
                                assert_int_equal(map_put(&m, key_of(i), v), 0);
                                count += !model[i];
                                model[i] = v;
                        } else {
                                assert_ptr_equal(map_del(&m, key_of(i)), model[i]);
                                count -= model[i] != NULL;
                                model[i] = NULL;
                        }
                        assert_int_equal(m.count, count);
                        i = rng_below(&rng, KEYS);
                        assert_ptr_equal(map_get(&m, key_of(i)), model[i]);
                }
                size_t pos = 0, seen = 0;
                while (map_next(&m, &pos))
                        seen++;
                assert_int_equal(seen, count);
                for (uint64_t i = 0; i < KEYS; i++)
                        assert_ptr_equal(map_get(&m, key_of(i)), model[i]);
                map_fini(&m);
        }
}

/* The walk finds all, also when another entry is removed with the visited one. It does not begin
 * anew for each removal. */
TEST(a_walk_of_a_map_that_removes_what_it_sees_finds_all)
{
        enum { MANY = 20000 };
        struct map m = { 0 };
        size_t looks = 0;
        static uint64_t keys[MANY + 1];
        for (uint64_t i = 1; i <= MANY; i++) {
                keys[i] = i;
                assert_int_equal(map_put(&m, i, &keys[i]), 0);
        }
        struct map_walk walk = { 0 };
        const uint64_t *key;
        while ((key = map_walk_next(&m, &walk))) {
                looks++;
                if (*key % 3 == 0)
                        continue;
                assert_non_null(map_del(&m, *key));
                map_del(&m, *key % 3 == 1 ? *key + 1 : *key - 1);
                map_walk_changed(&walk);
        }
        assert_int_equal(m.count, MANY / 3);
        for (uint64_t i = 1; i <= MANY; i++)
                assert_ptr_equal(map_get(&m, i), i % 3 ? NULL : &keys[i]);
        assert_true(looks < 4 * MANY);
        map_fini(&m);
}

TEST(map_without_memory_keeps_what_it_has)
{
        struct map m = { 0 };
        char thing;
        assert_null(map_get(&m, 1));
        assert_null(map_del(&m, 1));
        uint64_t kept = 0;
        for (uint64_t i = 1; i < 1000; i++) {
                mem_fail_at(i % 2); /* every second growth fails */
                if (!map_put(&m, i, &thing))
                        kept++;
        }
        mem_fail_at(0);
        assert_int_equal(m.count, kept);
        size_t pos = 0, seen = 0;
        while (map_next(&m, &pos))
                seen++;
        assert_int_equal(seen, kept);
        map_fini(&m);
}

struct item {
        int value;
        struct list link;
};

TEST(list_removes_the_current_entry_and_twice)
{
        struct list l;
        struct item items[10];
        list_init(&l);
        assert_true(list_empty(&l));
        for (int i = 0; i < 10; i++) {
                items[i].value = i;
                list_append(&l, &items[i].link);
        }
        list_each(it, &l, struct item, link) if (it->value % 2) list_remove(&it->link);
        list_remove(&items[1].link);
        int expected = 0;
        list_each(it, &l, struct item, link)
        {
                assert_int_equal(it->value, expected);
                expected += 2;
        }
        assert_int_equal(expected, 10);
        list_each(it, &l, struct item, link) list_remove(&it->link);
        assert_true(list_empty(&l));
}

TEST(every_status_has_a_text_of_its_own)
{
        static const int all[] = {
                SP_OK,      SP_E_NOMEM, SP_E_INVAL,   SP_E_AGAIN,   SP_E_LIMIT, SP_E_UNSUPP,
                SP_E_NOENT, SP_E_BUSY,  SP_E_PROTO,   SP_E_VERSION, SP_E_AUTH,  SP_E_NODEV,
                SP_E_GONE,  SP_E_LINK,  SP_E_REFUSED, SP_E_TIMEOUT, SP_E_HOST,  SP_E_UNREACH,
        };
        for (size_t i = 0; i < array_size(all); i++) {
                assert_string_not_equal(status_text(all[i]), status_text(1));
                for (size_t k = 0; k < i; k++)
                        assert_string_not_equal(status_text(all[i]), status_text(all[k]));
        }
}

TEST(the_chosen_allocation_fails_and_no_other)
{
        mem_fail_at(3);
        for (int i = 1; i <= 5; i++) {
                void *p = mem_alloc(0);
                assert_true((p == NULL) == (i == 3));
                mem_free(p);
        }
        char *s = mem_strdup("span");
        assert_string_equal(s, "span");
        char *t = steal(s);
        assert_null(s);
        mem_free(t);
}

TEST(memory_is_mapped_where_it_is_wanted_or_not_at_all)
{
        uint64_t at, again, none = 1;
        assert_int_equal(vm_map(0, 3 * VM_GRANULE, &at), 0);
        assert_int_equal(at % VM_GRANULE, 0);
        char *p = (char *)(uintptr_t)at;
        p[0] = p[3 * VM_GRANULE - 1] = 1;
        assert_int_equal(vm_map(at + VM_GRANULE, VM_GRANULE, &none), SP_E_BUSY);
        assert_int_equal(none, 1);
        assert_int_equal(vm_map(at + 1, VM_GRANULE, &none), SP_E_BUSY);
        assert_int_equal(vm_map(at, 0, &none), SP_E_BUSY);
        assert_int_equal(p[0] + p[3 * VM_GRANULE - 1], 2);
        vm_unmap(at + VM_GRANULE, VM_GRANULE);
        assert_int_equal(vm_map(at + VM_GRANULE, VM_GRANULE, &again), 0);
        assert_int_equal(again, at + VM_GRANULE);
        assert_int_equal(p[VM_GRANULE], 0);
        vm_unmap(at, 3 * VM_GRANULE);
}

TEST(mapped_times_keep_their_order_when_the_offset_moves)
{
        struct monotone m = { 0 };
        assert_int_equal(monotone_map(&m, 100, 50), 150);
        assert_int_equal(monotone_map(&m, 110, 30), 150); /* not before what 100 became */
        assert_int_equal(monotone_map(&m, 105, 60), 150); /* not after what 110 became */
        assert_int_equal(monotone_map(&m, 90, 30), 120);
        assert_int_equal(monotone_map(&m, 200, 30), 230);
        assert_int_equal(monotone_map(&m, 210, -30), 230);
}

static void expect_markup(const char *text, size_t letters, const char *expected)
{
        char written[128] = "";
        FILE *to = fmemopen(written, sizeof(written) - 1, "w");
        assert_non_null(to);
        markup_put(to, text, letters);
        fclose(to);
        assert_string_equal(written, expected);
}

TEST(markup_escapes_all_that_could_end_a_text)
{
        expect_markup("<a b=\"c\" d='e'>&", 100, "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
        expect_markup("a\xc3\xa4\xe2\x82\xac", 3, "a\xc3\xa4\xe2\x82\xac");
        expect_markup("a\xc3\xa4\xe2\x82\xac", 2, "a\xe2\x80\xa6"); /* an ellipsis */
        expect_markup("\x1b\xff\xe2\x80\xae", 9, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
        expect_markup("\xef\xbf\xbe\xef\xb7\x90\xf0\x9f\xbf\xbf", 9,
                      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* noncharacters */
        expect_markup("", 0, "");
        expect_markup("a", 0, "");
}

/* Examples of protobuf.dev, "Encoding". */
TEST(protobuf_is_encoded_as_the_format_says)
{
        static struct protobuf_writer w;
        static uint8_t text[200];
        protobuf_clear(&w);
        protobuf_u64(&w, 1, 150);
        size_t place = protobuf_open(&w, 3);
        protobuf_bytes(&w, 2, bytes_str("testing"));
        protobuf_close(&w, place);
        protobuf_double(&w, 16, 1);
        assert_int_equal(w.size, 3 + 11 + 10);
        assert_memory_equal(w.data,
                            "\x08\x96\x01\x1a\x09\x12\x07testing\x81\x01\0\0\0\0\0\0\xf0\x3f", 24);
        protobuf_clear(&w); /* a length of two bytes, which is known at the end only */
        place = protobuf_open(&w, 1);
        protobuf_bytes(&w, 2, bytes_of(text, sizeof(text)));
        protobuf_close(&w, place);
        assert_int_equal(w.size, 1 + 2 + 1 + 2 + sizeof(text));
        assert_memory_equal(w.data, "\x0a\xcb\x01\x12\xc8\x01", 6);
        assert_false(w.full);
        while (!w.full) {
                place = protobuf_open(&w, 1);
                protobuf_bytes(&w, 2, bytes_of(text, sizeof(text)));
                protobuf_close(&w, place);
                assert_true(w.size <= PROTOBUF_SIZE);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(little_endian_whatever_the_host),
                cmocka_unit_test(buffer_appends_pads_and_consumes_like_an_array),
                cmocka_unit_test(buffer_refuses_what_can_not_be),
                cmocka_unit_test(texts_of_others_cannot_control_a_terminal),
                cmocka_unit_test(map_is_what_a_table_of_all_keys_says),
                cmocka_unit_test(a_walk_of_a_map_that_removes_what_it_sees_finds_all),
                cmocka_unit_test(map_without_memory_keeps_what_it_has),
                cmocka_unit_test(list_removes_the_current_entry_and_twice),
                cmocka_unit_test(memory_is_mapped_where_it_is_wanted_or_not_at_all),
                cmocka_unit_test(mapped_times_keep_their_order_when_the_offset_moves),
                cmocka_unit_test(every_status_has_a_text_of_its_own),
                cmocka_unit_test(markup_escapes_all_that_could_end_a_text),
                cmocka_unit_test(protobuf_is_encoded_as_the_format_says),
                cmocka_unit_test(the_chosen_allocation_fails_and_no_other),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
