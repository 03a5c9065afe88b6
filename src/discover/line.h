/* The lines that a discovery source writes: one JSON object for each change. Names and ids come from hosts of the
 * network, so the writer escapes control characters, and no text can end a string or a line. Stateless. */
#ifndef SPANCL_DISCOVER_LINE_H
#define SPANCL_DISCOVER_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "discover/txt.h"

enum {
        LINE_MAX_SIZE = 8192, /* with the newline and a final 0 */
        FOUND_ADDRESSES = 16,
        FOUND_ADDRESS_MAX = 63, /* "fe80::...%INTERFACE" */
        FOUND_ID_MAX = 255,
        FOUND_NAME_MAX = 63,
};

/* The services that the sources search for. */
enum { SERVICE_TYPES = 2 };
extern const struct service_type {
        const char *name; /* in DNS */
        const char *kind; /* in a line */
} service_types[SERVICE_TYPES];

/* The subtype of a service that is about to be withdrawn. The caches of multicast DNS keep a
 * withdrawn record for a second (RFC 6762, 10.1), but report a new one at once. */
#define SERVICE_LEAVES "_leaves._sub._spancl._tcp"

/* A service as a line describes it. */
struct found {
        const char *id, *name; /* UTF-8, at most FOUND_ID_MAX and FOUND_NAME_MAX bytes */
        const char *kind;      /* "spancl" or "pocl" */
        char addresses[FOUND_ADDRESSES][FOUND_ADDRESS_MAX + 1];
        unsigned address_count;
        unsigned port;
        struct txt txt;
};

/* Return true if a text is UTF-8. */
bool line_is_utf8(const char *text);

/* Write the members of a service behind its event, the same for "appears" and "changes". */
void line_body(const struct found *f, char ret[LINE_MAX_SIZE]);

/* Write bytes of lines, as they are. The process ends if standard output is closed, here and below. */
void line_put(const char *text, size_t size);

/* Write a line if the service differs from its last one; a service without addresses is gone. *body is the caller's,
 * from mem_alloc: line_body of the last line; NULL: none, or it is gone. */
void line_announce(const struct found *f, char **body);

/* Write the line of an event. `id` is as in struct found. */
void line_put_gone(const char *id);
void line_put_settled(void);

/* Add a numeric address to the service, unless it is there already or the service has FOUND_ADDRESSES. */
void found_add_address(struct found *f, const char *address);

/* Report a record that is refused on standard error, at most one a second; later reports count the others. */
void line_refused(const char *name, const char *why);

#endif
