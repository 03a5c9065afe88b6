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

bool info_is_words(uint32_t key)
{
        static const uint32_t words[] = {
                0x1004, /* CL_DEVICE_MAX_WORK_GROUP_SIZE */
                0x1005, /* CL_DEVICE_MAX_WORK_ITEM_SIZES */
                0x1011, /* CL_DEVICE_IMAGE2D_MAX_WIDTH */
                0x1012, /* CL_DEVICE_IMAGE2D_MAX_HEIGHT */
                0x1013, /* CL_DEVICE_IMAGE3D_MAX_WIDTH */
                0x1014, /* CL_DEVICE_IMAGE3D_MAX_HEIGHT */
                0x1015, /* CL_DEVICE_IMAGE3D_MAX_DEPTH */
                0x1017, /* CL_DEVICE_MAX_PARAMETER_SIZE */
                0x1025, /* CL_DEVICE_PROFILING_TIMER_RESOLUTION */
                0x1040, /* CL_DEVICE_IMAGE_MAX_BUFFER_SIZE */
                0x1041, /* CL_DEVICE_IMAGE_MAX_ARRAY_SIZE */
                0x1044, /* CL_DEVICE_PARTITION_PROPERTIES */
                0x1046, /* CL_DEVICE_PARTITION_TYPE */
                0x1049, /* CL_DEVICE_PRINTF_BUFFER_SIZE */
                0x104D, /* CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE */
                0x1054, /* CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE */
                0x1067, /* CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE */
                0x1185, /* CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE */
                0x11B0, /* CL_KERNEL_WORK_GROUP_SIZE */
                0x11B1, /* CL_KERNEL_COMPILE_WORK_GROUP_SIZE */
                0x11B3, /* CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE */
                0x11B5, /* CL_KERNEL_GLOBAL_WORK_SIZE */
                0x11B9, /* CL_KERNEL_MAX_NUM_SUB_GROUPS */
                0x11BA, /* CL_KERNEL_COMPILE_NUM_SUB_GROUPS */
                0x4030, /* CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_AMD */
                0x4031, /* CL_DEVICE_MAX_WORK_GROUP_SIZE_AMD */
                0x4033, /* CL_DEVICE_PREFERRED_CONSTANT_BUFFER_SIZE_AMD */
                0x4039, /* CL_DEVICE_GLOBAL_FREE_MEMORY_AMD */
                0x4108, /* CL_DEVICE_SUB_GROUP_SIZES_INTEL */
                0x410A, /* CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL */
        };
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (words[i] == key)
                        return true;
        return false;
}

int info_put_words(struct buf *b, uint32_t key, struct bytes value, size_t from, size_t to)
{
        if (from == to || value.size % from)
                return info_put(b, key, value.data, value.size);
        const size_t count = value.size / from, size = count * to, start = b->size;
        size_t mark;
        int r = buf_reserve(b, 8 + bytes_pad8(size));
        if (!r)
                r = info_begin(b, key, &mark);
        for (size_t i = 0; i < count && !r; i++) {
                const uint8_t *at = (const uint8_t *)value.data + i * from;
                uint64_t n = from == 8 ? bytes_get_u64(at) : bytes_get_u32(at);
                n = bytes_le64(to == 4 && n > UINT32_MAX ? UINT32_MAX : n);
                r = buf_put(b, &n, to);
        }
        if (!r) {
                static const uint8_t padding[8];
                info_end(b, mark);
                r = buf_put(b, padding, bytes_pad8(size) - size);
        }
        if (r < 0)
                b->size = start;
        return r;
}

int info_put_native(struct buf *b, uint32_t key, const void *data, size_t size)
{
        return info_is_words(key) ? info_put_words(b, key, bytes_of(data, size), sizeof(size_t), 8)
                                  : info_put(b, key, data, size);
}

int info_put_local(struct buf *b, uint32_t key, struct bytes value)
{
        return info_is_words(key) ? info_put_words(b, key, value, 8, sizeof(size_t))
                                  : info_put(b, key, value.data, value.size);
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
