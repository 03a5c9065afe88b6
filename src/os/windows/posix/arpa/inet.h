/* Winsock has the text of addresses among its other functions. */
#ifndef SPANCL_OS_WINDOWS_POSIX_ARPA_INET_H
#define SPANCL_OS_WINDOWS_POSIX_ARPA_INET_H

#include <sys/socket.h>

#endif
