/* Kernel arguments in a kernel_launch: a sequence of {u32 index, u32 kind, u64 size, value}. The value
 * of ARG_VALUE is `size` bytes padded to 8; of ARG_LOCAL nothing (size is the local memory's); of
 * ARG_BUFFER an object id (0: NULL), of ARG_IMAGE, ARG_SAMPLER, ARG_QUEUE and ARG_PIPE one that is not 0, size 8; of ARG_SVM
 * an address, size 8. */
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
        ARG_QUEUE = 6, /* one on the device */
        ARG_PIPE = 7,
        ARG_SVM = 8,
};

enum { ARG_VALUE_MAX = 65536, ARG_INDEX_MAX = 65535 };

struct arg {
        uint32_t index;
        uint32_t kind;
        uint64_t size;
        const void *value; /* ARG_VALUE: borrowed bytes */
        uint64_t
                object; /* ARG_BUFFER, ARG_IMAGE, ARG_SAMPLER, ARG_QUEUE, ARG_PIPE; ARG_SVM: the address */
};

/* Is the value an object's id? */
static inline bool arg_is_object(uint32_t kind)
{
        return kind >= ARG_BUFFER && kind <= ARG_PIPE;
}

/* SP_E_PROTO unless the whole sequence is well formed; object ids are checked for their type. */
SP_NODISCARD int args_check(struct bytes args);

/* Take the next off the front; 1 or 0 at the end. Only after args_check. */
int args_next(struct bytes *args, struct arg *ret);

SP_NODISCARD int args_put(struct buf *b, const struct arg *a);

#endif
