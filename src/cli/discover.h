/* The servers that discovery finds, once. */
#ifndef SPANCL_CLI_DISCOVER_H
#define SPANCL_CLI_DISCOVER_H

#include "discovery/discovery.h"

int command_discover(int argc, char **argv);

enum { DISCOVER_TEXT_MAX = 160, DISCOVER_PLACE_MAX = 80 };

struct discover_item {
        struct discovered record;
        const char *source; /* borrowed from the discovery */
        enum discovered_use use;
};

/* Find all servers with the sources of SPANCL_DISCOVERY, or mdns. The caller frees *ret_items with mem_free and
 * then *ret_discovery with discovery_free. On an error it has printed it. */
SP_NODISCARD int discover_once(struct discover_item **ret_items, size_t *ret_count,
                               struct discovery **ret_discovery);

/* Write the first address and the port. */
const char *discover_place(const struct discovered *d, char ret[DISCOVER_PLACE_MAX]);

/* Say whether the server may be used, and what to do if not. */
const char *discover_state(const struct discover_item *i, char ret[DISCOVER_TEXT_MAX]);

#endif
