#include "os/net/interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

_Static_assert(INTERFACE_NAME_MAX == IF_NAMESIZE, "the kernel's");

unsigned interface_with(const struct ip *ip)
{
        struct ifaddrs *all;
        unsigned found = 0;
        if (getifaddrs(&all) < 0)
                return 0;
        for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
                struct ip own;
                if (a->ifa_addr && ip_of_socket(a->ifa_addr, &own) && own.size == ip->size &&
                    !memcmp(own.bytes, ip->bytes, ip->size))
                        found = if_nametoindex(a->ifa_name);
        }
        freeifaddrs(all);
        return found;
}

bool interface_name(unsigned number, char ret[INTERFACE_NAME_MAX])
{
        return if_indextoname(number, ret) != NULL;
}
