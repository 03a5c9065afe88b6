/* Addresses of sockets: IP, Unix sockets, and AF_VSOCK of virtual machines. No state. */
#ifndef SPANCL_OS_NET_SOCKET_ADDRESS_H
#define SPANCL_OS_NET_SOCKET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"
#include "os/net/ip.h"

struct socket_address {
        struct sockaddr_storage at;
        socklen_t size;
};

enum socket_family { SOCKET_OTHER, SOCKET_IP4, SOCKET_IP6, SOCKET_UNIX, SOCKET_VM };

enum {
        SOCKET_VM_ANY =
                0xffffffff,    /* as the number of a machine: all; as a port: the system chooses */
        SOCKET_HOST_MAX = 256, /* of a host in text, with its final 0 */
        SOCKET_PATH_MAX = 109, /* of a Unix socket's path, with its final 0 */
};

enum socket_family socket_address_family(const struct socket_address *a);

/* The same for an address that is none of IP. */
enum socket_family socket_address_other_family(const struct socket_address *a);

/* Get an address of IP. One of IPv4 that is mapped into IPv6 becomes one of IPv4. False: it is none of IP. */
bool socket_address_ip(const struct socket_address *a, struct ip *ret);

/* The address as struct sockaddr, for calls that take one. */
static inline const struct sockaddr *socket_address_raw(const struct socket_address *a)
{
        return (const struct sockaddr *)&a->at;
}

/* Write an address of IP as numbers, IPv6 without brackets. False: it is none of IP. */
bool socket_address_text(const struct socket_address *a, char ret_host[SOCKET_HOST_MAX],
                         unsigned *ret_port);

/* Find the addresses of a host, which is a name or a number, to connect to, or if `passive` to listen on. A name may
 * take a query of the network. Returns an array for the caller to free(). SP_E_HOST: there is none; SP_E_NOMEM. Then
 * *ret_why is the reason as text, static; `ret_why` may be NULL. */
SP_NODISCARD int socket_address_resolve(const char *host, unsigned port, bool passive,
                                        struct socket_address **ret, size_t *ret_count,
                                        const char **ret_why);

/* Make the address of all of this host's IPv4 addresses. */
void socket_address_any_ip4(unsigned port, struct socket_address *ret);

/* Make the address of a Unix socket. False: the path is empty or too long. */
SP_NODISCARD bool socket_address_of_path(const char *path, struct socket_address *ret);

/* Get the path of a Unix socket. False: it has none. */
SP_NODISCARD bool socket_address_path(const struct socket_address *a, char ret[SOCKET_PATH_MAX]);

/* Make or read an address of SOCKET_VM: the number of a machine (CID), and a port. */
void socket_address_of_vm(uint32_t machine, uint32_t port, struct socket_address *ret);
void socket_address_vm(const struct socket_address *a, uint32_t *ret_machine, uint32_t *ret_port);

#endif
