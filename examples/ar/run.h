/* A run: computes the frames in one place, and measures them. */
#ifndef AR_RUN_H
#define AR_RUN_H

#include "options.h"
#include "place.h"

/* Print the figures of the place o->place. Ends the program on errors. */
void run(const struct options *o, struct machine *m, const struct roles *roles);

#endif
