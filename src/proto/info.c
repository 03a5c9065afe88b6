#include "proto/info.h"

int info_next(struct bytes *block, struct info_entry *ret)
{
        const uint8_t *p = block->data;
        if (block->size < 8)
                return 0;
        uint32_t size = bytes_get_u32(p + 4);
        size_t whole = 8 + bytes_pad8(size);
        if (whole > block->size)
                return 0;
        *ret = (struct info_entry){ bytes_get_u32(p), { p + 8, size } };
        *block = bytes_of(p + whole, block->size - whole);
        return 1;
}

int info_check(struct bytes block)
{
        struct info_entry e;
        while (info_next(&block, &e)) {
        }
        return block.size ? SP_E_PROTO : 0;
}

int info_find(struct bytes block, uint32_t key, struct bytes *ret)
{
        struct info_entry e;
        while (info_next(&block, &e)) {
                if (e.key == key) {
                        *ret = e.value;
                        return 1;
                }
        }
        return 0;
}

uint64_t info_u64(struct bytes block, uint32_t key, uint64_t fallback)
{
        struct bytes v;
        return info_find(block, key, &v) && v.size == 8 ? bytes_get_u64(v.data) : fallback;
}

static int put_header(struct buf *b, uint32_t key, uint32_t size)
{
        uint8_t h[8];
        bytes_put_u32(h, key);
        bytes_put_u32(h + 4, size);
        return buf_put(b, h, sizeof(h));
}

int info_put(struct buf *b, uint32_t key, const void *data, size_t size)
{
        if (size > UINT32_MAX / 2)
                return SP_E_LIMIT;
        int r = buf_reserve(b, 8 + bytes_pad8(size));
        if (r < 0)
                return r;
        r = put_header(b, key, (uint32_t)size);
        return r < 0 ? r : buf_put_padded(b, data, size);
}

int info_put_u64(struct buf *b, uint32_t key, uint64_t value)
{
        value = bytes_le64(value);
        return info_put(b, key, &value, sizeof(value));
}

int info_begin(struct buf *b, uint32_t key, size_t *ret_mark)
{
        size_t mark = b->size;
        int r = put_header(b, key, 0);
        if (r < 0)
                return r;
        *ret_mark = mark;
        return 0;
}

void info_end(struct buf *b, size_t mark)
{
        bytes_put_u32(b->data + mark + 4, (uint32_t)(b->size - mark - 8));
}
