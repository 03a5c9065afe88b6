#include "info_reader.h"

#include "proto/info.h"
#include "proto/wire.h"

int info_reader_begin(struct info_reader *r, uint64_t size)
{
        r->depth = 1;
        r->padded = 0;
        r->blocks[0].key = 0;
        r->blocks[0].left = (size_t)size;
        return size % 8 || size > WIRE_BLOB_MAX ? SP_E_PROTO : 0;
}

/* Leave the blocks that are complete. */
static void leave(struct info_reader *r)
{
        while (r->depth > 1 && !r->padded && !r->blocks[r->depth - 1].left)
                r->depth--;
}

static int take_header(struct info_reader *r, const uint8_t bytes[8])
{
        const uint32_t key = bytes_get_u32(bytes), size = bytes_get_u32(bytes + 4);
        const bool block = key == INFO_DEVICE || key == INFO_BUILD || key == INFO_KERNEL ||
                           key == INFO_KERNEL_ARG;
        size_t *left = &r->blocks[r->depth - 1].left;
        if (size > WIRE_BLOB_MAX || bytes_pad8(size) > *left)
                return SP_E_PROTO;
        *left -= bytes_pad8(size);
        if (block) {
                if (size % 8 || r->depth == INFO_READER_DEPTH)
                        return SP_E_PROTO;
                r->blocks[r->depth].key = key;
                r->blocks[r->depth++].left = size;
                r->block(r->user, key);
                return 0;
        }
        size_t max = 0;
        r->to = r->value(r->user, r->blocks[r->depth - 1].key, key, size, &max);
        r->wanted = !r->to ? 0 : size < max ? size : max;
        r->padded = bytes_pad8(size);
        return 0;
}

int info_reader_take(struct info_reader *r, const uint8_t bytes[8])
{
        int e = 0;
        if (r->padded) {
                size_t n = r->wanted < 8 ? r->wanted : 8;
                if (n) {
                        memcpy(r->to, bytes, n);
                        r->to += n;
                        r->wanted -= n;
                }
                r->padded -= 8;
        } else if (r->blocks[r->depth - 1].left < 8) {
                return SP_E_PROTO;
        } else {
                r->blocks[r->depth - 1].left -= 8;
                e = take_header(r, bytes);
        }
        leave(r);
        return e;
}

bool info_reader_is_done(const struct info_reader *r)
{
        return r->depth == 1 && !r->padded && !r->blocks[0].left;
}
