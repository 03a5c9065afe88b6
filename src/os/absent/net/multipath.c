/* Without Multipath TCP all connections are of TCP. */
#include "os/net/multipath.h"

int multipath_new(const struct socket_address *like)
{
        return socket_new(like);
}

int multipath_further_paths(int fd)
{
        (void)fd;
        return -1;
}

void multipath_state(int fd, struct socket_tcp_state *state)
{
        (void)fd, (void)state;
}
