/* Loopback: the addresses whose packets never leave this host. Only a link to one of them may go
 * unencrypted without an explicit setting. No locks, any thread. */
#ifndef SPANCL_BASE_LOOPBACK_H
#define SPANCL_BASE_LOOPBACK_H

#include <stdbool.h>

struct sockaddr;

/* Return true for 127.0.0.0/8, also as an IPv4-mapped IPv6 address, and for ::1. */
bool loopback_address(const struct sockaddr *a);

/* Return true for the number of a loopback address, perhaps in brackets, and for "localhost". Nothing is
 * resolved: a resolver may still return other addresses for "localhost". */
bool loopback_host(const char *host);

/* Return the transport (transport.h) of a link to a host that is named without "tcp:" or "tls:". */
const char *loopback_scheme(const char *host);

#endif
