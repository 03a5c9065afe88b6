#include "base/loopback.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool loopback_address(const struct sockaddr *a)
{
        if (a->sa_family == AF_INET) {
                struct sockaddr_in in;
                memcpy(&in, a, sizeof(in));
                return ntohl(in.sin_addr.s_addr) >> 24 == 127;
        }
        if (a->sa_family != AF_INET6)
                return false;
        struct sockaddr_in6 in6;
        memcpy(&in6, a, sizeof(in6));
        return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr) && in6.sin6_addr.s6_addr[12] == 127);
}

/* The C library parses the number as it does when it connects ("127.1" is one, too). */
bool loopback_host(const char *host)
{
        struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *list;
        char bare[256];
        size_t n = strlen(host);
        bool brackets = n > 2 && host[0] == '[' && host[n - 1] == ']';
        if (!strcasecmp(host, "localhost"))
                return true;
        if (n >= sizeof(bare))
                return false;
        snprintf(bare, sizeof(bare), "%.*s", (int)(brackets ? n - 2 : n), host + brackets);
        if (getaddrinfo(bare, NULL, &hints, &list))
                return false;
        bool yes = loopback_address(list->ai_addr);
        freeaddrinfo(list);
        return yes;
}

/* A name that a name server resolves gets TLS even if the answer is loopback. Otherwise an attacker
 * who forges such answers could turn the server's authentication off. */
const char *loopback_scheme(const char *host)
{
        return loopback_host(host) ? "loopback:" : "tls:";
}
