/* The servers and accelerators that the environment and files configure. Variables of PoCL in the environment
 * come before files.
 *
 * Error texts are allocated; the caller frees them with mem_free. The functions read the
 * environment, so no thread may change it meanwhile. */
#ifndef SPANCL_CONFIG_SERVERS_H
#define SPANCL_CONFIG_SERVERS_H

#include "config/entries.h"
#include "config/server_spec.h"

/* The accelerators that are devices of this process, in the grammar of SPANCL_ALMAIF, also if
 * POCL_ALMAIF<n>_PARAMETERS name them. NULL: none. The caller frees it with mem_free. SP_E_INVAL
 * with *ret_error, SP_E_NOMEM. */
SP_NODISCARD int config_accelerators(char **ret, char **ret_error);

/* Return true if the environment sets this variable, so that those of PoCL do not count. */
bool config_overrides_pocl(enum config_id id);
/* The sources of further servers, in the grammar of SPANCL_DISCOVERY; "": none. Borrowed from the environment. */
const char *config_sources(void);
/* A setting of discovery's sources (SPANCL_SEARCH_DOMAINS, SPANCL_DHT_BOOTSTRAP, _PORT, _KEY), or
 * PoCL's variable for it. Borrowed from the environment, or static. */
const char *config_source_setting(enum config_id id);

/* The servers configured; the caller frees them with config_servers_free. SP_E_INVAL with *ret_error,
 * SP_E_NOMEM. */
SP_NODISCARD int config_servers(struct server_spec **ret, size_t *ret_count, char **ret_error);

#endif
