/* The lines of discovery's sources, and the TXT record that they parse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "discover/line.h"

static const char *body_of(const char *name)
{
        static char body[LINE_MAX_SIZE];
        struct found f = { .id = "i", .name = name, .kind = "spancl", .port = 7777 };
        line_body(&f, body);
        return body;
}

static void assert_name(const char *name, const char *written)
{
        char wanted[512];
        snprintf(wanted, sizeof(wanted),
                 "\"id\":\"i\",\"name\":\"%s\",\"kind\":\"spancl\",\"addresses\":[],\"port\":7777",
                 written);
        assert_string_equal(body_of(name), wanted);
}

static void names_are_escaped(void **state)
{
        (void)state;
        assert_name("gpu1", "gpu1");
        assert_name("a\"b\\c", "a\\\"b\\\\c");
        assert_name("\n\t\x01\x1b\x7f", "\\u000a\\u0009\\u0001\\u001b\\u007f");
        assert_name("\xc2\x85\xc2\x9b", "\\u0085\\u009b"); /* control characters of ISO 8859 */
        assert_name("\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029");
        assert_name("\xe2\x80\xae\xef\xbb\xbf",
                    "\\u202e\\ufeff"); /* they reorder text, or are not seen */
        assert_name("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

static void bytes_that_are_not_utf8_are_replaced(void **state)
{
        (void)state;
        static const char *const bad[] = { "\xff",         "\xc0\x80",         "\xe0\x80\x80",
                                           "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5",
                                           "\xc3",         "\xe2\x82",         "\x80" };
        for (size_t i = 0; i < array_size(bad); i++) {
                assert_false(line_is_utf8(bad[i]));
                assert_non_null(strstr(body_of(bad[i]), "\\ufffd"));
                assert_true(line_is_utf8(body_of(bad[i])));
        }
        assert_name("\xc3\"", "\\ufffd\\\""); /* the quote is not taken for a part of it */
        assert_true(line_is_utf8("\xf4\x8f\xbf\xbf"));
}

static void the_largest_service_fits(void **state)
{
        (void)state;
        static char body[LINE_MAX_SIZE], id[FOUND_ID_MAX + 1], name[FOUND_NAME_MAX + 1];
        struct found f = { .id = id, .name = name, .kind = "spancl", .port = 65535 };
        memset(id, 1, FOUND_ID_MAX);
        memset(name, 1, FOUND_NAME_MAX);
        for (int i = 0; i < 100; i++) {
                /* The name of an interface has 15 bytes, of any value. */
                char address[] =
                        "fe80:1111:2222:3333:4444:5555:255.255.255.255%\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1";
                address[5] = (char)('a' + i % 20);
                found_add_address(&f, address);
        }
        assert_int_equal(f.address_count, FOUND_ADDRESSES);
        f.txt = (struct txt){ .has_protocol = true, .has_load = true };
        memset(f.txt.key, 'a', TXT_KEY);
        memset(f.txt.types, 'a', TXT_TYPES_MAX);
        f.txt.protocol = f.txt.load = 999999999;
        line_body(&f, body);
        assert_non_null(strstr(body, ",\"load\":999999999"));
        assert_int_equal(body[strlen(body) - 1], '9');
}

static int take(struct txt *t, const char *text)
{
        return txt_take(t, text, strlen(text));
}

static void a_record_is_parsed(void **state)
{
        (void)state;
        static const uint8_t raw[] =
                "\x0dtypes=gpu,cpu\x03v=1\x06LOAD=3\x05other\x02=x\x00\x06load=9";
        struct txt t;
        assert_int_equal(txt_parse(raw, sizeof(raw) - 1, &t), 0);
        assert_string_equal(t.types, "gpu,cpu");
        assert_true(t.has_protocol && t.has_load);
        assert_int_equal(t.protocol, 1);
        assert_int_equal(t.load, 3); /* the first one counts */
        assert_string_equal(t.key, "");
}

static void wrong_values_are_refused(void **state)
{
        (void)state;
        static const char *const wrong[] = {
                "key=0123",
                "types=",
                "types=gpu,",
                "types=,gpu",
                "types=GPU",
                "types=disk",
                "types=gpu,cpu,gpu",
                "v=",
                "v=-1",
                "v=1x",
                "v=1234567890",
                "load= 1",
                "load=0x10",
                "key=ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef0123456789",
                "types=cpu,gpu,accelerator,custom,cpu",
        };
        for (size_t i = 0; i < array_size(wrong); i++) {
                struct txt t = { 0 };
                assert_int_equal(take(&t, wrong[i]), SP_E_INVAL);
        }
        struct txt t = { 0 };
        assert_int_equal(take(&t, "types=cpu,gpu,accelerator,custom"), 0);
        assert_int_equal(txt_take(&t, "", 0), 0);
}

static void a_record_that_is_cut_or_long_is_refused(void **state)
{
        (void)state;
        static uint8_t raw[1 << 16];
        struct txt t;
        assert_int_equal(txt_parse("\x04v=1", 4, &t), SP_E_INVAL);
        assert_int_equal(txt_parse(raw, sizeof(raw), &t), SP_E_LIMIT);
        assert_int_equal(txt_parse(raw, TXT_MAX, &t), 0);
        assert_int_equal(txt_parse(raw, 0, &t), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_are_escaped),
                cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
                cmocka_unit_test(the_largest_service_fits),
                cmocka_unit_test(a_record_is_parsed),
                cmocka_unit_test(wrong_values_are_refused),
                cmocka_unit_test(a_record_that_is_cut_or_long_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
