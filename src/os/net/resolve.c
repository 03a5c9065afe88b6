#include "os/net/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static bool write_address(const struct sockaddr *a, socklen_t size, char ret[RESOLVE_TEXT_MAX])
{
        return getnameinfo(a, size, ret, RESOLVE_TEXT_MAX, NULL, 0, NI_NUMERICHOST) == 0;
}

int resolve_host(const char *host, struct resolved *ret, const char **ret_why)
{
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        struct addrinfo *all;
        int r = getaddrinfo(host, NULL, &hints, &all);
        if (r) {
                *ret_why = gai_strerror(r);
                return SP_E_HOST;
        }
        ret->count = 0;
        for (const struct addrinfo *a = all; a && ret->count < RESOLVE_ADDRESSES; a = a->ai_next)
                ret->count += write_address(a->ai_addr, a->ai_addrlen, ret->list[ret->count]);
        freeaddrinfo(all);
        return 0;
}

/* A socket of datagrams sends nothing when it is connected. */
static int connect_from(const struct addrinfo *to, struct sockaddr_storage *ret, socklen_t *size)
{
        int error = 0, fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return errno;
        if (connect(fd, to->ai_addr, to->ai_addrlen) < 0 ||
            getsockname(fd, (struct sockaddr *)ret, size) < 0)
                error = errno;
        close(fd);
        return error;
}

int resolve_route(const char *address, char ret[RESOLVE_TEXT_MAX])
{
        const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
        struct sockaddr_storage own;
        socklen_t size = sizeof(own);
        struct addrinfo *to;
        if (getaddrinfo(address, "9", &hints, &to))
                return EINVAL;
        int error = connect_from(to, &own, &size);
        freeaddrinfo(to);
        if (!error && !write_address((struct sockaddr *)&own, size, ret))
                snprintf(ret, RESOLVE_TEXT_MAX, "?");
        return error;
}
