/* The processors' counters of energy (RAPL), as Linux shows them in a folder. Only root may read them. Source:
 * Documentation/power/powercap/powercap.rst of Linux. One owner. */
#ifndef SPANCL_DAEMON_POWERCAP_H
#define SPANCL_DAEMON_POWERCAP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POWERCAP_PROCESSORS = 16, POWERCAP_ZONE = 32 };

struct powercap {
        char folder[PATH_MAX];
        struct {
                unsigned number;
                char zone[POWERCAP_ZONE]; /* its name in the folder */
                uint64_t range_uj;        /* the counter goes on with 0 above this */
        } processors[POWERCAP_PROCESSORS];
        size_t count;
};

/* Find the processors whose counters can be read. `folder`: "": there are none. Those beyond POWERCAP_PROCESSORS are
 * left out. */
void powercap_find(const char *folder, struct powercap *ret);

/* Read the counter of entry `i`, in microjoules. Return false if it can't be read. */
bool powercap_read(const struct powercap *p, size_t i, uint64_t *ret_uj);

#endif
