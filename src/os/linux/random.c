#include "os/random.h"

#include <errno.h>
#include <sys/random.h>

bool random_fill(void *ret, size_t size)
{
        for (char *p = ret; size;) {
                ssize_t n = getrandom(p, size, 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return false;
                p += n;
                size -= (size_t)n;
        }
        return true;
}
