/* A writer of protobuf messages (protobuf.dev, "Encoding") into a fixed buffer. A message within a message is opened
 * and closed around its fields. One owner; no allocations. The caller knows the size of what it writes: fields that
 * have no room are left out, and the writer is full. */
#ifndef SPANCL_BASE_PROTOBUF_WRITER_H
#define SPANCL_BASE_PROTOBUF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { PROTOBUF_SIZE = 16383 }; /* the largest length of two bytes */

struct protobuf_writer {
        uint8_t data[PROTOBUF_SIZE];
        size_t size;
        bool full;
};

static inline void protobuf_clear(struct protobuf_writer *w)
{
        w->size = 0;
        w->full = false;
}

void protobuf_u64(struct protobuf_writer *w, unsigned field, uint64_t value);
void protobuf_fixed64(struct protobuf_writer *w, unsigned field, uint64_t value);
void protobuf_double(struct protobuf_writer *w, unsigned field, double value);
/* Put a text, or the bytes of a message that is written already. */
void protobuf_bytes(struct protobuf_writer *w, unsigned field, struct bytes value);

/* Open a message. Returns its place, for protobuf_close. */
size_t protobuf_open(struct protobuf_writer *w, unsigned field);
void protobuf_close(struct protobuf_writer *w, size_t place);

/* Encode a number. Returns its size. */
enum { PROTOBUF_VARINT = 10 };
size_t protobuf_varint(uint64_t value, uint8_t ret[PROTOBUF_VARINT]);

#endif
