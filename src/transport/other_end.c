#include "transport/other_end.h"

#include "base/blake2b.h"
#include "os/net/socket.h"

static uint64_t digest(const struct socket_address *a, const uint64_t key[2])
{
        uint8_t out[BLAKE2B_SIZE], number[8];
        char host[SOCKET_HOST_MAX];
        struct blake2b b;
        struct ip ip;
        unsigned port;
        if (!socket_address_ip(a, &ip) || !socket_address_text(a, host, &port))
                return 0;
        blake2b_init(&b);
        for (unsigned i = 0; i < 3; i++) {
                bytes_put_u64(number, i < 2 ? key[i] : port);
                blake2b_update(&b, number, sizeof(number));
        }
        blake2b_field(&b, bytes_of(ip.bytes, ip.size));
        blake2b_final(&b, out);
        uint64_t d = bytes_get_u64(out);
        return d ? d : 1;
}

uint64_t conn_own_digest(const struct conn *c, const uint64_t key[2])
{
        struct socket_address a;
        return socket_own_address(c->room_fd, &a) ? digest(&a, key) : 0;
}

uint64_t conn_other_digest(const struct conn *c, const uint64_t key[2])
{
        struct socket_address a;
        return socket_other_address(c->room_fd, &a) ? digest(&a, key) : 0;
}

bool conn_was_closed(const struct conn *c)
{
        struct socket_tcp_state state;
        return socket_tcp_state(c->room_fd, &state) && state.closed;
}

void conn_reset(struct conn *c)
{
        socket_reset_later(c->room_fd);
}

int conn_process(const struct conn *c)
{
        return c->ops == &transport_shm ? socket_other_process(c->fd) : -1;
}
