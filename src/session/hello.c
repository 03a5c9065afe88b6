#include "session/hello.h"

#include "base/crc32c.h"
#include "proto/info.h"

/* The checksum of an exchange, without the field that holds it. */
static uint32_t checksum(const void *whole, size_t size)
{
        enum { FIELD = FRAME_MAGIC_SIZE + 8, FIELD_END = FIELD + 8 };
        static const uint8_t zero[FIELD_END - FIELD];
        const uint8_t *p = whole;
        uint32_t sum = crc32c(0, p, FIELD);
        sum = crc32c(sum, zero, sizeof(zero));
        return crc32c(sum, p + FIELD_END, size - FIELD_END);
}

void hello_seal(void *whole, size_t size)
{
        uint8_t *p = whole;
        bytes_put_u64(p + FRAME_MAGIC_SIZE + 8, checksum(p, size));
}

static int begin(struct buf *b, size_t *ret_start)
{
        static const uint8_t zero[FRAME_HEADER_SIZE];
        *ret_start = b->size;
        int r = buf_put(b, FRAME_MAGIC, FRAME_MAGIC_SIZE);
        return r < 0 ? r : buf_put(b, zero, sizeof(zero));
}

static int finish(struct buf *b, size_t start, int r)
{
        if (r < 0) {
                b->size = start;
                return r;
        }
        struct frame f = { .size = (uint32_t)(b->size - start - HELLO_PREFIX),
                           .type = FRAME_HELLO };
        frame_put(b->data + start + FRAME_MAGIC_SIZE, &f);
        hello_seal(b->data + start, b->size - start);
        return 0;
}

int hello_put(struct buf *b, const struct wire_hello *m)
{
        size_t start;
        int r = begin(b, &start);
        return finish(b, start, r < 0 ? r : wire_put_hello(b, m));
}

int hello_put_reply(struct buf *b, const struct wire_hello_reply *m)
{
        size_t start;
        int r = begin(b, &start);
        return finish(b, start, r < 0 ? r : wire_put_hello_reply(b, m));
}

int hello_put_stats(struct buf *b, const struct wire_session_stats *m)
{
        size_t start;
        int r = begin(b, &start);
        return finish(b, start, r < 0 ? r : wire_put_session_stats(b, m));
}

int hello_put_part(struct buf *b, const struct wire_description *m)
{
        size_t start;
        int r = begin(b, &start);
        return finish(b, start, r < 0 ? r : wire_put_description(b, m));
}

int hello_put_next_part(struct buf *b, struct bytes info, size_t *at, uint64_t sessions)
{
        size_t left = info.size - *at;
        size_t part = left < WIRE_DESCRIPTION_PART ? left : WIRE_DESCRIPTION_PART;
        const uint8_t *p = info.data;
        const struct wire_description m = {
                .sessions = sessions,
                .left = left - part,
                .devices = bytes_of(p ? p + *at : NULL, part),
        };
        *at += part;
        return hello_put_part(b, &m);
}

int hello_put_devices(struct buf *b, struct bytes info, uint64_t sessions)
{
        size_t start = b->size, at = 0;
        int r = info.size > WIRE_DESCRIPTION_MAX ? SP_E_LIMIT : 0;
        if (r < 0)
                return r;
        do {
                r = hello_put_next_part(b, info, &at, sessions);
        } while (!r && at < info.size);
        if (r < 0)
                b->size = start;
        return r;
}

int hello_take_devices(struct hello_devices *d, struct bytes whole)
{
        struct wire_description m;
        int r = hello_get_part(whole, &m);
        if (r < 0)
                return r;
        /* No part is empty but an only one, so that their number is bounded. */
        if (d->begun ? m.devices.size + m.left != d->left
                     : m.devices.size + m.left > WIRE_DESCRIPTION_MAX)
                return SP_E_PROTO;
        if (m.left && m.devices.size != WIRE_DESCRIPTION_PART)
                return SP_E_PROTO;
        r = buf_put(&d->info, m.devices.data, m.devices.size);
        d->begun = true;
        d->left = m.left;
        d->sessions = m.sessions;
        if (!r && !m.left)
                r = info_check(bytes_of(d->info.data, d->info.size));
        return r < 0 ? r : !m.left;
}

void hello_devices_fini(struct hello_devices *d)
{
        buf_fini(&d->info);
        *d = (struct hello_devices){ 0 };
}

/* Is it the header of a hello, but with its numbers in the other byte order? The size of a hello has zeros on one side
 * only. */
static bool is_big_endian(const uint8_t *header)
{
        const uint32_t size = __builtin_bswap32(bytes_get_u32(header));
        return size && size <= FRAME_HELLO_MAX && header[4] == FRAME_HELLO && !header[5] &&
               !header[6] && !header[7];
}

int hello_size(struct bytes prefix)
{
        size_t n = prefix.size < FRAME_MAGIC_SIZE ? prefix.size : FRAME_MAGIC_SIZE;
        struct frame f;
        if (n && memcmp(prefix.data, FRAME_MAGIC, n))
                return SP_E_PROTO;
        if (prefix.size < HELLO_PREFIX)
                return HELLO_PREFIX;
        const uint8_t *header = (const uint8_t *)prefix.data + FRAME_MAGIC_SIZE;
        int r = frame_get(header, &f);
        if (r < 0 && is_big_endian(header))
                return SP_E_VERSION;
        if (r < 0 || f.type != FRAME_HELLO)
                return SP_E_PROTO;
        return HELLO_PREFIX + (int)f.size;
}

static int message_of(struct bytes whole, struct bytes *ret)
{
        if (whole.size < HELLO_PREFIX || hello_size(whole) != (int)whole.size)
                return SP_E_PROTO;
        if (bytes_get_u64((const uint8_t *)whole.data + FRAME_MAGIC_SIZE + 8) !=
            checksum(whole.data, whole.size))
                return SP_E_LINK;
        *ret = bytes_of((const uint8_t *)whole.data + HELLO_PREFIX, whole.size - HELLO_PREFIX);
        return 0;
}

int hello_get(struct bytes whole, struct wire_hello *ret)
{
        struct bytes msg;
        int r = message_of(whole, &msg);
        return r < 0 ? r : wire_get_hello(msg, ret);
}

int hello_get_reply(struct bytes whole, struct wire_hello_reply *ret)
{
        struct bytes msg;
        int r = message_of(whole, &msg);
        return r < 0 ? r : wire_get_hello_reply(msg, ret);
}

int hello_get_stats(struct bytes whole, struct wire_session_stats *ret)
{
        struct bytes msg;
        int r = message_of(whole, &msg);
        return r < 0 ? r : wire_get_session_stats(msg, ret);
}

int hello_get_part(struct bytes whole, struct wire_description *ret)
{
        struct bytes msg;
        int r = message_of(whole, &msg);
        return r < 0 ? r : wire_get_description(msg, ret);
}

int hello_negotiate(const struct wire_hello *m, uint64_t *ret_version, const char **ret_text)
{
        if (m->version_min > WIRE_VERSION) {
                *ret_text = "the client is newer than this server: upgrade spancld";
                return SP_E_VERSION;
        }
        if (m->version_max < WIRE_VERSION) {
                *ret_text = "the client is older than this server: upgrade libspancl";
                return SP_E_VERSION;
        }
        *ret_version = WIRE_VERSION;
        return 0;
}
