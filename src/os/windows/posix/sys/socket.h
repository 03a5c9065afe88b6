/* Addresses of sockets, as Winsock has them, without the names of its headers that this project uses, too. */
#ifndef SPANCL_OS_WINDOWS_POSIX_SYS_SOCKET_H
#define SPANCL_OS_WINDOWS_POSIX_SYS_SOCKET_H

/* posix/poll.h has a structure of this name, with a descriptor. */
#define pollfd winsock_pollfd
#include <winsock2.h>
#include <ws2tcpip.h>
#undef pollfd
#undef interface
#undef near
#undef far
#undef small
#undef min
#undef max

#include <sys/types.h>

#endif
