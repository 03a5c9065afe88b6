/* The name that a user probably meant. Any thread. */
#ifndef SPANCL_CONFIG_NEAREST_H
#define SPANCL_CONFIG_NEAREST_H

#include "config/entries.h"

/* The number of letters to insert, delete or replace between the two texts. Letters count as equal in either
 * case. UINT_MAX: a text is longer than 64 bytes. */
unsigned config_distance(const char *a, const char *b);

/* Find the entry of this side whose name is nearest to `name`. NULL: none is near, so that a third
 * of the letters would differ. Static. */
const char *config_nearest(enum config_side side, const char *name);

#endif
