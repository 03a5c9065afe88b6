/* A server that a source of discovery has found, and the reader of a source's lines
 * (docs/internals/discovery.md has the format). The reader trusts nothing: a line may come from
 * any host of the network. It allocates nothing. No state; any thread. */
#ifndef SPANCL_DISCOVERY_DISCOVERED_H
#define SPANCL_DISCOVERY_DISCOVERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
        DISCOVERED_LINE_MAX = 8192, /* bytes of a line, with its newline */
        DISCOVERED_ID_MAX = 255,
        DISCOVERED_NAME_MAX = 63,
        DISCOVERED_ADDRESSES_MAX = 16,
        DISCOVERED_ADDRESS_MAX = 63, /* of a numeric address with its scope */
        DISCOVERED_KEY = 64,         /* hexadecimal digits of a fingerprint */
};

enum discovered_event {
        DISCOVERED_APPEARS,
        DISCOVERED_CHANGES, /* as APPEARS: the whole record again */
        DISCOVERED_GONE,    /* the id alone counts */
        DISCOVERED_SETTLED, /* the source has reported all that it can find at first */
};

enum discovered_kind {
        DISCOVERED_SPANCL,
        DISCOVERED_POCL, /* a PoCL-R server, which speaks another protocol */
};

enum discovered_types {
        DISCOVERED_CPU = 1,
        DISCOVERED_GPU = 2,
        DISCOVERED_ACCELERATOR = 4,
        DISCOVERED_CUSTOM = 8,
};

struct discovered {
        char id[DISCOVERED_ID_MAX + 1];     /* unique within its source */
        char name[DISCOVERED_NAME_MAX + 1]; /* for people: UTF-8 without control characters */
        char key[DISCOVERED_KEY + 1];       /* the fingerprint of the server's key; "": none */
        /* Numeric, as inet_pton takes them; of IPv6 perhaps with '%' and a scope. */
        char addresses[DISCOVERED_ADDRESSES_MAX][DISCOVERED_ADDRESS_MAX + 1];
        unsigned address_count;
        unsigned port;     /* 1 to 65535 */
        unsigned types;    /* enum discovered_types; 0: not known */
        uint64_t protocol; /* version; 0: not known */
        uint64_t load;     /* sessions */
        enum discovered_kind kind;
};

/* Read one line, without its newline. GONE fills in the id alone, SETTLED nothing. SP_E_INVAL: the
 * line is not valid JSON, lacks a member, or has a value that is not allowed; *ret_why says which,
 * a static text, and the outputs are undefined. */
SP_NODISCARD int discovered_parse(const char *line, size_t size, enum discovered_event *ret_event,
                                  struct discovered *ret, const char **ret_why);

/* Return true if all addresses of the record are loopback. */
bool discovered_is_here(const struct discovered *d);

#endif
