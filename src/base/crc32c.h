/* CRC-32C (Castagnoli, RFC 3720 appendix B.4): finds bytes that were altered on their way, but not by somebody who computes it
 * anew. By the CPU's instruction where it has one (SSE 4.2, ARMv8). Any thread. */
#ifndef SPANCL_BASE_CRC32C_H
#define SPANCL_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of `size` bytes behind those that `crc` is of; 0: of none. */
uint32_t crc32c(uint32_t crc, const void *data, size_t size);

/* The same by tables, for tests. */
uint32_t crc32c_by_tables(uint32_t crc, const void *data, size_t size);

#endif
