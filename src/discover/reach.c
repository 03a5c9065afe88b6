#include "discover/reach.h"

#include <string.h>

enum reach reach_of(const struct ip *ip)
{
        static const uint8_t zeros[16];
        static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
        const uint8_t *b = ip->bytes;
        if (ip->size == IP_V4)
                return !b[0] || b[0] >= 224 ? REACH_NOWHERE
                       : b[0] == 127        ? REACH_LOOPBACK
                                            : REACH_HOST;
        if (!memcmp(b, zeros, 15))
                return b[15] == 1 ? REACH_LOOPBACK : REACH_NOWHERE;
        if (b[0] == 0xff || !memcmp(b, mapped, sizeof(mapped)))
                return REACH_NOWHERE;
        return b[0] == 0xfe && (b[1] & 0xc0) == 0x80 ? REACH_LINK : REACH_HOST;
}
