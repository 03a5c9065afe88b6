#include "base/loopback.h"

#include <stdio.h>
#include <string.h>

#include "os/net/ip.h"

static bool is_loopback(const struct ip *ip)
{
        static const uint8_t own[IP_V6] = { [15] = 1 };
        static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
        if (ip->size == IP_V4)
                return ip->bytes[0] == 127;
        return !memcmp(ip->bytes, own, IP_V6) ||
               (!memcmp(ip->bytes, mapped, sizeof(mapped)) && ip->bytes[12] == 127);
}

bool loopback_address(const struct sockaddr *a)
{
        struct ip ip;
        return ip_of_socket(a, &ip) && is_loopback(&ip);
}

/* The C library parses the number as it does when it connects ("127.1" is one, too). */
bool loopback_host(const char *host)
{
        struct ip ip;
        char bare[256];
        size_t n = strlen(host);
        bool brackets = n > 2 && host[0] == '[' && host[n - 1] == ']';
        if (!strcasecmp(host, "localhost"))
                return true;
        if (n >= sizeof(bare))
                return false;
        snprintf(bare, sizeof(bare), "%.*s", (int)(brackets ? n - 2 : n), host + brackets);
        return ip_parse_any(bare, &ip) && is_loopback(&ip);
}

/* A name that a name server resolves gets TLS even if the answer is loopback. Otherwise an attacker
 * who forges such answers could turn the server's authentication off. */
const char *loopback_scheme(const char *host)
{
        return loopback_host(host) ? "loopback:" : "tls:";
}
