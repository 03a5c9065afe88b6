#include "base/bytes.h"

#include "base/mem.h"

int buf_reserve(struct buf *b, size_t more)
{
        if (b->cap - b->size >= more)
                return 0;
        if (more > SIZE_MAX / 4 || b->size > SIZE_MAX / 4)
                return SP_E_NOMEM;
        size_t cap = b->cap ? b->cap : 256;
        while (cap - b->size < more)
                cap *= 2;
        uint8_t *p = mem_realloc(b->data, cap);
        if (!p)
                return SP_E_NOMEM;
        b->data = p;
        b->cap = cap;
        return 0;
}

int buf_put(struct buf *b, const void *data, size_t size)
{
        int r = buf_reserve(b, size);
        if (r < 0)
                return r;
        if (size)
                memcpy(b->data + b->size, data, size);
        b->size += size;
        return 0;
}

int buf_put_u64(struct buf *b, uint64_t v)
{
        v = bytes_le64(v);
        return buf_put(b, &v, sizeof(v));
}

int buf_put_padded(struct buf *b, const void *data, size_t size)
{
        size_t padded = bytes_pad8(size);
        if (padded < size)
                return SP_E_NOMEM;
        int r = buf_reserve(b, padded);
        if (r < 0)
                return r;
        if (size)
                memcpy(b->data + b->size, data, size);
        memset(b->data + b->size + size, 0, padded - size);
        b->size += padded;
        return 0;
}

void buf_consume(struct buf *b, size_t n)
{
        if (n < b->size)
                memmove(b->data, b->data + n, b->size - n);
        b->size -= n < b->size ? n : b->size;
}

void buf_fini(struct buf *b)
{
        mem_free(b->data);
        *b = (struct buf){ 0 };
}

char *bytes_tame(char *text, size_t size)
{
        for (size_t i = 0; i < size && text[i]; i++) {
                uint8_t c = (uint8_t)text[i];
                /* ISO 8859's control characters (0x80 to 0x9f) are U+0080 to U+009F: in UTF-8, 0xc2
                 * and the same byte. */
                int second = i && (uint8_t)text[i - 1] == 0xc2 && c < 0xa0 && c >= 0x80;
                if (c < 0x20 || c == 0x7f || second)
                        text[i] = '?';
        }
        return text;
}
