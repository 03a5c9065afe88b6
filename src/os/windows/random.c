#include "os/random.h"

#include <errno.h>
#include <stdint.h>
#include <windows.h>

#include <bcrypt.h>

bool random_fill(void *ret, size_t size)
{
        for (unsigned char *p = ret; size;) {
                ULONG n = size > 1 << 20 ? 1 << 20 : (ULONG)size;
                if (BCryptGenRandom(NULL, p, n, BCRYPT_USE_SYSTEM_PREFERRED_RNG) < 0) {
                        errno = EIO;
                        return false;
                }
                p += n;
                size -= n;
        }
        return true;
}
