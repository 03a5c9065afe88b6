/* The client's variables, from the environment or from configuration files (config/settings.h). The
 * environment of a program with more rights than its user does not count (AT_SECURE).
 *
 * The functions read the environment, so no thread may change it meanwhile. */
#ifndef SPANCL_CONFIG_VARIABLES_H
#define SPANCL_CONFIG_VARIABLES_H

#include "config/options.h"

/* The variable's value; never NULL. An empty value hides those of later origins, and is the default.
 * Borrowed from the environment, or static. */
const char *config_text(enum config_id id);
bool config_is_set(enum config_id id); /* to a value that is not empty */

/* The value, converted as by config_convert, or the default if the value is not allowed
 * (config/faults.h). */
uint64_t config_number(enum config_id id);

struct config_origin {
        enum { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENVIRONMENT } kind;
        const char *file; /* CONFIG_FILE: static */
        unsigned line;
};

/* The place that sets the variable, also to an empty value. */
struct config_origin config_origin(enum config_id id);

/* Write the variable's name, behind the file and line that set it, for messages. */
void config_place(enum config_id id, char *ret, size_t size);

/* Options of an engine inside the client, and the texts that they point to. The program may change
 * its environment while the engine runs. */
struct config_local {
        struct config_options options;
        char cache_size[24], contexts[24], compression[24],
                spin[24]; /* longer ones are not allowed anyway */
        char media[80];
};

/* Fill the options: the values of the client's variables, and none for links that can be lost.
 * `accelerators`, NULL for none, is borrowed. `media`: also the media device. `*ret` stays in its
 * place while it is used. */
void config_local_options(const char *accelerators, bool media, struct config_local *ret);

/* Find the folder of this user's configuration and keys: spancl in XDG_CONFIG_HOME or ~/.config. SP_E_NOENT:
 * there is no home, or the program runs with more rights than its user (AT_SECURE); SP_E_LIMIT: the path does
 * not fit in `size` bytes. */
SP_NODISCARD int config_user_folder(char *ret, size_t size);

/* The folder of a compile cache, of client or server: `given`, or if that is empty the user's own
 * folder, written to `path`. NULL: there is none. */
const char *config_cache_folder(const char *given, char *path, size_t size);

#endif
