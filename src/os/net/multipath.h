/* Multipath TCP (RFC 8684): one connection over several paths between two hosts, for instance over Wi-Fi and a mobile
 * network. The system adds and drops paths by itself (ip-mptcp(8)); programs see one stream. If the other host has no
 * Multipath TCP, the connection is one of TCP. No state; any thread. */
#ifndef SPANCL_OS_NET_MULTIPATH_H
#define SPANCL_OS_NET_MULTIPATH_H

#include "os/net/socket.h"

/* Make a stream socket as socket_new, for Multipath TCP if this system has it (Linux 5.6, net.mptcp.enabled). -1. */
SP_NODISCARD int multipath_new(const struct socket_address *like);

/* Return the number of paths beside the first one that the connection has now, or -1: it is one of TCP, or no IP. The
 * first path counts as there, also after it was lost. */
int multipath_further_paths(int fd);

/* Replace the parts of *state that speak of the first path only. No change: the connection is one of TCP. Before
 * Linux 6.10 the system does not tell when the other host last acknowledged: then it owes nothing. */
void multipath_state(int fd, struct socket_tcp_state *state);

#endif
