/* CRC-32C (Castagnoli, RFC 3720 appendix B.4). It detects bytes that were altered on their way, but
 * not by an attacker, who can compute it again. It uses the CPU's instruction where there is one
 * (SSE 4.2, ARMv8). Any thread. */
#ifndef SPANCL_BASE_CRC32C_H
#define SPANCL_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Extend `crc`, the CRC of the bytes before (0: of none), by `size` bytes. */
uint32_t crc32c(uint32_t crc, const void *data, size_t size);

/* The same with tables, for tests. */
uint32_t crc32c_by_tables(uint32_t crc, const void *data, size_t size);

#endif
