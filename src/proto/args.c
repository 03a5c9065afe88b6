#include "proto/args.h"

#include "proto/object_id.h"

enum { ARG_HEADER = 16 };

static size_t value_size(uint32_t kind, uint64_t size)
{
        return kind == ARG_LOCAL ? 0 : bytes_pad8((size_t)size);
}

static bool object_fits(uint32_t kind, uint64_t id)
{
        if (!id)
                return kind == ARG_BUFFER;
        enum object_type wanted = OBJECT_BUFFER;
        if (kind == ARG_SAMPLER)
                wanted = OBJECT_SAMPLER;
        else if (kind == ARG_QUEUE)
                wanted = OBJECT_QUEUE;
        return object_id_valid(id) && object_id_type(id) == wanted;
}

int args_check(struct bytes args)
{
        const uint8_t *p = args.data;
        size_t left = args.size;
        while (left) {
                if (left < ARG_HEADER)
                        return SP_E_PROTO;
                uint32_t index = bytes_get_u32(p), kind = bytes_get_u32(p + 4);
                uint64_t size = bytes_get_u64(p + 8);
                bool slot = arg_is_object(kind) || kind == ARG_SVM;
                bool known = kind == ARG_VALUE || kind == ARG_LOCAL || slot;
                if (index > ARG_INDEX_MAX || !known)
                        return SP_E_PROTO;
                if (kind == ARG_VALUE && size > ARG_VALUE_MAX)
                        return SP_E_PROTO;
                if (slot && size != 8)
                        return SP_E_PROTO;
                size_t whole = ARG_HEADER + value_size(kind, size);
                if (whole > left)
                        return SP_E_PROTO;
                if (arg_is_object(kind) && !object_fits(kind, bytes_get_u64(p + ARG_HEADER)))
                        return SP_E_PROTO;
                p += whole;
                left -= whole;
        }
        return 0;
}

int args_next(struct bytes *args, struct arg *ret)
{
        const uint8_t *p = args->data;
        if (!args->size)
                return 0;
        struct arg a = {
                .index = bytes_get_u32(p),
                .kind = bytes_get_u32(p + 4),
                .size = bytes_get_u64(p + 8),
                .value = p + ARG_HEADER,
        };
        if (arg_is_object(a.kind) || a.kind == ARG_SVM)
                a.object = bytes_get_u64(p + ARG_HEADER);
        size_t whole = ARG_HEADER + value_size(a.kind, a.size);
        *ret = a;
        *args = bytes_of(p + whole, args->size - whole);
        return 1;
}

int args_put(struct buf *b, const struct arg *a)
{
        uint8_t h[ARG_HEADER];
        bytes_put_u32(h, a->index);
        bytes_put_u32(h + 4, a->kind);
        bool slot = arg_is_object(a->kind) || a->kind == ARG_SVM;
        bytes_put_u64(h + 8, slot ? 8 : a->size);
        int r = buf_reserve(b, ARG_HEADER + 8 + value_size(a->kind, a->size));
        if (r < 0)
                return r;
        r = buf_put(b, h, sizeof(h));
        if (r < 0 || a->kind == ARG_LOCAL)
                return r;
        return slot ? buf_put_u64(b, a->object) : buf_put_padded(b, a->value, (size_t)a->size);
}
