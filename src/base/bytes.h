/* Borrowed byte ranges, growable byte buffers and little-endian access. */
#ifndef SPANCL_BASE_BYTES_H
#define SPANCL_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define bytes_le16(x) ((uint16_t)(x))
#define bytes_le32(x) ((uint32_t)(x))
#define bytes_le64(x) ((uint64_t)(x))
#else
#define bytes_le16(x) __builtin_bswap16(x)
#define bytes_le32(x) __builtin_bswap32(x)
#define bytes_le64(x) __builtin_bswap64(x)
#endif

/* `size` bytes at `data`, borrowed from their owner. */
struct bytes {
        const void *data;
        size_t size;
};

static inline struct bytes bytes_of(const void *data, size_t size)
{
        return (struct bytes){ data, size };
}

static inline struct bytes bytes_str(const char *s)
{
        return bytes_of(s, s ? strlen(s) : 0);
}

static inline uint64_t bytes_get_u64(const void *p)
{
        uint64_t v;
        memcpy(&v, p, 8);
        return bytes_le64(v);
}

static inline void bytes_put_u64(void *p, uint64_t v)
{
        v = bytes_le64(v);
        memcpy(p, &v, 8);
}

static inline uint32_t bytes_get_u32(const void *p)
{
        uint32_t v;
        memcpy(&v, p, 4);
        return bytes_le32(v);
}

static inline void bytes_put_u32(void *p, uint32_t v)
{
        v = bytes_le32(v);
        memcpy(p, &v, 4);
}

static inline uint16_t bytes_get_u16(const void *p)
{
        uint16_t v;
        memcpy(&v, p, 2);
        return bytes_le16(v);
}

static inline void bytes_put_u16(void *p, uint16_t v)
{
        v = bytes_le16(v);
        memcpy(p, &v, 2);
}

/* `n` rounded up to a multiple of 8, the slot size of the wire. */
static inline size_t bytes_pad8(size_t n)
{
        return (n + 7) & ~(size_t)7;
}

/* Make text from another host safe to show. Control characters become question marks, because they
 * could control a terminal or forge a log line. Returns `text`. */
char *bytes_tame(char *text, size_t size);

/* Decode the first character of a text that is not empty. Returns its size; 0: it is no UTF-8. */
size_t bytes_utf8(struct bytes text, uint32_t *ret);

/* Return true if a character may be shown on a terminal and in a log line. Control characters may not, nor
 * characters that begin a line or reorder the text around them. */
bool bytes_printable(uint32_t c);

/* A growable byte buffer that its holder owns. Zeroed memory is a valid, empty one. */
struct buf {
        uint8_t *data;
        size_t size; /* bytes in use */
        size_t cap;  /* bytes allocated */
};

/* Make room for `more` bytes behind those in use. SP_E_NOMEM: nothing changed. */
SP_NODISCARD int buf_reserve(struct buf *b, size_t more);

/* Append; SP_E_NOMEM: nothing changed. */
SP_NODISCARD int buf_put(struct buf *b, const void *data, size_t size);
SP_NODISCARD int buf_put_u64(struct buf *b, uint64_t v);

/* Append and pad with zero bytes to the next multiple of 8. */
SP_NODISCARD int buf_put_padded(struct buf *b, const void *data, size_t size);

/* Drop the first `n` bytes. */
void buf_consume(struct buf *b, size_t n);

/* Give back the room behind the bytes, when no more are expected. */
void buf_shrink(struct buf *b);

/* Free the memory; the buffer is empty and usable again. */
void buf_fini(struct buf *b);

#endif
