/* PoCL's environment variables for remote devices and accelerators. They count when SpanCL's own are
 * unset; config/servers.h decides that.
 *
 * Error texts are allocated; the caller frees them with mem_free. The functions read the
 * environment, so no thread may change it meanwhile. */
#ifndef SPANCL_CONFIG_POCL_H
#define SPANCL_CONFIG_POCL_H

#include "config/entries.h"
#include "config/server_spec.h"

/* POCL_REMOTE0_PARAMETERS and so on up to the first that is unset; none: 0 servers. The caller frees
 * the servers with config_servers_free. SP_E_INVAL with *ret_error, SP_E_NOMEM. */
SP_NODISCARD int pocl_servers(struct server_spec **ret, size_t *ret_count, char **ret_error);

/* POCL_DISCOVERY and the variables that choose ways of discovery, as SPANCL_DISCOVERY names them: a static
 * text, "" for none. */
const char *pocl_sources(void);

/* The value of PoCL's variable for a setting of discovery's sources; "": none. Borrowed from the environment. */
const char *pocl_source_setting(enum config_id id);

/* POCL_ALMAIF0_PARAMETERS and so on, in the grammar of SPANCL_ALMAIF. NULL: none. The caller frees
 * the text with mem_free. SP_E_INVAL with *ret_error, SP_E_NOMEM. */
SP_NODISCARD int pocl_accelerators(char **ret, char **ret_error);

#endif
