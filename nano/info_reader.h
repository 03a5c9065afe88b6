/* Reads an info block (proto/info.h) that comes in parts, and keeps nothing of it: each value is copied to where its
 * receiver wants it. */
#ifndef SPANCL_NANO_INFO_READER_H
#define SPANCL_NANO_INFO_READER_H

#include "base/bytes.h"

enum { INFO_READER_DEPTH = 4 };

struct info_reader {
        /* A block begins (INFO_DEVICE, INFO_BUILD, INFO_KERNEL, INFO_KERNEL_ARG). */
        void (*block)(void *user, uint32_t key);
        /* A value of `size` bytes begins, in a block with the key `in`: return its place, and in *max how many bytes of it are
         * wanted. NULL: none. */
        void *(*value)(void *user, uint32_t in, uint32_t key, size_t size, size_t *max);
        void *user;
        struct {
                uint32_t key;
                size_t left;         /* bytes to come */
        } blocks[INFO_READER_DEPTH]; /* that have begun; the first one is the whole */
        unsigned depth;
        size_t padded,
                wanted; /* bytes of the value that have not come, with padding; bytes wanted */
        uint8_t *to;
};

/* Begin a block of `size` bytes; the members before `blocks` are set. SP_E_PROTO: no block has this size. */
SP_NODISCARD int info_reader_begin(struct info_reader *r, uint64_t size);

/* Take the next 8 bytes. SP_E_PROTO: they belong to no valid block. */
SP_NODISCARD int info_reader_take(struct info_reader *r, const uint8_t bytes[8]);

/* Was the whole block taken? */
bool info_reader_is_done(const struct info_reader *r);

#endif
