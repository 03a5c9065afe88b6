/* The answers of a DNS message (RFC 1035). Anybody can send one, so each offset is checked. Stateless. */
#ifndef SPANCL_DISCOVER_DNS_MESSAGE_H
#define SPANCL_DISCOVER_DNS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        DNS_NAME_MAX = 511, /* bytes of a name's text: 255 in a message, each perhaps escaped */
        DNS_A = 1,
        DNS_PTR = 12,
        DNS_TXT = 16,
        DNS_AAAA = 28,
        DNS_SRV = 33,
};

/* A walk over the answers. `data` stays the caller's. */
struct dns_message {
        const uint8_t *data;
        size_t size, at;
        unsigned left; /* answers */
};

struct dns_record {
        unsigned type;
        uint32_t ttl_s;
        size_t at, size; /* of its data in the message */
};

/* Begin. False: the message is malformed. */
bool dns_begin(struct dns_message *m, const void *data, size_t size);

/* Read the next answer. False: there is none, or the rest is malformed. */
bool dns_next(struct dns_message *m, struct dns_record *ret);

/* Read the name at `at` as text without a final dot. '.' and '\\' within a label get a '\\' in front. *ret_end: behind
 * the name. False: it is malformed, or it has a zero byte. */
bool dns_name(const struct dns_message *m, size_t at, char ret[DNS_NAME_MAX + 1], size_t *ret_end);

/* Write the first label of a name's text, without escapes. */
void dns_label(const char *name, char ret[DNS_NAME_MAX + 1]);

#endif
