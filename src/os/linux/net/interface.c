/* Changes of interfaces and addresses: rtnetlink(7). */
#include "os/net/interface.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

int interface_watch(void)
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
bool interface_changed(int fd)
{
        char message[4096];
        bool any = false;
        while (recv(fd, message, sizeof(message), 0) >= 0)
                any = true;
        return any;
}
