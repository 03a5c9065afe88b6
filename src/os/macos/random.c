#include "os/random.h"

#include <stdlib.h>

bool random_fill(void *ret, size_t size)
{
        arc4random_buf(ret, size);
        return true;
}
