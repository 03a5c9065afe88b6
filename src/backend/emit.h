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
