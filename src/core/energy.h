/* The energy that this program's sessions have used, as the servers tell it (INFO_ENERGY). */
#ifndef SPANCL_CORE_ENERGY_H
#define SPANCL_CORE_ENERGY_H

#include "core/client.h"

enum { ENERGY_DEVICES = 64, ENERGY_NAME = 64 };

#define ENERGY_MAX_UJ (UINT64_C(1) << 50) /* a larger value is taken as this one */

/* A device of a server. */
struct energy_device {
        unsigned server; /* its index */
        uint64_t number; /* for --devices */
        uint64_t energy_uj;
        char name[ENERGY_NAME]; /* printable */
};

/* Ask all servers. If devices have counters, wait up to 1.5 s for the samples with all that the program has used.
 * Returns the number of devices, ENERGY_DEVICES at most. */
size_t energy_ask(struct client *c, struct energy_device ret[ENERGY_DEVICES]) REQUIRES(client_held);

/* Take a server's answer. Returns the number of the oldest sample in it; UINT64_MAX: no device has a counter. Devices
 * beyond the room are left out. */
uint64_t energy_take(unsigned server, struct bytes answer, struct energy_device ret[ENERGY_DEVICES],
                     size_t *count);

#endif
