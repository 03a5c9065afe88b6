/* Descriptors that are kept for when there are no others: connections take all that there are, and a worker must be
 * startable nevertheless. One owner. */
#ifndef SPANCL_DAEMON_SPARE_H
#define SPANCL_DAEMON_SPARE_H

#include <stdbool.h>

enum { SPARE_COUNT = 12 }; /* a worker's start takes 9 */

/* Zeroed memory is one that keeps none. */
struct spare {
        int fds[SPARE_COUNT]; /* 0: not kept */
};

/* Keep all. False: there are not enough. */
bool spare_fill(struct spare *s);
void spare_give(struct spare *s);

#endif
