#include "base/protobuf_writer.h"

#include <assert.h>
#include <string.h>

/* How a field is encoded. */
enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };

size_t protobuf_varint(uint64_t value, uint8_t ret[PROTOBUF_VARINT])
{
        size_t n = 0;
        for (; value >= 0x80; value >>= 7)
                ret[n++] = (uint8_t)(value | 0x80);
        ret[n++] = (uint8_t)value;
        return n;
}

static void put(struct protobuf_writer *w, const void *data, size_t size)
{
        if (size > sizeof(w->data) - w->size)
                w->full = true;
        if (w->full)
                return;
        memcpy(w->data + w->size, data, size);
        w->size += size;
}

static void put_number(struct protobuf_writer *w, uint64_t value)
{
        uint8_t encoded[PROTOBUF_VARINT];
        put(w, encoded, protobuf_varint(value, encoded));
}

static void put_tag(struct protobuf_writer *w, unsigned field, unsigned encoding)
{
        put_number(w, (uint64_t)field << 3 | encoding);
}

void protobuf_u64(struct protobuf_writer *w, unsigned field, uint64_t value)
{
        put_tag(w, field, VARINT);
        put_number(w, value);
}

void protobuf_fixed64(struct protobuf_writer *w, unsigned field, uint64_t value)
{
        uint8_t encoded[8];
        bytes_put_u64(encoded, value);
        put_tag(w, field, FIXED64);
        put(w, encoded, sizeof(encoded));
}

void protobuf_double(struct protobuf_writer *w, unsigned field, double value)
{
        uint64_t bits;
        static_assert(sizeof(bits) == sizeof(value), "IEEE 754");
        memcpy(&bits, &value, sizeof(bits));
        protobuf_fixed64(w, field, bits);
}

void protobuf_bytes(struct protobuf_writer *w, unsigned field, struct bytes value)
{
        put_tag(w, field, LENGTH);
        put_number(w, value.size);
        if (value.size)
                put(w, value.data, value.size);
}

size_t protobuf_open(struct protobuf_writer *w, unsigned field)
{
        put_tag(w, field, LENGTH);
        put(w, "", 1); /* the length, if it needs one byte only */
        return w->size;
}

void protobuf_close(struct protobuf_writer *w, size_t place)
{
        uint8_t encoded[PROTOBUF_VARINT];
        size_t size = w->size - place, length = protobuf_varint(size, encoded);
        if (w->full)
                return;
        if (length > 1) {
                put(w, encoded, length - 1); /* room for them */
                if (w->full)
                        return;
                memmove(w->data + place + length - 1, w->data + place, size);
        }
        memcpy(w->data + place - 1, encoded, length);
}
