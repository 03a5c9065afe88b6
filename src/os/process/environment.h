/* The environment variables of this process. No thread may change them while another one reads them. */
#ifndef SPANCL_OS_PROCESS_ENVIRONMENT_H
#define SPANCL_OS_PROCESS_ENVIRONMENT_H

#include <stddef.h>

#include "base/status.h"

/* Get the value of a variable; the environment owns it. NULL: it is unset, or this process has more rights than
 * its user (setuid), who then must not choose its settings. */
const char *environment_get(const char *name);

/* Set a variable, or remove it. SP_E_NOMEM. */
SP_NODISCARD int environment_set(const char *name, const char *value);
void environment_unset(const char *name);

/* Return all variables as "NAME=value", with a NULL behind them. The environment owns them. */
char **environment_all(void);

#endif
