#include "os/net/interfaces.h"

#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

int interfaces_watch(void)
{
        struct sockaddr_nl groups = {
                .nl_family = AF_NETLINK,
                .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
        };
        int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
        if (fd < 0 || bind(fd, (struct sockaddr *)&groups, sizeof(groups)) == 0)
                return fd;
        close(fd);
        return -1;
}

/* The kind of change does not matter, because all addresses are checked. Too many changes at a time
 * (ENOBUFS) is a change, too. */
bool interfaces_changed(int fd)
{
        char message[4096];
        bool any = false;
        while (recv(fd, message, sizeof(message), 0) >= 0)
                any = true;
        return any;
}

/* Get the bytes of an interface's address; 0: it is none of IP. */
static size_t bytes_of(const struct sockaddr *a, uint8_t ret[16])
{
        struct socket_address copy = { .size = 0 };
        if (!a || (a->sa_family != AF_INET && a->sa_family != AF_INET6))
                return 0;
        copy.size =
                a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        memcpy(&copy.at, a, copy.size);
        return socket_address_ip(&copy, ret);
}

bool interfaces_have(const struct socket_address *a)
{
        const unsigned up = IFF_UP | IFF_RUNNING;
        uint8_t bytes[16], has[16];
        struct ifaddrs *all;
        size_t size = socket_address_ip(a, bytes);
        bool here = false;
        if (!size || getifaddrs(&all) < 0)
                return true;
        for (const struct ifaddrs *i = all; i && !here; i = i->ifa_next)
                here = bytes_of(i->ifa_addr, has) == size && !memcmp(has, bytes, size) &&
                       (i->ifa_flags & up) == up;
        freeifaddrs(all);
        return here;
}
