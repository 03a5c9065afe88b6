#include "os/net/multipath.h"

#include <netinet/in.h>
#include <stddef.h>

/* Of the kernel's headers, which are too old on some systems: linux/mptcp.h. */
enum {
        PROTOCOL = 262,    /* IPPROTO_MPTCP */
        LEVEL = 284,       /* SOL_MPTCP */
        INFO = 1,          /* MPTCP_INFO */
        FALLBACK = 1 << 0, /* MPTCP_INFO_FLAG_FALLBACK: one of TCP after all */
};

/* struct mptcp_info. The kernel fills as much of it as it knows. */
struct info {
        uint8_t further_paths; /* mptcpi_subflows */
        uint8_t unused[7];
        uint32_t flags, token;
        uint64_t written, acknowledged, received; /* numbers of bytes in the stream */
        uint8_t unused2[8];
        uint64_t sent_again_bytes, sent_bytes, received_bytes, acknowledged_bytes;
        uint8_t paths, unused3[3];
        uint32_t last_sent_ms, last_received_ms, last_acknowledged_ms; /* ages; since Linux 6.10 */
};
_Static_assert(offsetof(struct info, written) == 16, "as in linux/mptcp.h");
_Static_assert(offsetof(struct info, paths) == 80, "as in linux/mptcp.h");
_Static_assert(offsetof(struct info, last_acknowledged_ms) == 92, "as in linux/mptcp.h");

int multipath_new(const struct socket_address *like)
{
        int fd = socket_new_of(like, PROTOCOL);
        return fd < 0 ? socket_new(like) : fd;
}

/* False: it is one of TCP. */
static bool ask(int fd, struct info *ret, socklen_t *ret_size)
{
        *ret_size = sizeof(*ret);
        return getsockopt(fd, LEVEL, INFO, ret, ret_size) == 0 &&
               *ret_size >= offsetof(struct info, received) && !(ret->flags & FALLBACK);
}

int multipath_further_paths(int fd)
{
        struct info info;
        socklen_t size;
        return ask(fd, &info, &size) ? info.further_paths : -1;
}

void multipath_state(int fd, struct socket_tcp_state *state)
{
        struct info info;
        socklen_t size;
        if (!ask(fd, &info, &size))
                return;
        bool tells = size >= sizeof(info);
        state->rate = 0;
        state->unsent = false;
        /* Not what was written: bytes that the other side's window does not permit are owed by nobody. */
        state->owes = tells && info.sent_bytes != info.acknowledged_bytes;
        if (info.further_paths) /* one path may be closed before the others */
                state->closed = false;
        state->acknowledged_ms = tells ? info.last_acknowledged_ms : 0;
}
