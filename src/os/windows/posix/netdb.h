/* POSIX's resolver, by Winsock's. Call descriptor_start() first. */
#ifndef SPANCL_OS_WINDOWS_POSIX_NETDB_H
#define SPANCL_OS_WINDOWS_POSIX_NETDB_H

#include <sys/socket.h>

int windows_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                        struct addrinfo **ret);
#undef getaddrinfo
#define getaddrinfo windows_getaddrinfo

/* The system's own texts are in the user's language, and in a buffer that threads share. */
const char *windows_gai_strerror(int r);
#undef gai_strerror
#define gai_strerror windows_gai_strerror

#endif
