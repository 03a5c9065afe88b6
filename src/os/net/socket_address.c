#include "os/net/socket_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum socket_family socket_address_family(const struct socket_address *a)
{
        switch (a->at.ss_family) {
        case AF_INET:
                return SOCKET_IP4;
        case AF_INET6:
                return SOCKET_IP6;
        default:
                return socket_address_other_family(a);
        }
}

bool socket_address_ip(const struct socket_address *a, struct ip *ret)
{
        static const uint8_t mapped[IP_V6 - IP_V4] = { [10] = 0xff, [11] = 0xff };
        if (!ip_of_socket(socket_address_raw(a), ret))
                return false;
        if (ret->size == IP_V6 && !memcmp(ret->bytes, mapped, sizeof(mapped))) {
                memmove(ret->bytes, ret->bytes + sizeof(mapped), IP_V4);
                ret->size = IP_V4;
        }
        return true;
}

bool socket_address_text(const struct socket_address *a, char ret_host[SOCKET_HOST_MAX],
                         unsigned *ret_port)
{
        char port[8];
        if ((a->at.ss_family != AF_INET && a->at.ss_family != AF_INET6) ||
            getnameinfo(socket_address_raw(a), a->size, ret_host, SOCKET_HOST_MAX, port,
                        sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
                return false;
        *ret_port = (unsigned)atoi(port);
        return true;
}

int socket_address_resolve(const char *host, unsigned port, bool passive,
                           struct socket_address **ret, size_t *ret_count, const char **ret_why)
{
        char service[16];
        struct addrinfo hints = { .ai_family = AF_UNSPEC,
                                  .ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0) };
        struct addrinfo *list;
        size_t count = 0;
        snprintf(service, sizeof(service), "%u", port);
        int r = getaddrinfo(host, service, &hints, &list);
        if (ret_why)
                *ret_why = gai_strerror(r ? r : EAI_MEMORY);
        if (r)
                return r == EAI_MEMORY ? SP_E_NOMEM : SP_E_HOST;
        for (const struct addrinfo *a = list; a; a = a->ai_next)
                count++;
        struct socket_address *all = calloc(count, sizeof(*all));
        count = 0;
        for (const struct addrinfo *a = list; all && a; a = a->ai_next) {
                memcpy(&all[count].at, a->ai_addr, a->ai_addrlen);
                all[count++].size = (socklen_t)a->ai_addrlen;
        }
        freeaddrinfo(list);
        if (!all)
                return SP_E_NOMEM;
        *ret = all;
        *ret_count = count;
        return 0;
}

void socket_address_any_ip4(unsigned port, struct socket_address *ret)
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
        *ret = (struct socket_address){ .size = sizeof(a) };
        memcpy(&ret->at, &a, sizeof(a));
}
