/* Addresses of Unix sockets. */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "os/net/socket_address.h"

enum socket_family socket_address_other_family(const struct socket_address *a)
{
        switch (a->at.ss_family) {
        case AF_UNIX:
                return SOCKET_UNIX;
        case AF_VSOCK:
                return SOCKET_VM;
        default:
                return SOCKET_OTHER;
        }
}

bool socket_address_of_path(const char *path, struct socket_address *ret)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        size_t n = strlen(path);
        if (!n || n >= sizeof(a.sun_path))
                return false;
        memcpy(a.sun_path, path, n);
        *ret = (struct socket_address){ .size = sizeof(a) };
        memcpy(&ret->at, &a, sizeof(a));
        return true;
}

bool socket_address_path(const struct socket_address *a, char ret[SOCKET_PATH_MAX])
{
        struct sockaddr_un local = { 0 };
        _Static_assert(sizeof(local.sun_path) < SOCKET_PATH_MAX, "");
        memcpy(&local, &a->at, a->size < sizeof(local) ? a->size : sizeof(local));
        size_t n = strnlen(local.sun_path, sizeof(local.sun_path));
        if (local.sun_family != AF_UNIX || !n)
                return false;
        memcpy(ret, local.sun_path, n);
        ret[n] = 0;
        return true;
}
