#include "transport/own_address.h"

#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/loopback.h"

int own_address_watch(void)
{
        struct sockaddr_nl groups = {
                .nl_family = AF_NETLINK,
                .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
        };
        int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
        if (fd >= 0 && bind(fd, (struct sockaddr *)&groups, sizeof(groups)) == 0)
                return fd;
        log_debug("client", "changes of addresses are not noticed");
        if (fd >= 0)
                close(fd);
        return -1;
}

/* The kind of change does not matter, because all addresses are checked. Too many changes at a time
 * (ENOBUFS) is a change, too. */
bool own_address_changed(int fd)
{
        char message[4096];
        bool any = false;
        while (recv(fd, message, sizeof(message), 0) >= 0)
                any = true;
        return any;
}

/* The address in its 16 or 4 bytes; NULL: not one of IP. */
static const void *bytes_of_address(const struct sockaddr *a, size_t *ret_size)
{
        const struct sockaddr_in *v4 = (const void *)a;
        const struct sockaddr_in6 *v6 = (const void *)a;
        bool mapped = a->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
        *ret_size = a->sa_family == AF_INET6 && !mapped ? 16 : 4;
        if (mapped)
                return v6->sin6_addr.s6_addr + 12;
        return a->sa_family == AF_INET    ? (const void *)&v4->sin_addr
               : a->sa_family == AF_INET6 ? (const void *)&v6->sin6_addr
                                          : NULL;
}

static bool find_own(const struct conn *c, struct sockaddr_storage *ret)
{
        socklen_t size = sizeof(*ret);
        return getsockname(c->room_fd, (struct sockaddr *)ret, &size) == 0 &&
               (ret->ss_family == AF_INET || ret->ss_family == AF_INET6);
}

bool own_address_may_go(const struct conn *c)
{
        struct sockaddr_storage own;
        return find_own(c, &own) && !loopback_address((struct sockaddr *)&own);
}

bool own_address_is_here(const struct conn *c)
{
        struct sockaddr_storage own;
        struct ifaddrs *all;
        size_t size, other;
        if (!find_own(c, &own) || getifaddrs(&all) < 0)
                return true;
        const void *bytes = bytes_of_address((struct sockaddr *)&own, &size);
        bool here = false;
        for (const struct ifaddrs *i = all; i && !here; i = i->ifa_next) {
                const unsigned up = IFF_UP | IFF_RUNNING;
                const void *has = i->ifa_addr ? bytes_of_address(i->ifa_addr, &other) : NULL;
                here = has && other == size && !memcmp(has, bytes, size) &&
                       (i->ifa_flags & up) == up;
        }
        freeifaddrs(all);
        return here;
}
