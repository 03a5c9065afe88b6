/* The rule of every clGet*Info: CL_INVALID_VALUE if there is a place for the value, but a too small
 * one; the value's size whenever it is asked for. */
#ifndef SPANCL_API_REPLY_H
#define SPANCL_API_REPLY_H

#include <CL/cl.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "core/object.h"
#include "core/status.h"
#include "proto/info.h"

/* Where the application wants a value. */
struct reply {
        size_t size;
        void *value;
        size_t *size_ret;
};

static inline cl_int reply_bytes(struct reply r, const void *value, size_t size)
{
        if (r.value && r.size < size)
                return CL_INVALID_VALUE;
        if (r.value && size)
                memcpy(r.value, value, size);
        if (r.size_ret)
                *r.size_ret = size;
        return CL_SUCCESS;
}

/* An OpenCL query's answer in an info block. */
static inline cl_int reply_info(struct reply r, uint32_t key, struct bytes value)
{
        auto_clean(buf_fini) struct buf local = { 0 };
        struct info_entry e;
        if (info_put_local(&local, key, value) < 0)
                return CL_OUT_OF_HOST_MEMORY;
        struct bytes one = bytes_of(local.data, local.size);
        return info_next(&one, &e) ? reply_bytes(r, e.value.data, e.value.size)
                                   : CL_OUT_OF_HOST_MEMORY;
}

/* NULL reads as "". */
static inline cl_int reply_string(struct reply r, const char *s)
{
        return reply_bytes(r, s ? s : "", s ? strlen(s) + 1 : 1);
}

#define reply_value(r, type, v) reply_bytes(r, &(type){ v }, sizeof(type))

/* Devices by the handles that the application knows. */
static inline cl_int reply_devices(struct reply r, const cl_device_id *devices, cl_uint count)
{
        cl_device_id *out = r.value;
        if (out && r.size < count * sizeof(*out))
                return CL_INVALID_VALUE;
        for (cl_uint i = 0; out && i < count; i++)
                out[i] = devices[i]->shown;
        if (r.size_ret)
                *r.size_ret = count * sizeof(*out);
        return CL_SUCCESS;
}

/* For clCreate*: store the error if there is a place for it and return NULL. */
static inline void *reply_error(cl_int *errcode_ret, cl_int error)
{
        if (errcode_ret)
                *errcode_ret = error;
        return NULL;
}

#endif
