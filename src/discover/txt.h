/* The TXT record of a service _spancl._tcp. Anybody in the network can send one, so a record with a wrong value is
 * refused whole. Stateless. */
#ifndef SPANCL_DISCOVER_TXT_H
#define SPANCL_DISCOVER_TXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
        TXT_MAX = 1300, /* bytes of a whole record (RFC 6763, 6.2) */
        TXT_KEY = 64,   /* hexadecimal digits */
        TXT_TYPES_MAX = 31,
};

/* The known keys of a record. Zeroed memory is an empty record. */
struct txt {
        char key[TXT_KEY + 1]; /* the fingerprint of the server's key; "": not given */
        char types[TXT_TYPES_MAX +
                   1]; /* of "cpu,gpu,accelerator,custom", each once; "": not given */
        bool has_protocol, has_load;
        uint32_t protocol, load;
};

/* Take one string of a record, "name=value". The first string of each name counts, unknown names are ignored
 * (RFC 6763, 6.4). SP_E_INVAL: a known name has a wrong value. */
SP_NODISCARD int txt_take(struct txt *t, const void *data, size_t size);

/* Parse a record in the form of DNS: strings with their lengths in front. SP_E_INVAL, SP_E_LIMIT: it is larger than
 * TXT_MAX. */
SP_NODISCARD int txt_parse(const void *data, size_t size, struct txt *ret);

#endif
