#include "transport/other_end.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/blake2b.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { STATE_CLOSE_WAIT = 8 }; /* TCP_CLOSE_WAIT, which libc's header has */

static uint64_t digest(const struct sockaddr_storage *a, const uint64_t key[2])
{
        uint8_t in[16 + 16 + 2] = { 0 }, out[BLAKE2B_SIZE];
        bytes_put_u64(in, key[0]);
        bytes_put_u64(in + 8, key[1]);
        if (a->ss_family == AF_INET) {
                const struct sockaddr_in *v4 = (const void *)a;
                in[26] = in[27] = 0xff; /* as IPv6 maps it */
                memcpy(in + 28, &v4->sin_addr, 4);
                memcpy(in + 32, &v4->sin_port, 2);
        } else if (a->ss_family == AF_INET6) {
                const struct sockaddr_in6 *v6 = (const void *)a;
                memcpy(in + 16, &v6->sin6_addr, 16);
                memcpy(in + 32, &v6->sin6_port, 2);
        } else {
                return 0;
        }
        blake2b_of(bytes_of(in, sizeof(in)), out);
        uint64_t d = bytes_get_u64(out);
        return d ? d : 1;
}

uint64_t conn_own_digest(const struct conn *c, const uint64_t key[2])
{
        struct sockaddr_storage a;
        socklen_t size = sizeof(a);
        return getsockname(c->room_fd, (struct sockaddr *)&a, &size) == 0 ? digest(&a, key) : 0;
}

uint64_t conn_other_digest(const struct conn *c, const uint64_t key[2])
{
        struct sockaddr_storage a;
        socklen_t size = sizeof(a);
        return getpeername(c->room_fd, (struct sockaddr *)&a, &size) == 0 ? digest(&a, key) : 0;
}

bool conn_was_closed(const struct conn *c)
{
        struct tcp_info info;
        socklen_t size = sizeof(info);
        return getsockopt(c->room_fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
               info.tcpi_state == STATE_CLOSE_WAIT;
}

void conn_reset(struct conn *c)
{
        const struct linger at_once = { .l_onoff = 1 };
        int domain;
        socklen_t size = sizeof(domain);
        if (getsockopt(c->room_fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
            (domain == AF_INET || domain == AF_INET6))
                (void)setsockopt(c->room_fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

int conn_process(const struct conn *c)
{
        int fd;
        socklen_t size = sizeof(fd);
        if (c->ops != &transport_shm || getsockopt(c->fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) < 0)
                return -1;
        return fd;
}
