/* Sockets by their descriptors: connected stream sockets, listeners, and pairs of sockets within this host. No program
 * that this process starts inherits one. Unless said otherwise a call does not wait. A failed call leaves its reason in
 * errno. file_close() closes a socket. os/passing.h sends descriptors over one. */
#ifndef SPANCL_OS_NET_SOCKET_H
#define SPANCL_OS_NET_SOCKET_H

#include <errno.h>

#include "os/net/socket_io.h"

/* Make a stream socket for connections from or to addresses of this family. -1. */
SP_NODISCARD int socket_new(const struct socket_address *like);

/* The same of another protocol than the family's own (os/net/multipath.h). */
SP_NODISCARD int socket_new_of(const struct socket_address *like, int protocol);

/* Close those of the last 1024 sockets of these calls that are still open. For the child of a fork, which has copies of
 * sockets that threads of its parent are connecting. A socket is missed if the fork came before the call had noted
 * it. */
void socket_close_new(void);

/* The same for a socket of datagrams. */
SP_NODISCARD int socket_new_datagrams(const struct socket_address *like);

/* Begin to connect. False with EINPROGRESS: it goes on, and poll() reports POLLOUT when it is over; socket_error then
 * tells how. */
SP_NODISCARD bool socket_connect(int fd, const struct socket_address *to);

/* The same for a Unix socket, but wait while its listener is busy, at most so long. EAGAIN: the time is over. */
SP_NODISCARD bool socket_connect_wait(int fd, const struct socket_address *to, unsigned timeout_ms);

/* Get and clear the error of a socket, as an errno; 0: none. */
int socket_error(int fd);

/* Bind a listener's socket. An address of IP may be one that connections used a moment ago. `both`: an address of IPv6
 * takes IPv4, too. */
SP_NODISCARD bool socket_bind(int fd, const struct socket_address *at, bool both);

/* Does a listener of IPv6 take IPv4, too? */
bool socket_takes_both(int fd);

SP_NODISCARD bool socket_listen(int fd);

/* Accept a connection. Returns its socket; -1: EAGAIN: there is none. */
SP_NODISCARD int socket_accept(int fd);

/* Get this side's address, or the other side's. */
SP_NODISCARD bool socket_own_address(int fd, struct socket_address *ret);
SP_NODISCARD bool socket_other_address(int fd, struct socket_address *ret);

/* Return true if both sides of a connection of IP have one address. */
bool socket_is_within_host(int fd);

/* Return true if it is a stream socket: not one of packets, and no other descriptor. */
bool socket_is_stream(int fd);

/* Return true if it is a stream socket that listens. */
bool socket_is_listener(int fd);

/* Have calls return at once, and let no other program inherit the socket. For one that came from elsewhere. */
SP_NODISCARD bool socket_adopt(int fd);

/* Get the number of the user whose process is at the other end of a Unix socket. False: it is not known. */
bool socket_other_user(int fd, unsigned *ret);

/* Open a descriptor that is readable once the process has ended that connected a Unix socket. -1: the system can't
 * tell (before Linux 6.5). The caller closes it. */
int socket_other_process(int fd);

/* Reset a connection of IP when it is closed: unsent bytes are dropped. Harmless for other sockets. */
void socket_reset_later(int fd);

/* End the connection for all processes that have its socket. The descriptor stays open. */
void socket_shut(int fd);

/* Send nothing more: the other side reads the end after what was sent. */
void socket_end_sending(int fd);

/* Make a connected pair of stream sockets whose calls wait, or of sockets that carry packets (SOCK_SEQPACKET). */
SP_NODISCARD bool socket_pair_streams(int ret[2]);
SP_NODISCARD bool socket_pair_packets(int ret[2]);

/* Return true if no program of this host receives UDP's packets at the port, of IPv4 or of IPv6. */
bool socket_port_is_free(unsigned port);

/* Let sends that wait do so for this time at most. */
void socket_limit_sending(int fd, unsigned timeout_ms);

/* Let connections to dead hosts fail: TCP probes a host that has been idle for this time (RFC 1122 4.2.3.6). 0: the
 * system's times. It also sends small pieces at once. The system's own limit for bytes that were sent
 * (TCP_USER_TIMEOUT, RFC 5482) is not set: it would also end connections whose receiver is alive and reads nothing. */
void socket_tune_tcp(int fd, unsigned timeout_ms);

/* The state of a TCP connection, as the system knows it. */
struct socket_tcp_state {
        uint64_t rate; /* bytes per second that it carried; 0: not known, or the sender was idle */
        bool owes;     /* the other host must acknowledge bytes, or a probe of its window */
        bool unsent;   /* bytes wait here to be sent */
        bool closed;   /* the other side has closed it in order, and it was not reset since */
        uint32_t acknowledged_ms; /* the age of the last acknowledgement */
        uint64_t round_trip_ns;   /* to the other host and back; 0: not known */
};

/* False: it is not TCP, or the system is too old to tell (before Linux 4.9). */
SP_NODISCARD bool socket_tcp_state(int fd, struct socket_tcp_state *ret);

/* Is there no byte, or no room, for now? For errno after a failed call. */
static inline bool socket_would_wait(int error)
{
        return error == EAGAIN || error == ENOBUFS;
}

#endif
