/* This port does not read the addresses of the host yet: it knows none, and notices no change. */
#include "os/net/interface.h"

unsigned interface_with(const struct ip *ip)
{
        (void)ip;
        return 0;
}

bool interface_name(unsigned number, char ret[INTERFACE_NAME_MAX])
{
        (void)number, (void)ret;
        return false;
}

void interface_each_address(size_t size, void (*each)(void *user, const struct ip *ip), void *user)
{
        (void)size, (void)each, (void)user;
}

bool interface_is_up_with(const struct ip *ip)
{
        (void)ip;
        return true;
}

int interface_watch(void)
{
        return -1;
}

bool interface_changed(int fd)
{
        (void)fd;
        return false;
}
