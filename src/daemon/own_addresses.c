#include "daemon/own_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

size_t own_addresses(int family, own_address *ret, size_t max)
{
        struct ifaddrs *all;
        size_t count = 0;
        if (getifaddrs(&all) < 0)
                return 0;
        for (const struct ifaddrs *a = all; a && count < max; a = a->ifa_next) {
                const struct sockaddr_in6 *v6 = (const void *)a->ifa_addr;
                const struct sockaddr_in *v4 = (const void *)a->ifa_addr;
                if (!v6 || (v6->sin6_family != AF_INET && v6->sin6_family != AF_INET6) ||
                    (family != AF_UNSPEC && v6->sin6_family != family) ||
                    a->ifa_flags & IFF_LOOPBACK ||
                    (v6->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)))
                        continue;
                const void *bytes = v6->sin6_family == AF_INET ? (const void *)&v4->sin_addr
                                                               : (const void *)&v6->sin6_addr;
                count += inet_ntop(v6->sin6_family, bytes, ret[count], sizeof(*ret)) != NULL;
        }
        freeifaddrs(all);
        return count;
}
