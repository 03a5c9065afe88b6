/* LZ4 blocks (https://github.com/lz4/lz4, doc/lz4_Block_format.md), by liblz4, which is loaded when it is first
 * asked for: our libraries need libc alone. Any thread. */
#ifndef SPANCL_BASE_LZ4_H
#define SPANCL_BASE_LZ4_H

#include <stdbool.h>
#include <stddef.h>

/* Is it there, and was it when SpanCL was built? The following need that. */
bool lz4_is_here(void);

/* The size of the block; 0: it does not fit into `room` bytes. */
size_t lz4_pack(const void *plain, size_t size, void *ret, size_t room);

/* Does the block, which anybody may have made, hold exactly `size` bytes? Writes to no others. */
bool lz4_unpack(const void *packed, size_t packed_size, void *ret, size_t size);

#endif
