/* This port has no Unix sockets. */
#include "os/net/socket_address.h"

enum socket_family socket_address_other_family(const struct socket_address *a)
{
        (void)a;
        return SOCKET_OTHER;
}

bool socket_address_of_path(const char *path, struct socket_address *ret)
{
        (void)path, (void)ret;
        return false;
}

bool socket_address_path(const struct socket_address *a, char ret[SOCKET_PATH_MAX])
{
        (void)a, (void)ret;
        return false;
}
