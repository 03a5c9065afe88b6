#include "os/net/interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

_Static_assert(INTERFACE_NAME_MAX == IF_NAMESIZE, "the kernel's");

unsigned interface_with(const struct ip *ip)
{
        struct ifaddrs *all;
        unsigned found = 0;
        if (getifaddrs(&all) < 0)
                return 0;
        for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
                struct ip own;
                if (a->ifa_addr && ip_of_socket(a->ifa_addr, &own) && ip_is(&own, ip))
                        found = if_nametoindex(a->ifa_name);
        }
        freeifaddrs(all);
        return found;
}

bool interface_name(unsigned number, char ret[INTERFACE_NAME_MAX])
{
        return if_indextoname(number, ret) != NULL;
}

static bool is_of_link(const struct ip *ip)
{
        return ip->size == IP_V6 && ip->bytes[0] == 0xfe && (ip->bytes[1] & 0xc0) == 0x80;
}

void interface_each_address(size_t size, void (*each)(void *user, const struct ip *ip), void *user)
{
        struct ifaddrs *all;
        if (getifaddrs(&all) < 0)
                return;
        for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
                struct ip ip;
                if (a->ifa_addr && !(a->ifa_flags & IFF_LOOPBACK) &&
                    ip_of_socket(a->ifa_addr, &ip) && !is_of_link(&ip) &&
                    (!size || ip.size == size))
                        each(user, &ip);
        }
        freeifaddrs(all);
}

bool interface_is_up_with(const struct ip *ip)
{
        const unsigned up = IFF_UP | IFF_RUNNING;
        struct ifaddrs *all;
        bool found = false;
        if (getifaddrs(&all) < 0)
                return true;
        for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
                struct ip own;
                found = a->ifa_addr && ip_of_socket(a->ifa_addr, &own) && ip_is(&own, ip) &&
                        (a->ifa_flags & up) == up;
        }
        freeifaddrs(all);
        return found;
}
