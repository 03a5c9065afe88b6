/* struct iovec: a piece of memory, as the system's calls gather and scatter them. */
#ifndef SPANCL_OS_IOVEC_H
#define SPANCL_OS_IOVEC_H

#include <sys/uio.h>

#endif
