/* The kernel arguments in a kernel_launch: a sequence of {u32 index, u32 kind, u64 size, value}.
 * The value is:
 * - for ARG_VALUE, `size` bytes padded to 8;
 * - for ARG_LOCAL, nothing: `size` is that of the local memory;
 * - for ARG_BUFFER, an object id (0: NULL), size 8;
 * - for ARG_IMAGE, ARG_SAMPLER, ARG_QUEUE and ARG_PIPE, an object id that is not 0, size 8;
 * - for ARG_SVM, an address, size 8. */
#ifndef SPANCL_PROTO_ARGS_H
#define SPANCL_PROTO_ARGS_H

#include <stdbool.h>

#include "base/bytes.h"

enum arg_kind {
        ARG_VALUE = 1,
        ARG_LOCAL = 2,
        ARG_BUFFER = 3,
        ARG_SAMPLER = 4,
        ARG_IMAGE = 5,
        ARG_QUEUE = 6, /* a device queue */
        ARG_PIPE = 7,
        ARG_SVM = 8,
};

enum { ARG_VALUE_MAX = 65536, ARG_INDEX_MAX = 65535 };

struct arg {
        uint32_t index;
        uint32_t kind;
        uint64_t size;
        const void *value; /* ARG_VALUE: borrowed bytes */
        /* The object id of ARG_BUFFER, ARG_IMAGE, ARG_SAMPLER, ARG_QUEUE and ARG_PIPE; the address
         * of ARG_SVM. */
        uint64_t object;
};

/* Is the value an object's id? */
static inline bool arg_is_object(uint32_t kind)
{
        return kind >= ARG_BUFFER && kind <= ARG_PIPE;
}

/* SP_E_PROTO unless the whole sequence is well formed; object ids are checked for their type. */
SP_NODISCARD int args_check(struct bytes args);

/* Take the next argument off the front. 1: there was one; 0: the end. Only after args_check. */
int args_next(struct bytes *args, struct arg *ret);

SP_NODISCARD int args_put(struct buf *b, const struct arg *a);

#endif
