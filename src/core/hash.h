/* FNV-1a, 64 bits: keys for maps and checksums against accidents, not against attackers. */
#ifndef SPANCL_CORE_HASH_H
#define SPANCL_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Never 0. */
static inline uint64_t hash_bytes(const void *data, size_t size)
{
        const unsigned char *p = data;
        uint64_t h = 0xcbf29ce484222325u;
        for (size_t i = 0; i < size; i++)
                h = (h ^ p[i]) * 0x100000001b3u;
        return h ? h : 1;
}

#endif
