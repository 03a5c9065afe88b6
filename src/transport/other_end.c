#include "transport/other_end.h"

#include "base/blake2b.h"
#include "os/net/multipath.h"
#include "os/net/socket.h"

/* Add an end's address and port to a digest. False: it has no address of IP. */
static bool add_end(struct blake2b *b, const struct socket_address *a)
{
        char host[SOCKET_HOST_MAX];
        uint8_t number[8];
        struct ip ip;
        unsigned port;
        if (!socket_address_ip(a, &ip) || !socket_address_text(a, host, &port))
                return false;
        bytes_put_u64(number, port);
        blake2b_update(b, number, sizeof(number));
        blake2b_field(b, bytes_of(ip.bytes, ip.size));
        return true;
}

uint64_t conn_ends_digest(const struct conn *c, enum conn_dialler dialler, const uint64_t key[2])
{
        uint8_t out[BLAKE2B_SIZE], number[8];
        struct socket_address own, other;
        struct blake2b b;
        if (!socket_own_address(c->room_fd, &own) || !socket_other_address(c->room_fd, &other))
                return 0;
        blake2b_init(&b);
        for (unsigned i = 0; i < 2; i++) {
                bytes_put_u64(number, key[i]);
                blake2b_update(&b, number, sizeof(number));
        }
        bool this_side = dialler == CONN_DIALLED_HERE;
        if (!add_end(&b, this_side ? &own : &other) || !add_end(&b, this_side ? &other : &own))
                return 0;
        blake2b_final(&b, out);
        uint64_t d = bytes_get_u64(out);
        return d ? d : 1;
}

bool conn_was_closed(const struct conn *c)
{
        struct socket_tcp_state state;
        if (!socket_tcp_state(c->room_fd, &state))
                return false;
        if (transport_multipath)
                multipath_state(c->room_fd, &state);
        return state.closed;
}

void conn_reset(struct conn *c)
{
        socket_reset_later(c->room_fd);
}

int conn_process(const struct conn *c)
{
        return c->ops == &transport_shm ? socket_other_process(c->fd) : -1;
}
