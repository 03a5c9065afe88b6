/* LZ4 blocks (https://github.com/lz4/lz4, doc/lz4_Block_format.md), by liblz4. That is loaded at
 * its first use, because our libraries need libc alone. Any thread. */
#ifndef SPANCL_BASE_LZ4_H
#define SPANCL_BASE_LZ4_H

#include <stdbool.h>
#include <stddef.h>

/* Return true if liblz4 is here, and was there when SpanCL was built. The following functions need it. */
bool lz4_is_here(void);

/* Pack into a block. Returns its size; 0: it does not fit into `room` bytes. */
size_t lz4_pack(const void *plain, size_t size, void *ret, size_t room);

/* Unpack a block, which may be hostile. False: it does not hold exactly `size` bytes. Writes no
 * others. */
bool lz4_unpack(const void *packed, size_t packed_size, void *ret, size_t size);

#endif
