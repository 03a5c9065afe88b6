/* Every message of the schema: what is valid comes back equal, what is not is refused. */
#include "support/check.h"

#include <stdio.h>

#include "base/mem.h"
#include "proto/args.h"
#include "proto/info.h"
#include "proto/wire.h"
#include "support/random.h"

/* ---- decode and encode again, by message id ------------------------------------------------- */

static int again(struct bytes msg, struct buf *out)
{
        switch (wire_message_id(msg.data)) {
#define MSG(id, name, doc)                                   \
        case id: {                                           \
                struct wire_##name m;                        \
                int r = wire_get_##name(msg, &m);            \
                return r < 0 ? r : wire_put_##name(out, &m); \
        }
#include "proto/schema/no_fields.def"
#define END(name)
#include "proto/schema/all.def"
        default:
                return SP_E_PROTO;
        }
}

/* ---- a random valid message ----------------------------------------------------------------- */

/* Storage that the fields of one random message borrow. */
struct pool {
        struct rng rng;
        uint64_t words[16][8];
        struct buf blobs[16];
        unsigned used;
};

static uint64_t any_u64(struct pool *p, uint64_t lo, uint64_t hi)
{
        switch (rng_below(&p->rng, 3)) {
        case 0:
                return lo;
        case 1:
                return hi;
        default:
                return hi - lo == UINT64_MAX ? rng_u64(&p->rng) : rng_range(&p->rng, lo, hi);
        }
}

static uint64_t any_id(struct pool *p, enum object_type type)
{
        return object_id(type, rng_range(&p->rng, 1, 0x00FFFFFFFFFFFFFFu));
}

static struct wire_u64s any_u64s(struct pool *p, uint64_t max, enum object_type type)
{
        uint64_t *w = p->words[p->used++ % 16];
        size_t n = rng_below(&p->rng, (max < 8 ? max : 8) + 1);
        for (size_t i = 0; i < n; i++)
                w[i] = type ? any_id(p, type) : rng_u64(&p->rng);
        return (struct wire_u64s){ w, n };
}

static struct buf *any_blob(struct pool *p)
{
        struct buf *b = &p->blobs[p->used++ % 16];
        b->size = 0;
        return b;
}

static struct bytes any_bytes(struct pool *p, uint64_t max, uint8_t lowest)
{
        struct buf *b = any_blob(p);
        size_t n = rng_below(&p->rng, (max < 100 ? max : 100) + 1);
        for (size_t i = 0; i < n; i++) {
                uint8_t byte = (uint8_t)rng_range(&p->rng, lowest, 255);
                assert_int_equal(buf_put(b, &byte, 1), 0);
        }
        return bytes_of(b->data, b->size);
}

static struct bytes any_info(struct pool *p)
{
        struct buf *b = any_blob(p);
        for (uint64_t n = rng_below(&p->rng, 4); n; n--)
                assert_int_equal(info_put(b, (uint32_t)rng_u64(&p->rng), "0123456789",
                                          rng_below(&p->rng, 11)),
                                 0);
        return bytes_of(b->data, b->size);
}

static struct bytes any_args(struct pool *p)
{
        struct buf *b = any_blob(p);
        for (uint64_t n = rng_below(&p->rng, 4); n; n--) {
                struct arg a = {
                        .index = (uint32_t)rng_below(&p->rng, ARG_INDEX_MAX + 1),
                        .kind = (uint32_t)rng_range(&p->rng, ARG_VALUE, ARG_BUFFER),
                        .size = rng_below(&p->rng, 11),
                        .value = "0123456789",
                        .object = rng_chance(&p->rng, 50) ? any_id(p, OBJECT_BUFFER) : 0,
                };
                assert_int_equal(args_put(b, &a), 0);
        }
        return bytes_of(b->data, b->size);
}

static int random_message(struct pool *p, unsigned id, struct buf *out)
{
        p->used = 0;
        switch (id) {
#define MSG(id, name, doc) \
        case id: {         \
                struct wire_##name m = { 0 };
#define U64(f, lo, hi)     m.f = any_u64(p, lo, hi);
#define S64(f)             m.f = (int64_t)rng_u64(&p->rng);
#define REF(f, type)       m.f = any_id(p, OBJECT_##type);
#define OPT(f, type)       m.f = rng_chance(&p->rng, 50) ? any_id(p, OBJECT_##type) : 0;
#define ANY(f)             m.f = any_id(p, OBJECT_PEER);
#define U64S(f, max)       m.f = any_u64s(p, max, OBJECT_NONE);
#define REFS(f, type, max) m.f = any_u64s(p, max, OBJECT_##type);
#define BYTES(f, max)      m.f = any_bytes(p, max, 0);
#define STR(f, max)        m.f = any_bytes(p, max, 1);
#define INFO(f, max)       m.f = any_info(p);
#define ARGS(f, max)       m.f = any_args(p);
#define END(name)                        \
        return wire_put_##name(out, &m); \
        }
#include "proto/schema/all.def"
        default:
                return SP_E_NOENT;
        }
}

/* In an allocation of the exact size, so that a sanitizer sees a byte read behind it. */
static int decode_exact(struct bytes msg)
{
        struct buf ignored = { 0 };
        void *copy = mem_dup(msg.data, msg.size);
        assert_non_null(copy);
        char text[300];
        assert_true(wire_print(bytes_of(copy, msg.size), text, sizeof(text)) < sizeof(text));
        int r = msg.size >= WIRE_HEADER_SIZE ? again(bytes_of(copy, msg.size), &ignored)
                                             : SP_E_PROTO;
        buf_fini(&ignored);
        mem_free(copy);
        return r;
}

static void check_equal(struct bytes msg)
{
        struct buf out = { 0 };
        assert_int_equal(msg.size % 8, 0);
        assert_int_equal(wire_message_size(msg.data), msg.size);
        assert_int_equal(again(msg, &out), 0);
        assert_int_equal(out.size, msg.size);
        assert_memory_equal(out.data, msg.data, msg.size);
        buf_fini(&out);
}

static void check_truncations(struct bytes msg)
{
        for (size_t n = 0; n < msg.size; n++) {
                struct buf cut = { 0 };
                assert_int_equal(buf_put(&cut, msg.data, n), 0);
                assert_int_equal(decode_exact(bytes_of(cut.data, n)), SP_E_PROTO);
                if (n >= WIRE_HEADER_SIZE) { /* also when its header agrees */
                        bytes_put_u32(cut.data + 4, (uint32_t)n);
                        assert_int_equal(decode_exact(bytes_of(cut.data, n)), SP_E_PROTO);
                }
                buf_fini(&cut);
        }
}

#define each_message(i, id) for (size_t i = 0, id; (id = wire_id_at(i)) != 0; i++)

TEST(samples_come_back_equal_and_their_truncations_do_not)
{
        each_message(i, id)
        {
                struct buf b = { 0 };
                char text[1000];
                assert_int_equal(wire_sample(&b, (unsigned)id), 0);
                check_equal(bytes_of(b.data, b.size));
                size_t n = wire_print(bytes_of(b.data, b.size), text, sizeof(text));
                assert_int_equal(n, strlen(text));
                assert_memory_equal(text, wire_name((unsigned)id), strlen(wire_name((unsigned)id)));
                assert_null(strstr(text, "malformed"));
                check_truncations(bytes_of(b.data, b.size));
                buf_fini(&b);
        }
}

TEST(random_messages_come_back_equal_and_their_truncations_do_not)
{
        struct pool pool = { .rng = { 11 } };
        for (int round = 0; round < 30; round++) {
                each_message(i, id)
                {
                        struct buf b = { 0 };
                        assert_int_equal(random_message(&pool, (unsigned)id, &b), 0);
                        check_equal(bytes_of(b.data, b.size));
                        if (round < 5)
                                check_truncations(bytes_of(b.data, b.size));
                        buf_fini(&b);
                }
        }
        for (size_t i = 0; i < array_size(pool.blobs); i++)
                buf_fini(&pool.blobs[i]);
}

TEST(damaged_messages_are_refused_or_come_back_equal)
{
        struct pool pool = { .rng = { 12 } };
        for (int round = 0; round < 300; round++) {
                each_message(i, id)
                {
                        struct buf b = { 0 }, out = { 0 };
                        assert_int_equal(random_message(&pool, (unsigned)id, &b), 0);
                        for (uint64_t n = rng_range(&pool.rng, 1, 3); n; n--)
                                b.data[rng_below(&pool.rng, b.size)] = (uint8_t)rng_u64(&pool.rng);
                        struct bytes msg = { b.data, b.size };
                        if (decode_exact(msg) == 0) {
                                /* Zero padding inside of blocks is not ours to look at. */
                                assert_int_equal(again(msg, &out), 0);
                                assert_int_equal(out.size, b.size);
                        }
                        buf_fini(&b);
                        buf_fini(&out);
                }
        }
        for (size_t i = 0; i < array_size(pool.blobs); i++)
                buf_fini(&pool.blobs[i]);
}

TEST(header_is_checked)
{
        each_message(i, id)
        {
                struct buf b = { 0 };
                assert_int_equal(wire_sample(&b, (unsigned)id), 0);
                struct bytes msg = { b.data, b.size };
                b.data[2] = 1; /* must be zero */
                assert_int_equal(decode_exact(msg), SP_E_PROTO);
                b.data[2] = 0;
                b.data[3] = 0x80;
                assert_int_equal(decode_exact(msg), SP_E_PROTO);
                b.data[3] = 0;
                bytes_put_u32(b.data + 4, (uint32_t)b.size + 8);
                assert_int_equal(decode_exact(msg), SP_E_PROTO);
                bytes_put_u32(b.data + 4, (uint32_t)b.size);
                assert_int_equal(decode_exact(msg), 0);
                assert_int_equal(buf_put_u64(&b, 0), 0); /* a slot too many */
                bytes_put_u32(b.data + 4, (uint32_t)b.size);
                assert_int_equal(decode_exact(bytes_of(b.data, b.size)), SP_E_PROTO);
                buf_fini(&b);
        }
}

/* ---- each kind of field, in a message that has it ------------------------------------------- */

enum { FIRST = WIRE_HEADER_SIZE };

static void set(struct buf *b, size_t at, uint64_t v)
{
        bytes_put_u64(b->data + at, v);
}

static int decode(struct buf *b)
{
        return decode_exact(bytes_of(b->data, b->size));
}

TEST(ids_have_their_type)
{
        struct buf b = { 0 };
        assert_int_equal(wire_put_marker(&b,
                                         &(struct wire_marker){
                                                 .event = object_id(OBJECT_EVENT, 1),
                                                 .queue = object_id(OBJECT_QUEUE, 2),
                                         }),
                         0);
        assert_int_equal(decode(&b), 0);
        static const uint64_t wrong[] = {
                0,
                1,
                (uint64_t)OBJECT_EVENT << 56, /* counter 0 */
                (uint64_t)OBJECT_BUFFER << 56 | 1,
                (uint64_t)OBJECT_TYPES << 56 | 1,
                UINT64_MAX,
        };
        for (size_t i = 0; i < array_size(wrong); i++) {
                set(&b, FIRST, wrong[i]);
                assert_int_equal(decode(&b), SP_E_PROTO);
        }
        set(&b, FIRST, object_id(OBJECT_EVENT, 3));
        set(&b, FIRST + 8, object_id(OBJECT_KERNEL, 2));
        assert_int_equal(decode(&b), SP_E_PROTO);
        buf_fini(&b);

        uint64_t waits[2] = { object_id(OBJECT_EVENT, 1), object_id(OBJECT_QUEUE, 1) };
        assert_int_equal(wire_put_marker(&b,
                                         &(struct wire_marker){
                                                 .event = object_id(OBJECT_EVENT, 1),
                                                 .queue = object_id(OBJECT_QUEUE, 2),
                                                 .waits = { waits, 2 },
                                         }),
                         0);
        assert_int_equal(decode(&b), SP_E_PROTO);
        buf_fini(&b);

        assert_int_equal(wire_put_event_done(&b,
                                             &(struct wire_event_done){
                                                     .event = object_id(OBJECT_EVENT, 1),
                                                     .queue = object_id(OBJECT_EVENT, 1),
                                             }),
                         0);
        assert_int_equal(decode(&b), SP_E_PROTO); /* OPT: none, or of its type */
        buf_fini(&b);

        assert_int_equal(wire_put_release(&b, &(struct wire_release){ .object = object_id(
                                                                              OBJECT_TYPES, 1) }),
                         0);
        assert_int_equal(decode(&b), SP_E_PROTO);
        buf_fini(&b);
}

TEST(numbers_keep_their_limits)
{
        struct buf b = { 0 };
        struct wire_marker m = {
                .event = object_id(OBJECT_EVENT, 1),
                .queue = object_id(OBJECT_QUEUE, 2),
                .flags = COMMAND_FLAGS_ALL + 1,
        };
        assert_int_equal(wire_put_marker(&b, &m), 0);
        assert_int_equal(decode(&b), SP_E_PROTO);
        buf_fini(&b);
        assert_int_equal(
                wire_put_server_info_query(&b, &(struct wire_server_info_query){ .request = 0 }),
                0);
        assert_int_equal(decode(&b), SP_E_PROTO);
        buf_fini(&b);
}

TEST(counts_beyond_the_message_or_the_limit_are_refused)
{
        struct buf b = { 0 };
        uint64_t times[3] = { 1, 2, 3 };
        assert_int_equal(wire_put_event_done(&b,
                                             &(struct wire_event_done){
                                                     .event = object_id(OBJECT_EVENT, 1),
                                                     .times = { times, 3 },
                                             }),
                         0);
        size_t count_at = b.size - 4 * 8;
        assert_int_equal(bytes_get_u64(b.data + count_at), 3);
        static const uint64_t counts[] = {
                0, 2, 4, 1u << 29, 1u << 31, UINT64_C(1) << 60, UINT64_C(1) << 61, UINT64_MAX
        };
        for (size_t i = 0; i < array_size(counts); i++) {
                set(&b, count_at, counts[i]);
                assert_int_equal(decode(&b), SP_E_PROTO);
        }
        set(&b, count_at, 4); /* the slots are there, but the schema says 3 */
        assert_int_equal(buf_put_u64(&b, 4), 0);
        bytes_put_u32(b.data + 4, (uint32_t)b.size);
        assert_int_equal(decode(&b), SP_E_PROTO);
        buf_fini(&b);

        assert_int_equal(
                wire_put_output(&b, &(struct wire_output){ .text = bytes_str("hello there") }), 0);
        static const uint64_t sizes[] = {
                0, 8, 17, 24, 1u << 29, UINT32_MAX, UINT64_MAX - 7, UINT64_MAX
        };
        for (size_t i = 0; i < array_size(sizes); i++) {
                set(&b, FIRST, sizes[i]);
                assert_int_equal(decode(&b), SP_E_PROTO);
        }
        set(&b, FIRST, 11);
        assert_int_equal(decode(&b), 0);
        b.data[b.size - 1] = 'x'; /* padding is zero */
        assert_int_equal(decode(&b), SP_E_PROTO);
        buf_fini(&b);
}

TEST(text_has_no_zero_byte)
{
        struct buf b = { 0 };
        struct wire_close m = { .text = { "a\0b", 3 } };
        assert_int_equal(wire_put_close(&b, &m), 0);
        assert_int_equal(decode(&b), SP_E_PROTO);
        buf_fini(&b);
}

TEST(encoder_refuses_what_no_decoder_takes)
{
        static char big[2000];
        static uint64_t four[4];
        struct buf b = { 0 };
        assert_int_equal(wire_put_close(&b, &(struct wire_close){ .text = { big, 1025 } }),
                         SP_E_LIMIT);
        assert_int_equal(wire_put_event_done(&b, &(struct wire_event_done){ .times = { four, 4 } }),
                         SP_E_LIMIT);
        assert_int_equal(wire_put_output(&b, &(struct wire_output){ .text = { big, SIZE_MAX } }),
                         SP_E_LIMIT);
        assert_int_equal(wire_put_event_done(
                                 &b, &(struct wire_event_done){ .times = { four, SIZE_MAX / 8 } }),
                         SP_E_LIMIT);
        assert_int_equal(b.size, 0);
        mem_fail_at(1);
        assert_int_equal(wire_put_close(&b, &(struct wire_close){ .text = { big, 1 } }),
                         SP_E_NOMEM);
        assert_int_equal(b.size, 0);
        buf_fini(&b);
}

/* ---- info and args ------------------------------------------------------------------------- */

static int check_info(const void *p, size_t size)
{
        void *copy = mem_dup(p, size);
        int r = info_check(bytes_of(copy, size));
        mem_free(copy);
        return r;
}

TEST(info_blocks_nest_and_are_found)
{
        struct buf b = { 0 };
        size_t mark, inner;
        assert_int_equal(info_put_u64(&b, 1, 10), 0);
        assert_int_equal(info_begin(&b, INFO_KERNEL, &mark), 0);
        assert_int_equal(info_put(&b, 2, "name", 5), 0);
        assert_int_equal(info_begin(&b, INFO_KERNEL_ARG, &inner), 0);
        info_end(&b, inner);
        info_end(&b, mark);
        assert_int_equal(info_put_u64(&b, 3, 30), 0);
        struct bytes all = { b.data, b.size }, kernel, name, arg;
        assert_int_equal(check_info(all.data, all.size), 0);
        assert_int_equal(info_u64(all, 3, 0), 30);
        assert_int_equal(info_u64(all, 2, 77), 77);
        assert_int_equal(info_find(all, INFO_KERNEL, &kernel), 1);
        assert_int_equal(info_find(kernel, 2, &name), 1);
        assert_int_equal(name.size, 5);
        assert_string_equal(name.data, "name");
        assert_int_equal(info_find(kernel, INFO_KERNEL_ARG, &arg), 1);
        assert_int_equal(arg.size, 0);
        assert_int_equal(info_find(all, 99, &arg), 0);
        assert_int_equal(info_u64(kernel, 2, 5), 5); /* not 8 bytes */
        buf_fini(&b);
}

/* Sizes travel in 8 bytes; a 32-bit application and a 32-bit implementation have them in 4. */
TEST(sizes_fit_the_hosts_word)
{
        const uint64_t wide[3] = { 4096, UINT32_MAX, 1ull << 40 };
        const uint32_t narrow[3] = { 4096, UINT32_MAX, UINT32_MAX };
        const uint64_t back[3] = { 4096, UINT32_MAX, UINT32_MAX };
        const uint32_t key = 0x1005; /* CL_DEVICE_MAX_WORK_ITEM_SIZES */
        struct buf b = { 0 };
        struct bytes v;
        assert_true(info_is_words(key));
        assert_false(info_is_words(0x1010)); /* CL_DEVICE_MAX_MEM_ALLOC_SIZE: 64 bits on all */
        assert_int_equal(info_put_words(&b, key, bytes_of(wide, sizeof(wide)), 8, 4), 0);
        assert_int_equal(info_put_u64(&b, 1, 7), 0); /* the padding was right */
        struct bytes all = bytes_of(b.data, b.size);
        assert_int_equal(check_info(all.data, all.size), 0);
        assert_int_equal(info_u64(all, 1, 0), 7);
        assert_int_equal(info_find(all, key, &v), 1);
        assert_int_equal(v.size, sizeof(narrow));
        assert_memory_equal(v.data, narrow, sizeof(narrow));
        buf_fini(&b);

        assert_int_equal(info_put_words(&b, key, bytes_of(narrow, sizeof(narrow)), 4, 8), 0);
        assert_int_equal(info_find(bytes_of(b.data, b.size), key, &v), 1);
        assert_int_equal(v.size, sizeof(back));
        assert_memory_equal(v.data, back, sizeof(back));
        buf_fini(&b);

        /* A server may send anything: no whole number of words, or none. */
        for (size_t n = 0; n < 24; n++) {
                const size_t expected = n % 8 ? n : n / 2;
                assert_int_equal(info_put_words(&b, key, bytes_of(wide, n), 8, 4), 0);
                assert_int_equal(info_find(bytes_of(b.data, b.size), key, &v), 1);
                assert_int_equal(v.size, expected);
                buf_fini(&b);
        }
        for (unsigned long n = 1;; n++) {
                mem_fail_at(n);
                int r = info_put_words(&b, key, bytes_of(wide, sizeof(wide)), 8, 4);
                mem_fail_at(0);
                assert_true(r == 0 || (r == SP_E_NOMEM && b.size == 0));
                if (r == 0)
                        break;
        }
        buf_fini(&b);
}

TEST(malformed_info_is_refused)
{
        struct buf b = { 0 };
        assert_int_equal(info_put(&b, 1, "0123456789", 10), 0);
        assert_int_equal(check_info(b.data, b.size), 0);
        for (size_t n = 1; n < b.size; n++)
                assert_int_equal(check_info(b.data, n), SP_E_PROTO);
        static const uint32_t sizes[] = { 17, 1u << 30, UINT32_MAX - 7, UINT32_MAX };
        for (size_t i = 0; i < array_size(sizes); i++) {
                bytes_put_u32(b.data + 4, sizes[i]);
                assert_int_equal(check_info(b.data, b.size), SP_E_PROTO);
        }
        assert_int_equal(info_put(&b, 1, b.data, (size_t)UINT32_MAX + 10), SP_E_LIMIT);
        struct buf msg = { 0 };
        struct wire_server_info m = { .request = 1, .devices = { b.data, b.size } };
        assert_int_equal(wire_put_server_info(&msg, &m), 0);
        assert_int_equal(decode(&msg), SP_E_PROTO);
        buf_fini(&msg);
        buf_fini(&b);
}

static int check_args(const void *p, size_t size)
{
        void *copy = mem_dup(p, size);
        int r = args_check(bytes_of(copy, size));
        mem_free(copy);
        return r;
}

TEST(args_come_back_equal)
{
        struct buf b = { 0 };
        const struct arg in[] = {
                { 0, ARG_VALUE, 5, "12345", 0 },
                { 1, ARG_LOCAL, UINT64_MAX, NULL, 0 },
                { 2, ARG_BUFFER, 8, NULL, object_id(OBJECT_BUFFER, 9) },
                { ARG_INDEX_MAX, ARG_BUFFER, 8, NULL, 0 },
        };
        for (size_t i = 0; i < array_size(in); i++)
                assert_int_equal(args_put(&b, &in[i]), 0);
        assert_int_equal(check_args(b.data, b.size), 0);
        struct bytes left = { b.data, b.size };
        struct arg a;
        for (size_t i = 0; i < array_size(in); i++) {
                assert_int_equal(args_next(&left, &a), 1);
                assert_int_equal(a.index, in[i].index);
                assert_int_equal(a.kind, in[i].kind);
                assert_true(a.size == in[i].size && a.object == in[i].object);
        }
        assert_int_equal(args_next(&left, &a), 0);
        for (size_t n = 1; n < 24; n++)
                assert_int_equal(check_args(b.data, n), SP_E_PROTO);
        buf_fini(&b);
}

TEST(malformed_args_are_refused)
{
        const struct arg bad[] = {
                { ARG_INDEX_MAX + 1, ARG_LOCAL, 4, NULL, 0 },
                { 0, ARG_IMAGE, 0, NULL, 0 },
                { 0, 0, 0, NULL, 0 },
                { 0, UINT32_MAX, 0, NULL, 0 },
                { 0, ARG_BUFFER, 8, NULL, object_id(OBJECT_QUEUE, 1) },
                { 0, ARG_BUFFER, 8, NULL, object_id(OBJECT_BUFFER, 0) },
                { 0, ARG_BUFFER, 8, NULL, UINT64_MAX },
        };
        for (size_t i = 0; i < array_size(bad); i++) {
                struct buf b = { 0 };
                assert_int_equal(args_put(&b, &bad[i]), 0);
                assert_int_equal(check_args(b.data, b.size), SP_E_PROTO);
                buf_fini(&b);
        }
        uint8_t h[24] = { 0 };
        static const uint64_t sizes[] = { 9, ARG_VALUE_MAX + 1, UINT64_MAX - 15, UINT64_MAX };
        for (size_t i = 0; i < array_size(sizes); i++) {
                bytes_put_u32(h + 4, ARG_VALUE);
                bytes_put_u64(h + 8, sizes[i]);
                assert_int_equal(check_args(h, sizeof(h)), SP_E_PROTO);
        }
        bytes_put_u32(h + 4, ARG_BUFFER);
        bytes_put_u64(h + 8, 4);
        assert_int_equal(check_args(h, sizeof(h)), SP_E_PROTO);
}

/* ---- dispatch and tables ------------------------------------------------------------------- */

static unsigned dispatched;

#define MSG(id, name, doc)                                            \
        static int on_##name(void *user, const struct wire_##name *m) \
        {                                                             \
                dispatched = id;                                      \
                return user ? SP_E_BUSY : 0;                          \
        }
#include "proto/schema/no_fields.def"
#define END(name)
#include "proto/schema/all.def"

static const struct wire_handlers handlers = {
#define MSG(id, name, doc) .name = on_##name,
#include "proto/schema/no_fields.def"
#define END(name)
#include "proto/schema/all.def"
};

TEST(each_message_reaches_its_handler_and_no_other)
{
        static const struct wire_handlers none;
        int user;
        each_message(i, id)
        {
                struct buf b = { 0 };
                assert_int_equal(wire_sample(&b, (unsigned)id), 0);
                struct bytes msg = { b.data, b.size };
                assert_int_equal(wire_dispatch(&handlers, NULL, msg), 0);
                assert_int_equal(dispatched, id);
                assert_int_equal(wire_dispatch(&handlers, &user, msg), SP_E_BUSY);
                assert_int_equal(wire_dispatch(&none, NULL, msg), SP_E_PROTO);
                dispatched = 0;
                bytes_put_u16(b.data, 0x7FFF); /* no such message */
                assert_int_equal(wire_dispatch(&handlers, NULL, msg), SP_E_PROTO);
                assert_int_equal(wire_dispatch(&handlers, NULL, bytes_of(b.data, 4)), SP_E_PROTO);
                assert_int_equal(dispatched, 0);
                buf_fini(&b);
        }
}

static void count_rows(void *user, const char *text)
{
        size_t *headings = user;
        *headings += strncmp(text, "\n### 0x", 7) == 0;
}

TEST(tables_agree)
{
        size_t count = 0, headings = 0;
        each_message(i, id)
        {
                count++;
                assert_string_not_equal(wire_name((unsigned)id), "?");
                for (size_t k = 0; k < i; k++) {
                        assert_int_not_equal(wire_id_at(k), id);
                        assert_string_not_equal(wire_name(wire_id_at(k)), wire_name((unsigned)id));
                }
        }
        assert_true(count > 30);
        assert_int_equal(wire_id_at(count), 0);
        assert_string_equal(wire_name(0), "?");
        struct buf b = { 0 };
        assert_int_equal(wire_sample(&b, 0), SP_E_NOENT);
        wire_document(count_rows, &headings);
        assert_int_equal(headings, count);
        for (unsigned t = OBJECT_NONE + 1; t < OBJECT_TYPES; t++)
                assert_string_not_equal(object_type_name((enum object_type)t), "?");
}

TEST(printing_is_cut_and_terminated)
{
        struct buf b = { 0 };
        uint64_t waits[3] = { object_id(OBJECT_EVENT, 1), object_id(OBJECT_EVENT, 2),
                              object_id(OBJECT_EVENT, 3) };
        struct wire_marker m = { .event = object_id(OBJECT_EVENT, 5),
                                 .queue = object_id(OBJECT_QUEUE, 2),
                                 .flags = COMMAND_BARRIER,
                                 .waits = { waits, 3 } };
        static const char expected[] =
                "marker event=EVENT:5 queue=QUEUE:2 flags=2 waits=[EVENT:1 EVENT:2 EVENT:3]";
        assert_int_equal(wire_put_marker(&b, &m), 0);
        for (size_t n = 0; n < sizeof(expected) + 3; n++) {
                char text[128];
                memset(text, '#', sizeof(text));
                size_t len = wire_print(bytes_of(b.data, b.size), text, n);
                assert_int_equal(text[n], '#');
                if (n) {
                        assert_int_equal(len, n < sizeof(expected) ? n - 1 : sizeof(expected) - 1);
                        assert_int_equal(text[len], 0);
                        assert_memory_equal(text, expected, len);
                }
        }
        buf_fini(&b);
        char text[64];
        assert_int_equal(wire_put_close(&b, &(struct wire_close){ .text = bytes_str("a\n") }), 0);
        wire_print(bytes_of(b.data, b.size), text, sizeof(text));
        assert_string_equal(text, "close status=0 text=\"a\\x0a\"");
        buf_fini(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(samples_come_back_equal_and_their_truncations_do_not),
                cmocka_unit_test(random_messages_come_back_equal_and_their_truncations_do_not),
                cmocka_unit_test(damaged_messages_are_refused_or_come_back_equal),
                cmocka_unit_test(header_is_checked),
                cmocka_unit_test(ids_have_their_type),
                cmocka_unit_test(numbers_keep_their_limits),
                cmocka_unit_test(counts_beyond_the_message_or_the_limit_are_refused),
                cmocka_unit_test(text_has_no_zero_byte),
                cmocka_unit_test(encoder_refuses_what_no_decoder_takes),
                cmocka_unit_test(info_blocks_nest_and_are_found),
                cmocka_unit_test(sizes_fit_the_hosts_word),
                cmocka_unit_test(malformed_info_is_refused),
                cmocka_unit_test(args_come_back_equal),
                cmocka_unit_test(malformed_args_are_refused),
                cmocka_unit_test(each_message_reaches_its_handler_and_no_other),
                cmocka_unit_test(tables_agree),
                cmocka_unit_test(printing_is_cut_and_terminated),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
