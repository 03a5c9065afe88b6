/* The exchange that starts a connection (session/hello.h). */
#include "support/check.h"

#include "base/mem.h"
#include "session/hello.h"

static const struct wire_hello hello = {
        .version_min = WIRE_VERSION,
        .version_max = WIRE_VERSION,
        .session_hi = 1,
        .session_lo = 2,
        .key_hi = 3,
        .key_lo = 4,
        .next_seq = 5,
        .name = { "unit test", 9 },
};

TEST(both_directions_come_back_equal)
{
        struct buf b = { 0 };
        struct wire_hello got;
        assert_int_equal(hello_put(&b, &hello), 0);
        assert_int_equal(hello_size(bytes_of(b.data, HELLO_PREFIX)), b.size);
        assert_int_equal(hello_get(bytes_of(b.data, b.size), &got), 0);
        assert_true(got.session_lo == 2 && got.key_lo == 4 && got.next_seq == 5);
        assert_int_equal(got.name.size, 9);
        assert_memory_equal(got.name.data, "unit test", 9);
        buf_fini(&b);

        struct wire_hello_reply reply;
        assert_int_equal(hello_put_reply(&b, &(struct wire_hello_reply){ .status = SP_E_VERSION,
                                                                         .text = bytes_str("no") }),
                         0);
        assert_int_equal(hello_get_reply(bytes_of(b.data, b.size), &reply), 0);
        assert_int_equal(reply.status, SP_E_VERSION);
        assert_int_equal(hello_get(bytes_of(b.data, b.size), &got), SP_E_PROTO);
        buf_fini(&b);
}

TEST(no_truncation_is_taken_for_whole)
{
        struct buf b = { 0 };
        assert_int_equal(hello_put(&b, &hello), 0);
        for (size_t n = 0; n < b.size; n++) {
                struct wire_hello got;
                uint8_t *cut = mem_dup(b.data, n);
                assert_int_equal(hello_get(bytes_of(cut, n), &got), SP_E_PROTO);
                int size = hello_size(bytes_of(cut, n));
                assert_int_equal(size, n < HELLO_PREFIX ? HELLO_PREFIX : b.size);
                mem_free(cut);
        }
        buf_fini(&b);
}

TEST(a_stranger_is_noticed_at_the_first_wrong_byte)
{
        static const char *const strangers[] = { "GET / HTTP/1.1\r\n", "SSH-2.0-x", "\x16\x03\x01",
                                                 "SPANCL\n",           "S\n",       "" };
        for (size_t i = 0; i < array_size(strangers); i++) {
                int r = hello_size(bytes_str(strangers[i]));
                assert_int_equal(r, strangers[i][0] ? SP_E_PROTO : HELLO_PREFIX);
        }

        /* The magic, but then no HELLO frame, or a huge one. */
        static const struct frame wrong[] = {
                { 8, FRAME_DATA, 1, 0, 0 },
                { 0, FRAME_ACK, 0, 0, 0 },
                { UINT32_MAX - 7, FRAME_HELLO, 0, 0, 0 },
        };
        for (size_t i = 0; i < array_size(wrong); i++) {
                uint8_t prefix[HELLO_PREFIX];
                memcpy(prefix, FRAME_MAGIC, FRAME_MAGIC_SIZE);
                frame_put(prefix + FRAME_MAGIC_SIZE, &wrong[i]);
                assert_int_equal(hello_size(bytes_of(prefix, sizeof(prefix))), SP_E_PROTO);
        }
}

TEST(a_big_endian_side_is_told_from_a_stranger)
{
        /* As its hello of 120 bytes would begin: the header, and then numbers from their other end. */
        uint8_t prefix[HELLO_PREFIX] = FRAME_MAGIC;
        prefix[11] = 120;
        prefix[12] = FRAME_HELLO;
        assert_int_equal(hello_size(bytes_of(prefix, sizeof(prefix))), SP_E_VERSION);
        /* The longest one has its size in other bytes. */
        prefix[10] = FRAME_HELLO_MAX >> 8;
        prefix[11] = 0;
        assert_int_equal(hello_size(bytes_of(prefix, sizeof(prefix))), SP_E_VERSION);
        prefix[11] = 8;
        assert_int_equal(hello_size(bytes_of(prefix, sizeof(prefix))), SP_E_PROTO);
        prefix[10] = 0;
        prefix[12] = FRAME_DATA;
        assert_int_equal(hello_size(bytes_of(prefix, sizeof(prefix))), SP_E_PROTO);
}

TEST(versions_meet_or_say_who_is_older)
{
        struct wire_hello m = hello;
        uint64_t version = 0;
        const char *text = NULL;
        assert_int_equal(hello_negotiate(&m, &version, &text), 0);
        assert_int_equal(version, WIRE_VERSION);

        m.version_max = WIRE_VERSION + 7;
        assert_int_equal(hello_negotiate(&m, &version, &text), 0);

        m.version_min = WIRE_VERSION + 1;
        assert_int_equal(hello_negotiate(&m, &version, &text), SP_E_VERSION);
        assert_non_null(strstr(text, "upgrade spancld"));

        m.version_min = m.version_max = WIRE_VERSION - 1;
        assert_int_equal(hello_negotiate(&m, &version, &text), SP_E_VERSION);
        assert_non_null(strstr(text, "upgrade libspancl"));
}

TEST(a_name_that_is_too_long_is_not_sent)
{
        char name[300] = { 0 };
        memset(name, 'x', sizeof(name) - 1);
        struct wire_hello m = hello;
        m.name = bytes_str(name);
        struct buf b = { 0 };
        assert_int_equal(hello_put(&b, &m), SP_E_LIMIT);
        assert_int_equal(b.size, 0);
        buf_fini(&b);
}

TEST(without_memory_nothing_is_appended)
{
        for (unsigned long n = 1;; n++) {
                struct buf b = { 0 };
                mem_fail_at(n);
                int r = hello_put(&b, &hello);
                mem_fail_at(0);
                if (r < 0) {
                        assert_int_equal(r, SP_E_NOMEM);
                        assert_int_equal(b.size, 0);
                }
                buf_fini(&b);
                if (!r)
                        break;
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(both_directions_come_back_equal),
                cmocka_unit_test(no_truncation_is_taken_for_whole),
                cmocka_unit_test(a_stranger_is_noticed_at_the_first_wrong_byte),
                cmocka_unit_test(a_big_endian_side_is_told_from_a_stranger),
                cmocka_unit_test(versions_meet_or_say_who_is_older),
                cmocka_unit_test(a_name_that_is_too_long_is_not_sent),
                cmocka_unit_test(without_memory_nothing_is_appended),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
