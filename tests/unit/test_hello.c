/* The exchange that starts a connection (session/hello.h). */
#include "support/check.h"

#include "base/mem.h"
#include "proto/info.h"
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

/* The exchange at `*at` of the buffer, aligned, which the caller frees. */
static struct bytes next_part(const struct buf *b, size_t *at)
{
        int size = hello_size(bytes_of(b->data + *at, b->size - *at));
        assert_true(size > 0 && *at + (size_t)size <= b->size);
        struct bytes one = bytes_of(mem_dup(b->data + *at, (size_t)size), (size_t)size);
        *at += (size_t)size;
        return one;
}

static void make_info(struct buf *b, size_t size)
{
        uint8_t *value = mem_zalloc(size);
        for (size_t i = 0; i < size; i++)
                value[i] = (uint8_t)(i * 7);
        assert_int_equal(info_put(b, INFO_DEVICE, value, size), 0);
        mem_free(value);
}

TEST(descriptions_of_devices_come_back_whole_from_their_parts)
{
        static const size_t sizes[] = { 1, WIRE_DESCRIPTION_PART - 8, WIRE_DESCRIPTION_PART,
                                        5 * WIRE_DESCRIPTION_PART + 100, WIRE_DESCRIPTION_MAX - 8 };
        for (size_t i = 0; i < array_size(sizes); i++) {
                struct buf info = { 0 }, b = { 0 };
                struct hello_devices d = { 0 };
                size_t at = 0;
                make_info(&info, sizes[i]);
                assert_int_equal(hello_put_devices(&b, bytes_of(info.data, info.size), 3), 0);
                while (at < b.size) {
                        struct bytes one = next_part(&b, &at);
                        assert_int_equal(hello_take_devices(&d, one), at == b.size);
                        mem_free((void *)(uintptr_t)one.data);
                }
                assert_int_equal(d.info.size, info.size);
                assert_memory_equal(d.info.data, info.data, info.size);
                assert_int_equal(d.sessions, 3);
                hello_devices_fini(&d);
                buf_fini(&info);
                buf_fini(&b);
        }
        struct buf b = { 0 };
        assert_int_equal(hello_put_devices(&b, bytes_of(NULL, WIRE_DESCRIPTION_MAX + 1), 0),
                         SP_E_LIMIT);
        assert_int_equal(b.size, 0);
}

static int take_parts(const struct wire_description *parts, size_t count)
{
        struct hello_devices d = { 0 };
        struct buf b = { 0 };
        int r = 0;
        for (size_t i = 0; i < count && !r; i++) {
                b.size = 0;
                assert_int_equal(hello_put_part(&b, &parts[i]), 0);
                r = hello_take_devices(&d, bytes_of(b.data, b.size));
        }
        assert_true(d.info.size <= WIRE_DESCRIPTION_MAX);
        hello_devices_fini(&d);
        buf_fini(&b);
        return r;
}

TEST(parts_that_do_not_fit_together_are_refused)
{
        static const uint8_t zeros[WIRE_DESCRIPTION_PART], rubbish[16] = { 1, 0, 0, 0, 255, 255 };
        const struct bytes full = { zeros, sizeof(zeros) }, some = { zeros, 16 }, none = { 0 };
        const struct {
                struct wire_description parts[2];
                size_t count;
        } wrong[] = {
                { { { .left = 8, .devices = some } }, 1 }, /* not full */
                { { { .left = 8, .devices = none } }, 1 }, /* empty: there could be any number */
                { { { .left = WIRE_DESCRIPTION_MAX, .devices = full } }, 1 },
                { { { .left = 16, .devices = full }, { .left = 16, .devices = full } }, 2 },
                { { { .left = 16, .devices = full }, { .devices = none } }, 2 },
                { { { .left = 16, .devices = full }, { .devices = full } }, 2 },
                { { { .devices = { rubbish, sizeof(rubbish) } } }, 1 },
        };
        for (size_t i = 0; i < array_size(wrong); i++)
                assert_int_equal(take_parts(wrong[i].parts, wrong[i].count), SP_E_PROTO);
        const struct wire_description nothing = { 0 };
        assert_int_equal(take_parts(&nothing, 1), 1);
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
                cmocka_unit_test(descriptions_of_devices_come_back_whole_from_their_parts),
                cmocka_unit_test(parts_that_do_not_fit_together_are_refused),
                cmocka_unit_test(no_truncation_is_taken_for_whole),
                cmocka_unit_test(a_stranger_is_noticed_at_the_first_wrong_byte),
                cmocka_unit_test(a_big_endian_side_is_told_from_a_stranger),
                cmocka_unit_test(versions_meet_or_say_who_is_older),
                cmocka_unit_test(a_name_that_is_too_long_is_not_sent),
                cmocka_unit_test(without_memory_nothing_is_appended),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
