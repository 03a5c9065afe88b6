/* A reserve of descriptors: connections may take all others, but a worker must still be able to
 * start. One owner. */
#ifndef SPANCL_DAEMON_SPARE_H
#define SPANCL_DAEMON_SPARE_H

#include <stdbool.h>

enum { SPARE_COUNT = 12 }; /* a worker's start takes 9 */

/* A reserve. Zeroed memory is an empty one. */
struct spare {
        int fds[SPARE_COUNT]; /* 0: not kept */
};

/* Fill the reserve. False: there are not enough descriptors. */
bool spare_fill(struct spare *s);
void spare_give(struct spare *s);

#endif
