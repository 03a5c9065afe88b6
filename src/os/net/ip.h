/* IP addresses. No state. */
#ifndef SPANCL_OS_NET_IP_H
#define SPANCL_OS_NET_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

enum {
        IP_V4 = 4, /* sizes */
        IP_V6 = 16,
        IP_TEXT_MAX = 46, /* characters with the NUL */
};

struct ip {
        size_t size;          /* IP_V4 or IP_V6 */
        uint8_t bytes[IP_V6]; /* in the order of the network */
};

/* Parse an address in its usual form, as RFC 4291 has it, or four decimal numbers. False: it is none. */
bool ip_parse(const char *text, struct ip *ret);

/* Parse an address in any form that the system takes in the place of a name, such as "127.1". False: it is
 * none. */
bool ip_parse_any(const char *text, struct ip *ret);

/* Return true if both are the same address. */
bool ip_is(const struct ip *a, const struct ip *b);

/* Take the address of a socket. False: it is of another family. */
bool ip_of_socket(const struct sockaddr *a, struct ip *ret);

/* Write the address in its usual form. */
void ip_text(const struct ip *ip, char ret[IP_TEXT_MAX]);

#endif
