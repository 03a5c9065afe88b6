/* CRC-32C with a table of 64 bytes. Hellos alone need it. */
#include "base/crc32c.h"

#include <stdint.h>

uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
        static const uint32_t steps[16] = {
                0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
        };
        const uint8_t *p = data;
        crc = ~crc;
        for (; size; size--, p++) {
                crc ^= *p;
                crc = steps[crc & 15] ^ crc >> 4;
                crc = steps[crc & 15] ^ crc >> 4;
        }
        return ~crc;
}
