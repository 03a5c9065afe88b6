/* POSIX's pieces of memory, which Windows has in another form. */
#ifndef SPANCL_OS_WINDOWS_POSIX_SYS_UIO_H
#define SPANCL_OS_WINDOWS_POSIX_SYS_UIO_H

#include <stddef.h>
#include <sys/types.h>

struct iovec {
        void *iov_base;
        size_t iov_len;
};

#endif
