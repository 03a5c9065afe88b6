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

void buf_shrink(struct buf *b)
{
        uint8_t *p = b->size && b->size < b->cap ? mem_realloc(b->data, b->size) : NULL;
        if (!p)
                return;
        b->data = p;
        b->cap = b->size;
}

void buf_fini(struct buf *b)
{
        mem_free(b->data);
        *b = (struct buf){ 0 };
}

size_t bytes_utf8(struct bytes text, uint32_t *ret)
{
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        const uint8_t *p = text.data;
        uint32_t c = *p;
        size_t size = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
        if (!size || size > text.size)
                return 0;
        if (size > 1)
                c &= 0xffu >> (size + 1);
        for (size_t i = 1; i < size; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3f);
        }
        if (c < least[size] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
                return 0;
        *ret = c;
        return size;
}

bool bytes_printable(uint32_t c)
{
        bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        bool order = c == 0x61c || (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
                     (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
        return !control && !order;
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
