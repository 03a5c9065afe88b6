/* Environment variables of the client: their values, checked and converted.
 *
 * Error texts are allocated; the caller frees them with mem_free. The functions read the
 * environment, so no thread may change it meanwhile. */
#ifndef SPANCL_CONFIG_VARIABLES_H
#define SPANCL_CONFIG_VARIABLES_H

#include "config/options.h"

/* The variable's value, or its default when unset or empty; never NULL. Borrowed from the environment. */
const char *config_text(enum config_id id);
bool config_is_set(enum config_id id);

/* The value, checked and converted as by config_convert. SP_E_INVAL with *ret_error, SP_E_NOMEM. */
SP_NODISCARD int config_number(enum config_id id, uint64_t *ret, char **ret_error);

/* SPANCL_ON_LOSS: how long calls wait, in ns. 0: not at all; UINT64_MAX: for ever. SP_E_INVAL with
 * *ret_error, SP_E_NOMEM. */
SP_NODISCARD int config_on_loss(uint64_t *ret_ns, char **ret_error);

/* Options of an engine inside the client, and the texts that they point to. The program may change
 * its environment while the engine runs. */
struct config_local {
        struct config_options options;
        char cache_size[24], contexts[24], compression[24]; /* longer ones are not allowed anyway */
};

/* Fill the options: the values of the client's variables, and none for links that can be lost.
 * `accelerators`, NULL for none, is borrowed. `*ret` stays in its place while it is used. */
void config_local_options(const char *accelerators, struct config_local *ret);

/* The folder of a compile cache, of client or server: `given`, or if that is empty the user's own
 * folder, written to `path`. NULL: there is none. */
const char *config_cache_folder(const char *given, char *path, size_t size);

#endif
