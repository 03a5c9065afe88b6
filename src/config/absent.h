/* Options that this system has no counterpart of. */
#ifndef SPANCL_CONFIG_ABSENT_H
#define SPANCL_CONFIG_ABSENT_H

#include <stdbool.h>

#include "config/entries.h"

/* Return true if no part of this system can do what the option asks for. Programs refuse it. */
bool config_is_absent(enum config_id id);

#endif
