#include "core/binary.h"

#include "core/device.h"
#include "core/hash.h"

enum { VERSION = 1 };

static const char magic[8] = "SPANCLPB";

static uint64_t device_hash(cl_device_id d)
{
        static const cl_device_info parts[] = {
                CL_DEVICE_NAME,
                CL_DEVICE_VENDOR,
                CL_DEVICE_VERSION,
                CL_DRIVER_VERSION,
        };
        uint64_t h = 0;
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
                const char *s = device_text(d, parts[i]);
                h = h * 0x9e3779b97f4a7c15u + hash_bytes(s, strlen(s));
        }
        return h;
}

int binary_wrap(cl_device_id d, cl_program_binary_type type, struct bytes native, struct buf *out)
{
        uint8_t header[BINARY_HEADER];
        memcpy(header, magic, 8);
        bytes_put_u32(header + 8, VERSION);
        bytes_put_u32(header + 12, type);
        bytes_put_u64(header + 16, device_hash(d));
        bytes_put_u64(header + 24, native.size);
        bytes_put_u64(header + 32, hash_bytes(native.data, native.size));
        int r = buf_reserve(out, sizeof(header) + native.size);
        if (!r)
                r = buf_put(out, header, sizeof(header));
        return r < 0 ? r : buf_put(out, native.data, native.size);
}

int binary_unwrap(cl_device_id d, struct bytes container, struct bytes *ret,
                  cl_program_binary_type *ret_type)
{
        const uint8_t *p = container.data;
        if (container.size < BINARY_HEADER || memcmp(p, magic, 8) ||
            bytes_get_u32(p + 8) != VERSION || bytes_get_u64(p + 16) != device_hash(d) ||
            bytes_get_u64(p + 24) != container.size - BINARY_HEADER)
                return SP_E_INVAL;
        struct bytes native = bytes_of(p + BINARY_HEADER, container.size - BINARY_HEADER);
        if (!native.size || bytes_get_u64(p + 32) != hash_bytes(native.data, native.size))
                return SP_E_INVAL;
        *ret = native;
        *ret_type = bytes_get_u32(p + 12);
        return 0;
}
