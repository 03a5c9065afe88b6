/* Winsock has the addresses of IP among its other ones. */
#ifndef SPANCL_OS_WINDOWS_POSIX_NETINET_IN_H
#define SPANCL_OS_WINDOWS_POSIX_NETINET_IN_H

#include <sys/socket.h>

#endif
