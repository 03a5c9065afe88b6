#include "transport/own_address.h"

#include "base/log.h"
#include "base/loopback.h"
#include "os/net/interface.h"
#include "os/net/multipath.h"
#include "os/net/socket.h"

int own_address_watch(void)
{
        int fd = interface_watch();
        if (fd < 0)
                log_debug("client", "changes of this host's addresses are not noticed");
        return fd;
}

bool own_address_changed(int fd)
{
        return interface_changed(fd);
}

static bool find_own(const struct conn *c, struct socket_address *ret, struct ip *ret_ip)
{
        return socket_own_address(c->room_fd, ret) && socket_address_ip(ret, ret_ip);
}

bool own_address_may_go(const struct conn *c)
{
        struct socket_address own;
        struct ip ip;
        return find_own(c, &own, &ip) && !loopback_address(socket_address_raw(&own));
}

bool own_address_is_here(const struct conn *c)
{
        struct socket_address own;
        struct ip ip;
        if (transport_multipath && multipath_further_paths(c->room_fd) > 0)
                return true;
        return !find_own(c, &own, &ip) || interface_is_up_with(&ip);
}
