/* POSIX's resolver, by Winsock's. Call descriptor_start() first. */
#ifndef SPANCL_OS_WINDOWS_POSIX_NETDB_H
#define SPANCL_OS_WINDOWS_POSIX_NETDB_H

#include <sys/socket.h>

int windows_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                        struct addrinfo **ret);
#undef getaddrinfo
#define getaddrinfo windows_getaddrinfo

#endif
