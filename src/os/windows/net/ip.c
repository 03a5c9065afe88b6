#include "os/net/ip.h"

#include <string.h>
#include <sys/socket.h>

#include "os/windows/descriptor.h"

static struct ip ip_of(const void *bytes, size_t size)
{
        struct ip ip = { .size = size };
        memcpy(ip.bytes, bytes, size);
        return ip;
}

bool ip_parse(const char *text, struct ip *ret)
{
        uint8_t bytes[IP_V6];
        size_t size = inet_pton(AF_INET, text, bytes) == 1    ? IP_V4
                      : inet_pton(AF_INET6, text, bytes) == 1 ? IP_V6
                                                              : 0;
        if (size)
                *ret = ip_of(bytes, size);
        return size != 0;
}

bool ip_parse_any(const char *text, struct ip *ret)
{
        const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
        struct addrinfo *list;
        if (!descriptor_start() || getaddrinfo(text, NULL, &hints, &list))
                return false;
        bool found = ip_of_socket(list->ai_addr, ret);
        freeaddrinfo(list);
        return found;
}

bool ip_is(const struct ip *a, const struct ip *b)
{
        return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

bool ip_of_socket(const struct sockaddr *a, struct ip *ret)
{
        if (a->sa_family == AF_INET) {
                struct sockaddr_in in;
                memcpy(&in, a, sizeof(in));
                *ret = ip_of(&in.sin_addr, IP_V4);
                return true;
        }
        if (a->sa_family == AF_INET6) {
                struct sockaddr_in6 in6;
                memcpy(&in6, a, sizeof(in6));
                *ret = ip_of(&in6.sin6_addr, IP_V6);
                return true;
        }
        return false;
}

void ip_text(const struct ip *ip, char ret[IP_TEXT_MAX])
{
        if (!inet_ntop(ip->size == IP_V4 ? AF_INET : AF_INET6, ip->bytes, ret, IP_TEXT_MAX))
                *ret = 0;
}
