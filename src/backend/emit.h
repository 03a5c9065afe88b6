/* Writing info records (proto/info.h) with an error that sticks: after the first failure nothing more
 * is written, and `status` says why. One owner. */
#ifndef SPANCL_BACKEND_EMIT_H
#define SPANCL_BACKEND_EMIT_H

#include <CL/cl.h>

#include "proto/info.h"

struct emit {
        struct buf *out;
        int status;
};

/* A value as this process has it. */
static inline void emit_data(struct emit *e, uint32_t key, const void *data, size_t size)
{
        if (e->status >= 0)
                e->status = info_put_native(e->out, key, data, size);
}

static inline void emit_u64(struct emit *e, uint32_t key, uint64_t value)
{
        if (e->status >= 0)
                e->status = info_put_u64(e->out, key, value);
}

static inline void emit_uint(struct emit *e, uint32_t key, cl_uint value)
{
        emit_data(e, key, &value, sizeof(value));
}

/* With the final NUL, as OpenCL's queries return strings. */
static inline void emit_str(struct emit *e, uint32_t key, const char *text)
{
        emit_data(e, key, text, strlen(text) + 1);
}

/* Put a list of cl_name_version. The bytes behind each name become 0, because Intel's driver leaves old
 * bytes of its memory there. Clients compare descriptions, and must not see that memory. */
static inline void emit_name_versions(struct emit *e, uint32_t key, void *data, size_t size)
{
        for (size_t i = 0; i + sizeof(cl_name_version) <= size; i += sizeof(cl_name_version)) {
                char *name = (char *)data + i + offsetof(cl_name_version, name);
                size_t length = strnlen(name, CL_NAME_VERSION_MAX_NAME_SIZE);
                memset(name + length, 0, CL_NAME_VERSION_MAX_NAME_SIZE - length);
        }
        emit_data(e, key, data, size);
}

/* A nested block; the mark goes to emit_end. */
static inline size_t emit_begin(struct emit *e, uint32_t key)
{
        size_t mark = 0;
        if (e->status >= 0)
                e->status = info_begin(e->out, key, &mark);
        return mark;
}

static inline void emit_end(struct emit *e, size_t mark)
{
        if (e->status >= 0)
                info_end(e->out, mark);
}

#endif
