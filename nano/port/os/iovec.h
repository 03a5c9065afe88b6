/* struct iovec where there is no system. */
#ifndef SPANCL_OS_IOVEC_H
#define SPANCL_OS_IOVEC_H

#include <stddef.h>

struct iovec {
        void *iov_base;
        size_t iov_len;
};

#endif
